//! From a written value to a checked one, by its kind.

use std::net::SocketAddr;

use tidegate_core::{
    admission::{Axis, BASIS_POINTS},
    decimal,
    network::Prefix,
    secret::Secret,
};
use tidegate_ingress::proxy::UpstreamAddress;

use super::{
    apps,
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
        Kind::Integer(..) => decimal::parse(text).map(Raw::Integer).ok_or_else(refused),
        Kind::Boolean => text.parse().map(Raw::Boolean).map_err(|_| refused()),
        Kind::Secrets | Kind::Words | Kind::Domains | Kind::Upstreams | Kind::Networks | Kind::Axes => {
            Ok(list(text))
        }
        Kind::Tokens => file::value(text, place).ok_or_else(refused),
        _ => Ok(Raw::text(text)),
    }
}

/// Checks a written value against the kind of its key. Everything that is wrong with it goes to `complaints`; what
/// comes back beside them is what a list or a table holds that is good, for checks that look at several keys.
pub(super) fn check(kind: Kind, written: &Written, complaints: &mut Vec<Complaint>) -> Option<Value> {
    match kind {
        Kind::Secrets => secrets(written, complaints).map(Value::Secrets),
        Kind::Words => each(kind, written, complaints, word).map(Value::Words),
        Kind::Domains => each(kind, written, complaints, domain).map(Value::Words),
        Kind::Upstreams => each(kind, written, complaints, upstream).map(Value::Words),
        Kind::Networks => each(kind, written, complaints, network).map(Value::Networks),
        Kind::Axes => each(kind, written, complaints, axis).map(Value::Axes),
        Kind::Shares | Kind::Budgets => entries(kind, written, complaints).map(Value::Entries),
        Kind::Tokens => tokens::check(written, complaints).map(Value::Tokens),
        _ => {
            let complain = |message| complaints.push(Complaint::new("", &written.place, message));
            single(kind, &written.raw).map_err(complain).ok()
        }
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

fn secrets(written: &Written, complaints: &mut Vec<Complaint>) -> Option<Vec<Secret>> {
    let count = list(Kind::Secrets, written, complaints)?.len();
    if count == 0 || count > SECRETS_MAX {
        let message = format!("must be {}; it has {count}", Kind::Secrets.allowed());
        complaints.push(Complaint::new("", &written.place, message));
    }
    each(Kind::Secrets, written, complaints, |text, earlier| distinct(secret(text)?, earlier))
}

/// The parts of a list.
pub(super) fn list<'a>(
    kind: Kind,
    written: &'a Written,
    complaints: &mut Vec<Complaint>,
) -> Option<&'a [Written]> {
    match &written.raw {
        Raw::List(parts) => Some(parts),
        other => {
            let message = format!("must be {}; it is {}", kind.allowed(), other.shape());
            complaints.push(Complaint::new("", &written.place, message));
            None
        }
    }
}

/// Reads each part of a list; `read` is also told the good ones before it. Every faulty part is complained of.
pub(super) fn each<T>(
    kind: Kind,
    written: &Written,
    complaints: &mut Vec<Complaint>,
    read: impl Fn(&str, &[T]) -> Result<T, String>,
) -> Option<Vec<T>> {
    let mut good = Vec::new();
    for (index, part) in list(kind, written, complaints)?.iter().enumerate() {
        let value = match &part.raw {
            Raw::Text(text) => read(text, &good),
            other => Err(format!("must be a string; it is {}", other.shape())),
        };
        match value {
            Ok(value) => good.push(value),
            Err(message) => complaints.push(Complaint::new(format!("[{index}]"), &part.place, message)),
        }
    }
    Some(good)
}

/// The value, unless it is there already.
pub(super) fn distinct<T: PartialEq>(value: T, earlier: &[T]) -> Result<T, String> {
    if earlier.contains(&value) { Err("is the same as one before it".into()) } else { Ok(value) }
}

/// A word that is not blank and not there yet.
pub(super) fn word(text: &str, earlier: &[String]) -> Result<String, String> {
    match text.trim() {
        "" => Err("is blank".into()),
        word => distinct(word.to_owned(), earlier),
    }
}

fn domain(text: &str, earlier: &[String]) -> Result<String, String> {
    let domain = word(text, &[])?.to_ascii_lowercase();
    if !apps::is_domain(&domain) {
        return Err(format!("must be {}{}", apps::A_DOMAIN, it_is(Kind::Domains, text)));
    }
    distinct(domain, earlier)
}

