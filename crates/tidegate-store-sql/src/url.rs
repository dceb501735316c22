//! The URL of a database server, which holds a password.

use std::fmt;

use zeroize::Zeroizing;

/// A URL that no log line can leak, wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(Zeroizing<String>);

impl DatabaseUrl {
    /// Takes `url` as it is.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self(Zeroizing::new(url.into()))
    }

    /// The URL itself. It must not reach a log or an answer.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(…)")
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(URL withheld)")
    }
}
