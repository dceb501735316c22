//! Who may ask over HTTP, and the service's keys: one file, read again when it changes.
//!
//! A principal may have several tokens at once, and the service several keys, so that each can be exchanged
//! while both the old and the new one are in use.

use std::collections::HashMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tidegate_core::secret::{Secret, SecretError};

use crate::{
    keys::{Keyring, KeyringError},
    registry::Principal,
};

/// Tokens by their hashes, and the keys.
#[derive(Debug, Clone)]
pub struct Credentials {
    by_token: HashMap<[u8; 32], Principal>,
    keys: Keyring,
}

/// What is wrong with the file. No secret is repeated.
#[derive(Debug, Error)]
pub enum CredentialsFault {
    /// It is not the JSON that is expected.
    #[error("reading the credentials, line {} column {}", .0.line(), .0.column())]
    Json(#[source] serde_json::Error),
    /// A key is no secret.
    #[error("keys, entry {place}")]
    Key {
        /// Which one, from 1.
        place: usize,
        /// The rule that it breaks.
        #[source]
        cause: SecretError,
    },
    /// The keys can't be used together.
    #[error("keys")]
    Keyring(#[from] KeyringError),
    /// A token is no secret.
    #[error("principals, entry {place}: a token")]
    Token {
        /// Which principal, from 1.
        place: usize,
        /// The rule that it breaks.
        #[source]
        cause: SecretError,
    },
    /// Two principals have one token.
    #[error("principals, entry {place}: a token is given twice")]
    Repeated {
        /// Which principal, from 1.
        place: usize,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    keys: Vec<KeyEntry>,
    principals: Vec<PrincipalEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    id: u16,
    secret: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrincipalEntry {
    tenant: String,
    name: String,
    tokens: Vec<String>,
}

impl Credentials {
    /// Reads the file's text: `{"keys": [{"id", "secret"}], "principals": [{"tenant", "name", "tokens"}]}`. The
    /// first key signs.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(text: &str) -> Result<Self, CredentialsFault> {
        let file: File = serde_json::from_str(text).map_err(CredentialsFault::Json)?;
        let mut keys = Vec::new();
        for (place, KeyEntry { id, secret }) in (1..).zip(file.keys) {
            keys.push((id, Secret::new(secret).map_err(|cause| CredentialsFault::Key { place, cause })?));
        }
        let mut by_token = HashMap::new();
        for (place, PrincipalEntry { tenant, name, tokens }) in (1..).zip(file.principals) {
            let principal = Principal { tenant, name };
            for token in tokens {
                let token = Secret::new(token).map_err(|cause| CredentialsFault::Token { place, cause })?;
                if by_token.insert(hashed(token.expose().as_bytes()), principal.clone()).is_some() {
                    return Err(CredentialsFault::Repeated { place });
                }
            }
        }
        Ok(Self { by_token, keys: Keyring::new(keys)? })
    }

    /// Who holds `token`. Its hash is looked up, so that the time says nothing of any token.
    #[must_use]
    pub fn principal(&self, token: &[u8]) -> Option<&Principal> {
        self.by_token.get(&hashed(token))
    }

    /// The service's keys.
    #[must_use]
    pub const fn keys(&self) -> &Keyring {
        &self.keys
    }
}

fn hashed(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    const TOKEN: &str = "token-of-ann-0123456789abcdefghij";
    const OTHER: &str = "token-of-bob-0123456789abcdefghij";
    const KEY: &str = "key-of-service-0123456789abcdefgh";

    fn file(keys: &[(u16, &str)], principals: &[(&str, &[&str])]) -> String {
        let keys: Vec<_> =
            keys.iter().map(|(id, secret)| serde_json::json!({ "id": id, "secret": secret })).collect();
        let principals: Vec<_> = principals
            .iter()
            .map(|(name, tokens)| serde_json::json!({ "tenant": "t", "name": name, "tokens": tokens }))
            .collect();
        serde_json::json!({ "keys": keys, "principals": principals }).to_string()
    }

    #[test]
    fn an_old_and_a_new_token_both_work() {
        let credentials = Credentials::read(&file(&[(1, KEY)], &[("ann", &[TOKEN, OTHER])])).unwrap();
        for (token, known) in [(TOKEN, true), (OTHER, true), ("", false), (&TOKEN[1..], false)] {
            assert_eq!(credentials.principal(token.as_bytes()).is_some(), known);
        }
        assert!(!format!("{credentials:?}").contains("ann"));
    }

    #[test]
    fn faults_name_the_place_and_no_secret() {
        let cases = [
            (file(&[], &[]), "keys: no signing key is given"),
            (file(&[(1, "short")], &[]), "keys, entry 1: has 5 characters; at least 32 are needed"),
            (file(&[(1, KEY)], &[("a", &[TOKEN]), ("b", &["short"])]), "principals, entry 2: a token: has 5"),
            (
                file(&[(1, KEY)], &[("a", &[TOKEN]), ("b", &[TOKEN])]),
                "principals, entry 2: a token is given twice",
            ),
            ("{\n \"keys\": 1}".to_owned(), "reading the credentials, line 2 column"),
        ];
        for (text, expected) in cases {
            let fault = Credentials::read(&text).unwrap_err();
            let cause = fault.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            let message = format!("{fault}{cause}");
            assert!(message.starts_with(expected), "{message}");
            assert!(!message.contains(TOKEN));
        }
    }
}
