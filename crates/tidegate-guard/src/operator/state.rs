//! How everything stands, from the rows of the fence, the families and the leases.

use std::collections::BTreeMap;

use tidegate_core::admission::{self, FamilyDay, FamilyRules, Fence, Lease};
use tidegate_protocol::control::{self, FamilyState, State};
use tidegate_store::{KEYS_MAX, View};

use super::{ControlRows, Holder, Unreadable};
use crate::{admission::row, families::Families};

/// How everything stands, or whose leases have to be looked at first. The update's keys are the fence, every
/// family and the lease of each of `known`.
pub(super) fn of(
    families: &Families,
    known: &[Holder],
    view: &View<'_>,
) -> Result<Result<State, Vec<Holder>>, Unreadable> {
    let rows = ControlRows { families: families.len(), more: known.len() };
    let leases = known.iter().zip(rows.more()).map(|(holder, place)| {
        let lease = row(view, place, Lease::decode).map_err(|_| Unreadable)?;
        Ok((*holder, lease))
    });
    let leases = leases.collect::<Result<BTreeMap<_, _>, Unreadable>>()?;
    let now_ms = view.now_ms();
    let fence = row(view, ControlRows::FENCE, Fence::decode).map_err(|_| Unreadable)?.unwrap_or_default();
    let mut states = BTreeMap::new();
    let mut missing = Vec::new();
    for (place, family) in families.values().enumerate() {
        let day = FamilyDay::on(rows.day(place, view)?.as_ref(), now_ms);
        let mut leased = 0;
        for holder in day.holders.iter().map(|id| (place, *id)) {
            match leases.get(&holder) {
                Some(lease) => leased += Lease::left(lease.as_ref(), &day),
                None => missing.push(holder),
            }
        }
        states.insert(family.name, state(&family.rules, &day, leased));
    }
    // What is known already has to be asked for again. With more holders than one update has room for, what the
    // others have leased counts as spent.
    missing.extend(leases.into_keys());
    if missing.len() > known.len() && rows.more().start + missing.len() <= KEYS_MAX {
        return Ok(Err(missing));
    }
    Ok(Ok(State {
        now_ms,
        next_reset_ms: admission::DAY_MS - now_ms % admission::DAY_MS,
        fence: control::Fence {
            stopped: fence.stopped,
            reason: fence.reason,
            since_ms: (fence.since_ms > 0).then_some(fence.since_ms),
        },
        families: states,
    }))
}

fn state(rules: &FamilyRules, day: &FamilyDay, leased: u64) -> FamilyState {
    let used = day.used.saturating_sub(leased);
    let left = if day.stopped { 0 } else { rules.budget.saturating_sub(used) };
    FamilyState {
        budget: rules.budget,
        used,
        open_remaining: left.saturating_sub(rules.reserve()),
        reserve_remaining: left.min(rules.reserve()),
        state: FamilyDay { used, ..day.clone() }.phase(rules),
        warned: day.warned,
    }
}
