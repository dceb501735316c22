//! The decision about a request under a policy. The same function decides live and in replay.

use core::fmt;

use smallvec::SmallVec;

use crate::{
    address::Address,
    path::Normal,
    policy::{Mode, Policy, USER_AGENT_BYTES_MAX},
};

mod bucket;
mod limit;
mod replay;

pub use bucket::Bucket;
pub use limit::{BucketId, ClientKey, Limit, LimitName};
pub use replay::{Client, Replay, Slice, replay};

/// What is known of a request.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Whose it is.
    pub client: Address,
    /// Its method.
    pub method: &'a str,
    /// Its path.
    pub path: Normal<'a>,
    /// Its User-Agent, each line of it on a line; empty for none.
    pub user_agent: &'a [u8],
    /// When it came, in ms since the epoch.
    pub at_ms: u64,
}

/// Where clients' buckets are kept.
pub trait Buckets {
    /// The bucket of that name: as it was left, or a full one. It is called again for what must be kept.
    fn bucket(&mut self, id: BucketId, at_ms: u64) -> &mut Bucket;
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing was found against it.
    Allowed,
    /// It would be refused if the policy enforced.
    WouldBlock,
    /// It is refused.
    Blocked,
}

/// What was found against a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A bucket was empty.
    RateLimit,
    /// Its client is on the deny list.
    DenyCidr,
    /// Its User-Agent is.
    DenyUserAgent,
    /// It has no User-Agent.
    MissingUserAgent,
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// What becomes of it.
    pub outcome: Outcome,
    /// What was found against it; none if it is allowed.
    pub reason: Option<Reason>,
    /// The empty bucket that it waits longest for, if that is the reason.
    pub wait: Option<Wait>,
}

/// An empty bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Which limit.
    pub limit: LimitName,
    /// How many requests it allows at once.
    pub burst: u64,
    /// How long an empty bucket takes to be full, in s.
    pub window_s: u64,
    /// How long until there is a token again, in ms: 1 or more.
    pub retry_after_ms: u64,
}

/// Decides about a request. Deny lists come first, so that who is on one never spends a token; the limits
/// are charged all or none.
pub fn decide(policy: &Policy, facts: &Facts<'_>, buckets: &mut impl Buckets) -> Verdict {
    if policy.mode() == Mode::Off || policy.allows(facts.client, facts.at_ms) {
        return Verdict::ALLOWED;
    }
    if let Some(reason) = denial(policy, facts) {
        return Verdict::against(policy.mode(), reason, None);
    }
    match spend(policy, facts, buckets) {
        None => Verdict::ALLOWED,
        Some(wait) => Verdict::against(policy.mode(), Reason::RateLimit, Some(wait)),
    }
}

fn denial(policy: &Policy, facts: &Facts<'_>) -> Option<Reason> {
    let user_agent = facts.seen_user_agent();
    if policy.denies(facts.client, facts.at_ms) {
        Some(Reason::DenyCidr)
    } else if policy.denies_agent(user_agent) {
        Some(Reason::DenyUserAgent)
    } else if policy.document().deny_missing_user_agent && is_missing(user_agent) {
        Some(Reason::MissingUserAgent)
    } else {
        None
    }
}

/// Takes a token of each bucket, or tells which one keeps it waiting longest.
fn spend(policy: &Policy, facts: &Facts<'_>, buckets: &mut impl Buckets) -> Option<Wait> {
    let client = ClientKey::of(facts.client, policy.ipv6_prefix());
    let limits: SmallVec<[&Limit; 4]> = policy.limits(facts.method, facts.path).collect();
    let mut longest: Option<Wait> = None;
    for limit in &limits {
        let retry_after_ms = buckets.bucket(limit.bucket_of(client), facts.at_ms).wait_ms(limit, facts.at_ms);
        if retry_after_ms > longest.map_or(0, |wait| wait.retry_after_ms) {
            longest = Some(limit.wait(retry_after_ms));
        }
    }
    for limit in &limits {
        let bucket = buckets.bucket(limit.bucket_of(client), facts.at_ms);
        match longest {
            None => bucket.charge(limit, facts.at_ms),
            Some(_) => bucket.refuse(limit, facts.at_ms),
        }
    }
    longest
}

/// A User-Agent that is blank is none; of several lines, one that is blank is enough.
fn is_missing(user_agent: &[u8]) -> bool {
    user_agent.split(|byte| *byte == b'\n').any(|line| line.trim_ascii().is_empty())
}

impl Facts<'_> {
    /// What of the User-Agent is looked at, and kept.
    #[must_use]
    pub fn seen_user_agent(&self) -> &[u8] {
        &self.user_agent[..self.user_agent.len().min(USER_AGENT_BYTES_MAX)]
    }
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::RateLimit, Self::DenyCidr, Self::DenyUserAgent, Self::MissingUserAgent];

    /// Its name in counters, metrics and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::DenyCidr => "deny_cidr",
            Self::DenyUserAgent => "deny_user_agent",
            Self::MissingUserAgent => "missing_user_agent",
        }
    }
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Allowed, Self::WouldBlock, Self::Blocked];

    /// Its name in counters and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::WouldBlock => "would_block",
            Self::Blocked => "blocked",
        }
    }
}

impl Verdict {
    /// Nothing was found.
    pub const ALLOWED: Self = Self { outcome: Outcome::Allowed, reason: None, wait: None };

    const fn against(mode: Mode, reason: Reason, wait: Option<Wait>) -> Self {
        let outcome = match mode {
            Mode::Enforce => Outcome::Blocked,
            Mode::Off | Mode::LogOnly => Outcome::WouldBlock,
        };
        Self { outcome, reason: Some(reason), wait }
    }
}

impl fmt::Debug for Facts<'_> {
    /// Without client and User-Agent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts")
            .field("method", &self.method)
            .field("at_ms", &self.at_ms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
