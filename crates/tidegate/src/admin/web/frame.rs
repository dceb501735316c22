//! What all pages have around them.

use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use maud::{DOCTYPE, Markup, html};

use super::visitor::{CSRF, Visitor};

/// The places that the bar leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Overview,
    Guard,
    Audit,
    Elsewhere,
}

const PLACES: [(Place, &str, &str); 3] = [
    (Place::Overview, "/", "Overview"),
    (Place::Guard, "/guard", "Guard"),
    (Place::Audit, "/audit", "Audit"),
];

/// A whole page. `events` is where its live parts come from.
pub(super) fn page(
    visitor: &Visitor,
    place: Place,
    title: &str,
    events: Option<&str>,
    content: &Markup,
) -> Response {
    let bar = html! {
        nav aria-label="Pages" {
            @for (other, path, name) in PLACES {
                a href=(path) aria-current=[(other == place).then_some("page")] { (name) }
            }
        }
        form.who method="post" action="/sign-out" {
            (csrf(visitor))
            span { (visitor.caller.name) }
            button.plain { "Sign out" }
        }
    };
    Html(document(title, events, Some(&bar), content).into_string()).into_response()
}

/// A page for nobody in particular.
pub(super) fn bare(status: StatusCode, title: &str, content: &Markup) -> Response {
    (status, Html(document(title, None, None, content).into_string())).into_response()
}

/// A page that says why something was not done.
pub(super) fn problem(visitor: Option<&Visitor>, status: StatusCode, title: &str, text: &str) -> Response {
    let content = html! {
        div.card.empty { strong { (title) } p { (text) } a href="/" { "To the overview" } }
    };
    let Some(visitor) = visitor else { return bare(status, title, &content) };
    let mut answer = page(visitor, Place::Elsewhere, title, None, &content);
    *answer.status_mut() = status;
    answer
}

/// The hidden field that every form carries.
pub(super) fn csrf(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name=(CSRF) value=(visitor.session.csrf.expose()); }
}

fn document(title: &str, events: Option<&str>, bar: Option<&Markup>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Tidegate" }
                link rel="icon" href=(ICON);
                link rel="stylesheet" href="/style.css";
                script src="/script.js" defer {}
            }
            body data-events=[events] {
                a.skip href="#content" { "To the content" }
                header.bar {
                    div {
                        a.brand href="/" { (MARK) "Tidegate" }
                        @if let Some(bar) = bar { (bar) }
                    }
                }
                main id="content" { (content) }
            }
        }
    }
}

/// Waves held back by a gate.
const MARK: maud::PreEscaped<&str> = maud::PreEscaped(
    r#"<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true"><path d="M2 8q2.5-3 5 0t5 0M2 13q2.5-3 5 0t5 0M2 18q2.5-3 5 0t5 0M16 4v16M21 4v16"/></svg>"#,
);
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' \
    stroke='%230a7f87' stroke-width='2.4' stroke-linecap='round'%3E%3Cpath d='M2 8q2.5-3 5 0t5 0M2 13q2.5-3 5 0t5 \
    0M2 18q2.5-3 5 0t5 0M16 4v16M21 4v16'/%3E%3C/svg%3E";
