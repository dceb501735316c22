//! What an operator may do: stop and resume everything, see how it stands, clear quotas, forget a partition.
//!
//! Each of it is one update of the store, together with its entry in the audit: what was done is there, and
//! what is there was done.

mod audit;
mod state;

use std::sync::LazyLock;

use tidegate_core::admission::{FamilyDay, Fence};
use tidegate_protocol::{
    control::{self, Action, Axis, FairnessReset, Forget, Resume, State, Stop},
    name::Family,
    request::BadRequest,
};
use tidegate_store::{Key, Keys, LimitStore, LimitStoreExt, StoreError, View};

use self::audit::{Note, Ring};
use crate::{
    Guard, Refusal,
    admission::{encoded, row},
    families::{self, Families},
    guard::unavailable,
    plan,
};

/// The operator's side of a guard. Where a call came from is the address that its audit entry names.
#[derive(Debug, Clone, Copy)]
pub struct Operator<'a>(&'a Guard);

/// Where the fence is kept. Every request looks there.
static FENCE: LazyLock<Key> = LazyLock::new(|| Key::of(&[b"fence"]));

pub(crate) fn fence_key() -> Key {
    *FENCE
}

/// Writes down that the fence is not up, unless something is written there.
pub(crate) async fn lay_fence(store: &dyn LimitStore) -> Result<(), StoreError> {
    let lay = |view: &mut View<'_>| {
        if view.get(0).is_none() {
            view.put_lasting(0, encoded(|value| Fence::default().encode(value)));
        }
    };
    store.update(vec![fence_key()], lay).await
}

impl<'a> Operator<'a> {
    pub(crate) const fn new(guard: &'a Guard) -> Self {
        Self(guard)
    }

    /// Puts up the fence: once this has answered, no request executes a step. Nothing that is stored is lost.
    ///
    /// Where it is up already it stays up since when it was; a reason takes the place of the one before. The audit has
    /// both calls, but nothing has changed that an alert would have to tell.
    ///
    /// # Errors
    /// The reason is out of bounds, or [`Refusal::Unavailable`]: the fence may or may not be up.
    pub async fn stop(self, stop: Stop, from: &str) -> Result<State, Refusal> {
        stop.validate()?;
        let note = Note { reason: stop.reason.clone(), ..Note::of(Action::Stop, from) };
        let reason = stop.reason.clone();
        let before = self
            .change(vec![note], move |rows, view| {
                let before = rows.fence(view)?;
                rows.put_fence(&before.raised(reason.clone(), view.now_ms()), view);
                Ok(before)
            })
            .await?;
        if !before.stopped {
            tracing::warn!(
                kind = "fence-changed",
                stopped = true,
                reason = stop.reason,
                "stopped by an operator"
            );
        }
        self.state().await
    }

    /// Takes the fence down and lets families go on: their stop and usage are cleared, quotas are kept. An alert tells
    /// of it unless the fence was down and nothing was spent.
    ///
    /// # Errors
    /// A family is unknown, or [`Refusal::Unavailable`]: it may or may not have been done.
    pub async fn resume(self, resume: Resume, from: &str) -> Result<State, Refusal> {
        let note = Note::of(Action::Resume, from);
        let of_family = |family: &Family| Note { family: Some(*family), ..note.clone() };
        let (named, notes) = match &resume.families {
            None => (self.0.families.keys().copied().enumerate().collect(), vec![note]),
            Some(families) if families.is_empty() => {
                (Vec::new(), vec![Note { reason: Some(FENCE_ONLY.to_owned()), ..note }])
            }
            Some(families) => {
                let named = self.named(families)?;
                let notes = named.iter().map(|(_, family)| of_family(family)).collect();
                (named, notes)
            }
        };
        let has_changed = self
            .change(notes, move |rows, view| {
                let mut has_changed = rows.fence(view)?.stopped;
                rows.put_fence(&Fence::default(), view);
                for (place, _) in &named {
                    let day = rows.day(*place, view)?;
                    let resumed = FamilyDay::resumed(day.as_ref(), view.now_ms());
                    has_changed |= day.is_some_and(|day| day.used > 0);
                    rows.put_day(*place, &resumed, view);
                }
                Ok(has_changed)
            })
            .await?;
        if has_changed {
            tracing::warn!(kind = "fence-changed", stopped = false, "resumed by an operator");
        }
        self.state().await
    }

