//! Who sent a request, as far as its head tells.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, FORWARDED, USER_AGENT},
};
use smallvec::SmallVec;
use tidegate_core::{
    address::Address,
    forwarded::{Source, Walk, walk},
    policy::USER_AGENT_BYTES_MAX,
};

use super::{Defense, app::Origin, options::Settings};

/// Who sent a request, and what of its head decisions want to know. One pass over the names of the head finds it, for less
/// than to look for each name, and all of it is of one configuration.
#[derive(Debug)]
pub struct Caller<'a> {
    client: Address,
    pub(super) origin: Origin,
    /// The instance's lists refuse it.
    pub(super) is_denied: bool,
    seen: Seen<'a>,
    headers: &'a HeaderMap,
}

impl Defense {
    /// Whose request it is that `peer` sent with these headers: a trusted proxy's word counts.
    #[must_use]
    pub fn caller<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Caller<'a> {
        let (settings, seen, peer) = (self.0.settings.read(), Seen::of(headers), Address::from(peer));
        let walk = settings.walk(peer, &seen, headers);
        if walk.unreadable {
            self.0.metrics.unreadable.inc();
        }
        Caller::new(walk.client, peer, seen, headers, &settings)
    }

    /// The same where the peer itself is the client, whatever the head says.
    #[must_use]
    pub fn peer_as_caller<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Caller<'a> {
        let peer = Address::from(peer);
        Caller::new(peer, peer, Seen::of(headers), headers, &self.0.settings.read())
    }

    /// Whether forwarded headers of this peer count.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.0.settings.read().trusted.contains(Address::from(peer))
    }
}

impl<'a> Caller<'a> {
    fn new(
        client: Address,
        peer: Address,
        seen: Seen<'a>,
        headers: &'a HeaderMap,
        settings: &Settings,
    ) -> Self {
        let forwarded = seen.x_forwarded_for.first.is_some() || seen.forwarded.first.is_some();
        let origin = Origin { peer, forwarded, trusted: settings.trusted.contains(peer) };
        let is_denied = settings.firewall_deny.contains(client) && !settings.firewall_allow.contains(client);
        Self { client, origin, is_denied, seen, headers }
    }

    /// Whose request it is.
    #[must_use]
    pub const fn client(&self) -> Address {
        self.client
    }

    /// Whether the peer is a trusted proxy.
    #[must_use]
    pub const fn peer_is_trusted(&self) -> bool {
        self.origin.trusted
    }

    /// What it wants to be answered with.
    #[must_use]
    pub const fn accept(&self) -> Option<&'a HeaderValue> {
        self.seen.accept
    }

    /// The lines of the User-Agent, each on a line, as far as they are looked at.
    pub(super) fn user_agent<'b>(&'b self, joined: &'b mut Joined) -> &'b [u8] {
        if !self.seen.user_agent.is_repeated {
            return self.seen.user_agent.first.map_or(b"", |line| line.as_bytes());
        }
        let mut append = |text: &[u8]| {
            joined.extend_from_slice(&text[..text.len().min(USER_AGENT_BYTES_MAX - joined.len())]);
        };
        for (index, line) in self.headers.get_all(USER_AGENT).into_iter().enumerate() {
            if index > 0 {
                append(b"\n");
            }
            append(line.as_bytes());
        }
        joined
    }
}

/// Several lines as one text, without an allocation.
pub(super) type Joined = SmallVec<[u8; USER_AGENT_BYTES_MAX]>;

/// The headers that matter.
#[derive(Debug, Default)]
struct Seen<'a> {
    x_forwarded_for: Lines<'a>,
    forwarded: Lines<'a>,
    user_agent: Lines<'a>,
    accept: Option<&'a HeaderValue>,
}

/// The lines of one header.
#[derive(Debug, Default, Clone, Copy)]
struct Lines<'a> {
    first: Option<&'a HeaderValue>,
    is_repeated: bool,
}

impl<'a> Seen<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        let mut seen = Self::default();
        for (name, value) in headers {
            if *name == USER_AGENT {
                seen.user_agent.add(value);
            } else if *name == ACCEPT {
                seen.accept = seen.accept.or(Some(value));
            } else if *name == X_FORWARDED_FOR {
                seen.x_forwarded_for.add(value);
            } else if *name == FORWARDED {
                seen.forwarded.add(value);
            }
        }
        seen
    }
}

impl<'a> Lines<'a> {
    fn add(&mut self, line: &'a HeaderValue) {
        self.is_repeated = self.first.is_some();
        self.first = self.first.or(Some(line));
    }
}

impl Settings {
    fn walk(&self, peer: Address, seen: &Seen<'_>, headers: &HeaderMap) -> Walk {
        let (lines, name) = match self.forwarded {
            Source::XForwardedFor => (seen.x_forwarded_for, X_FORWARDED_FOR),
            Source::Forwarded => (seen.forwarded, FORWARDED),
        };
        let (trusted, source) = (&self.trusted, self.forwarded);
        if lines.is_repeated {
            let lines = headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
            return walk(peer, lines, trusted, source);
        }
        walk(peer, lines.first.into_iter().map(HeaderValue::as_bytes), trusted, source)
    }
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
