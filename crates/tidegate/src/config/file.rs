//! The configuration file: TOML, with the line of every value.

use std::{ops::Range, path::Path, sync::Arc};

use toml_edit::{Array, Document, Item, TableLike, Value as Toml};

use super::{
    fault::{Fault, Place, Scope},
    layer::{self, Layer},
    names, table,
    value::{Raw, Written},
};

/// What the file sets. A file that is not TOML sets nothing; the fault says where it ends to be.
pub(super) fn read(file: &Arc<Path>, text: &str, faults: &mut Vec<Fault>) -> Layer {
    let mut reader = Reader { file, text, layer: Layer::default(), faults };
    match Document::parse(text) {
        Ok(document) => reader.table("", document.as_table()),
        Err(error) => {
            // The error's own text quotes the line, which may hold a secret: only its message is safe.
            let place = reader.place(error.span());
            let message = format!("is not valid TOML: {}", error.message().replace('\n', ", "));
            reader.faults.push(Fault::new(Scope::Fatal, "", place, message));
        }
    }
    reader.layer
}

/// One TOML value, as an environment variable holds it. Faults in it have the variable as their place.
pub(super) fn value(text: &str, place: &Place) -> Option<Raw> {
    let value: Toml = text.trim().parse().ok()?;
    Some(raw_value(&value, &|_| place.clone()))
}

struct Reader<'a> {
    file: &'a Arc<Path>,
    text: &'a str,
    layer: Layer,
    faults: &'a mut Vec<Fault>,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, table: &dyn TableLike) {
        for (name, item) in table.iter() {
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
            let key_span = table.key(name).and_then(toml_edit::Key::span);
            let place = self.place(key_span.or_else(|| item.span()));
            self.entry(path, name, item, place);
        }
    }

    fn entry(&mut self, path: String, name: &str, item: &Item, place: Place) {
        // A quoted name may hold a dot, which would read as another key's path.
        if name.contains('.') {
            let message = "is one name in quotes, with a dot in it; no key has such a name";
            return self.faults.push(Fault::new(Scope::Fatal, path, place, message));
        }
        if let Some(spec) = table::find(&path) {
            let raw = raw_item(item, &|span| self.place(span));
            return self.layer.set(path, spec, Written { raw, place });
        }
        if !table::is_branch(&path) {
            return self.faults.push(layer::unknown(&path, place));
        }
        let scope = layer::scope_of(path.split('.').next().unwrap_or_default());
        // Where the name stands, and not again for the tables in it, whose faults are told too.
        let is_named_here = matches!(path.rsplit_once('.'), Some(("apps" | "guard.families", _)));
        if let Some(fault) = names::name_fault(&path).filter(|_| is_named_here) {
            self.faults.push(Fault::new(scope, path.clone(), place.clone(), fault));
        }
        match item.as_table_like() {
            Some(below) => self.table(&path, below),
            None => self.faults.push(Fault::new(scope, path, place, "must be a table of keys")),
        }
    }

    fn place(&self, span: Option<Range<usize>>) -> Place {
        match span {
            Some(span) => {
                let before = self.text.as_bytes().get(..span.start).unwrap_or(self.text.as_bytes());
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                Place::Line { file: Arc::clone(self.file), line }
            }
            None => Place::File(Arc::clone(self.file)),
        }
    }
}

type PlaceOf<'a> = &'a dyn Fn(Option<Range<usize>>) -> Place;

fn raw_item(item: &Item, place: PlaceOf<'_>) -> Raw {
    match item {
        Item::Value(value) => raw_value(value, place),
        Item::Table(table) => raw_table(table, place),
        Item::ArrayOfTables(tables) => {
            let written = |table: &toml_edit::Table| Written {
                raw: raw_table(table, place),
                place: place(table.span()),
            };
            Raw::List(tables.iter().map(written).collect())
        }
        Item::None => Raw::Other("nothing"),
    }
}

fn raw_value(value: &Toml, place: PlaceOf<'_>) -> Raw {
    match value {
        Toml::String(text) => Raw::text(text.value()),
        Toml::Integer(number) => Raw::Integer(*number.value()),
        Toml::Boolean(boolean) => Raw::Boolean(*boolean.value()),
        Toml::Array(array) => raw_array(array, place),
        Toml::InlineTable(table) => raw_table(table, place),
        Toml::Float(_) => Raw::Other("a number with a fraction"),
        Toml::Datetime(_) => Raw::Other("a date"),
    }
}

fn raw_array(array: &Array, place: PlaceOf<'_>) -> Raw {
    let written = |value: &Toml| Written { raw: raw_value(value, place), place: place(value.span()) };
    Raw::List(array.iter().map(written).collect())
}

fn raw_table(table: &dyn TableLike, place: PlaceOf<'_>) -> Raw {
    let written = |(name, item): (&str, &Item)| {
        (name.to_owned(), Written { raw: raw_item(item, place), place: place(item.span()) })
    };
    Raw::Table(table.iter().map(written).collect())
}
