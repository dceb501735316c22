//! Admission over the rows of an update: reads them, decides with the pure rules, writes what was decided.

use smallvec::SmallVec;
use tidegate_core::admission::{self, Admitted, Ask, Axis, FamilyDay, Fence, Quota, Standing};
use tidegate_protocol::{
    request::{Fairness, Request},
    response::{CommandResult, Response},
};
use tidegate_store::{LIFE_MS_MAX, Value, View};

use crate::{
    execute::Stopped,
    families::{FamilyEntry, good_key, identities},
    plan::Keys,
};

/// The rows that admission needs, as places among the request's keys.
#[derive(Debug)]
pub(crate) struct AdmissionPlan {
    fence: usize,
    family: usize,
    identities: SmallVec<[(Axis, usize); 4]>,
    /// The rows that say who is known to be good; empty where nobody asks.
    good: SmallVec<[usize; 2]>,
    /// Whether those rows, or their absence, tell the caller's standing.
    looked_up: bool,
}

impl AdmissionPlan {
    pub(crate) fn of(request: &Request, family: &FamilyEntry, look_up: bool, keys: &mut Keys) -> Self {
        let identities = identities(&request.fairness);
        let asks = look_up || may_mark_good(request);
        let mut goods = identities.iter().filter(|(axis, _)| axis.can_be_required()).peekable();
        let looked_up = asks || goods.peek().is_none();
        Self {
            fence: keys.place(crate::operator::fence_key()),
            family: keys.place(family.key),
            good: goods.filter(|_| asks).map(|identity| keys.place(good_key(identity))).collect(),
            identities: identities.iter().map(|id| (id.0, keys.place(family.quota_key(id)))).collect(),
            looked_up,
        }
    }

    /// Charges the family and every identity, or nobody.
    pub(crate) fn admit(
        &self,
        request: &Request,
        family: &FamilyEntry,
        view: &mut View<'_>,
    ) -> Result<Admitted, Stopped> {
        let fence = row(view, self.fence, Fence::decode)?.unwrap_or_default();
        let day = row(view, self.family, FamilyDay::decode)?;
        let identities =
            self.identities.iter().map(|(axis, place)| Ok((*axis, row(view, *place, Quota::decode)?)));
        let identities = identities.collect::<Result<SmallVec<[_; 4]>, Stopped>>()?;
        let ask = Ask {
            commands: request.commands() as u64,
            standing: self.standing(request, view),
            identities: &identities,
        };
        let now_ms = view.now_ms();
        let admitted =
            admission::admit(&family.rules, &fence, day.as_ref(), &ask, now_ms).map_err(|refused| {
                let ends_at_ms = FamilyDay::on(day.as_ref(), now_ms).ends_at_ms();
                Stopped::NotAdmitted { refused, now_ms, ends_at_ms }
            })?;
        view.put_lasting(self.family, encoded(|value| admitted.day.encode(value)));
        let expires_at_ms = admitted.day.ends_at_ms().min(now_ms + LIFE_MS_MAX);
        for ((_, place), quota) in self.identities.iter().zip(&admitted.quotas) {
            view.put_beside(*place, encoded(|value| quota.encode(value)), expires_at_ms);
        }
        Ok(admitted)
    }

    /// Remembers who is good: whom the caller vouches for, and who was given an attempt back just now.
    pub(crate) fn mark_good(&self, request: &Request, response: &Response, view: &mut View<'_>) {
        let fresh = response.steps.iter().filter(|step| !step.replayed);
        let refunded = fresh
            .flat_map(|step| &step.results)
            .any(|result| matches!(result, CommandResult::Refund { refunded: true, .. }));
        if !request.good && !refunded {
            return;
        }
        let now_ms = view.now_ms();
        let expires_at_ms = now_ms + admission::GOOD_LIFE_MS;
        for place in &self.good {
            let known_until_ms = view.get(*place).map_or(0, |entry| entry.expires_at_ms);
            // Once a day is often enough, and spares a write a request.
            if known_until_ms < expires_at_ms - admission::DAY_MS {
                view.put_beside(*place, Value::from_slice(&admission::GOOD_ROW), expires_at_ms);
            }
        }
    }

    fn standing(&self, request: &Request, view: &View<'_>) -> Standing {
        let somebody = !self.good.is_empty();
        if somebody && (request.good || self.good.iter().any(|place| view.get(*place).is_some())) {
            Standing::Good
        } else if self.looked_up {
            Standing::Stranger
        } else {
            Standing::NotLookedUp
        }
    }
}

/// Whether a request may make somebody known to be good.
fn may_mark_good(request: &Request) -> bool {
    let refunds = || request.steps.iter().flat_map(|step| &step.commands).any(is_refund);
    let anybody = |fairness: &Fairness| fairness.source.is_some() || fairness.principal.is_some();
    anybody(&request.fairness) && (request.good || refunds())
}

fn is_refund(command: &tidegate_protocol::Command) -> bool {
    matches!(command, tidegate_protocol::Command::Refund { .. })
}

/// A decoded row, if there is one. One that can't be decoded is taken neither for empty nor for full.
pub(crate) fn row<T, E>(
    view: &View<'_>,
    place: usize,
    decode: fn(&[u8]) -> Result<T, E>,
) -> Result<Option<T>, Stopped> {
    view.get(place).map(|entry| decode(&entry.value)).transpose().map_err(|_| Stopped::Unreadable)
}

pub(crate) fn encoded(encode: impl FnOnce(&mut Value)) -> Value {
    let mut value = Value::new();
    encode(&mut value);
    value
}
