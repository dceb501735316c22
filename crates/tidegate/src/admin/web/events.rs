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
    let state = (admin, visitor, render, Map::new(), true, place);
    let events = stream::unfold(state, |(admin, visitor, render, sent, first, place)| async move {
        let mut shutdown = admin.shutdown.clone();
        let mut sent = sent;
        let mut first = first;
        loop {
            if !std::mem::take(&mut first) {
                tokio::select! {
                    // An error means that the sender is gone, which says the same.
                    _ = shutdown.wait_for(|told| *told) => return None,
                    () = tokio::time::sleep(EVERY) => {}
                }
            }
            if !is_signed_in(&admin, &visitor.session) {
                return None;
            }
            let parts = render(Arc::clone(&admin), visitor.clone()).await?;
            let changed = changes(&mut sent, parts);
            if !changed.is_empty() {
                let event = Event::default().data(Value::Object(changed).to_string());
                return Some((Ok::<_, Infallible>(event), (admin, visitor, render, sent, false, place)));
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
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
