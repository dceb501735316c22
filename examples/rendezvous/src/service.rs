//! The service between its two faces: HTTP lists games and hands out capabilities, UDP introduces.

use std::{collections::HashMap, fmt};

use parking_lot::{Mutex, RwLock};
use thiserror::Error;
use tidegate_admission::Allowance;

use crate::{
    capability::{AttemptId, Capability, Role},
    credentials::Credentials,
    endpoint::Endpoint,
    mediator::{Ignored, Mediator, Outgoing},
    registry::{ListingId, Metadata, Principal, Refused, Registry, RegistryLimits},
    wire::Verified,
};

/// How many and how long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of listings.
    pub registry: RegistryLimits,
    /// Open attempts, in all.
    pub attempts_max: usize,
    /// Open attempts at one listing.
    pub listing_attempts_max: usize,
    /// How long an attempt lasts.
    pub attempt_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let registry =
            RegistryLimits { listings_max: 10_000, tenant_listings_max: 1_000, listing_ms: 60_000 };
        Self { registry, attempts_max: 20_000, listing_attempts_max: 16, attempt_ms: 30_000 }
    }
}

/// Everything that the service holds. Shared by both faces.
pub struct Service {
    limits: Limits,
    credentials: RwLock<Credentials>,
    /// Locked before the mediator where both are.
    hall: Mutex<Hall>,
    mediator: Mutex<Mediator>,
}

/// What HTTP alone changes.
struct Hall {
    registry: Registry,
    /// The open attempts at each listing, oldest first.
    attempts: HashMap<ListingId, Vec<(AttemptId, u64)>>,
}

/// What a listing says, to whoever may see it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its id.
    pub id: ListingId,
    /// What it says.
    pub metadata: Metadata,
    /// Until when, in ms since the epoch.
    pub expires_at_ms: u64,
}

/// An attempt can't be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotStarted {
    /// The listing.
    #[error(transparent)]
    Listing(#[from] Refused),
    /// Too many attempts are open, at the listing or in all.
    #[error("too many attempts are open; try again when one has ended")]
    Busy,
}

impl Service {
    /// An empty one.
    #[must_use]
    pub fn new(limits: Limits, credentials: Credentials) -> Self {
        let hall = Hall { registry: Registry::new(limits.registry), attempts: HashMap::new() };
        Self {
            limits,
            credentials: RwLock::new(credentials),
            hall: Mutex::new(hall),
            mediator: Mutex::new(Mediator::new(limits.attempts_max)),
        }
    }

    /// Takes other credentials from now on. Listings and attempts stay; a capability lasts as long as its key is
    /// among the new ones.
    pub fn replace_credentials(&self, credentials: Credentials) {
        *self.credentials.write() = credentials;
    }

    /// Who holds this bearer token.
    #[must_use]
    pub fn principal(&self, token: &[u8]) -> Option<Principal> {
        self.credentials.read().principal(token).cloned()
    }

    /// Lists a game.
    ///
    /// # Errors
    /// There is no room.
    pub fn create(
        &self,
        id: ListingId,
        holder: &Principal,
        metadata: Metadata,
        now_ms: u64,
    ) -> Result<Shown, Refused> {
        let mut hall = self.hall.lock();
        hall.registry.create(id, holder, metadata, now_ms).map(|listing| Shown::of(id, listing))
    }

    /// Holds it for another term.
    ///
    /// # Errors
    /// The asker does not hold it.
    pub fn renew(&self, id: ListingId, asker: &Principal, now_ms: u64) -> Result<Shown, Refused> {
        self.hall.lock().registry.renew(id, asker, now_ms).map(|listing| Shown::of(id, listing))
    }

    /// Says something else of it.
    ///
    /// # Errors
    /// The asker does not hold it.
    pub fn update(
        &self,
        id: ListingId,
        asker: &Principal,
        metadata: Metadata,
        now_ms: u64,
    ) -> Result<Shown, Refused> {
        let mut hall = self.hall.lock();
        hall.registry.update(id, asker, metadata, now_ms).map(|listing| Shown::of(id, listing))
    }

