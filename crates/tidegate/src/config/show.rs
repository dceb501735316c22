//! The configuration as TOML for people: the effective one, and the reference of all keys.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use toml_edit::Value as Toml;

use super::{
    settings::{Setting, Settings},
    table::{KEYS, KeySpec},
    value::Value,
};

/// The effective configuration as TOML that can be read back, with the origin of every value. Secrets are
/// comments, so that what is read back takes them from where they are.
#[must_use]
pub fn effective(settings: &Settings) -> String {
    let mut out = String::new();
    for section in sections() {
        let fixed = || KEYS.iter().filter(|key| key.section() == section && !key.path.contains('<'));
        if fixed().next().is_some() {
            heading(&mut out, section);
        }
        for key in fixed() {
            if let Some(setting) = settings.setting(key.path) {
                setting_line(&mut out, key.name(), setting, settings.is_faulty(key.path));
            }
        }
        match section {
            "guard" => named_tables(&mut out, "guard.families", settings),
            "apps" => named_tables(&mut out, "apps", settings),
            _ => {}
        }
    }
    out
}

/// The same as one object, by section and key, without the origins. What is not set is null.
#[must_use]
pub fn effective_json(settings: &Settings) -> Json {
    let mut root = json!({});
    for (path, setting) in settings.iter() {
        // Each part of a path but the last one is a table of its own.
        let table = path.rsplit_once('.').map_or("", |(table, _)| table);
        let table = table.split('.').fold(&mut root, |table, part| &mut table[part]);
        table[setting.spec.name()] = setting.value.as_ref().map_or(Json::Null, json_of);
    }
    root
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Integer(number) => json!(number),
        Value::Boolean(boolean) => json!(boolean),
        Value::Address(address) => json!(address.to_string()),
        Value::Path(path) => json!(path.to_string_lossy()),
        Value::Networks(networks) => networks.iter().map(ToString::to_string).collect(),
        Value::Words(words) => json!(words),
        Value::Axes(axes) => axes.iter().map(|axis| axis.as_str()).collect(),
        Value::Entries(entries) => {
            Json::Object(entries.iter().map(|(name, number)| (name.clone(), json!(number))).collect())
        }
        Value::Url(_) | Value::Secret(_) => json!(REDACTED),
        Value::Secrets(secrets) => secrets.iter().map(|_| REDACTED).collect(),
        Value::Tokens(tokens) => tokens.iter().map(token_json).collect(),
    }
}

fn token_json(token: &super::Token) -> Json {
    let abilities: Vec<_> = token.abilities.iter().map(|ability| ability.name()).collect();
    json!({"name": token.name, "abilities": abilities, "token": REDACTED})
}

/// What stands for what is never printed.
const REDACTED: &str = "[redacted]";

/// Every key with its meaning, what is allowed, its environment variable, and its default.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from(
        "# Every key of Tidegate, each with its default. Remove the # before a key to set it.\n",
    );
    let mut table = "";
    for section in sections() {
        for key in KEYS.iter().filter(|key| key.section() == section) {
            let (key_table, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
            if key_table != table {
                table = key_table;
                let table = table.replace("families.<name>", "families.password").replace("<name>", "shop");
                let comment = if table == key_table { "" } else { "# " };
                line(&mut out, &format!("\n{comment}[{table}]"));
            }
            reference_entry(&mut out, key, name);
        }
    }
    out
}

fn reference_entry(out: &mut String, key: &KeySpec, name: &str) {
    let reloads = if key.reloads { "; reloads" } else { "" };
    line(out, &format!("\n# {}", key.doc));
    line(out, &format!("# Takes {}.", key.kind.allowed()));
    line(out, &format!("# {}{reloads}", key.environment()));
    line(out, &format!("# {name} = {}", key.default.unwrap_or("…")));
}

fn sections() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    KEYS.iter().map(KeySpec::section).filter(move |section| std::mem::replace(&mut last, section) != *section)
}

fn heading(out: &mut String, table: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    line(out, &format!("{gap}[{table}]"));
}

fn named_tables(out: &mut String, parent: &str, settings: &Settings) {
    for name in settings.names_in(parent) {
        let prefix = format!("{parent}.{name}");
        heading(out, &prefix);
        for (path, setting) in settings.iter() {
            if let Some(key) = path.strip_prefix(&prefix).and_then(|rest| rest.strip_prefix('.')) {
                setting_line(out, key, setting, false);
            }
        }
    }
}

fn setting_line(out: &mut String, name: &str, setting: &Setting, is_faulty: bool) {
    let note = if is_faulty { "; what was set is faulty" } else { "" };
    let text = match &setting.value {
        None => format!("# {name} is not set{note}"),
        Some(value) => match literal(value) {
            Some(literal) => format!("{name} = {literal}  # {}{note}", setting.place),
            None => format!("# {name} = {}  # {}", redacted(value), setting.place),
        },
    };
    line(out, &text);
}

/// The value as TOML, unless it is one that is never printed.
fn literal(value: &Value) -> Option<String> {
    let entries = |entries: &[(String, u64)]| {
        let entries: Vec<_> = entries.iter().map(|(name, number)| format!("{name}={number}")).collect();
        entries.join(",")
    };
    Some(match value {
        Value::Text(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Address(address) => quoted(&address.to_string()),
        Value::Path(path) => quoted(&path.to_string_lossy()),
        Value::Networks(networks) => {
            let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
            list(networks.iter().map(String::as_str))
        }
        Value::Words(words) => list(words.iter().map(String::as_str)),
        Value::Axes(axes) => list(axes.iter().map(|axis| axis.as_str())),
        Value::Entries(pairs) => quoted(&entries(pairs)),
        Value::Url(_) | Value::Secret(_) | Value::Secrets(_) | Value::Tokens(_) => return None,
    })
}

/// What stands for a value that is never printed: how many there are, and the names of tokens.
fn redacted(value: &Value) -> String {
    match value {
        Value::Secrets(secrets) => list(secrets.iter().map(|_| REDACTED)),
        Value::Tokens(tokens) => {
            let token = |token: &super::Token| {
                let abilities = list(token.abilities.iter().map(|ability| ability.name()));
                format!(
                    "{{ name = {}, abilities = {abilities}, token = \"[redacted]\" }}",
                    quoted(&token.name)
                )
            };
            format!("[{}]", tokens.iter().map(token).collect::<Vec<_>>().join(", "))
        }
        _ => quoted(REDACTED),
    }
}

fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", words.map(quoted).collect::<Vec<_>>().join(", "))
}

/// A TOML string on one line.
fn quoted(text: &str) -> String {
    let clean = !text.contains(['\'', '\n', '\r']);
    match Toml::from(text).to_string() {
        literal if !literal.contains('\n') => literal,
        _ if clean => format!("'{text}'"),
        _ => format!("{text:?}"),
    }
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a String cannot fail");
}
