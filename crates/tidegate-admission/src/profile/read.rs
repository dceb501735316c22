//! From TOML to numbers. A key that is missing, unknown or of the wrong type is a fault; reading goes on.

use tidegate_core::{
    forwarded::Source,
    tracker::{Limit, Share},
};
use toml_edit::{Document, Item, TableLike};

use super::{Bounds, ClientAddress, Fault, HttpProfile, Profile, UdpProfile};

/// Reads what can be read; what can't is zero, or empty. `None` if the text isn't TOML at all.
pub(super) fn profile(text: &str, faults: &mut Vec<Fault>) -> Option<Profile> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("is over {TEXT_BYTES_MAX} bytes");
        faults.push(Fault { field: String::new(), message });
        return None;
    }
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let message = format!("is not valid TOML: {}", error.message().replace('\n', ", "));
            faults.push(Fault { field: String::new(), message });
            return None;
        }
    };
    let mut root = Table { path: String::new(), table: Some(document.as_table()), seen: Vec::new(), faults };
    let client_address = root.within("client_address", client_address);
    let http = root.within("http", http);
    let udp = root.within("udp", udp);
    root.finish();
    Some(Profile { client_address, http, udp })
}

/// A table of the file, or what stands in for one that isn't there.
struct Table<'a> {
    path: String,
    table: Option<&'a dyn TableLike>,
    seen: Vec<&'static str>,
    faults: &'a mut Vec<Fault>,
}

fn client_address(table: &mut Table<'_>) -> ClientAddress {
    let source = match table.text("source") {
        Some("x_forwarded_for") | None => Source::XForwardedFor,
        Some("forwarded") => Source::Forwarded,
        Some(_) => {
            table.fault("source", "must be \"x_forwarded_for\" or \"forwarded\"");
            Source::XForwardedFor
        }
    };
    ClientAddress {
        trusted_proxies: table.texts("trusted_proxies"),
        source,
        allow_broad_trust: table.boolean("allow_broad_trust"),
    }
}

fn http(table: &mut Table<'_>) -> HttpProfile {
    let [critical_operation, optional_operation, health_operation] = table
        .within("operation", |table| ["critical", "optional", "health"].map(|name| table.within(name, even)));
    HttpProfile {
        body_bytes_max: table.number("body_bytes_max").into(),
        bounds: bounds(table),
        global: table.within("global", shared),
        source_prefix: table.within("source_prefix", shared),
        health_source_prefix: table.within("health_source_prefix", even),
        critical_operation,
        optional_operation,
        health_operation,
        tenant: table.within("tenant", even),
        principal: table.within("principal", even),
        capability: table.within("capability", even),
        resource: table.within("resource", even),
    }
}

fn udp(table: &mut Table<'_>) -> UdpProfile {
    UdpProfile {
        bounds: bounds(table),
        global: table.within("global", datagrams),
        source_prefix: table.within("source_prefix", datagrams),
        wire_operation: table.within("wire_operation", datagrams),
        capability: table.within("capability", datagrams),
        role: table.within("role", datagrams),
        mediation_handle: table.within("mediation_handle", datagrams),
    }
}

fn bounds(table: &mut Table<'_>) -> Bounds {
    Bounds {
        window_seconds: table.number("window_seconds"),
        max_tracked_keys: table.number("max_tracked_keys"),
        critical_tracked_key_reserve: table.number("critical_tracked_key_reserve"),
    }
}

fn even(table: &mut Table<'_>) -> Limit {
    Limit::even(table.number("requests"), table.number("concurrent"))
}

fn shared(table: &mut Table<'_>) -> Limit {
    Limit {
        spent: Share { all: table.number("requests"), optional: table.number("optional_requests") },
        active: Share { all: table.number("concurrent"), optional: table.number("optional_concurrent") },
    }
}

fn datagrams(table: &mut Table<'_>) -> Limit {
    Limit::rate(table.number("datagrams"))
}

impl<'a> Table<'a> {
    fn within<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Table<'_>) -> T) -> T {
        let item = self.item(name);
        let table = item.and_then(Item::as_table_like);
        if item.is_some() && table.is_none() {
            self.fault(name, "must be a table");
        }
        let mut inner = Table { path: self.path_of(name), table, seen: Vec::new(), faults: self.faults };
        let value = read(&mut inner);
        inner.finish();
        value
    }

    fn number(&mut self, name: &'static str) -> u32 {
        let read = |item: &Item| item.as_integer().and_then(|number| u32::try_from(number).ok());
        self.read(name, read, "must be an integer from 0 to 4294967295")
    }

    fn boolean(&mut self, name: &'static str) -> bool {
        self.read(name, Item::as_bool, "must be true or false")
    }

    fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.read(name, |item| item.as_str().map(Some), "must be a text")
    }

    fn texts(&mut self, name: &'static str) -> Vec<String> {
        let read = |item: &Item| {
            let values = item.as_array()?.iter();
            values.map(|value| value.as_str().map(str::to_owned)).collect()
        };
        self.read(name, read, "must be a list of texts")
    }

    fn read<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'a Item) -> Option<T>,
        otherwise: &str,
    ) -> T {
        let Some(item) = self.item(name) else {
            return T::default();
        };
        read(item).unwrap_or_else(|| {
            self.fault(name, otherwise);
            T::default()
        })
    }

    /// The item of a key. A key that is missing from a table is a fault; those of a missing table are none
    /// more, since the table is one.
    fn item(&mut self, name: &'static str) -> Option<&'a Item> {
        self.seen.push(name);
        let item = self.table?.get(name);
        if item.is_none() {
            self.fault(name, "is missing: a profile has every budget and ceiling");
        }
        item
    }

    fn finish(self) {
        let Some(table) = self.table else { return };
        for (name, _) in table.iter().filter(|(name, _)| !self.seen.contains(name)) {
            let field = path(&self.path, name);
            self.faults.push(Fault { field, message: "is no key of an admission profile".to_owned() });
        }
    }

    fn fault(&mut self, name: &str, message: &str) {
        let field = self.path_of(name);
        self.faults.push(Fault { field, message: message.to_owned() });
    }

    fn path_of(&self, name: &str) -> String {
        path(&self.path, name)
    }
}

fn path(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

/// A profile has about a hundred lines.
const TEXT_BYTES_MAX: usize = 256 * 1024;