    /// Takes it off the list, and ends the attempts at it.
    ///
    /// # Errors
    /// The asker does not hold it.
    pub fn delete(&self, id: ListingId, asker: &Principal, now_ms: u64) -> Result<(), Refused> {
        let mut hall = self.hall.lock();
        hall.registry.delete(id, asker, now_ms)?;
        let attempts = hall.attempts.remove(&id).unwrap_or_default();
        let mut mediator = self.mediator.lock();
        attempts.iter().for_each(|(attempt, _)| mediator.close(*attempt));
        Ok(())
    }

    /// The games of the asker's tenant.
    #[must_use]
    pub fn list(&self, asker: &Principal, count_max: usize, now_ms: u64) -> Vec<Shown> {
        let hall = self.hall.lock();
        let listings = hall.registry.list(asker, count_max, now_ms);
        listings.into_iter().map(|(id, listing)| Shown::of(id, listing)).collect()
    }

    /// Starts an attempt at a listing, under a random id: the joiner's capability.
    ///
    /// # Errors
    /// The listing is not the asker's to join, or too many attempts are open.
    pub fn start_attempt(
        &self,
        id: ListingId,
        attempt: AttemptId,
        asker: &Principal,
        now_ms: u64,
    ) -> Result<Capability, NotStarted> {
        let expires_at_ms = now_ms.saturating_add(self.limits.attempt_ms);
        let mut hall = self.hall.lock();
        hall.registry.joinable(id, asker, now_ms)?;
        hall.end_expired(now_ms);
        let open = hall.attempts.entry(id).or_default();
        if open.len() >= self.limits.listing_attempts_max {
            return Err(NotStarted::Busy);
        }
        self.mediator.lock().open(attempt, expires_at_ms, now_ms).map_err(|_| NotStarted::Busy)?;
        open.push((attempt, expires_at_ms));
        Ok(self.capability(attempt, Role::Joiner, expires_at_ms))
    }

    /// The host's capabilities for the open attempts at its listing.
    ///
    /// # Errors
    /// The asker does not hold the listing.
    pub fn attempts(
        &self,
        id: ListingId,
        asker: &Principal,
        now_ms: u64,
    ) -> Result<Vec<Capability>, Refused> {
        let mut hall = self.hall.lock();
        hall.registry.check_holder(id, asker, now_ms)?;
        hall.end_expired(now_ms);
        let open = hall.attempts.get(&id).map(Vec::as_slice).unwrap_or_default();
        Ok(open.iter().map(|(attempt, until)| self.capability(*attempt, Role::Host, *until)).collect())
    }

    /// Reads a datagram and verifies it; see [`crate::wire::verify`].
    #[must_use]
    pub fn verify(&self, datagram: &[u8], now_ms: u64) -> Option<Verified> {
        crate::wire::verify(datagram, self.credentials.read().keys(), now_ms)
    }

    /// Whether a verified datagram would do something; see [`Mediator::check`].
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, verified: &Verified, source: Endpoint, now_ms: u64) -> Result<(), Ignored> {
        self.mediator.lock().check(verified, source, now_ms)
    }

    /// A verified datagram; see [`Mediator::bind`].
    ///
    /// # Errors
    /// Why it does nothing.
    pub fn bind(
        &self,
        verified: Verified,
        source: Endpoint,
        allowance: Allowance,
        now_ms: u64,
    ) -> Result<Option<[Outgoing; 2]>, Ignored> {
        self.mediator.lock().bind(verified, source, allowance, now_ms)
    }

    fn capability(&self, attempt: AttemptId, role: Role, expires_at_ms: u64) -> Capability {
        Capability::issue(self.credentials.read().keys(), attempt, role, expires_at_ms)
    }
}

impl Hall {
    fn end_expired(&mut self, now_ms: u64) {
        self.attempts.retain(|_, open| {
            open.retain(|(_, expires_at_ms)| *expires_at_ms > now_ms);
            !open.is_empty()
        });
    }
}

impl Shown {
    fn of(id: ListingId, listing: &crate::registry::Listing) -> Self {
        Self { id, metadata: listing.metadata.clone(), expires_at_ms: listing.expires_at_ms }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("limits", &self.limits).finish_non_exhaustive()
    }
}
