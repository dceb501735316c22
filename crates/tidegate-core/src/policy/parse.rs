//! Reading a document: every fault is told, none is guessed away.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use serde_json::{Map, Value, json};

use super::{
    BURST_MAX, DOCUMENT_BYTES_MAX, DocumentRoute, IPV6_PREFIX_MIN, LIST_ENTRIES_MAX, ListEntry, METHODS_MAX,
    Mode, NOTE_BYTES_MAX, Policy, PolicyDocument, PolicyFault, ROUTES_MAX, RPS_MAX, Rate, agents,
    faults::Faults,
};
use crate::{
    INTEGER_MAX,
    json::{self, Read},
    network::Prefix,
    path::PATH_BYTES_MAX,
};

/// Where a document comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Somebody has just written it.
    Sent,
    /// A store, which may have taken it from a version that asked for less.
    Stored,
}

pub(super) fn parse(json: &[u8], origin: Origin) -> Result<Policy, Vec<PolicyFault>> {
    let mut faults = Faults::default();
    if json.len() > DOCUMENT_BYTES_MAX {
        faults.add("", format!("the document has {} bytes; {DOCUMENT_BYTES_MAX} are allowed", json.len()));
        return faults.into_result(Policy::default());
    }
    match json::read(json) {
        Ok(Read { value: Value::Object(fields), duplicates }) => {
            duplicates.into_iter().for_each(|place| faults.add(place, "is there twice"));
            let document = document(Fields::new("", fields), origin, &mut faults);
            let agents = agents::compile(&document.deny_user_agents, &mut faults);
            let policy = faults.into_result(Policy::compile(document, agents))?;
            fits_as_shown(policy)
        }
        Ok(_) => {
            faults.add("", "the document must be an object");
            faults.into_result(Policy::default())
        }
        Err(error) => {
            faults.add("", format!("the document is no JSON: {error}"));
            faults.into_result(Policy::default())
        }
    }
}

/// What is kept is the document with its defaults filled in.
fn fits_as_shown(policy: Policy) -> Result<Policy, Vec<PolicyFault>> {
    let mut faults = Faults::default();
    let bytes = serde_json::to_vec(policy.document()).map_or(usize::MAX, |shown| shown.len());
    if bytes > DOCUMENT_BYTES_MAX {
        let message =
            format!("the document has {bytes} bytes with its defaults; {DOCUMENT_BYTES_MAX} are allowed");
        faults.add("", message);
    }
    faults.into_result(policy)
}

fn document(mut fields: Fields, origin: Origin, faults: &mut Faults) -> PolicyDocument {
    let defaults = PolicyDocument::default();
    let (rps, burst) = limit(&mut fields, false, faults);
    let route = |value: &Value, field: &str, faults: &mut Faults| route(value, field, origin, faults);
    let document = PolicyDocument {
        mode: fields.read("mode", faults, mode).unwrap_or_default(),
        rps,
        burst,
        deny_cidrs: list(&mut fields, "deny_cidrs", LIST_ENTRIES_MAX, faults, entry),
        deny_user_agents: list(&mut fields, "deny_user_agents", LIST_ENTRIES_MAX, faults, agent),
        deny_missing_user_agent: fields.read("deny_missing_user_agent", faults, flag).unwrap_or_default(),
        allow_cidrs: list(&mut fields, "allow_cidrs", LIST_ENTRIES_MAX, faults, entry),
        ipv6_prefix: fields.read("ipv6_prefix", faults, ipv6_prefix).unwrap_or(defaults.ipv6_prefix),
        routes: list(&mut fields, "routes", ROUTES_MAX, faults, route),
    };
    fields.refuse_the_rest(faults);
    document
}

/// The fields of an object, taken out one by one: what is left in the end is unknown.
struct Fields {
    /// Of the object: empty, or with a dot at its end.
    path: String,
    left: Map<String, Value>,
}

impl Fields {
    fn new(path: &str, left: Map<String, Value>) -> Self {
        let path = if path.is_empty() { String::new() } else { format!("{path}.") };
        Self { path, left }
    }

