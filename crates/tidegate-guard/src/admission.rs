//! Admission over the rows of an update: reads them, decides with the pure rules, writes what was decided.

use smallvec::SmallVec;
use tidegate_core::admission::{
    self, Admitted, Ask, Axis, FamilyDay, FamilyRules, Fence, Lease, Leases, NotLeased, Quota, Refused,
    Standing,
};
use tidegate_protocol::{
    request::{Fairness, Request},
    response::{CommandResult, Response},
};
use tidegate_store::{Key, LIFE_MS_MAX, Value, View};

use crate::{
    execute::Stopped,
    families::{FamilyEntry, good_key, identities, lease_key},
    operator::fence_key,
    plan::Keys,
};

/// How a request is to be admitted.
#[derive(Debug, Clone, Default)]
pub(crate) struct How {
    /// The standing of its caller matters.
    pub(crate) look_up: bool,
    pub(crate) spending: Spending,
}

/// Which row a family's spending goes to.
#[derive(Debug, Clone, Default)]
pub(crate) enum Spending {
    /// The family's own: no other instance writes it.
    #[default]
    Alone,
    /// This instance's lease.
    OnLease,
    /// The family's own, and a lease for the next requests.
    Leasing {
        /// Who this instance is.
        instance: u64,
        /// The other holders, whose leases may have to be recalled.
        holders: Vec<u64>,
    },
}

/// The rows that admission needs, as places among the request's keys.
#[derive(Debug)]
pub(crate) struct AdmissionPlan {
    fence: usize,
    family: usize,
    lease: Option<usize>,
    /// Leases of the other holders.
    others: SmallVec<[usize; 4]>,
    identities: SmallVec<[(Axis, usize); 4]>,
    /// The rows that say who is known to be good; empty where nobody asks.
    good: SmallVec<[usize; 2]>,
    /// Whether those rows, or their absence, tell the caller's standing.
    looked_up: bool,
}

impl AdmissionPlan {
    pub(crate) fn of(request: &Request, family: &FamilyEntry, how: &How, keys: &mut Keys) -> Self {
        let identities = identities(&request.fairness);
        let asks = how.look_up || may_mark_good(request);
        let mut goods = identities.iter().filter(|(axis, _)| axis.can_be_required()).peekable();
        let looked_up = asks || goods.peek().is_none();
        let good = goods.filter(|_| asks).map(|identity| keys.place(good_key(identity))).collect();
        let identities = identities.iter().map(|id| (id.0, keys.place(family.quota_key(id)))).collect();
        let mut plan =
            Self { fence: 0, family: 0, lease: None, others: SmallVec::new(), identities, good, looked_up };
        match &how.spending {
            Spending::Alone => {
                plan.fence = keys.place(fence_key());
                plan.family = keys.place(family.key);
            }
            Spending::OnLease => {
                plan.lease = Some(keys.place(family.lease_key));
                (plan.fence, plan.family) = (keys.len(), keys.len() + 1);
            }
            Spending::Leasing { holders, .. } => {
                plan.lease = Some(keys.place(family.lease_key));
                plan.family = keys.place(family.key);
                let others = holders.iter().map(|id| keys.place(lease_key(&family.name, *id)));
                plan.others = others.collect();
                plan.fence = keys.len();
            }
        }
        plan
    }

    /// The rows that are only looked at, in the order of their places.
    pub(crate) fn watched(&self, family: &FamilyEntry, how: &How) -> SmallVec<[Key; 2]> {
        match how.spending {
            Spending::Alone => SmallVec::new(),
            Spending::OnLease => SmallVec::from_slice(&[fence_key(), family.key]),
            Spending::Leasing { .. } => SmallVec::from_slice(&[fence_key()]),
        }
    }

