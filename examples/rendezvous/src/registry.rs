//! The games that are listed: bounded, short-lived, each seen by its own tenant only.
//!
//! Who asks for what another tenant holds is told what he would be told if it were not there.

mod metadata;

use std::{collections::HashMap, fmt};

use thiserror::Error;

pub use metadata::{Metadata, MetadataFault};

/// Names a listing: random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListingId(pub [u8; 16]);

/// Who asks: a tenant's principal, known by its credential.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Whose games it sees.
    pub tenant: String,
    /// Which of the tenant's programs or players.
    pub name: String,
}

/// What a game says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Its name and so on, checked.
    pub metadata: Metadata,
    /// Until when it is listed, in ms since the epoch.
    pub expires_at_ms: u64,
}

/// How many and how long.
#[derive(Debug, Clone, Copy)]
pub struct RegistryLimits {
    /// In all.
    pub listings_max: usize,
    /// Of one tenant.
    pub tenant_listings_max: usize,
    /// How long a listing lasts without being renewed.
    pub listing_ms: u64,
}

/// Why nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// It is not there, or not the asker's.
    #[error("there is no such listing")]
    NotFound,
    /// All places are taken.
    #[error("no more listings can be held; try again when one has ended")]
    Full,
}

/// All listings.
#[derive(Debug)]
pub struct Registry {
    limits: RegistryLimits,
    listings: HashMap<ListingId, Held>,
    by_tenant: HashMap<String, usize>,
}

#[derive(Debug)]
struct Held {
    holder: Principal,
    listing: Listing,
}

impl Registry {
    /// An empty one.
    #[must_use]
    pub fn new(limits: RegistryLimits) -> Self {
        Self { limits, listings: HashMap::new(), by_tenant: HashMap::new() }
    }

    /// Lists a game under `id`, which is random.
    ///
    /// # Errors
    /// There is no room, in all or for the tenant.
    pub fn create(
        &mut self,
        id: ListingId,
        holder: &Principal,
        metadata: Metadata,
        now_ms: u64,
    ) -> Result<&Listing, Refused> {
        let tenant_full = |registry: &Self| {
            registry
                .by_tenant
                .get(&holder.tenant)
                .is_some_and(|held| *held >= registry.limits.tenant_listings_max)
        };
        if self.listings.len() >= self.limits.listings_max || tenant_full(self) {
            self.end_expired(now_ms);
        }
        if self.listings.len() >= self.limits.listings_max
            || tenant_full(self)
            || self.listings.contains_key(&id)
        {
            return Err(Refused::Full);
        }
        *self.by_tenant.entry(holder.tenant.clone()).or_default() += 1;
        let listing = Listing { metadata, expires_at_ms: now_ms.saturating_add(self.limits.listing_ms) };
        let held = self.listings.entry(id).or_insert(Held { holder: holder.clone(), listing });
        Ok(&held.listing)
    }

    /// Holds it for another term from now.
    ///
    /// # Errors
    /// The asker does not hold it.
    pub fn renew(&mut self, id: ListingId, asker: &Principal, now_ms: u64) -> Result<&Listing, Refused> {
        let expires_at_ms = now_ms.saturating_add(self.limits.listing_ms);
        let listing = self.held(id, asker, now_ms)?;
        listing.expires_at_ms = expires_at_ms;
        Ok(listing)
    }

    /// Says something else of the game; its term stays.
    ///
    /// # Errors
    /// The asker does not hold it.
    pub fn update(
        &mut self,
        id: ListingId,
        asker: &Principal,
        metadata: Metadata,
        now_ms: u64,
    ) -> Result<&Listing, Refused> {
        let listing = self.held(id, asker, now_ms)?;
        listing.metadata = metadata;
        Ok(listing)
    }

    /// Takes it off the list.
    ///
    /// # Errors
    /// The asker does not hold it.
    pub fn delete(&mut self, id: ListingId, asker: &Principal, now_ms: u64) -> Result<(), Refused> {
        self.held(id, asker, now_ms)?;
        self.remove(id);
        Ok(())
    }

    /// The tenant's games, those that end last first, at most `count_max`.
    #[must_use]
    pub fn list(&self, asker: &Principal, count_max: usize, now_ms: u64) -> Vec<(ListingId, &Listing)> {
        let own = |held: &&Held| held.holder.tenant == asker.tenant && held.listing.expires_at_ms > now_ms;
        let mut listings: Vec<_> = self
            .listings
            .iter()
            .filter(|(_, held)| own(held))
            .map(|(id, held)| (*id, &held.listing))
            .collect();
        listings.sort_by_key(|(id, listing)| (std::cmp::Reverse(listing.expires_at_ms), *id));
        listings.truncate(count_max);
        listings
    }

    /// Whether the asker may join it: his tenant's, and listed.
    ///
    /// # Errors
    /// He may not, or there is no such listing.
    pub fn joinable(&self, id: ListingId, asker: &Principal, now_ms: u64) -> Result<&Listing, Refused> {
        let held = self.listings.get(&id).ok_or(Refused::NotFound)?;
        let visible = held.holder.tenant == asker.tenant && held.listing.expires_at_ms > now_ms;
        visible.then_some(&held.listing).ok_or(Refused::NotFound)
    }

    /// Whether the asker holds it.
    ///
    /// # Errors
    /// He does not, or there is no such listing.
    pub fn check_holder(&mut self, id: ListingId, asker: &Principal, now_ms: u64) -> Result<(), Refused> {
        self.held(id, asker, now_ms).map(drop)
    }

    fn held(&mut self, id: ListingId, asker: &Principal, now_ms: u64) -> Result<&mut Listing, Refused> {
        let held = self.listings.get_mut(&id).ok_or(Refused::NotFound)?;
        if held.holder != *asker || held.listing.expires_at_ms <= now_ms {
            return Err(Refused::NotFound);
        }
        Ok(&mut held.listing)
    }

    fn end_expired(&mut self, now_ms: u64) {
        let ended = |(id, held): (&ListingId, &Held)| (held.listing.expires_at_ms <= now_ms).then_some(*id);
        let ended: Vec<_> = self.listings.iter().filter_map(ended).collect();
        for id in ended {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: ListingId) {
        let Some(held) = self.listings.remove(&id) else { return };
        if let Some(count) = self.by_tenant.get_mut(&held.holder.tenant) {
            *count -= 1;
            if *count == 0 {
                self.by_tenant.remove(&held.holder.tenant);
            }
        }
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal(…)")
    }
}

#[cfg(test)]
mod tests;