fn upstream(text: &str, earlier: &[String]) -> Result<String, String> {
    let upstream = word(text, earlier)?;
    if UpstreamAddress::parse(&upstream).is_none() {
        return Err(format!("must be {}{}", apps::AN_UPSTREAM, it_is(Kind::Upstreams, text)));
    }
    Ok(upstream)
}

/// All of a list's or none: one that lost an entry would trust or refuse others than it says.
fn network(text: &str, _: &[Prefix]) -> Result<Prefix, String> {
    Prefix::parse(text).map_err(|fault| format!("{fault}{}", it_is(Kind::Networks, text)))
}

fn axis(text: &str, earlier: &[Axis]) -> Result<Axis, String> {
    let word = word(text, &[])?;
    let axis = Axis::named(&word).filter(|axis| axis.can_be_required());
    let axis = axis.ok_or_else(|| format!("must be one of {}{}", AXES, it_is(Kind::Axes, &word)))?;
    distinct(axis, earlier)
}

const AXES: &str = "`source` and `principal`";

/// `name=number` entries, from text or from a table.
fn entries(kind: Kind, written: &Written, complaints: &mut Vec<Complaint>) -> Option<Vec<(String, u64)>> {
    let rows: Vec<(&Place, Entry)> = match &written.raw {
        Raw::Text(text) if text.trim().is_empty() => Vec::new(),
        Raw::Text(text) => text.split(',').map(|entry| (&written.place, text_entry(kind, entry))).collect(),
        Raw::Table(rows) => {
            rows.iter().map(|(name, row)| (&row.place, table_entry(kind, name, &row.raw))).collect()
        }
        other => {
            let message = format!("must be {}; it is {}", kind.allowed(), other.shape());
            complaints.push(Complaint::new("", &written.place, message));
            return None;
        }
    };
    let (mut good, mut names) = (Vec::new(), Vec::new());
    for (place, Entry { name, number }) in rows {
        let fault = name.as_deref().and_then(|name| name_fault(kind, name, &names));
        let complain = |message| complaints.push(Complaint::new("", place, message));
        match (name.clone(), number, fault) {
            (Some(name), Ok(number), None) => good.push((name, number)),
            (_, number, fault) => fault.into_iter().chain(number.err()).for_each(complain),
        }
        names.extend(name);
    }
    Some(good)
}

/// An entry as far as it can be read.
struct Entry {
    name: Option<String>,
    number: Result<u64, String>,
}

fn name_fault(kind: Kind, name: &str, earlier: &[String]) -> Option<String> {
    if earlier.iter().any(|earlier| earlier == name) {
        return Some(format!("names `{name}` twice"));
    }
    let unknown = kind == Kind::Shares && Axis::named(name).is_none();
    unknown.then(|| {
        let hint = suggestion(name, Axis::ALL.map(Axis::as_str));
        format!("names the axis {name:?}, which is none{hint}")
    })
}

fn text_entry(kind: Kind, entry: &str) -> Entry {
    let (name, number) = entry.split_once('=').unwrap_or(("", entry));
    let name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
    let number = decimal::parse::<i64>(number.trim()).and_then(|number| u64::try_from(number).ok());
    let number = number.filter(|_| name.is_some());
    let number = number.ok_or_else(|| format!("must be {}; one entry is {entry:?}", kind.allowed()));
    Entry { number: number.and_then(|number| part_of_whole(kind, name.as_deref(), number)), name }
}

fn table_entry(kind: Kind, name: &str, raw: &Raw) -> Entry {
    let number = match raw {
        Raw::Integer(number) if *number >= 0 => part_of_whole(kind, Some(name), number.unsigned_abs()),
        _ => Err(format!("must be {}; `{name}` is not such a number", kind.allowed())),
    };
    Entry { name: Some(name.to_owned()), number }
}

fn part_of_whole(kind: Kind, name: Option<&str>, number: u64) -> Result<u64, String> {
    if kind == Kind::Shares && number > BASIS_POINTS {
        let name = name.unwrap_or_default();
        return Err(format!("gives `{name}` {number} basis points; {BASIS_POINTS} are the whole"));
    }
    Ok(number)
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
