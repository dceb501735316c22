//! A policy as it is written: the shape of its JSON.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use serde::{Serialize, Serializer};

use super::Mode;
use crate::network::Prefix;

/// A policy's document, every field with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyDocument {
    /// What is done with requests that it finds fault with.
    pub mode: Mode,
    /// Requests a second that a client may go on making; 0: no limit.
    pub rps: Rate,
    /// How many it may make at once.
    pub burst: u64,
    /// Networks whose requests are refused.
    pub deny_cidrs: Vec<ListEntry>,
    /// Parts of User-Agents, or `re:` and a regular expression, whatever the case.
    pub deny_user_agents: Vec<String>,
    /// Whether a request without a User-Agent is refused; a blank one is none.
    pub deny_missing_user_agent: bool,
    /// Networks whose requests are never refused by this policy.
    pub allow_cidrs: Vec<ListEntry>,
    /// Which prefix of IPv6 is one client.
    pub ipv6_prefix: u8,
    /// Limits for parts of the app, beside the client's own.
    pub routes: Vec<DocumentRoute>,
}

/// A network of a list. Written as its text alone where nothing else is said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// The network.
    pub cidr: Prefix,
    /// Why it is there.
    pub note: Option<String>,
    /// When the entry ends, in ms since the epoch.
    pub expires_at_ms: Option<u64>,
}

/// A limit for part of the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DocumentRoute {
    /// How the normal form of the path begins, whatever the case.
    pub path_prefix: String,
    /// Only these methods; all where it is left out. HEAD counts as GET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
    /// Requests a second of one client; 0: no limit.
    pub rps: Rate,
    /// How many at once.
    pub burst: u64,
}

/// Requests a second, in millionths: a rate of `0.1` is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Rate(pub u64);

impl Rate {
    /// The millionths of a request a second that are one.
    pub const ONE: u64 = 1_000_000;
}

impl Default for PolicyDocument {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            rps: Rate(0),
            burst: 0,
            deny_cidrs: Vec::new(),
            deny_user_agents: Vec::new(),
            deny_missing_user_agent: false,
            allow_cidrs: Vec::new(),
            ipv6_prefix: 64,
            routes: Vec::new(),
        }
    }
}

impl Serialize for Rate {
    /// A whole number where it is one.
    #[expect(clippy::cast_precision_loss, reason = "at most 10^12, which an f64 holds exactly")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(Self::ONE) {
            return serializer.serialize_u64(self.0 / Self::ONE);
        }
        serializer.serialize_f64(self.0 as f64 / Self::ONE as f64)
    }
}

impl Serialize for ListEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Full<'a> {
            cidr: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            note: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            expires_at_ms: Option<u64>,
        }
        let cidr = self.cidr.to_string();
        if self.note.is_none() && self.expires_at_ms.is_none() {
            return serializer.serialize_str(&cidr);
        }
        let (note, expires_at_ms) = (self.note.as_deref(), self.expires_at_ms);
        Full { cidr: &cidr, note, expires_at_ms }.serialize(serializer)
    }
}
