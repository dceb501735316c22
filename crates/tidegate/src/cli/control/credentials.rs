//! The operator's token: from a file, the configuration, or the data directory.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use thiserror::Error;
use tidegate_core::secret::{Secret, SecretError};
use zeroize::Zeroizing;

use crate::{
    config::{Fault, Loaded, Value},
    secrets::{self, SecretsError},
};

/// Why there is no token.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// The configuration's token is faulty.
    #[error("the configuration is faulty: {0}")]
    Fault(Fault),
    /// A file can't be read.
    #[error("reading the token file {path:?}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// What a file holds can't be a token.
    #[error("the token in {path:?} {fault}")]
    Weak {
        /// Which.
        path: PathBuf,
        /// Which rule it breaks.
        fault: SecretError,
    },
    /// The data directory's secrets can't be read.
    #[error("reading the secrets of the data directory")]
    Secrets(#[from] SecretsError),
    /// No token anywhere.
    #[error(
        "no operator token: run this where `tidegate serve` was started, or give --token-file, or set \
         guard.operator_token_file"
    )]
    Missing,
}

/// The token in `file` if there is one, else [`operator_token`].
pub(super) fn token(file: Option<&Path>, loaded: &Loaded) -> Result<Secret, CredentialsError> {
    match file {
        Some(path) => read(path),
        None => operator_token(loaded),
    }
}

/// The token of the configuration, else that of the data directory.
///
/// # Errors
/// It is faulty or missing.
pub fn operator_token(loaded: &Loaded) -> Result<Secret, CredentialsError> {
    // Whatever else is wrong with the guard: an operator may be about to stop it.
    let concerns = |fault: &&Fault| fault.key.is_empty() || fault.key.starts_with("guard.operator_token");
    if let Some(fault) = loaded.faults.iter().find(concerns) {
        return Err(CredentialsError::Fault(fault.clone()));
    }
    let setting = |path| loaded.settings.setting(path).and_then(|setting| setting.value.as_ref());
    if let Some(Value::Secret(token)) = setting("guard.operator_token") {
        return Ok(token.clone());
    }
    if let Some(Value::Path(path)) = setting("guard.operator_token_file") {
        return read(path);
    }
    let made = secrets::read(&loaded.regardless().store.path)?;
    made.map(|made| made.operator_token).ok_or(CredentialsError::Missing)
}

fn read(path: &Path) -> Result<Secret, CredentialsError> {
    let mut text = Zeroizing::new(String::new());
    let file = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    file.map_err(|cause| CredentialsError::File { path: path.to_owned(), cause })?;
    Secret::from_file_text(text.as_str())
        .map_err(|fault| CredentialsError::Weak { path: path.to_owned(), fault })
}

/// A token is a line.
const FILE_BYTES_MAX: u64 = 64 * 1024;
