//! What keeps a page up to date: its live parts, rendered anew and sent whenever one has changed.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::response::{
    IntoResponse, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures_util::stream;
use http::StatusCode;
use maud::Markup;
use serde_json::{Map, Value};
use tidegate_listen::{Shutdown, told};
use tokio::time::Instant;

use super::visitor::Visitor;
use crate::admin::{Admin, sessions::Session};

/// Fast enough to watch, slow enough to read.
const EVERY: Duration = Duration::from_secs(2);

/// The parts of a page by their id.
pub(super) type Parts = Vec<(&'static str, Markup)>;

/// Sends what `render` makes until the browser leaves, the session ends or the process stops.
pub(super) fn stream<F, R>(admin: Arc<Admin>, visitor: Visitor, render: F) -> Response
where
    F: Fn(Arc<Admin>, Visitor) -> R + Send + 'static,
    R: Future<Output = Option<Parts>> + Send,
{
    let Ok(place) = Arc::clone(&admin.streams).try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let page =
        Page { shutdown: admin.shutdown.clone(), admin, visitor, render, sent: Map::new(), at: At::Start };
    let events = stream::unfold((page, place), |(mut page, place)| async move {
        let event = page.next().await?;
        Some((Ok::<_, Infallible>(event), (page, place)))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// What somebody is told who is not signed in, or not any more.
pub(super) fn over() -> Response {
    let event = Event::default().event("over").data("-");
    Sse::new(stream::iter([Ok::<_, Infallible>(event)])).into_response()
}

/// An open page.
struct Page<F> {
    admin: Arc<Admin>,
    visitor: Visitor,
    render: F,
    /// Each part as the browser has it.
    sent: Map<String, Value>,
    shutdown: Shutdown,
    at: At,
}

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Underway,
    End,
}

impl<F, R> Page<F>
where
    F: Fn(Arc<Admin>, Visitor) -> R,
    R: Future<Output = Option<Parts>>,
{
    async fn next(&mut self) -> Option<Event> {
        loop {
            match std::mem::replace(&mut self.at, At::Underway) {
                At::Start => {}
                At::Underway => self.pause().await?,
                At::End => return None,
            }
            if !is_signed_in(&self.admin, &self.visitor.session) {
                self.at = At::End;
                return Some(Event::default().event("over").data("-"));
            }
            let parts = (self.render)(Arc::clone(&self.admin), self.visitor.clone()).await?;
            let changed = changes(&mut self.sent, parts);
            if !changed.is_empty() {
                return Some(Event::default().data(Value::Object(changed).to_string()));
            }
        }
    }

    /// None: the process stops.
    async fn pause(&mut self) -> Option<()> {
        tokio::select! {
            () = told(&mut self.shutdown) => None,
            () = tokio::time::sleep(EVERY) => Some(()),
        }
    }
}

fn is_signed_in(admin: &Admin, session: &Session) -> bool {
    let live = admin.sessions.has(&session.key, Instant::now());
    live && admin.access.token(&session.token).is_some()
}

/// What is not as it was sent last.
fn changes(sent: &mut Map<String, Value>, parts: Parts) -> Map<String, Value> {
    let mut changed = Map::new();
    for (id, part) in parts {
        let html = Value::String(part.into_string());
        if sent.get(id) != Some(&html) {
            sent.insert(id.to_owned(), html.clone());
            changed.insert(id.to_owned(), html);
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn only_what_changed_is_sent() {
        let mut sent = Map::new();
        assert_eq!(changes(&mut sent, vec![("a", html! { "1" }), ("b", html! { "1" })]).len(), 2);
        assert_eq!(changes(&mut sent, vec![("a", html! { "1" }), ("b", html! { "1" })]).len(), 0);
        let changed = changes(&mut sent, vec![("a", html! { "1" }), ("b", html! { "2" })]);
        assert_eq!(changed.into_iter().collect::<Vec<_>>(), [("b".to_owned(), Value::from("2"))]);
    }
}
