//! The tokens of the admin API.

use tidegate_core::secret::Secret;

use super::{
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

/// Checks `admin.tokens`.
pub(super) fn check(written: &Written) -> Result<Vec<Token>, Vec<Complaint>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut complaints = Vec::new();
    for (index, part) in parse::list(Kind::Tokens, written)?.iter().enumerate() {
        let part_name = format!("[{index}]");
        match token(part) {
            Ok(token) if tokens.iter().any(|earlier| earlier.name == token.name) => {
                complaints.push(Complaint::new(
                    part_name + ".name",
                    &part.place,
                    "is the same as one before it",
                ));
            }
            Ok(token) => tokens.push(token),
            Err(more) => {
                complaints.extend(more.into_iter().map(|complaint| Complaint {
                    part: format!("{part_name}{}", complaint.part),
                    ..complaint
                }));
            }
        }
    }
    if complaints.is_empty() { Ok(tokens) } else { Err(complaints) }
}

fn token(written: &Written) -> Result<Token, Vec<Complaint>> {
    let Raw::Table(fields) = &written.raw else {
        let message = format!("must be a table; it is {}", written.raw.shape());
        return Err(vec![Complaint::new("", &written.place, message)]);
    };
    let mut complaints = Vec::new();
    for (field, value) in fields {
        if !FIELDS.contains(&field.as_str()) {
            let message = format!("is not a field of a token{}", suggestion(field, FIELDS));
            complaints.push(Complaint::new(format!(".{field}"), &value.place, message));
        }
    }
    let read = (name(fields, written), credential(fields, written), abilities(fields, written));
    match read {
        (Ok(name), Ok(credential), Ok(abilities)) if complaints.is_empty() => {
            Ok(Token { name, credential, abilities })
        }
        (name, credential, abilities) => {
            complaints.extend(name.err());
            complaints.extend(credential.err());
            complaints.extend(abilities.err());
            Err(complaints)
        }
    }
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

fn abilities(fields: &Fields, token: &Written) -> Result<Vec<Ability>, Complaint> {
    let Some(written) = field(fields, "abilities") else {
        return missing(token, ".abilities", "is missing");
    };
    let complain = |message: String| Complaint::new(".abilities", &written.place, message);
    let words = parse::words(Kind::Words, written)
        .map_err(|more| complain(more.into_iter().map(|complaint| complaint.message).collect()))?;
    if words.is_empty() {
        return Err(complain("is empty: such a token could do nothing".into()));
    }
    let ability = |word: &String| {
        let found = Ability::ALL.into_iter().find(|ability| ability.name() == word);
        let hint = || suggestion(word, Ability::ALL.map(Ability::name));
        found.ok_or_else(|| complain(format!("names {word:?}, which is no ability{}", hint())))
    };
    words.iter().map(ability).collect()
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
