//! A file with a token in it, for the verbs that are given one.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use thiserror::Error;
use tidegate_core::secret::{Secret, SecretError};
use zeroize::Zeroizing;

/// Why a file gives no token.
#[derive(Debug, Error)]
pub enum TokenFileError {
    /// It can't be read.
    #[error("reading the token file {path:?}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// What it holds can't be a token.
    #[error("the token in {path:?} {fault}")]
    Weak {
        /// Which.
        path: PathBuf,
        /// Which rule it breaks.
        fault: SecretError,
    },
}

/// A token is a line.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The token in the file at `path`.
pub(super) fn read(path: &Path) -> Result<Secret, TokenFileError> {
    let mut text = Zeroizing::new(String::new());
    let file = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    file.map_err(|cause| TokenFileError::File { path: path.to_owned(), cause })?;
    Secret::from_file_text(text.as_str())
        .map_err(|fault| TokenFileError::Weak { path: path.to_owned(), fault })
}
