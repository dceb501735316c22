//! Random requests, stops, resumes, resets, clock steps and lost refusals: no allowance is ever exceeded.
//!
//! The model keeps a plain list of what was admitted, and judges by adding it up.

use alloc::{collections::BTreeMap, vec::Vec};

use proptest::prelude::*;

use super::super::*;

const BUDGET: u64 = 200;
const RESERVE_BP: u64 = 2_500;
const OPEN: u64 = 150;

#[derive(Debug, Clone)]
enum Happening {
    Request { commands: u64, source: u8, network: u8, good: bool },
    Stop,
    Resume,
    ResetAxis(Axis),
    ClockTo { hour: u64 },
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let axis = prop::sample::select(Axis::ALL.to_vec());
    let happening = prop_oneof![
        20 => (1..=32_u64, 0..12_u8, 0..4_u8, prop::bool::weighted(0.3))
            .prop_map(|(commands, source, network, good)| Happening::Request { commands, source, network, good }),
        1 => Just(Happening::Stop),
        1 => Just(Happening::Resume),
        1 => axis.prop_map(Happening::ResetAxis),
        2 => (24..96_u64).prop_map(|hour| Happening::ClockTo { hour }),
    ];
    prop::collection::vec(happening, 1..150)
}

/// What the store holds, and beside it everything that was admitted since usage or quotas were last reset.
#[derive(Default)]
struct World {
    now_ms: u64,
    fence: Fence,
    family: Option<FamilyDay>,
    quotas: BTreeMap<(Axis, u8), Quota>,
    latest_day: u64,
    spent: Vec<(u64, bool)>,
    spent_by: BTreeMap<(Axis, u8), u64>,
}

impl World {
    fn request(&mut self, rules: &FamilyRules, commands: u64, identities: &[(Axis, u8)], good: bool) {
        // A day begins with the first request that it admits.
        let new_day = self.now_ms / DAY_MS > self.latest_day;
        let held: Vec<_> = identities.iter().map(|id| (id.0, self.quotas.get(id).copied())).collect();
        let standing = if good { Standing::Good } else { Standing::Stranger };
        let ask = Ask { commands, standing, identities: &held };
        let unfenced = !self.fence.stopped;
        let outcome = admit(rules, &self.fence, self.family.as_ref(), &ask, self.now_ms);
        let total: u64 = if new_day { 0 } else { self.spent.iter().map(|(commands, _)| commands).sum() };
        let room = if good { BUDGET } else { OPEN };
        let fits = total < BUDGET
            && total + commands <= room
            && identities.iter().all(|id| {
                let by = if new_day { 0 } else { self.by(*id) };
                by + commands <= rules.allowance(id.0)
            });
        assert_eq!(outcome.is_ok(), unfenced && fits, "{outcome:?} after {total}");
        let Ok(admitted) = outcome else { return };
        if new_day {
            self.latest_day = self.now_ms / DAY_MS;
            self.spent.clear();
            self.spent_by.clear();
        }
        for (id, quota) in identities.iter().zip(&admitted.quotas) {
            self.quotas.insert(*id, *quota);
            *self.spent_by.entry(*id).or_default() += commands;
        }
        self.family = Some(admitted.day);
        self.spent.push((commands, good));
    }

    fn by(&self, id: (Axis, u8)) -> u64 {
        self.spent_by.get(&id).copied().unwrap_or_default()
    }
}

proptest! {
    #[test]
    fn what_is_admitted_is_what_a_plain_sum_admits(happenings in happenings()) {
        let shares_bp = [1_500, 4_000, 4_000, 4_000, 1_500];
        let rules = FamilyRules { reserve_bp: RESERVE_BP, shares_bp, ..FamilyRules::of_budget(BUDGET) };
        let mut world = World { now_ms: DAY_MS, latest_day: 1, ..World::default() };
        for happening in happenings {
            match happening {
                Happening::Request { commands, source, network, good } => {
                    let identities = [(Axis::Source, source), (Axis::Network24, network)];
                    world.request(&rules, commands, &identities, good);
                }
                Happening::Stop => world.fence.stopped = true,
                Happening::Resume => {
                    world.fence.stopped = false;
                    let today = world.now_ms / DAY_MS;
                    if today != world.latest_day {
                        // A new day, or one that a clock ahead of its time began, is given up.
                        world.latest_day = today;
                        world.spent_by.clear();
                        world.quotas.clear();
                    }
                    world.family = Some(FamilyDay::resumed(world.family.as_ref(), world.now_ms));
                    world.spent.clear();
                }
                Happening::ResetAxis(axis) => {
                    let family = world.family.as_ref();
                    world.family = Some(FamilyDay::with_quotas_reset(family, Some(axis), world.now_ms));
                    if world.now_ms / DAY_MS > world.latest_day {
                        world.latest_day = world.now_ms / DAY_MS;
                        world.spent.clear();
                        world.spent_by.clear();
                    }
                    world.spent_by.retain(|id, _| id.0 != axis);
                }
                Happening::ClockTo { hour } => world.now_ms = hour * 3_600_000,
            }
        }
    }
}
