//! The way of a request through firewall and policy.

use std::{
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{FORWARDED, USER_AGENT},
};
use smallvec::SmallVec;
use tidegate_core::{
    address::Address,
    defense::Facts,
    forwarded::{Source, walk},
    path::PathBuffer,
    policy::USER_AGENT_BYTES_MAX,
};

use super::{AppId, Defense, Refusal, app::Origin, counters::Kind, options::Settings, refusal::Cause};

/// A request as it came in.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    /// Who sent it: the TCP peer, or what PROXY protocol says.
    pub peer: IpAddr,
    /// Whose it is; see [`Defense::client`].
    pub client: Address,
    /// The host that it asks for.
    pub host: &'a str,
    /// Its method.
    pub method: &'a str,
    /// Its path as it was sent.
    pub path: &'a str,
    /// Its headers.
    pub headers: &'a HeaderMap,
}

/// What becomes of a request.
#[derive(Debug)]
pub struct Judged {
    /// The answer, if it is not let through.
    pub refusal: Option<Refusal>,
    /// Its place in the access log.
    pub record: RecordHandle,
}

/// A request's place in the access log.
#[derive(Debug)]
pub struct RecordHandle {
    app: AppId,
    number: Option<u64>,
}

impl Defense {
    /// Whose request it is that `peer` sent with these headers.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Address {
        let settings = self.0.settings.read();
        let lines = headers.get_all(header_of(settings.forwarded)).into_iter().map(|line| line.as_bytes());
        let walk = walk(Address::from(peer), lines, &settings.trusted, settings.forwarded);
        if walk.unreadable {
            self.0.metrics.unreadable.inc();
        }
        walk.client
    }

    /// Whether forwarded headers of this peer count.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.0.settings.read().trusted.contains(Address::from(peer))
    }

    /// What the firewall says to a client whose request is for no app.
    #[must_use]
    pub fn firewall(&self, client: Address) -> Option<Refusal> {
        self.0.settings.read().firewall_refuses(client).then(|| Refusal::new(Cause::Firewall))
    }

    /// Asks the firewall, then the app's policy; counts, and appends the request to the access log. A panic
    /// within lets the request pass and is counted.
    #[must_use]
    pub fn judge(&self, app: &AppId, request: &Incoming<'_>) -> Judged {
        let at_ms = self.0.clock.now_ms();
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge_at(app, request, at_ms)));
        judged.unwrap_or_else(|_| {
            app.0.count_fail_open(at_ms);
            Judged { refusal: None, record: RecordHandle { app: app.clone(), number: None } }
        })
    }

    fn judge_at(&self, app: &AppId, request: &Incoming<'_>, at_ms: u64) -> Judged {
        let (mut path, mut user_agent) = (PathBuffer::default(), SmallVec::new());
        let seen = Seen::of(request.headers);
        let facts = Facts {
            client: request.client,
            method: request.method,
            path: path.normalise(request.path.as_bytes()),
            user_agent: seen.user_agent(request.headers, &mut user_agent),
            at_ms,
        };
        let settings = self.0.settings.read();
        let origin = settings.origin(request.peer, seen.forwarded);
        let (kind, cause) = if settings.firewall_refuses(request.client) {
            (Kind::Firewall, Some(Cause::Firewall))
        } else {
            drop(settings);
            self.ask(app, &facts)
        };
        let refusal = cause.map(Refusal::new);
        let status = refusal.map_or(0, |refusal| refusal.status().as_u16());
        let number = app.0.record(&facts, kind, status, origin);
        Judged { refusal, record: RecordHandle { app: app.clone(), number: Some(number) } }
    }

    /// The policy alone; a panic there is counted and logged with its request.
    fn ask(&self, app: &AppId, facts: &Facts<'_>) -> (Kind, Option<Cause>) {
        let asked = catch_unwind(AssertUnwindSafe(|| {
            if let Some(hook) = self.0.hook.get() {
                hook(facts);
            }
            app.0.decide(facts)
        }));
        asked.unwrap_or((Kind::FailOpen, None))
    }
}

impl Settings {
    fn firewall_refuses(&self, client: Address) -> bool {
        self.firewall_deny.contains(client) && !self.firewall_allow.contains(client)
    }

    fn origin(&self, peer: IpAddr, forwarded: bool) -> Origin {
        let peer = Address::from(peer);
        Origin { peer, forwarded, trusted: self.trusted.contains(peer) }
    }
}

/// Where the addresses stand that trusted peers write. A name that is known is found without being read first.
const fn header_of(source: Source) -> HeaderName {
    match source {
        Source::XForwardedFor => X_FORWARDED_FOR,
        Source::Forwarded => FORWARDED,
    }
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl RecordHandle {
    /// Notes what the app answered.
    pub fn finish(&self, status: u16) {
        if let Some(number) = self.number {
            self.app.0.finish(number, status);
        }
    }
}

/// Several lines as one text, without an allocation.
type Joined = SmallVec<[u8; USER_AGENT_BYTES_MAX]>;

/// What a decision wants to know of a head. One pass over its names finds it, for less than to look for each name.
struct Seen<'a> {
    /// Whether there is a forwarded header of either kind.
    forwarded: bool,
    user_agent: Option<&'a HeaderValue>,
    user_agents: usize,
}

impl<'a> Seen<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        let mut seen = Self { forwarded: false, user_agent: None, user_agents: 0 };
        for (name, value) in headers {
            if *name == USER_AGENT {
                seen.user_agent = Some(value);
                seen.user_agents += 1;
            } else {
                seen.forwarded |= *name == X_FORWARDED_FOR || *name == FORWARDED;
            }
        }
        seen
    }

    /// The lines of the User-Agent, each on a line, as far as they are looked at.
    fn user_agent(&self, headers: &'a HeaderMap, joined: &'a mut Joined) -> &'a [u8] {
        if self.user_agents < 2 {
            return self.user_agent.map_or(b"", |line| line.as_bytes());
        }
        let mut append = |text: &[u8]| {
            joined.extend_from_slice(&text[..text.len().min(USER_AGENT_BYTES_MAX - joined.len())]);
        };
        for (index, line) in headers.get_all(USER_AGENT).into_iter().enumerate() {
            if index > 0 {
                append(b"\n");
            }
            append(line.as_bytes());
        }
        joined
    }
}
