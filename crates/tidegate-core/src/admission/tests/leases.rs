//! Several instances over one store, in virtual time: they crash, pause, and see clocks of their own; days pass,
//! operators stop and resume. Nothing is overspent, no stop is lost, and the last command is still admitted.
//!
//! An update is atomic, as every store makes it. What is simulated is everything between updates: which rows an
//! instance chose from what it knew, and how old that knowledge was when its update ran.

use alloc::{collections::BTreeMap, vec::Vec};

use proptest::prelude::*;

use super::*;

const BUDGET: u64 = 20_000;
const RESERVE_BP: u64 = 1_000;
const OPEN: u64 = 18_000;

/// The rows, and beside them a plain sum of what was admitted since usage was last reset.
struct Store {
    rules: FamilyRules,
    now_ms: u64,
    fence: Fence,
    family: Option<FamilyDay>,
    leases: BTreeMap<u64, Lease>,
    spent_day: u64,
    spent: u64,
    /// Updates that wrote the family's row.
    family_writes: u64,
    updates: u64,
}

/// What an instance knows: from its last update, however long ago.
#[derive(Clone, Default)]
struct Instance {
    id: u64,
    /// The holders whose rows it will ask for.
    holders: Vec<u64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Admitted,
    Refused(Refused),
}

impl Store {
    fn new() -> Self {
        let rules = FamilyRules { reserve_bp: RESERVE_BP, ..FamilyRules::of_budget(BUDGET) };
        Self {
            rules,
            now_ms: DAY_MS,
            fence: Fence::default(),
            family: None,
            leases: BTreeMap::new(),
            spent_day: 1,
            spent: 0,
            family_writes: 0,
            updates: 0,
        }
    }

    /// A request of an instance: on its lease, or on the family's row, or on everybody's.
    fn request(&mut self, instance: &mut Instance, commands: u64, good: bool) -> Outcome {
        let standing = if good { Standing::Good } else { Standing::Stranger };
        let ask = Ask { commands, standing, identities: &[] };
        self.updates += 1;
        let own = self.leases.get(&instance.id).copied();
        let on_lease =
            admit_on_lease(&self.rules, &self.fence, self.family.as_ref(), own.as_ref(), &ask, self.now_ms);
        match on_lease {
            Ok((lease, _)) => {
                self.leases.insert(instance.id, lease);
                return self.admitted(commands, good);
            }
            Err(NotLeased::Refused(refused)) => return Outcome::Refused(refused),
            Err(_) => {}
        }
        for _ in 0..3 {
            self.updates += 1;
            let rows: Vec<_> = instance.holders.iter().map(|id| self.leases.get(id).copied()).collect();
            let held = self.family.as_ref().map(|family| family.holders.to_vec()).unwrap_or_default();
            let others: Vec<u64> = held.into_iter().filter(|id| *id != instance.id).collect();
            // Rows of holders that have changed meanwhile are of no use; the update tells, and is tried again.
            let known = (instance.holders == others).then_some(rows.as_slice());
            let leases =
                Leases { instance: instance.id, own: self.leases.get(&instance.id).copied(), others: known };
            let leased =
                admit_and_lease(&self.rules, &self.fence, self.family.as_ref(), &leases, &ask, self.now_ms);
            match leased {
                Ok(leased) => {
                    self.family_writes += 1;
                    self.leases.insert(instance.id, leased.own);
                    self.leases.extend(others.into_iter().zip(leased.others));
                    self.family = Some(leased.admitted.day);
                    return self.admitted(commands, good);
                }
                Err(NotLeased::Refused(refused)) => return self.refused(refused, commands, good),
                Err(_) => instance.holders = others,
            }
        }
        unreachable!("nobody else is at it between these tries");
    }

    fn admitted(&mut self, commands: u64, good: bool) -> Outcome {
        assert!(!self.fence.stopped, "a stop was lost");
        let today = (self.now_ms / DAY_MS).max(self.spent_day);
        if today > self.spent_day {
            (self.spent_day, self.spent) = (today, 0);
        }
        self.spent += commands;
        let room = if good { BUDGET } else { OPEN };
        assert!(self.spent <= room, "{} of {room} were spent", self.spent);
        Outcome::Admitted
    }

    fn refused(&self, refused: Refused, commands: u64, good: bool) -> Outcome {
        if refused != Refused::Fenced {
            let room = if good { BUDGET } else { OPEN };
            assert!(self.spent + commands > room, "refused with {} of {room} spent: {refused:?}", self.spent);
        }
        Outcome::Refused(refused)
    }

    fn resume(&mut self) {
        self.fence = Fence::default();
        self.family = Some(FamilyDay::resumed(self.family.as_ref(), self.now_ms));
        (self.spent_day, self.spent) = (self.now_ms / DAY_MS, 0);
    }
}

#[derive(Debug, Clone)]
enum Happening {
    Request { instance: usize, commands: u64, good: bool, times: u64 },
    Crash { instance: usize },
    Stop,
    Resume,
    Pass { minutes: u64 },
}

fn happenings() -> impl Strategy<Value = (usize, Vec<Happening>)> {
    (2..=16_usize).prop_flat_map(|instances| {
        let happening = prop_oneof![
            30 => (0..instances, 1..=32_u64, prop::bool::weighted(0.1), 1..60_u64)
                .prop_map(|(instance, commands, good, times)| Happening::Request { instance, commands, good, times }),
            2 => (0..instances).prop_map(|instance| Happening::Crash { instance }),
            1 => Just(Happening::Stop),
            2 => Just(Happening::Resume),
            2 => (0..600_u64).prop_map(|minutes| Happening::Pass { minutes }),
        ];
        (Just(instances), prop::collection::vec(happening, 1..120))
    })
}

proptest! {
    #[test]
    fn instances_never_overspend_and_never_miss_a_stop((count, happenings) in happenings()) {
        let mut store = Store::new();
        let mut next_id = 0;
        let mut fresh = || { next_id += 1; Instance { id: next_id, ..Instance::default() } };
        let mut instances: Vec<Instance> = (0..count).map(|_| fresh()).collect();
        for happening in happenings {
            match happening {
                Happening::Request { instance, commands, good, times } => {
                    for _ in 0..times {
                        store.request(&mut instances[instance], commands, good);
                    }
                }
                // What it knew is gone, its lease stays behind, and it comes back as another one.
                Happening::Crash { instance } => instances[instance] = fresh(),
                Happening::Stop => store.fence.stopped = true,
                Happening::Resume => store.resume(),
                Happening::Pass { minutes } => store.now_ms += minutes * 60_000,
            }
        }
        // Whatever has happened, the rest of the day can be spent to the last command.
        store.resume();
        let mut instance = fresh();
        while store.request(&mut instance, 1, true) == Outcome::Admitted {}
        prop_assert_eq!(store.spent, BUDGET);
        prop_assert!(store.family.is_some_and(|family| family.stopped));
    }
}

#[test]
fn most_requests_leave_the_familys_row_alone() {
    let mut store = Store::new();
    let mut instances: Vec<Instance> = (1..=4).map(|id| Instance { id, ..Instance::default() }).collect();
    for round in 0..10_000 {
        assert_eq!(store.request(&mut instances[round % 4], 1, false), Outcome::Admitted);
    }
    assert!(store.family_writes < 200, "{} of {} updates", store.family_writes, store.updates);
}
