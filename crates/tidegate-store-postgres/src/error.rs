//! Why the store can't be opened, and what a call to the server can end in.

use std::{io, time::Duration};

use thiserror::Error;
use tidegate_store::BackendError;
use tokio_postgres::error::SqlState;

/// Why the store can't be opened, or its schema not be migrated. No text of it holds the password.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL makes no sense. What it says is not repeated: it may hold a password.
    #[error("the URL of the database can't be used: {problem}")]
    Url {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The name of the schema can't be one.
    #[error("{name:?} can't be the name of a schema: up to 63 of a-z, 0-9 and _, a letter first")]
    SchemaName {
        /// The name.
        name: String,
    },
    /// The certificates that the server is checked against can't be read.
    #[error("reading the root certificates from {from}")]
    Roots {
        /// Where they should be.
        from: String,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// Nobody has run the migrations yet.
    #[error("the database has no tables in the schema {schema:?} yet; run `tidegate migrate`")]
    SchemaMissing {
        /// The schema's name.
        schema: String,
    },
    /// The tables are those of an earlier program.
    #[error("the tables have version {found} and this program needs {needed}; run `tidegate migrate`")]
    SchemaTooOld {
        /// The tables' version.
        found: u32,
        /// The program's.
        needed: u32,
    },
    /// The tables are those of a later program.
    #[error("the tables have version {found} and this program knows {needed} at most; use a newer program")]
    SchemaTooNew {
        /// The tables' version.
        found: u32,
        /// The program's.
        needed: u32,
    },
    /// The server can't be reached, or refuses.
    #[error("{doing}")]
    Database {
        /// What was being done.
        doing: String,
        /// What the server answered, or why it did not.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What a call to the server can end in.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("{0}")]
    Unexpected(&'static str),
}

impl Failure {
    /// Whether the session was gone before the server had done anything: a new one may do better.
    pub(crate) fn is_lost_session(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        let ended = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_SESSION_TIMEOUT];
        match error.code() {
            Some(code) => ended.contains(code),
            None => {
                error.is_closed()
                    || std::error::Error::source(error).is_some_and(|cause| cause.is::<io::Error>())
            }
        }
    }

    /// Whether another instance came first: the transaction was rolled back, and may be tried again.
    pub(crate) fn is_conflict(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        // A row that was absent is there by now: a second insert, or the check in `statements::ABSENT`.
        let came_first = [SqlState::UNIQUE_VIOLATION, SqlState::DIVISION_BY_ZERO];
        let in_the_way = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        error.code().is_some_and(|code| came_first.contains(code) || in_the_way.contains(code))
    }

    /// Whether a statement took too long: others held a row, most likely.
    pub(crate) fn is_out_of_time(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        error.code() == Some(&SqlState::QUERY_CANCELED)
    }

    /// What the driver is told.
    pub(crate) fn while_doing(self, doing: &str) -> BackendError {
        if self.is_conflict() {
            return BackendError::conflict(doing);
        }
        BackendError { doing: doing.to_owned(), cause: Some(Box::new(self)) }
    }

    /// What whoever opens the store is told.
    pub(crate) fn opening(self, doing: impl Into<String>) -> OpenError {
        OpenError::Database { doing: doing.into(), cause: Box::new(self) }
    }
}
