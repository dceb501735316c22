//! The secrets of the data directory: made once, at the first start, and read by every command of the same
//! folder.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use thiserror::Error;
use tidegate_core::secret::{Secret, SecretError};
use toml_edit::Document;
use zeroize::Zeroizing;

/// The file's name in the data directory.
pub const FILE_NAME: &str = "secrets.toml";

/// What the data directory holds. A value of the configuration wins over the one here.
#[derive(Debug, Clone)]
pub struct DataSecrets {
    /// Signs RPC.
    pub guard_secret: Secret,
    /// The bearer token of operator calls.
    pub operator_token: Secret,
    /// Hashes the names that `tidegate call` sends.
    pub pepper: Secret,
    /// The first token of the admin API.
    pub admin_token: Secret,
}

/// Why there are no secrets. Nothing was written, or nothing but the data directory.
#[derive(Debug, Error)]
pub enum SecretsError {
    /// The data directory can't be made.
    #[error("making the data directory {path:?}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Anybody could put another file in its place.
    #[error("the data directory {path:?} can be written by everybody (mode {mode:o}); run chmod 700 on it")]
    DirectoryMode {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Others can read the file.
    #[error(
        "{path:?} is open to others (mode {mode:o}); run chmod 600 on it, and if others may have read it, remove it for new secrets"
    )]
    FileMode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file can't be read.
    #[error("reading {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file can't be written.
    #[error("writing {path:?}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not what was written at the first start.
    #[error("{path:?}: {what}; restore the file, or remove it for new secrets")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, without any of its text.
        what: String,
    },
    /// The system gives no random numbers.
    #[error("asking the system for random numbers")]
    Random(#[from] getrandom::Error),
    /// A secret just made is refused: it came out as no random number does.
    #[error("making a secret")]
    Weak(#[from] SecretError),
}

/// The secrets of `directory`, or none where there was no first start yet.
///
/// # Errors
/// The file can't be read, others could read it, or it is not what was written.
pub fn read(directory: &Path) -> Result<Option<DataSecrets>, SecretsError> {
    let path = directory.join(FILE_NAME);
    let reading = |source| SecretsError::Read { path: path.clone(), source };
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(reading(error)),
    };
    let mode = file.metadata().map_err(reading)?.permissions().mode() & 0o7777;
    if mode & 0o177 != 0 {
        return Err(SecretsError::FileMode { path, mode });
    }
    let mut text = Zeroizing::new(String::new());
    Read::by_ref(&mut file).take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(reading)?;
    parse(&text).map(Some).map_err(|what| SecretsError::Malformed { path, what })
}

/// Makes the data directory where there is none, for its owner alone.
///
/// # Errors
/// It can't be made, or everybody could write to the one that is there.
pub fn make_directory(directory: &Path) -> Result<(), SecretsError> {
    let failed = |source| SecretsError::Directory { path: directory.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let mode = fs::metadata(directory).map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o002 != 0 {
        return Err(SecretsError::DirectoryMode { path: directory.to_owned(), mode });
    }
    Ok(())
}

/// The secrets of `directory`; makes the directory and them where there are none. The second part says
/// whether they were made just now.
///
/// # Errors
/// As [`read`], and where the directory or the file can't be written; the file is there whole or not at all.
pub fn read_or_make(directory: &Path) -> Result<(DataSecrets, bool), SecretsError> {
    make_directory(directory)?;
    if let Some(secrets) = read(directory)? {
        return Ok((secrets, false));
    }
    let secrets = DataSecrets {
        guard_secret: fresh()?,
        operator_token: fresh()?,
        pepper: fresh()?,
        admin_token: fresh()?,
    };
    let made = write(directory, &text_of(&secrets))
        .map_err(|source| SecretsError::Write { path: directory.join(FILE_NAME), source })?;
    match made {
        true => Ok((secrets, true)),
        false => read(directory)?.map(|secrets| (secrets, false)).ok_or_else(|| SecretsError::Read {
            path: directory.join(FILE_NAME),
            source: io::ErrorKind::NotFound.into(),
        }),
    }
}

/// A new secret: 256 random bits as 64 hexadecimal digits.
///
/// # Errors
/// The system gives no random numbers.
pub fn fresh() -> Result<Secret, SecretsError> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    getrandom::fill(&mut *bytes)?;
    Ok(Secret::new(hex(&*bytes))?)
}

/// The file has five short lines.
const FILE_BYTES_MAX: u64 = 16 * 1024;

/// Two small hexadecimal digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    // With room for all of it at once, so that growing leaves no copy behind.
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    text
}

fn parse(text: &str) -> Result<DataSecrets, String> {
    let document = Document::parse(text).map_err(|_| "is not valid TOML")?;
    let field = |name: &str| {
        let text = document.get(name).and_then(toml_edit::Item::as_str).ok_or(format!("has no {name}"))?;
        Secret::new(text).map_err(|broken| format!("{name} {broken}"))
    };
    Ok(DataSecrets {
        guard_secret: field("guard_secret")?,
        operator_token: field("operator_token")?,
        pepper: field("pepper")?,
        admin_token: field("admin_token")?,
    })
}

fn text_of(secrets: &DataSecrets) -> Zeroizing<String> {
    Zeroizing::new(format!(
        "# Made at the first start. Who reads this file can sign requests and stop the guard.\n\
         # A value in the configuration wins over the one here. Another pepper starts every counter afresh.\n\
         guard_secret = \"{}\"\noperator_token = \"{}\"\npepper = \"{}\"\nadmin_token = \"{}\"\n",
        secrets.guard_secret.expose(),
        secrets.operator_token.expose(),
        secrets.pepper.expose(),
        secrets.admin_token.expose(),
    ))
}

/// Puts the file there, whole and on disk. Answers false where another process was first: its file stays.
fn write(directory: &Path, text: &str) -> io::Result<bool> {
    let mut tag = [0_u8; 8];
    getrandom::fill(&mut tag).map_err(io::Error::other)?;
    let temporary = directory.join(format!("{FILE_NAME}.{}.tmp", hex(&tag)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| place(&temporary, &directory.join(FILE_NAME)));
    // After a rename there is nothing to remove; after a failure there may be.
    let _ = fs::remove_file(&temporary);
    let placed = placed?;
    File::open(directory)?.sync_all()?;
    Ok(placed)
}

/// Gives the file its name unless another has it. A hard link does not replace; where the file system has
/// none, a rename does.
fn place(temporary: &Path, path: &Path) -> io::Result<bool> {
    match fs::hard_link(temporary, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(_) => fs::rename(temporary, path).map(|()| true),
    }
}

#[cfg(test)]
mod tests;