    /// Charges the family and every identity, or nobody.
    pub(crate) fn admit(
        &self,
        request: &Request,
        family: &FamilyEntry,
        how: &How,
        view: &mut View<'_>,
    ) -> Result<Admitted, Stopped> {
        let fence = row(view, self.fence, Fence::decode)?;
        if fence.is_none() && !matches!(how.spending, Spending::Alone) {
            return Err(Stopped::FenceNeeded);
        }
        let fence = fence.unwrap_or_default();
        let day = row(view, self.family, FamilyDay::decode)?;
        let identities =
            self.identities.iter().map(|(axis, place)| Ok((*axis, row(view, *place, Quota::decode)?)));
        let identities = identities.collect::<Result<SmallVec<[_; 4]>, Stopped>>()?;
        let ask = Ask {
            commands: request.commands() as u64,
            standing: self.standing(request, view),
            identities: &identities,
        };
        let rows = Rows { rules: &family.rules, fence: &fence, day: day.as_ref(), ask: &ask };
        let admitted = match &how.spending {
            Spending::Alone => {
                let admitted = admission::admit(rows.rules, rows.fence, rows.day, rows.ask, view.now_ms());
                let admitted = admitted.map_err(|refused| rows.refusal(refused, view.now_ms()))?;
                view.put_lasting(self.family, encoded(|value| admitted.day.encode(value)));
                admitted
            }
            Spending::OnLease => self.spend_lease(&rows, view)?,
            Spending::Leasing { instance, .. } => self.take_lease(&rows, *instance, view)?,
        };
        let expires_at_ms = end_of(&admitted.day, view);
        for ((_, place), quota) in self.identities.iter().zip(&admitted.quotas) {
            view.put_beside(*place, encoded(|value| quota.encode(value)), expires_at_ms);
        }
        Ok(admitted)
    }

    fn spend_lease(&self, rows: &Rows<'_>, view: &mut View<'_>) -> Result<Admitted, Stopped> {
        let now_ms = view.now_ms();
        let own = self.own_lease(view)?;
        let spent =
            admission::admit_on_lease(rows.rules, rows.fence, rows.day, own.as_ref(), rows.ask, now_ms);
        let (lease, quotas) = spent.map_err(|not_leased| rows.not_leased(not_leased, None, now_ms))?;
        let day = FamilyDay::on(rows.day, now_ms);
        self.lease.into_iter().for_each(|place| put_lease(place, &lease, &day, view));
        let commands = rows.ask.commands;
        Ok(Admitted { day, quotas, commands, warned: false, entered_reserve: false, exhausted: false })
    }

    fn take_lease(&self, rows: &Rows<'_>, instance: u64, view: &mut View<'_>) -> Result<Admitted, Stopped> {
        let now_ms = view.now_ms();
        let others = self.others.iter().map(|place| row(view, *place, Lease::decode));
        let others = others.collect::<Result<SmallVec<[_; 4]>, Stopped>>()?;
        let own = self.own_lease(view)?;
        let leases = Leases { instance, own, others: Some(&others) };
        let leased = admission::admit_and_lease(rows.rules, rows.fence, rows.day, &leases, rows.ask, now_ms);
        let leased = leased.map_err(|not_leased| rows.not_leased(not_leased, Some(instance), now_ms))?;
        let day = &leased.admitted.day;
        view.put_lasting(self.family, encoded(|value| day.encode(value)));
        self.lease.into_iter().for_each(|place| put_lease(place, &leased.own, day, view));
        for (place, lease) in self.others.iter().zip(&leased.others) {
            put_lease(*place, lease, day, view);
        }
        Ok(leased.admitted)
    }

    fn own_lease(&self, view: &View<'_>) -> Result<Option<Lease>, Stopped> {
        self.lease.map_or(Ok(None), |place| row(view, place, Lease::decode))
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

fn put_lease(place: usize, lease: &Lease, day: &FamilyDay, view: &mut View<'_>) {
    view.put_kept(place, encoded(|value| lease.encode(value)), end_of(day, view));
}

/// When rows of the family's day expire: with it, or as late as a row may, if a clock was far ahead.
fn end_of(day: &FamilyDay, view: &View<'_>) -> u64 {
    day.ends_at_ms().min(view.now_ms() + LIFE_MS_MAX)
}

/// What every way of spending looks at.
struct Rows<'a> {
    rules: &'a FamilyRules,
    fence: &'a Fence,
    day: Option<&'a FamilyDay>,
    ask: &'a Ask<'a>,
}

impl Rows<'_> {
    fn refusal(&self, refused: Refused, now_ms: u64) -> Stopped {
        Stopped::NotAdmitted { refused, now_ms, ends_at_ms: FamilyDay::on(self.day, now_ms).ends_at_ms() }
    }

    fn not_leased(&self, not_leased: NotLeased, instance: Option<u64>, now_ms: u64) -> Stopped {
        match not_leased {
            NotLeased::Refused(refused) => self.refusal(refused, now_ms),
            NotLeased::FamilyNeeded | NotLeased::OthersNeeded => {
                let holders = self.day.map(|day| day.holders.to_vec()).unwrap_or_default();
                Stopped::FamilyNeeded {
                    holders: holders.into_iter().filter(|id| Some(*id) != instance).collect(),
                }
            }
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
