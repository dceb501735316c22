//! An app's policy: what its document says, checked as a whole and made ready to decide with.

use alloc::vec::Vec;

use regex::bytes::RegexSet;
use serde::Serialize;

use crate::{
    address::Address,
    defense::Limit,
    network::{FOREVER_MS, PrefixSet},
    path::Normal,
};

mod agents;
mod document;
mod faults;
mod parse;
mod routes;
mod row;

pub use document::{DocumentRoute, ListEntry, PolicyDocument, Rate};
pub use faults::PolicyFault;
pub(crate) use routes::Route;
pub use row::{ChangeNote, PolicyHead};

/// The largest policy document.
pub const DOCUMENT_BYTES_MAX: usize = 64 * 1024;
/// The most entries of one list. Longer lists belong into a firewall that is made for them.
pub const LIST_ENTRIES_MAX: usize = 1000;
/// The most routes: each is looked at for every request.
pub const ROUTES_MAX: usize = 32;
/// The most methods of a route: more than HTTP has.
pub const METHODS_MAX: usize = 16;
/// The longest pattern for User-Agents.
pub const PATTERN_BYTES_MAX: usize = 256;
/// The longest note of a list entry.
pub const NOTE_BYTES_MAX: usize = 256;
/// The most requests a second that a rate may be.
pub const RPS_MAX: u64 = 1_000_000;
/// The largest bucket.
pub const BURST_MAX: u64 = 1_000_000_000;
/// The shortest prefix of IPv6 that may be one client: what an internet registry hands to one network.
pub const IPV6_PREFIX_MIN: u8 = 16;
/// How much of a User-Agent is looked at, in bytes.
pub const USER_AGENT_BYTES_MAX: usize = 1024;

/// What a policy does with the requests that it finds fault with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Looks at nothing.
    Off,
    /// Decides as if it enforced, spends real tokens, and refuses nothing.
    #[default]
    LogOnly,
    /// Refuses them.
    Enforce,
}

/// A policy that has been checked.
#[derive(Debug, Clone)]
pub struct Policy {
    document: PolicyDocument,
    pub(crate) allowed: PrefixSet,
    pub(crate) denied: PrefixSet,
    agents: Option<RegexSet>,
    pub(crate) limit: Option<Limit>,
    pub(crate) routes: Vec<Route>,
}

impl Policy {
    /// Reads a policy's document, JSON: a field that is left out has its default.
    ///
    /// # Errors
    /// Every fault of it, each with its field.
    pub fn parse(json: &[u8]) -> Result<Self, Vec<PolicyFault>> {
        parse::parse(json, parse::Origin::Sent)
    }

    /// Reads a document that was saved, maybe by an earlier version: that one took routes without `rps`, `burst` or
    /// any method, which limit nothing. So they do here, rather than that the whole policy were no longer applied.
    ///
    /// # Errors
    /// Every other fault of it, each with its field.
    pub fn parse_stored(json: &[u8]) -> Result<Self, Vec<PolicyFault>> {
        parse::parse(json, parse::Origin::Stored)
    }

    /// The document with its defaults filled in.
    #[must_use]
    pub const fn document(&self) -> &PolicyDocument {
        &self.document
    }

    /// What it does with the requests that it finds fault with.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.document.mode
    }

    /// Which prefix of IPv6 is one client.
    #[must_use]
    pub const fn ipv6_prefix(&self) -> u8 {
        self.document.ipv6_prefix
    }

    pub(crate) fn allows(&self, client: Address, at_ms: u64) -> bool {
        self.allowed.contains_at(client, at_ms)
    }

    pub(crate) fn denies(&self, client: Address, at_ms: u64) -> bool {
        self.denied.contains_at(client, at_ms)
    }

    pub(crate) fn denies_agent(&self, user_agent: &[u8]) -> bool {
        self.agents.as_ref().is_some_and(|agents| agents.is_match(user_agent))
    }

    /// The limits that a request falls under: the client's own, and those of the routes that it is on.
    pub(crate) fn limits<'a>(&'a self, method: &'a str, path: Normal<'a>) -> impl Iterator<Item = &'a Limit> {
        let routes = self.routes.iter().filter(move |route| route.matches(method, path));
        self.limit.iter().chain(routes.map(|route| &route.limit))
    }

    fn compile(document: PolicyDocument, agents: Option<RegexSet>) -> Self {
        Self {
            allowed: networks(&document.allow_cidrs),
            denied: networks(&document.deny_cidrs),
            agents,
            limit: Limit::of_client(document.rps, document.burst),
            routes: document.routes.iter().filter_map(Route::compile).collect(),
            document,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::compile(PolicyDocument::default(), None)
    }
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Off, Self::LogOnly, Self::Enforce];

    /// Its name in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::LogOnly => "log_only",
            Self::Enforce => "enforce",
        }
    }
}

fn networks(entries: &[ListEntry]) -> PrefixSet {
    PrefixSet::ending(entries.iter().map(|entry| (entry.cidr, entry.expires_at_ms.unwrap_or(FOREVER_MS))))
}

#[cfg(test)]
mod tests;
