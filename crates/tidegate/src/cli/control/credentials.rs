//! The operator's token: from a file, the configuration, or the data directory.

use std::path::Path;

use thiserror::Error;
use tidegate_core::secret::Secret;

use crate::{
    cli::token_file::{self, TokenFileError},
    config::{Fault, Loaded, Value},
    secrets::{self, SecretsError},
};

/// Why there is no token.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// The configuration's token is faulty.
    #[error("the configuration is faulty: {0}")]
    Fault(Fault),
    /// The token's file.
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
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
        Some(path) => Ok(token_file::read(path)?),
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
        return Ok(token_file::read(path)?);
    }
    let made = secrets::read(&loaded.regardless().store.path)?;
    made.map(|made| made.operator_token).ok_or(CredentialsError::Missing)
}
