//! The guard's secrets, from the configuration or from files, and no secret that does two jobs.

use std::{fs::File, io::Read, path::Path};

use tidegate_core::secret::Secret;
use zeroize::Zeroizing;

use super::{
    Loaded,
    fault::{Fault, Place, Scope},
    kind::SECRETS_MAX,
    parse,
    settings::Settings,
    tokens::Credential,
    typed::GuardRules,
    value::Value,
};
use crate::secrets::DataSecrets;

/// A file of secrets has a few lines.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// `guard.secrets`, or the lines of `guard.secrets_file`.
pub(super) fn signing_secrets(settings: &Settings, faults: &mut Vec<Fault>) -> Vec<Secret> {
    match settings.value("guard.secrets") {
        Some(Value::Secrets(secrets)) => secrets.clone(),
        _ => from_file(settings, "guard.secrets_file", SECRETS_MAX, faults),
    }
}

/// `guard.operator_token`, or what `guard.operator_token_file` holds.
pub(super) fn operator_token(settings: &Settings, faults: &mut Vec<Fault>) -> Option<Secret> {
    match settings.value("guard.operator_token") {
        Some(Value::Secret(token)) => Some(token.clone()),
        _ => from_file(settings, "guard.operator_token_file", 1, faults).pop(),
    }
}

/// The fault of an operator's token that is a signing secret, where one of the two is `made`: the data
/// directory's stand in for what is not configured.
pub(crate) fn shared_with_made(loaded: &Loaded, made: &DataSecrets) -> Option<Fault> {
    let rules = loaded.regardless().guard.as_ref().ok()?;
    let (key, other, is_shared) = match (&rules.operator_token, rules.secrets.as_slice()) {
        (Some(token), []) => ("guard.operator_token", "guard_secret", *token == made.guard_secret),
        (None, secrets) => ("guard.secrets", "operator_token", secrets.contains(&made.operator_token)),
        // Compared when they were read.
        (Some(_), _) => return None,
    };
    let message = format!("is the same as {other} of the data directory; every secret has one use");
    let place = place_of(&loaded.settings, key, &format!("{key}_file"));
    is_shared.then(|| Fault::new(Scope::Guard, key, place, message))
}

fn place_of(settings: &Settings, key: &str, file: &str) -> Place {
    match settings.place(key) {
        Place::Default => settings.place(file),
        place => place,
    }
}

/// A fault for each secret that is the same as one before it: who learns one would hold the other.
pub(super) fn no_two_alike(settings: &Settings, rules: &GuardRules, faults: &mut Vec<Fault>) {
    let mut named: Vec<(String, Place, Scope, &Secret)> = Vec::new();
    let (secrets, secrets_place) = match settings.readable("guard.secrets") {
        (Some(Value::Secrets(secrets)), place) => (secrets, place),
        _ => (&rules.secrets, settings.place("guard.secrets_file")),
    };
    for (index, secret) in secrets.iter().enumerate() {
        named.push((settings.entry("guard.secrets", index, ""), secrets_place.clone(), Scope::Guard, secret));
    }
    if let Some(token) = &rules.operator_token {
        let place = place_of(settings, "guard.operator_token", "guard.operator_token_file");
        named.push(("guard.operator_token".into(), place, Scope::Guard, token));
    }
    let (tokens, tokens_place) = settings.readable("admin.tokens");
    let tokens = if let Some(Value::Tokens(tokens)) = tokens { tokens.as_slice() } else { &[] };
    for (index, token) in tokens.iter().enumerate() {
        if let Credential::Token(secret) = &token.credential {
            let key = settings.entry("admin.tokens", index, ".token");
            named.push((key, tokens_place.clone(), Scope::Fatal, secret));
        }
    }
    for path in ["store.secret", "admin.webhook_secret"] {
        if let Some(Value::Secret(secret)) = settings.value(path) {
            named.push((path.into(), settings.place(path), Scope::Fatal, secret));
        }
    }
    for (index, (key, place, scope, secret)) in named.iter().enumerate() {
        if let Some((other, ..)) = named[..index].iter().find(|(.., earlier)| earlier == secret) {
            let message = format!("is the same as {other}; every secret has one use");
            faults.push(Fault::new(*scope, key.as_str(), place.clone(), message));
        }
    }
}

fn from_file(settings: &Settings, key: &str, count_max: usize, faults: &mut Vec<Fault>) -> Vec<Secret> {
    let Some(path) = settings.path(key) else {
        return Vec::new();
    };
    let read = read(&path).map_err(|message| vec![message]);
    read.and_then(|text| secrets_of(&text, count_max)).unwrap_or_else(|messages| {
        faults.extend(messages.into_iter().map(|message| {
            let message = format!("{}: {message}", Place::File(path.as_path().into()));
            Fault::new(Scope::Guard, key, settings.place(key), message)
        }));
        Vec::new()
    })
}

fn read(path: &Path) -> Result<Zeroizing<String>, String> {
    let mut bytes = Zeroizing::new(Vec::new());
    let file = File::open(path).map_err(|error| format!("can't be read: {error}"))?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("can't be read: {error}"))?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > FILE_BYTES_MAX) {
        return Err("is larger than any file of secrets".into());
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| "is not UTF-8")?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// One secret a line. Line ends at the end of the file can't be meant; blanks can, so that they are refused.
///
/// # Errors
/// Everything that is wrong.
fn secrets_of(text: &str, count_max: usize) -> Result<Vec<Secret>, Vec<String>> {
    let mut lines: Vec<_> = text.lines().collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    if lines.is_empty() {
        return Err(vec!["is empty".into()]);
    }
    if lines.len() > count_max {
        return Err(vec![format!("has {} lines; at most {count_max} are taken", lines.len())]);
    }
    let (mut secrets, mut faults) = (Vec::new(), Vec::new());
    for (index, line) in lines.into_iter().enumerate() {
        match parse::secret(line).and_then(|secret| parse::distinct(secret, &secrets)) {
            Ok(secret) => secrets.push(secret),
            Err(broken) => faults.push(format!("line {} {broken}", index + 1)),
        }
    }
    if faults.is_empty() { Ok(secrets) } else { Err(faults) }
}
