//! From a written value to a checked one, by its kind.

use std::net::SocketAddr;

use tidegate_core::{admission::Axis, network::Prefix, secret::Secret};

use super::{
    fault::Place,
    file,
    kind::{Kind, SECRETS_MAX},
    nearest::suggestion,
    tokens,
    value::{Hidden, Raw, Value, Written},
};

/// What is wrong with a value, or with a part of it.
pub(super) struct Complaint {
    /// What follows the key, such as `[1]`.
    pub(super) part: String,
    pub(super) place: Place,
    pub(super) message: String,
}

impl Complaint {
    pub(super) fn new(part: impl Into<String>, place: &Place, message: impl Into<String>) -> Self {
        Self { part: part.into(), place: place.clone(), message: message.into() }
    }
}

/// What the text of a variable or a flag means for `kind`.
///
/// # Errors
/// What is allowed instead.
pub(super) fn from_text(kind: Kind, text: &str, place: &Place) -> Result<Raw, String> {
    let refused = || format!("must be {}{}", kind.allowed(), it_is(kind, text));
    let list = |text: &str| {
        Raw::List(
            text.split(',').map(|part| Written { raw: Raw::text(part), place: place.clone() }).collect(),
        )
    };
    match kind {
        Kind::Integer(..) => strict_number(text).map(Raw::Integer).ok_or_else(refused),
        Kind::Boolean => text.parse().map(Raw::Boolean).map_err(|_| refused()),
        Kind::Secrets | Kind::Words | Kind::Networks | Kind::Axes => Ok(list(text)),
        Kind::Tokens => file::value(text, place).ok_or_else(refused),
        _ => Ok(Raw::text(text)),
    }
}

/// Checks a written value against the kind of its key.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn check(kind: Kind, written: &Written) -> Result<Value, Vec<Complaint>> {
    match kind {
        Kind::Secrets => secrets(written),
        Kind::Words => words(kind, written).map(Value::Words),
        Kind::Networks => networks(written),
        Kind::Axes => axes(written),
        Kind::Shares | Kind::Budgets => entries(kind, written).map(Value::Entries),
        Kind::Tokens => tokens::check(written).map(Value::Tokens),
        _ => single(kind, &written.raw).map_err(|message| vec![Complaint::new("", &written.place, message)]),
    }
}

fn single(kind: Kind, raw: &Raw) -> Result<Value, String> {
    let refused = || Err(format!("must be {}; it is {}", kind.allowed(), raw.shape()));
    match (kind, raw) {
        (Kind::Integer(min, max), Raw::Integer(number)) => match u64::try_from(*number) {
            Ok(number) if (min..=max).contains(&number) => Ok(Value::Integer(number)),
            _ => Err(format!("must be {}; it is {number}", kind.allowed())),
        },
        (Kind::Boolean, Raw::Boolean(boolean)) => Ok(Value::Boolean(*boolean)),
        (Kind::Integer(..) | Kind::Boolean, _) => refused(),
        (_, Raw::Text(text)) => of_text(kind, text),
        _ => refused(),
    }
}

fn of_text(kind: Kind, text: &str) -> Result<Value, String> {
    if kind == Kind::Secret {
        return secret(text).map(Value::Secret);
    }
    if text.trim().is_empty() {
        return Err(format!("is blank; it must be {}", kind.allowed()));
    }
    let value = match kind {
        Kind::Choice(words) if words.contains(&text) => Some(Value::Text(text.to_owned())),
        Kind::Level if is_level(text) => Some(Value::Text(text.to_owned())),
        Kind::Text if !text.contains(char::is_control) => Some(Value::Text(text.to_owned())),
        Kind::Path if !text.contains('\0') => Some(Value::Path(text.into())),
        Kind::Url if is_url(text) => Some(Value::Url(Hidden::new(text))),
        Kind::Address => text.parse::<SocketAddr>().ok().map(Value::Address),
        _ => None,
    };
    let hint = || match kind {
        Kind::Choice(words) => suggestion(text, words),
        Kind::Address if text.starts_with(':') => {
            format!("; for every address of this machine, 0.0.0.0{text}")
        }
        _ => String::new(),
    };
    value.ok_or_else(|| format!("must be {}{}{}", kind.allowed(), it_is(kind, text), hint()))
}

/// "; it is …" for a value that may be shown, shortened to one short line.
fn it_is(kind: Kind, text: &str) -> String {
    if kind.is_hidden() {
        return String::new();
    }
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("; it is {shown:?}{more}")
}

/// Enough to recognise what one wrote, and no more than fits a line.
const SHOWN_CHARS_MAX: usize = 40;

/// A secret, or the rule that it breaks.
pub(super) fn secret(text: &str) -> Result<Secret, String> {
    Secret::new(text).map_err(|broken| broken.to_string())
}

fn secrets(written: &Written) -> Result<Value, Vec<Complaint>> {
    let parts = list(Kind::Secrets, written)?;
    if parts.is_empty() || parts.len() > SECRETS_MAX {
        let message = format!("must be {}; it has {}", Kind::Secrets.allowed(), parts.len());
        return Err(vec![Complaint::new("", &written.place, message)]);
    }
    let mut complaints = Vec::new();
    let mut secrets = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let read = match &part.raw {
            Raw::Text(text) => secret(text),
            other => Err(format!("must be a string; it is {}", other.shape())),
        };
        match read {
            Ok(secret) if secrets.contains(&secret) => {
                complaints.push(Complaint::new(
                    format!("[{index}]"),
                    &part.place,
                    "is the same as one before it",
                ));
            }
            Ok(secret) => secrets.push(secret),
            Err(message) => complaints.push(Complaint::new(format!("[{index}]"), &part.place, message)),
        }
    }
    if complaints.is_empty() { Ok(Value::Secrets(secrets)) } else { Err(complaints) }
}

