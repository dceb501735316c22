//! Why a store can't be opened or migrated, and how failures become a backend's.

use std::error::Error;

use thiserror::Error;
use tidegate_store::BackendError;

/// What a library says of a failure.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Why a store can't be opened or migrated. No variant holds a password.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The database holds no tables of a limit store, or the file is not there.
    #[error("there are no tables of a limit store; version {needed} is needed: run `tidegate migrate`")]
    SchemaMissing {
        /// The version that this program works with.
        needed: u32,
    },
    /// The tables are those of an earlier program.
    #[error("the tables have version {found}, and version {needed} is needed: run `tidegate migrate`")]
    SchemaOld {
        /// Their version.
        found: u32,
        /// The version that this program works with.
        needed: u32,
    },
    /// The tables are those of a later program.
    #[error(
        "the tables have version {found}, and this program knows versions up to {known}: use a newer one"
    )]
    SchemaNew {
        /// Their version.
        found: u32,
        /// The version that this program works with.
        known: u32,
    },
    /// The server lacks what the store needs.
    #[error("the server is {found}; MySQL 8.0, MariaDB 10.6 or a newer one is needed")]
    ServerOld {
        /// What it calls itself.
        found: String,
    },
    /// The URL can't be used.
    #[error("the URL of the database {fault}")]
    Url {
        /// What is wrong with it.
        fault: &'static str,
    },
    /// The database did not do it.
    #[error("{doing}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What it answered.
        #[source]
        cause: Cause,
    },
}

impl OpenError {
    /// For `map_err`: the database's failure, with what was being done.
    pub(crate) fn at<E: Into<Cause>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::Database { doing, cause: cause.into() }
    }
}

/// A backend's failure, with what was being done.
pub(crate) fn failed(doing: &str, cause: impl Into<Cause>) -> BackendError {
    BackendError { doing: doing.to_owned(), cause: Some(cause.into()) }
}