    /// How everything stands.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn state(self) -> Result<State, Refusal> {
        let families = &self.0.families;
        let mut leases: Vec<Holder> = Vec::new();
        for _ in 0..TRIES_MAX {
            let holders = leases.iter().filter_map(|(place, id)| {
                families.keys().nth(*place).map(|family| families::lease_key(family, *id))
            });
            let keys = control_keys(families).chain(holders);
            let keys = Keys::default().watching(keys);
            let (known, families) = (leases, families.clone());
            let look = move |view: &mut View<'_>| state::of(&families, &known, view);
            match self.0.store.update_watching(keys, look).await.map_err(unavailable)? {
                Ok(Ok(state)) => return Ok(state),
                // What is leased is not spent, so the leases have to be looked at.
                Ok(Err(holders)) => leases = holders,
                Err(unreadable) => return Err(unreadable.into()),
            }
        }
        Err(Refusal::Unavailable)
    }

    /// Clears the quotas of an identity, of an axis, or of a whole family.
    ///
    /// # Errors
    /// The family is unknown, or [`Refusal::Unavailable`]: it may or may not have been done.
    pub async fn reset_fairness(self, reset: FairnessReset, from: &str) -> Result<control::Reset, Refusal> {
        let FairnessReset { family, axis, identity } = reset;
        let place = self.place_of(family)?;
        let note = Note { family: Some(family), axis, identity, ..Note::of(Action::FairnessReset, from) };
        let Some(digest) = identity else {
            self.change(vec![note], move |rows, view| {
                let day = rows.day(place, view)?;
                let day = FamilyDay::with_quotas_reset(day.as_ref(), axis, view.now_ms());
                rows.put_day(place, &day, view);
                Ok(())
            })
            .await?;
            self.0.refusals.clear();
            return Ok(control::Reset { reset: true });
        };
        let entry = self.0.families.get(&family).ok_or_else(|| unknown(&self.0.families, "family"))?;
        let axes = Axis::ALL.into_iter().filter(|each| axis.is_none_or(|axis| axis == *each));
        let quotas = axes.map(|axis| entry.quota_key(&(axis, digest))).collect();
        self.change_with(quotas, vec![note], |rows, view| {
            rows.more().for_each(|place| view.delete(place));
            Ok(())
        })
        .await?;
        self.0.refusals.clear();
        Ok(control::Reset { reset: true })
    }

    /// Removes what is stored of a partition, or of one key of it: windows, records, reservations, and with a
    /// whole partition its operation records too, so that an operation from before is executed again.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`]: some of it may be left.
    pub async fn forget(self, forget: Forget, from: &str) -> Result<control::Forgotten, Refusal> {
        let Forget { partition, key } = forget;
        let note = Note { identity: Some(partition), key, ..Note::of(Action::Forget, from) };
        // First, so that nothing is forgotten that the audit does not know of.
        self.change(vec![note], |_, _| Ok(())).await?;
        let scope = plan::scope(&partition, key.as_ref());
        let forgotten = self.0.store.forget(scope).await.map_err(unavailable)?;
        Ok(control::Forgotten { forgotten })
    }

    /// What operators did, newest first, at most `limit` of it.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn audit(self, limit: usize) -> Result<control::Audit, Refusal> {
        Ring(&*self.0.store).newest(limit.min(control::AUDIT_LIMIT_MAX)).await
    }

    async fn change<T, F>(self, notes: Vec<Note>, apply: F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: Fn(&ControlRows, &mut View<'_>) -> Result<T, Unreadable> + Clone + Send + 'static,
    {
        self.change_with(Vec::new(), notes, apply).await
    }

    /// One update over the fence, every family and `more`, with its notes in the audit.
    async fn change_with<T, F>(self, more: Vec<Key>, notes: Vec<Note>, apply: F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: Fn(&ControlRows, &mut View<'_>) -> Result<T, Unreadable> + Clone + Send + 'static,
    {
        let ring = Ring(&*self.0.store);
        for _ in 0..TRIES_MAX {
            let next = ring.next_number().await?;
            let rows = ControlRows { families: self.0.families.len(), more: more.len() };
            let keys = control_keys(&self.0.families).chain(more.iter().copied());
            let keys = keys.chain(audit::keys(next, notes.len())).collect();
            let (apply, notes) = (apply.clone(), notes.clone());
            let changed = self.0.store.update(keys, move |view| {
                let start = view.mark();
                let changed = apply(&rows, view)
                    .and_then(|told| Ok(audit::write(&notes, next, rows.audit(), view)?.then_some(told)));
                if !matches!(changed, Ok(Some(_))) {
                    view.rollback(start);
                }
                changed
            });
            match changed.await.map_err(unavailable)? {
                Ok(Some(told)) => return Ok(told),
                // Another operator wrote the next entry in between.
                Ok(None) => {}
                Err(unreadable) => return Err(unreadable.into()),
            }
        }
        Err(Refusal::Unavailable)
    }

    fn place_of(self, family: Family) -> Result<usize, BadRequest> {
        let place = self.0.families.keys().position(|known| *known == family);
        place.ok_or_else(|| unknown(&self.0.families, "family"))
    }

    /// The families with their places, in the order in which they are named; one that is named twice is named once.
    fn named(self, families: &[Family]) -> Result<Vec<(usize, Family)>, BadRequest> {
        let mut named = Vec::with_capacity(families.len().min(self.0.families.len()));
        for (index, family) in families.iter().enumerate() {
            let place = self.0.families.keys().position(|known| known == family);
            let place = place.ok_or_else(|| unknown(&self.0.families, &format!("families[{index}]")))?;
            if !named.contains(&(place, *family)) {
                named.push((place, *family));
            }
        }
        Ok(named)
    }
}

/// What the audit says of a resume that names no family.
const FENCE_ONLY: &str = "the fence alone: no family was named";

/// Operators that may write to the audit at once before one of them is told to try again.
const TRIES_MAX: usize = 16;

/// A row of the operator's can't be decoded.
#[derive(Debug)]
struct Unreadable;

impl From<Unreadable> for Refusal {
    fn from(_: Unreadable) -> Self {
        tracing::error!(kind = "row-unreadable", "a row of the operator's can't be decoded");
        Self::Unavailable
    }
}

/// A holder of a lease: of which family, by place, and which instance.
type Holder = (usize, u64);

/// The fence and every family.
fn control_keys(families: &Families) -> impl Iterator<Item = Key> {
    std::iter::once(fence_key()).chain(families.values().map(|family| family.key))
}

/// Where the rows of an operator's update are among its keys.
#[derive(Debug, Clone, Copy)]
struct ControlRows {
    families: usize,
    more: usize,
}

impl ControlRows {
    const FENCE: usize = 0;

    fn more(&self) -> std::ops::Range<usize> {
        let first = 1 + self.families;
        first..first + self.more
    }

    /// The head of the audit; the entries follow.
    fn audit(&self) -> usize {
        1 + self.families + self.more
    }

    fn fence(&self, view: &View<'_>) -> Result<Fence, Unreadable> {
        row(view, Self::FENCE, Fence::decode).map(Option::unwrap_or_default).map_err(|_| Unreadable)
    }

    fn put_fence(&self, fence: &Fence, view: &mut View<'_>) {
        view.put_lasting(Self::FENCE, encoded(|value| fence.encode(value)));
    }

    fn day(&self, family: usize, view: &View<'_>) -> Result<Option<FamilyDay>, Unreadable> {
        row(view, 1 + family, FamilyDay::decode).map_err(|_| Unreadable)
    }

    fn put_day(&self, family: usize, day: &FamilyDay, view: &mut View<'_>) {
        view.put_lasting(1 + family, encoded(|value| day.encode(value)));
    }
}

fn unknown(families: &Families, place: &str) -> BadRequest {
    let known: Vec<&str> = families.keys().map(Family::as_str).collect();
    BadRequest { place: place.to_owned(), message: format!("must be one of {}", known.join(", ")) }
}