    /// What `reader` makes of a field; none if it isn't there or is faulty.
    fn read<T>(
        &mut self,
        name: &str,
        faults: &mut Faults,
        reader: impl FnOnce(&Value, &str, &mut Faults) -> Option<T>,
    ) -> Option<T> {
        let value = self.left.remove(name)?;
        reader(&value, &format!("{}{name}", self.path), faults)
    }

    fn refuse_the_rest(self, faults: &mut Faults) {
        for name in self.left.keys() {
            let shown: String = name.chars().take(FIELD_CHARS_SHOWN).collect();
            faults.add(format!("{}{shown}", self.path), "is no field of a policy");
        }
    }
}

/// Longer than any field is.
const FIELD_CHARS_SHOWN: usize = 64;

fn list<T>(
    fields: &mut Fields,
    name: &str,
    entries_max: usize,
    faults: &mut Faults,
    reader: impl Fn(&Value, &str, &mut Faults) -> Option<T>,
) -> Vec<T> {
    let items = fields.read(name, faults, |value, field, faults| match value {
        Value::Array(items) if items.len() <= entries_max => {
            let each = items.iter().enumerate();
            Some(each.filter_map(|(at, item)| reader(item, &format!("{field}[{at}]"), faults)).collect())
        }
        Value::Array(items) => {
            faults.add(field, format!("has {} entries; {entries_max} are allowed", items.len()));
            None
        }
        _ => {
            faults.add(field, "must be a list");
            None
        }
    });
    items.unwrap_or_default()
}

/// A route needs both numbers: one that forgot them would limit nothing. The client's own default to no limit.
fn limit(fields: &mut Fields, needs_both: bool, faults: &mut Faults) -> (Rate, u64) {
    let given = ["rps", "burst"].map(|name| fields.left.contains_key(name));
    if needs_both {
        for (name, _) in ["rps", "burst"].into_iter().zip(given).filter(|(_, given)| !given) {
            faults.add(format!("{}{name}", fields.path), "is missing");
        }
    }
    let rps = fields.read("rps", faults, rate);
    let burst =
        fields.read("burst", faults, |value, field, faults| integer(value, 0, BURST_MAX, field, faults));
    // What is faulty by itself, or told to be missing, is not told again.
    let told = burst.is_none() && (given[1] || needs_both);
    if rps.is_some_and(|rps| rps.0 > 0) && burst.unwrap_or(0) == 0 && !told {
        faults.add(format!("{}burst", fields.path), "must be 1 or more where rps is over 0");
    }
    (rps.unwrap_or_default(), burst.unwrap_or_default())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the number is from 0 to 10^6, its millionths from 0 to 10^12"
)]
fn rate(value: &Value, field: &str, faults: &mut Faults) -> Option<Rate> {
    let number = value.as_f64().filter(|number| (0.0..=RPS_MAX as f64).contains(number));
    let Some(number) = number else {
        faults.add(field, format!("must be a number from 0 to {RPS_MAX}"));
        return None;
    };
    let millionths = (number * Rate::ONE as f64 + 0.5) as u64;
    if millionths == 0 && number > 0.0 {
        faults.add(field, "is under one millionth, the smallest rate");
        return None;
    }
    Some(Rate(millionths))
}

fn integer(value: &Value, least: u64, most: u64, field: &str, faults: &mut Faults) -> Option<u64> {
    let number = value.as_u64().filter(|number| (least..=most).contains(number));
    if number.is_none() {
        faults.add(field, format!("must be a whole number from {least} to {most}"));
    }
    number
}

fn mode(value: &Value, field: &str, faults: &mut Faults) -> Option<Mode> {
    let mode = Mode::ALL.into_iter().find(|mode| value.as_str() == Some(mode.as_str()));
    if mode.is_none() {
        faults.add(field, "must be off, log_only or enforce");
    }
    mode
}

fn flag(value: &Value, field: &str, faults: &mut Faults) -> Option<bool> {
    if !value.is_boolean() {
        faults.add(field, "must be true or false");
    }
    value.as_bool()
}

fn text(value: &Value, field: &str, faults: &mut Faults) -> Option<String> {
    let text = value.as_str().map(ToString::to_string);
    if text.is_none() {
        faults.add(field, "must be a text");
    }
    text
}

fn agent(value: &Value, field: &str, faults: &mut Faults) -> Option<String> {
    let pattern = text(value, field, faults)?;
    agents::check(&pattern).map_err(|message| faults.add(field, message)).ok()?;
    Some(pattern)
}

