//! One alert: what is taken from a log event, and how it is posted.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;
use serde_json::Value;
use tracing::{
    Event,
    field::{Field, Visit},
};

use super::KINDS;

/// What is posted. The message and the fields are of the event that raised it.
#[derive(Debug, Serialize)]
pub(super) struct Alert {
    pub(super) kind: &'static str,
    /// When it was raised, in unix time.
    pub(super) at_ms: u64,
    message: String,
    #[serde(flatten)]
    fields: BTreeMap<&'static str, Value>,
}

/// What an alert may tell besides its message. All other fields stay in the process, so that no identity, no
/// digest and no text of a caller can leave it by a field that somebody adds to a log line.
const TEXTS: [&str; 3] = ["family", "axis", "store"];
const NUMBERS: [&str; 9] =
    ["budget", "used", "remaining", "reserve", "limit", "entries", "entries_max", "refused", "stopped"];

impl Alert {
    /// The alert that `event` is, if its kind is one of [`KINDS`]; and the kind's place there.
    pub(super) fn of(event: &Event<'_>, at_ms: u64) -> Option<(usize, Self)> {
        let mut seen = Seen::default();
        event.record(&mut seen);
        let place = seen.kind?;
        Some((place, Self { kind: KINDS[place], at_ms, message: seen.message, fields: seen.fields }))
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("names are texts, values are texts, whole numbers and booleans")
    }
}

/// What has been seen of an event.
#[derive(Default)]
struct Seen {
    kind: Option<usize>,
    message: String,
    fields: BTreeMap<&'static str, Value>,
}

impl Seen {
    fn number(&mut self, field: &Field, value: impl Into<Value>) {
        if NUMBERS.contains(&field.name()) {
            self.fields.insert(field.name(), value.into());
        }
    }
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "kind" => self.kind = KINDS.iter().position(|kind| *kind == value),
            "message" => value.clone_into(&mut self.message),
            name if TEXTS.contains(&name) => drop(self.fields.insert(name, value.into())),
            _ => {}
        }
    }

    /// Also what is written with `%`.
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" || field.name() == "kind" || TEXTS.contains(&field.name()) {
            self.record_str(field, &format!("{value:?}"));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field, value);
    }
}
