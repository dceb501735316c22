//! The values of keys: as they were written, and as they were understood.

use std::{fmt, net::SocketAddr, path::PathBuf};

use tidegate_core::{admission::Axis, network::Prefix, secret::Secret};
use zeroize::Zeroizing;

use super::{fault::Place, tokens::Token};

/// A value as it was written, with its place.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) raw: Raw,
    pub(super) place: Place,
}

/// The shapes that a written value can have. No `Debug`: any text may be a secret.
#[derive(Clone)]
pub(super) enum Raw {
    Text(Zeroizing<String>),
    Integer(i64),
    Boolean(bool),
    List(Vec<Written>),
    Table(Vec<(String, Written)>),
    /// A shape that no key takes, by its name: a float, a date.
    Other(&'static str),
}

impl Raw {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(Zeroizing::new(text.to_owned()))
    }

    /// What people call the shape.
    pub(super) const fn shape(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a number",
            Self::Boolean(_) => "a boolean",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(shape) => shape,
        }
    }
}

/// A value that its kind has checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text, or one of a few words.
    Text(String),
    /// A whole number within its bounds.
    Integer(u64),
    /// `true` or `false`.
    Boolean(bool),
    /// An address and a port to listen on.
    Address(SocketAddr),
    /// A path, relative to the working directory.
    Path(PathBuf),
    /// A URL, which may hold a password.
    Url(Hidden),
    /// One secret.
    Secret(Secret),
    /// Secrets, the current one first.
    Secrets(Vec<Secret>),
    /// Words.
    Words(Vec<String>),
    /// Networks.
    Networks(Vec<Prefix>),
    /// What an RPC of a family must carry.
    Axes(Vec<Axis>),
    /// `name=number` entries, in the order written.
    Entries(Vec<(String, u64)>),
    /// The tokens of the admin API.
    Tokens(Vec<Token>),
}

/// Text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(Zeroizing<String>);

impl Hidden {
    pub(crate) fn new(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// The text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(…)")
    }
}
