//! Attempts in progress: who has bound to which source, and the one introduction that follows.
//!
//! Nothing is sent for a bind but the introduction, and that once, and out of what its source has sent itself. So
//! a source never gets more bytes than came from it, even one that somebody with a capability has made up.

use std::collections::{HashMap, VecDeque};

use thiserror::Error;
use tidegate_admission::Allowance;

use crate::{
    capability::{AttemptId, Role},
    endpoint::Endpoint,
    wire::{DATAGRAM_BYTES, Verified},
};

/// All attempts that are open, a bounded number of them.
#[derive(Debug)]
pub struct Mediator {
    attempts: HashMap<AttemptId, Attempt>,
    /// In the order of their ends: all attempts last equally long.
    ends: VecDeque<(u64, AttemptId)>,
    attempts_max: usize,
}

#[derive(Debug)]
struct Attempt {
    expires_at_ms: u64,
    host: Option<Binding>,
    joiner: Option<Binding>,
    introduced: bool,
}

/// A role, bound to the source that its first datagram came from.
#[derive(Debug)]
struct Binding {
    source: Endpoint,
    /// Of the newest datagram: what it takes to answer it, and the sender's own candidates.
    last: Verified,
    seen: Seen,
    /// What the source may still be sent.
    allowance: Allowance,
}

/// The sequences that have been seen: the highest, and the 64 up to it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    highest: u64,
    /// Bit n: `highest - n` was seen.
    behind: u64,
}

/// A datagram and where it goes to.
#[derive(Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The source that a role was bound to.
    pub to: Endpoint,
    /// What to send.
    pub datagram: [u8; DATAGRAM_BYTES],
}

/// Why a bind does nothing. Its sender is not told; counters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Ignored {
    /// No such attempt is open.
    #[error("no such attempt is open")]
    Unknown,
    /// This sequence was seen, or is too old to tell.
    #[error("the datagram was seen before, or is too old to tell")]
    Replayed,
    /// The role is bound to another source.
    #[error("the role is bound to another source")]
    Moved,
    /// It names an endpoint that its sender may not name.
    #[error("a candidate is not a private unicast address of the same family")]
    Candidate,
    /// Both peers have been introduced.
    #[error("the peers have been introduced")]
    Over,
}

/// No attempt can be opened until another ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("all attempts that may be open at once are")]
pub struct Full;

impl Mediator {
    /// None open, and at most `attempts_max` at once.
    #[must_use]
    pub fn new(attempts_max: usize) -> Self {
        Self { attempts: HashMap::new(), ends: VecDeque::new(), attempts_max }
    }

    /// Opens an attempt until `expires_at_ms`.
    ///
    /// # Errors
    /// Too many are open; nothing has changed.
    pub fn open(&mut self, id: AttemptId, expires_at_ms: u64, now_ms: u64) -> Result<(), Full> {
        self.end_expired(now_ms);
        if self.attempts.len() >= self.attempts_max {
            return Err(Full);
        }
        let attempt = Attempt { expires_at_ms, host: None, joiner: None, introduced: false };
        if self.attempts.insert(id, attempt).is_none() {
            self.ends.push_back((expires_at_ms, id));
        }
        Ok(())
    }

    /// Ends an attempt before its time: its listing is gone.
    pub fn close(&mut self, id: AttemptId) {
        self.attempts.remove(&id);
        self.ends.retain(|(_, other)| *other != id);
    }

    /// How many are open at `now_ms`.
    #[must_use]
    pub fn open_count(&mut self, now_ms: u64) -> usize {
        self.end_expired(now_ms);
        self.attempts.len()
    }

    /// Whether a verified datagram from `source` would do something: what would not must not spend the budgets
    /// of whose capability it carries.
    ///
    /// # Errors
    /// Why it would do nothing.
    pub fn check(&self, verified: &Verified, source: Endpoint, now_ms: u64) -> Result<(), Ignored> {
        let attempt = self.attempts.get(&verified.message.claims.attempt);
        let attempt = attempt.filter(|attempt| attempt.expires_at_ms > now_ms).ok_or(Ignored::Unknown)?;
        attempt.check(verified, source).map(drop)
    }