/// The parts of a list.
pub(super) fn list(kind: Kind, written: &Written) -> Result<&[Written], Vec<Complaint>> {
    match &written.raw {
        Raw::List(parts) => Ok(parts),
        other => {
            let message = format!("must be {}; it is {}", kind.allowed(), other.shape());
            Err(vec![Complaint::new("", &written.place, message)])
        }
    }
}

/// The words of a list, without repeats.
pub(super) fn words(kind: Kind, written: &Written) -> Result<Vec<String>, Vec<Complaint>> {
    let mut words: Vec<String> = Vec::new();
    for (index, part) in list(kind, written)?.iter().enumerate() {
        let complain =
            |message: String| Err(vec![Complaint::new(format!("[{index}]"), &part.place, message)]);
        match &part.raw {
            Raw::Text(text) if text.trim().is_empty() => return complain("is blank".into()),
            Raw::Text(text) if words.iter().any(|word| word == text.trim()) => {
                return complain("is the same as one before it".into());
            }
            Raw::Text(text) => words.push(text.trim().to_owned()),
            other => return complain(format!("must be a string; it is {}", other.shape())),
        }
    }
    Ok(words)
}

/// All of them or none: a list that lost an entry would trust or refuse others than it says.
fn networks(written: &Written) -> Result<Value, Vec<Complaint>> {
    let (mut networks, mut complaints) = (Vec::new(), Vec::new());
    for (index, part) in list(Kind::Networks, written)?.iter().enumerate() {
        let read = match &part.raw {
            Raw::Text(text) => {
                Prefix::parse(text).map_err(|fault| format!("{fault}{}", it_is(Kind::Networks, text)))
            }
            other => Err(format!("must be a string; it is {}", other.shape())),
        };
        match read {
            Ok(network) => networks.push(network),
            Err(message) => complaints.push(Complaint::new(format!("[{index}]"), &part.place, message)),
        }
    }
    if complaints.is_empty() { Ok(Value::Networks(networks)) } else { Err(complaints) }
}

fn axes(written: &Written) -> Result<Value, Vec<Complaint>> {
    let mut axes = Vec::new();
    for word in words(Kind::Axes, written)? {
        match Axis::named(&word).filter(|axis| axis.can_be_required()) {
            Some(axis) => axes.push(axis),
            None => {
                let message = format!("must be {}{}", Kind::Axes.allowed(), it_is(Kind::Axes, &word));
                return Err(vec![Complaint::new("", &written.place, message)]);
            }
        }
    }
    Ok(Value::Axes(axes))
}

/// `name=number` entries, from text or from a table.
fn entries(kind: Kind, written: &Written) -> Result<Vec<(String, u64)>, Vec<Complaint>> {
    let complain = |message: String| vec![Complaint::new("", &written.place, message)];
    let read = match &written.raw {
        Raw::Text(text) if text.trim().is_empty() => Ok(Vec::new()),
        Raw::Text(text) => text.split(',').map(|entry| text_entry(kind, entry)).collect(),
        Raw::Table(rows) => rows.iter().map(|(name, row)| table_entry(kind, name, &row.raw)).collect(),
        other => Err(format!("must be {}; it is {}", kind.allowed(), other.shape())),
    };
    let entries: Vec<(String, u64)> = read.map_err(complain)?;
    for (index, (name, number)) in entries.iter().enumerate() {
        if entries[..index].iter().any(|(earlier, _)| earlier == name) {
            return Err(complain(format!("names `{name}` twice")));
        }
        if kind == Kind::Shares && Axis::named(name).is_none() {
            let hint = suggestion(name, Axis::ALL.map(Axis::as_str));
            return Err(complain(format!("names the axis {name:?}, which is none{hint}")));
        }
        if kind == Kind::Shares && *number > 10_000 {
            return Err(complain(format!("gives `{name}` {number} basis points; 10000 are the whole")));
        }
    }
    Ok(entries)
}

fn text_entry(kind: Kind, entry: &str) -> Result<(String, u64), String> {
    let parts = entry.split_once('=').map(|(name, number)| (name.trim(), number.trim()));
    let read = parts.and_then(|(name, number)| Some((name, u64::try_from(strict_number(number)?).ok()?)));
    match read {
        Some((name, number)) if !name.is_empty() => Ok((name.to_owned(), number)),
        _ => Err(format!("must be {}; one entry is {entry:?}", kind.allowed())),
    }
}

fn table_entry(kind: Kind, name: &str, raw: &Raw) -> Result<(String, u64), String> {
    match raw {
        Raw::Integer(number) if *number >= 0 => Ok((name.to_owned(), number.unsigned_abs())),
        _ => Err(format!("must be {}; `{name}` is not such a number", kind.allowed())),
    }
}

/// Digits and nothing else: the standard parser would take a leading plus sign too.
pub(crate) fn strict_number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// A level, or comma-separated levels and `target=level`. A bare word that is no level would be taken for a
/// target by the filter and switch everything else off.
fn is_level(text: &str) -> bool {
    text.split(',').all(|directive| match directive.split_once('=') {
        Some((target, level)) => {
            let named = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == ':';
            !target.is_empty() && target.chars().all(named) && is_level_word(level)
        }
        None => is_level_word(directive),
    })
}

fn is_level_word(word: &str) -> bool {
    matches!(word, "error" | "warn" | "info" | "debug" | "trace" | "off")
}

fn is_url(text: &str) -> bool {
    let clean = !text.contains(|char: char| char.is_control() || char.is_whitespace());
    let parts = text.split_once("://");
    clean && parts.is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
}
