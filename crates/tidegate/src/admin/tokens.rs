//! Tokens made while the process runs: hashes in a file of the data directory, which this process alone writes.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use thiserror::Error;
use tidegate_core::secret::Secret;

use super::access::{Caller, TokenHash, hash};
use crate::{
    config::Ability,
    secrets::{self, SecretsError},
};

/// The file's name in the data directory.
const FILE_NAME: &str = "tokens.json";
/// Every request with a token looks at all of them.
const TOKENS_MAX: usize = 256;
/// Far more than so many tokens take.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Names go into logs and the audit: long ones help nobody.
const NAME_CHARS_MAX: usize = 64;

/// The tokens of a data directory, or none where there is no directory.
pub(super) struct StoredTokens {
    path: Option<PathBuf>,
    tokens: RwLock<Vec<StoredToken>>,
    /// Held while the file is written, so that changes follow one another.
    writing: Mutex<()>,
}

/// A token that was made while a process ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredToken {
    pub(super) name: String,
    sha256: String,
    abilities: Vec<String>,
    pub(super) created_ms: u64,
}

/// Why no token was made, or none revoked. Nothing has changed then.
#[derive(Debug, Error)]
pub(super) enum TokenError {
    #[error("a name has 1 to {NAME_CHARS_MAX} characters and no control character")]
    Name,
    #[error("there is a token of this name already")]
    Taken,
    #[error("there is no token of this name that could be revoked")]
    Unknown,
    #[error("{TOKENS_MAX} tokens are the most")]
    Full,
    #[error("tokens need a data directory, and this store has none: name them in admin.tokens")]
    NoDirectory,
    #[error("making a token")]
    Secret(#[from] SecretsError),
    #[error("writing the tokens")]
    Write(#[from] io::Error),
}

impl StoredTokens {
    /// The tokens of `directory`.
    ///
    /// # Errors
    /// The file is there and can't be read, or is not what was written.
    pub(super) fn open(directory: Option<&Path>) -> io::Result<Self> {
        let path = directory.map(|directory| directory.join(FILE_NAME));
        let tokens = path.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(Self { path, tokens: RwLock::new(tokens), writing: Mutex::new(()) })
    }

    /// Whoever holds the token with this hash.
    pub(super) fn find(&self, sha256: &TokenHash) -> Option<Caller> {
        let shown = secrets::hex(sha256);
        let tokens = self.tokens.read();
        let known = tokens.iter().rfind(|token| bool::from(token.sha256.as_bytes().ct_eq(shown.as_bytes())));
        known.map(StoredToken::caller)
    }

    pub(super) fn list(&self) -> Vec<StoredToken> {
        self.tokens.read().clone()
    }

    /// Makes a token. It is shown once: only its hash is kept. Waits for the disk.
    ///
    /// # Errors
    /// The name, the number of tokens, or the disk.
    pub(super) fn create(
        &self,
        name: &str,
        abilities: &[Ability],
        created_ms: u64,
    ) -> Result<Secret, TokenError> {
        if name.trim().is_empty() || name.contains(char::is_control) || name.chars().count() > NAME_CHARS_MAX
        {
            return Err(TokenError::Name);
        }
        let secret = secrets::fresh()?;
        let token = StoredToken {
            name: name.to_owned(),
            sha256: secrets::hex(&hash(secret.expose().as_bytes())),
            abilities: abilities.iter().map(|ability| ability.name().to_owned()).collect(),
            created_ms,
        };
        self.change(|tokens| {
            if tokens.iter().any(|other| other.name == name) {
                return Err(TokenError::Taken);
            }
            if tokens.len() >= TOKENS_MAX {
                return Err(TokenError::Full);
            }
            tokens.push(token);
            Ok(())
        })?;
        Ok(secret)
    }

    /// Revokes a token, which is refused at once from then on. Waits for the disk.
    ///
    /// # Errors
    /// There is none of this name, or the disk.
    pub(super) fn revoke(&self, name: &str) -> Result<(), TokenError> {
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            if tokens.len() < before { Ok(()) } else { Err(TokenError::Unknown) }
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<StoredToken>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let path = self.path.as_deref().ok_or(TokenError::NoDirectory)?;
        let _one_at_a_time = self.writing.lock();
        let mut tokens = self.list();
        change(&mut tokens)?;
        write(path, &tokens)?;
        *self.tokens.write() = tokens;
        Ok(())
    }
}

impl StoredToken {
    pub(super) fn caller(&self) -> Caller {
        let known = |name: &String| Ability::ALL.into_iter().find(|ability| ability.name() == name);
        Caller { name: self.name.clone(), abilities: self.abilities.iter().filter_map(known).collect() }
    }
}

fn read(path: &Path) -> io::Result<Vec<StoredToken>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

/// Puts the file there whole, or leaves the one that was there.
fn write(path: &Path, tokens: &[StoredToken]) -> io::Result<()> {
    let text = serde_json::to_vec(tokens).map_err(io::Error::other)?;
    let temporary = path.with_extension("json.tmp");
    // Left by a process that was killed while it wrote.
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(&text).and_then(|()| file.sync_all())?;
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn tokens_outlive_the_process_and_die_when_revoked() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = StoredTokens::open(Some(directory.path())).unwrap();
        let secret = tokens.create("ci", &[Ability::Read, Ability::Write], 1).unwrap();
        let sha256 = hash(secret.expose().as_bytes());
        let text = fs::read_to_string(directory.path().join(FILE_NAME)).unwrap();
        assert!(!text.contains(secret.expose()), "only the hash is kept");
        let mode = fs::metadata(directory.path().join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let tokens = StoredTokens::open(Some(directory.path())).unwrap();
        let caller = tokens.find(&sha256).unwrap();
        assert_eq!(caller, Caller { name: "ci".into(), abilities: vec![Ability::Read, Ability::Write] });
        assert!(matches!(tokens.create("ci", &[Ability::Read], 1), Err(TokenError::Taken)));
        tokens.revoke("ci").unwrap();
        assert_eq!(tokens.find(&sha256), None);
        assert!(matches!(tokens.revoke("ci"), Err(TokenError::Unknown)));
        assert!(StoredTokens::open(Some(directory.path())).unwrap().list().is_empty());
    }

    #[test]
    fn names_and_numbers_have_bounds() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = StoredTokens::open(Some(directory.path())).unwrap();
        for name in ["", "  ", "a\nb", &"x".repeat(65)] {
            assert!(matches!(tokens.create(name, &[Ability::Read], 1), Err(TokenError::Name)), "{name:?}");
        }
        for number in 0..TOKENS_MAX {
            tokens.create(&number.to_string(), &[Ability::Read], 1).unwrap();
        }
        assert!(matches!(tokens.create("more", &[Ability::Read], 1), Err(TokenError::Full)));
        let nowhere = StoredTokens::open(None).unwrap();
        assert!(matches!(nowhere.create("ci", &[Ability::Read], 1), Err(TokenError::NoDirectory)));
    }
}