    /// A verified datagram from `source`, which may be sent `allowance` in return. With the second role's, both
    /// introductions.
    ///
    /// # Errors
    /// Why it does nothing; nothing has changed then.
    pub fn bind(
        &mut self,
        verified: Verified,
        source: Endpoint,
        allowance: Allowance,
        now_ms: u64,
    ) -> Result<Option<[Outgoing; 2]>, Ignored> {
        self.end_expired(now_ms);
        let attempt = self.attempts.get_mut(&verified.message.claims.attempt).ok_or(Ignored::Unknown)?;
        let seen = attempt.check(&verified, source)?;
        let place = attempt.place(verified.message.claims.role);
        let mut binding = Binding { source, last: verified, seen, allowance };
        if let Some(earlier) = place.take() {
            binding.allowance.add(earlier.allowance);
        }
        *place = Some(binding);
        let (Some(host), Some(joiner)) = (&mut attempt.host, &mut attempt.joiner) else { return Ok(None) };
        attempt.introduced = true;
        let paid = host.allowance.take(DATAGRAM_BYTES) && joiner.allowance.take(DATAGRAM_BYTES);
        Ok(paid.then(|| [host.introduced_to(joiner, now_ms), joiner.introduced_to(host, now_ms)]))
    }

    fn end_expired(&mut self, now_ms: u64) {
        while let Some((_, id)) = self.ends.pop_front_if(|(expires_at_ms, _)| *expires_at_ms <= now_ms) {
            if self.attempts.get(&id).is_some_and(|attempt| attempt.expires_at_ms <= now_ms) {
                self.attempts.remove(&id);
            }
        }
    }
}

impl Attempt {
    const fn place(&mut self, role: Role) -> &mut Option<Binding> {
        match role {
            Role::Host => &mut self.host,
            Role::Joiner => &mut self.joiner,
        }
    }

    /// What will have been seen of the role's sequences with this datagram.
    fn check(&self, verified: &Verified, source: Endpoint) -> Result<Seen, Ignored> {
        let binding = match verified.message.claims.role {
            Role::Host => self.host.as_ref(),
            Role::Joiner => self.joiner.as_ref(),
        };
        let seen = Seen::with(binding.map(|binding| binding.seen), verified.message.sequence)?;
        if binding.is_some_and(|binding| binding.source != source) {
            return Err(Ignored::Moved);
        }
        if !verified.message.endpoints.iter().all(|endpoint| endpoint.is_candidate_of(source)) {
            return Err(Ignored::Candidate);
        }
        if self.introduced { Err(Ignored::Over) } else { Ok(seen) }
    }
}

impl Binding {
    /// Tells this peer where `other` is: what it was seen at, and its own candidates if both are behind one
    /// public address.
    fn introduced_to(&self, other: &Self, now_ms: u64) -> Outgoing {
        let mut endpoints = vec![other.source];
        if self.source.shares_address_with(other.source) {
            endpoints.extend(&other.last.message.endpoints);
        }
        Outgoing { to: self.source, datagram: self.last.introduction(endpoints, now_ms) }
    }
}

impl Seen {
    /// With `sequence` too, unless it was seen or is too far behind.
    fn with(seen: Option<Self>, sequence: u64) -> Result<Self, Ignored> {
        let Some(Self { highest, behind }) = seen else { return Ok(Self { highest: sequence, behind: 1 }) };
        if sequence > highest {
            let ahead = u32::try_from(sequence - highest).unwrap_or(u32::MAX);
            return Ok(Self { highest: sequence, behind: behind.checked_shl(ahead).unwrap_or(0) | 1 });
        }
        let bit = u32::try_from(highest - sequence).ok().and_then(|back| 1_u64.checked_shl(back));
        match bit {
            Some(bit) if behind & bit == 0 => Ok(Self { highest, behind: behind | bit }),
            _ => Err(Ignored::Replayed),
        }
    }
}

#[cfg(test)]
mod tests;
