//! The environment over the file: `TIDEGATE_GUARD__SECRETS` sets `guard.secrets`.

use std::ffi::{OsStr, OsString};

use super::{
    fault::{Fault, Place, Scope},
    layer::{self, Layer},
    names,
    nearest::suggestion,
    parse, table,
    table::KEYS,
    value::Written,
};

/// Variables that begin as ours do and are read elsewhere.
const OTHER_VARIABLES: &[&str] = &["TIDEGATE_CONFIG"];

const PREFIX: &str = "TIDEGATE_";

/// What the variables set. Those that are not ours are passed over.
pub(super) fn read(variables: &[(OsString, OsString)], faults: &mut Vec<Fault>) -> Layer {
    let mut layer = Layer::default();
    for (name, value) in variables {
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && !OTHER_VARIABLES.contains(&&*name) && !is_service_link(&name, value) {
            variable(&name, value, &mut layer, faults);
        }
    }
    layer
}

/// What the flags of the command line set, as (key, text, flag).
pub(super) fn read_flags(flags: &[(&'static str, String, &'static str)], faults: &mut Vec<Fault>) -> Layer {
    let mut layer = Layer::default();
    for (path, text, flag) in flags {
        if let Some(spec) = table::find(path) {
            set(&mut layer, path.to_string(), spec, text, &Place::Flag(flag), faults);
        }
    }
    layer
}

fn variable(name: &str, value: &OsStr, layer: &mut Layer, faults: &mut Vec<Fault>) {
    let place = Place::Environment(name.to_owned());
    let Some(path) = path_of(name) else {
        let message = format!(
            "is not a variable of Tidegate{}",
            suggestion(name, KEYS.iter().map(table::KeySpec::environment))
        );
        return faults.push(Fault::new(unknown_scope(name), "", place, message));
    };
    let Some(spec) = table::find(&path) else { return };
    let Some(text) = value.to_str() else {
        return faults.push(Fault::new(spec.scope, path, place, "is not UTF-8"));
    };
    if layer.has(&path) {
        return faults.push(Fault::new(spec.scope, path, place, "is set by another variable too"));
    }
    if let Some(fault) = names::name_fault(&path) {
        return faults.push(Fault::new(spec.scope, path, place, fault));
    }
    set(layer, path, spec, text, &place, faults);
}

fn set(
    layer: &mut Layer,
    path: String,
    spec: &'static table::KeySpec,
    text: &str,
    place: &Place,
    faults: &mut Vec<Fault>,
) {
    match parse::from_text(spec.kind, text, place) {
        Ok(raw) => layer.set(path, spec, Written { raw, place: place.clone() }),
        Err(message) => faults.push(Fault::new(spec.scope, path, place.clone(), message)),
    }
}

/// The key that the variable sets: two underscores between levels, one for the client's own variables.
fn path_of(name: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?;
    if rest.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    let rest = rest.to_ascii_lowercase();
    let client = rest.strip_prefix("client_").filter(|key| !key.starts_with('_'));
    let path = match client {
        Some(key) => format!("client.{key}"),
        None => named(&rest).unwrap_or_else(|| rest.replace("__", ".")),
    };
    table::find(&path).is_some().then_some(path)
}

/// The key of a family or of an app: the name between its table and its key may hold underscores.
fn named(rest: &str) -> Option<String> {
    let key = |parent: &str, named: &str| {
        let (name, key) = named.rsplit_once("__")?;
        Some(match name.strip_suffix("__shield") {
            Some(name) => format!("{parent}.{name}.shield.{key}"),
            None => format!("{parent}.{name}.{key}"),
        })
    };
    match rest.strip_prefix("guard__families__") {
        Some(named) => key("guard.families", named),
        None => key("apps", rest.strip_prefix("apps__")?),
    }
}

fn unknown_scope(name: &str) -> Scope {
    let rest = name.strip_prefix(PREFIX).unwrap_or(name).to_ascii_lowercase();
    layer::scope_of(rest.split('_').next().unwrap_or_default())
}

/// Kubernetes sets such variables for every service beside a container, so that a service called `tidegate`
/// would otherwise stop its own pods.
fn is_service_link(name: &str, value: &OsStr) -> bool {
    let is_url = value.to_str().is_some_and(|value| value.contains("://"));
    let port = name.split_once("_PORT").map(|(_, rest)| rest);
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || port == Some("") && is_url
        || port.is_some_and(|rest| {
            let mut parts = rest.trim_start_matches('_').split('_');
            let number = parts.next().is_some_and(|part| part.parse::<u16>().is_ok());
            number && parts.next().is_some_and(|part| matches!(part, "TCP" | "UDP" | "SCTP"))
        })
}
