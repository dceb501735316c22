//! What is wrong with a configuration, where, and what it stops.

use std::{fmt, path::Path, sync::Arc};

/// One thing that is wrong. Its text never holds the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key, such as `guard.listen`; empty where a whole file can't be read.
    pub key: String,
    /// Where the value came from.
    pub place: Place,
    /// What is wrong, and what is allowed instead.
    pub message: String,
    /// What the fault stops.
    pub scope: Scope,
}

/// What a fault stops, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The process does not start.
    Fatal,
    /// The process runs; every RPC is answered `503 guard_unavailable`.
    Guard,
    /// The server runs; `tidegate call` does not.
    Client,
    /// Nothing; it is said once.
    Warning,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The table of keys.
    Default,
    /// A line of the configuration file, counted from 1.
    Line {
        /// The file, as it was named.
        file: Arc<Path>,
        /// The line.
        line: usize,
    },
    /// A file as a whole.
    File(Arc<Path>),
    /// An environment variable, by name.
    Environment(String),
    /// A flag of the command line, such as `--log-level`.
    Flag(&'static str),
}

impl Fault {
    /// A fault at `place`.
    pub fn new(scope: Scope, key: impl Into<String>, place: Place, message: impl Into<String>) -> Self {
        Self { key: key.into(), place, message: message.into(), scope }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Line { file, line } => write!(f, "{}:{line}", printable(file)),
            Self::File(file) => f.write_str(&printable(file)),
            Self::Environment(name) => write!(f, "environment {}", name.escape_debug()),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// The path on one line, whatever bytes it has.
fn printable(path: &Path) -> String {
    path.to_string_lossy().escape_debug().collect()
}
