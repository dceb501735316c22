//! What one source (the file, the environment, the flags) has set, by key.

use std::collections::BTreeMap;

use super::{
    fault::{Fault, Place, Scope},
    nearest::suggestion,
    table::{KEYS, KeySpec},
    value::Written,
};

/// The values that one source has set, by the key's full path.
#[derive(Default)]
pub(super) struct Layer(BTreeMap<String, (&'static KeySpec, Written)>);

impl Layer {
    pub(super) fn set(&mut self, path: String, spec: &'static KeySpec, written: Written) {
        self.0.insert(path, (spec, written));
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    pub(super) fn place(&self, path: &str) -> Place {
        self.0.get(path).map_or(Place::Default, |(_, written)| written.place.clone())
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.0.remove(path);
    }

    /// This layer with `over` over it.
    pub(super) fn under(mut self, over: Self) -> Self {
        self.0.extend(over.0);
        self
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (String, &'static KeySpec, Written)> {
        self.0.into_iter().map(|(path, (spec, written))| (path, spec, written))
    }
}

/// The fault for a path that no key has.
pub(super) fn unknown(path: &str, place: Place) -> Fault {
    let section = path.split('.').next().unwrap_or_default();
    let known = KEYS.iter().any(|key| key.section() == section);
    let message = if known {
        format!("is not a key{}", suggestion(path, KEYS.iter().map(|key| key.path)))
    } else {
        format!("is not a section{}", suggestion(section, KEYS.iter().map(KeySpec::section)))
    };
    Fault::new(scope_of(section), path, place, message)
}

/// What a fault somewhere in `section` stops, where no key says more.
pub(super) fn scope_of(section: &str) -> Scope {
    match section {
        "guard" => Scope::Guard,
        "client" => Scope::Client,
        "rate_limit" => Scope::Warning,
        _ => Scope::Fatal,
    }
}
