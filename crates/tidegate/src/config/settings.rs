//! The effective value of every key, and where it came from.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::PathBuf,
};

use super::{
    fault::{Fault, Place},
    file,
    layer::Layer,
    parse,
    table::{KEYS, KeySpec},
    value::{Hidden, Value, Written},
};

/// The effective values by path. A key with a faulty value has its default here.
#[derive(Debug, Clone)]
pub struct Settings {
    by_path: BTreeMap<String, Setting>,
    faulty: BTreeMap<String, Faulty>,
}

/// A key whose value is faulty.
#[derive(Debug, Clone)]
struct Faulty {
    place: Place,
    /// What is good of a list or a table.
    readable: Option<Value>,
}

/// One key's value.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The key.
    pub spec: &'static KeySpec,
    /// Its value; none for an optional key that is not set.
    pub value: Option<Value>,
    /// Where the value came from.
    pub place: Place,
}

impl Settings {
    /// The defaults, with `layer` over them.
    pub(super) fn new(layer: Layer, faults: &mut Vec<Fault>) -> Self {
        let mut settings = Self { by_path: defaults(), faulty: BTreeMap::new() };
        for (path, spec, written) in layer.into_iter() {
            let mut complaints = Vec::new();
            let value = parse::check(spec.kind, &written, &mut complaints);
            if complaints.is_empty() {
                settings.by_path.insert(path, Setting { spec, value, place: written.place });
                continue;
            }
            faults.extend(complaints.into_iter().map(|complaint| {
                let key = format!("{path}{}", complaint.part);
                Fault::new(spec.scope, key, complaint.place, complaint.message)
            }));
            settings.faulty.insert(path, Faulty { place: written.place, readable: value });
        }
        settings
    }

    /// Every key with its path: those of the table that have a fixed name, and those that people named.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.by_path.iter().map(|(path, setting)| (path.as_str(), setting))
    }

    /// The setting at `path`.
    #[must_use]
    pub fn setting(&self, path: &str) -> Option<&Setting> {
        self.by_path.get(path)
    }

    pub(super) fn value(&self, path: &str) -> Option<&Value> {
        self.by_path.get(path)?.value.as_ref()
    }

    /// Whether `path` was set to something faulty, so that its value here is only the default.
    pub(super) fn is_faulty(&self, path: &str) -> bool {
        self.faulty.contains_key(path)
    }

    /// The value at `path`, or where that is faulty what can be read of it: for checks that shall not wait until
    /// the rest is mended. With it, where it was written.
    pub(super) fn readable(&self, path: &str) -> (Option<&Value>, Place) {
        match self.faulty.get(path) {
            Some(faulty) => (faulty.readable.as_ref(), faulty.place.clone()),
            None => (self.value(path), self.place(path)),
        }
    }

    /// The key of an entry of a list, or of a field of it. Of a list with faults only the good entries are left, so
    /// that their numbers say nothing: it is named as a whole.
    pub(super) fn entry(&self, path: &str, index: usize, field: &str) -> String {
        if self.is_faulty(path) { path.to_owned() } else { format!("{path}[{index}]{field}") }
    }

    pub(super) fn place(&self, path: &str) -> Place {
        self.by_path.get(path).map_or(Place::Default, |setting| setting.place.clone())
    }

    pub(super) fn integer(&self, path: &str) -> u64 {
        match self.value(path) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    pub(super) fn boolean(&self, path: &str) -> bool {
        matches!(self.value(path), Some(Value::Boolean(true)))
    }

    pub(super) fn text(&self, path: &str) -> &str {
        match self.value(path) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    pub(super) fn path(&self, path: &str) -> Option<PathBuf> {
        match self.value(path) {
            Some(Value::Path(found)) => Some(found.clone()),
            _ => None,
        }
    }

    pub(super) fn url(&self, path: &str) -> Option<&Hidden> {
        match self.value(path) {
            Some(Value::Url(url)) => Some(url),
            _ => None,
        }
    }

    pub(super) fn address(&self, path: &str) -> Option<SocketAddr> {
        match self.value(path) {
            Some(Value::Address(address)) => Some(*address),
            _ => None,
        }
    }

    /// What people named in `parent`, such as the families in `guard.families`, with a key of its own.
    pub(super) fn names_in(&self, parent: &str) -> BTreeSet<String> {
        let name =
            |path: &String| Some(path.strip_prefix(parent)?.strip_prefix('.')?.split('.').next()?.to_owned());
        self.by_path.keys().chain(self.faulty.keys()).filter_map(name).collect()
    }

    /// Where the first key of a named table stands.
    pub(super) fn place_of(&self, parent: &str, name: &str) -> Place {
        let prefix = format!("{parent}.{name}.");
        let good = self.by_path.iter().map(|(path, setting)| (path, &setting.place));
        let faulty = self.faulty.iter().map(|(path, faulty)| (path, &faulty.place));
        let found = good.chain(faulty).find(|(path, _)| path.starts_with(&prefix));
        found.map_or(Place::Default, |(_, place)| place.clone())
    }
}

fn defaults() -> BTreeMap<String, Setting> {
    let named = KEYS.iter().filter(|spec| !spec.path.contains('<'));
    named
        .map(|spec| {
            let setting = Setting { spec, value: default_value(spec), place: Place::Default };
            (spec.path.to_owned(), setting)
        })
        .collect()
}

fn default_value(spec: &KeySpec) -> Option<Value> {
    let raw = file::value(spec.default?, &Place::Default)?;
    parse::check(spec.kind, &Written { raw, place: Place::Default }, &mut Vec::new())
}
