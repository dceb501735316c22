//! The tokens of the admin API.

use tidegate_core::secret::Secret;

use super::{
    fault::Place,
    kind::Kind,
    nearest::suggestion,
    parse::{self, Complaint},
    value::{Raw, Written},
};

/// A token of the admin API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Who holds it.
    pub name: String,
    /// The token, or its hash.
    pub credential: Credential,
    /// What it may do.
    pub abilities: Vec<Ability>,
}

/// How a token is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The token itself.
    Token(Secret),
    /// SHA-256 of the token.
    Sha256([u8; 32]),
}

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ability {
    /// See state and metrics.
    Read,
    /// See addresses and what was recorded of requests.
    ReadSensitive,
    /// Change policies.
    Write,
    /// Stop, resume, reset, forget.
    Operator,
}

impl Ability {
    /// Every ability.
    pub const ALL: [Self; 4] = [Self::Read, Self::ReadSensitive, Self::Write, Self::Operator];

    /// The name in the configuration and in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadSensitive => "read:sensitive",
            Self::Write => "write",
            Self::Operator => "operator",
        }
    }
}

const FIELDS: [&str; 4] = ["name", "token", "token_sha256", "abilities"];
/// Names go into logs and the audit: long ones help nobody.
const NAME_CHARS_MAX: usize = 64;

/// Checks `admin.tokens`. What comes back are those without a fault.
pub(super) fn check(written: &Written, complaints: &mut Vec<Complaint>) -> Option<Vec<Token>> {
    let (mut tokens, mut names) = (Vec::new(), Vec::new());
    for (index, part) in parse::list(Kind::Tokens, written, complaints)?.iter().enumerate() {
        let mut faults = Vec::new();
        let token = token(part, &mut faults);
        if let Some((name, place)) = written_name(part) {
            if names.contains(&name) {
                faults.push(Complaint::new(".name", place, "is the same as one before it"));
            }
            names.push(name);
        }
        if faults.is_empty() {
            tokens.extend(token);
        }
        complaints.extend(
            faults
                .into_iter()
                .map(|complaint| Complaint { part: format!("[{index}]{}", complaint.part), ..complaint }),
        );
    }
    Some(tokens)
}

/// The name as it is written, whatever else is wrong with the token.
fn written_name(token: &Written) -> Option<(&str, &Place)> {
    let Raw::Table(fields) = &token.raw else { return None };
    let written = field(fields, "name")?;
    match &written.raw {
        Raw::Text(name) => Some((name.as_str(), &written.place)),
        _ => None,
    }
}

fn token(written: &Written, complaints: &mut Vec<Complaint>) -> Option<Token> {
    let Raw::Table(fields) = &written.raw else {
        let message = format!("must be a table; it is {}", written.raw.shape());
        complaints.push(Complaint::new("", &written.place, message));
        return None;
    };
    for (field, value) in fields {
        if !FIELDS.contains(&field.as_str()) {
            let message = format!("is not a field of a token{}", suggestion(field, FIELDS));
            complaints.push(Complaint::new(format!(".{field}"), &value.place, message));
        }
    }
    let name = name(fields, written).map_err(|complaint| complaints.push(complaint)).ok();
    let credential = credential(fields, written).map_err(|complaint| complaints.push(complaint)).ok();
    let abilities = abilities(fields, written, complaints);
    Some(Token { name: name?, credential: credential?, abilities: abilities? })
}

type Fields = [(String, Written)];

fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a Written> {
    fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
}

fn text<'a>(fields: &'a Fields, name: &str) -> Option<Result<(&'a str, &'a Written), Complaint>> {
    let written = field(fields, name)?;
    Some(match &written.raw {
        Raw::Text(text) => Ok((text, written)),
        other => {
            let message = format!("must be a string; it is {}", other.shape());
            Err(Complaint::new(format!(".{name}"), &written.place, message))
        }
    })
}

fn name(fields: &Fields, token: &Written) -> Result<String, Complaint> {
    let (name, written) = text(fields, "name").unwrap_or_else(|| missing(token, ".name", "is missing"))?;
    let clean = !name.trim().is_empty() && !name.contains(char::is_control);
    if clean && name.chars().count() <= NAME_CHARS_MAX {
        Ok(name.to_owned())
    } else {
        Err(Complaint::new(".name", &written.place, "must have 1 to 64 characters and no control character"))
    }
}

fn credential(fields: &Fields, token: &Written) -> Result<Credential, Complaint> {
    match (text(fields, "token"), text(fields, "token_sha256")) {
        (Some(token), None) => {
            let (token, written) = token?;
            let secret = parse::secret(token);
            secret.map(Credential::Token).map_err(|message| Complaint::new(".token", &written.place, message))
        }
        (None, Some(hash)) => {
            let (hash, written) = hash?;
            let refused =
                || Complaint::new(".token_sha256", &written.place, "must have 64 hexadecimal digits");
            sha256(hash).map(Credential::Sha256).ok_or_else(refused)
        }
        _ => missing(token, "", "must have either a token or a token_sha256"),
    }
}

fn abilities(fields: &Fields, token: &Written, complaints: &mut Vec<Complaint>) -> Option<Vec<Ability>> {
    let Some(written) = field(fields, "abilities") else {
        complaints.push(Complaint::new(".abilities", &token.place, "is missing"));
        return None;
    };
    let mut faults = Vec::new();
    let abilities = parse::each(Kind::Words, written, &mut faults, ability);
    if faults.is_empty() && abilities.as_ref().is_some_and(Vec::is_empty) {
        faults.push(Complaint::new("", &written.place, "is empty: such a token could do nothing"));
    }
    complaints.extend(
        faults
            .into_iter()
            .map(|complaint| Complaint { part: format!(".abilities{}", complaint.part), ..complaint }),
    );
    abilities
}

fn ability(text: &str, earlier: &[Ability]) -> Result<Ability, String> {
    let word = parse::word(text, &[])?;
    let found = Ability::ALL.into_iter().find(|ability| ability.name() == word);
    let hint = || suggestion(&word, Ability::ALL.map(Ability::name));
    let ability = found.ok_or_else(|| format!("names {word:?}, which is no ability{}", hint()))?;
    parse::distinct(ability, earlier)
}

fn missing<T>(token: &Written, part: &str, message: &str) -> Result<T, Complaint> {
    Err(Complaint::new(part, &token.place, message))
}

fn sha256(hex: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut hash = [0; 32];
    if hex.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}
