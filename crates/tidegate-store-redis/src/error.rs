//! Why a store can't be opened.

use thiserror::Error;

/// Why a store can't be opened. No password is in it or in its sources.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The prefix can't stand in names.
    #[error(
        "the prefix {prefix:?} of the store's keys must have 1 to 64 characters: letters, digits, `-`, `_`, `.`"
    )]
    Prefix {
        /// As it was given.
        prefix: String,
    },
    /// The certificates that servers are checked against can't be read.
    #[error("reading the root certificates from {file}")]
    Certificates {
        /// The file that the URL names.
        file: String,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// No server answers, or it refuses what the store needs.
    #[error("opening the limit store at {server}: {doing}")]
    Server {
        /// The URL, without passwords.
        server: String,
        /// What was being done.
        doing: &'static str,
        /// What went wrong.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server is too old.
    #[error("the server at {server} is Redis {version}; Redis 6.2, Valkey 7.2 or newer is needed")]
    ServerTooOld {
        /// The URL, without passwords.
        server: String,
        /// Its version, as it tells it.
        version: String,
    },
    /// The rows were written by another version.
    #[error(
        "the limit store at {server} has format {found}, and this version reads format {readable}: use a \
         version that reads it, or another prefix, or begin anew by removing all keys of this one (`tidegate \
         migrate` changes nothing here)"
    )]
    Format {
        /// The URL, without passwords.
        server: String,
        /// As it stands there.
        found: String,
        /// What this version reads.
        readable: u32,
    },
}