fn ipv6_prefix(value: &Value, field: &str, faults: &mut Faults) -> Option<u8> {
    let length = integer(value, IPV6_PREFIX_MIN.into(), 128, field, faults)?;
    u8::try_from(length).ok()
}

fn entry(value: &Value, field: &str, faults: &mut Faults) -> Option<ListEntry> {
    match value {
        Value::String(text) => {
            let cidr = prefix(text, field, faults)?;
            Some(ListEntry { cidr, note: None, expires_at_ms: None })
        }
        Value::Object(fields) => {
            let mut fields = Fields::new(field, fields.clone());
            if !fields.left.contains_key("cidr") {
                faults.add(format!("{field}.cidr"), "is missing");
            }
            let cidr = fields.read("cidr", faults, |value, field, faults| {
                text(value, field, faults).and_then(|text| prefix(&text, field, faults))
            });
            let note = fields.read("note", faults, note);
            let expires_at_ms = fields.read("expires_at_ms", faults, |value, field, faults| {
                integer(value, 0, INTEGER_MAX, field, faults)
            });
            fields.refuse_the_rest(faults);
            Some(ListEntry { cidr: cidr?, note, expires_at_ms })
        }
        _ => {
            faults.add(field, "must be a network, or an object with a cidr");
            None
        }
    }
}

fn prefix(text: &str, field: &str, faults: &mut Faults) -> Option<Prefix> {
    Prefix::parse(text).map_err(|fault| faults.add(field, fault.to_string())).ok()
}

fn note(value: &Value, field: &str, faults: &mut Faults) -> Option<String> {
    let note = text(value, field, faults)?;
    if note.len() > NOTE_BYTES_MAX {
        faults.add(field, format!("is longer than {NOTE_BYTES_MAX} bytes"));
    }
    Some(note)
}

fn route(value: &Value, field: &str, origin: Origin, faults: &mut Faults) -> Option<DocumentRoute> {
    let Value::Object(fields) = value else {
        faults.add(field, "must be an object with a path_prefix, rps and burst");
        return None;
    };
    let mut fields = Fields::new(field, fields.clone());
    if !fields.left.contains_key("path_prefix") {
        faults.add(format!("{field}.path_prefix"), "is missing");
    }
    let path_prefix = fields.read("path_prefix", faults, path_prefix);
    let names_no_method = fields.left.get("methods").is_some_and(|methods| *methods == json!([]));
    if names_no_method && origin == Origin::Sent {
        faults.add(
            format!("{field}.methods"),
            "is empty, so that the route would limit nothing; leave it out for all",
        );
    }
    let methods_given = fields.left.contains_key("methods");
    let methods = list(&mut fields, "methods", METHODS_MAX, faults, method);
    let (rps, burst) = limit(&mut fields, origin == Origin::Sent, faults);
    fields.refuse_the_rest(faults);
    let route =
        DocumentRoute { path_prefix: path_prefix?, methods: methods_given.then_some(methods), rps, burst };
    // Such a route has never limited anything, so a policy that has one goes on as it was.
    (!names_no_method).then_some(route)
}

fn path_prefix(value: &Value, field: &str, faults: &mut Faults) -> Option<String> {
    let path = text(value, field, faults)?;
    if !path.starts_with('/') || path.len() > PATH_BYTES_MAX {
        faults.add(field, format!("must be a path: / first, at most {PATH_BYTES_MAX} bytes"));
        return None;
    }
    let mut buffer = crate::path::PathBuffer::default();
    if buffer.normalise(path.as_bytes()).as_bytes() != path.as_bytes() {
        faults.add(field, "must be in its normal form: no escapes, query, double slashes, . or ..");
        return None;
    }
    Some(path)
}

fn method(value: &Value, field: &str, faults: &mut Faults) -> Option<String> {
    let method = text(value, field, faults)?;
    if method.is_empty() || method.len() > 32 || !method.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        faults.add(field, "must be a method's name, such as GET");
        return None;
    }
    if method.eq_ignore_ascii_case("HEAD") {
        return Some("GET".to_string());
    }
    Some(method.to_ascii_uppercase())
}
