mod leases;
mod model;
mod rows;

use super::*;

const NOON_MS: u64 = 20_000 * DAY_MS + DAY_MS / 2;

fn rules(budget: u64, reserve_bp: u64) -> FamilyRules {
    FamilyRules { reserve_bp, ..FamilyRules::of_budget(budget) }
}

fn used(used: u64) -> FamilyDay {
    FamilyDay { day: NOON_MS / DAY_MS, used, ..FamilyDay::default() }
}

fn ask(commands: u64, standing: Standing) -> Ask<'static> {
    Ask { commands, standing, identities: &[] }
}

fn admitted(rules: &FamilyRules, day: &FamilyDay, ask: &Ask<'_>) -> Result<u64, Refused> {
    admit(rules, &Fence::default(), Some(day), ask, NOON_MS).map(|admitted| admitted.day.used)
}

#[test]
fn the_budget_is_spent_to_the_last_command_and_never_beyond() {
    use Standing::{Good, NotLookedUp, Stranger};
    // Of 100 commands 20 are kept for known-good identities.
    let table = [
        (0, 1, Stranger, Ok(1)),
        (79, 1, Stranger, Ok(80)),
        (79, 2, Stranger, Err(Refused::Insufficient)),
        (79, 2, Good, Ok(81)),
        (79, 2, NotLookedUp, Err(Refused::StandingNeeded)),
        (78, 2, NotLookedUp, Ok(80)),
        (80, 1, Stranger, Err(Refused::Exhausted)),
        (80, 1, NotLookedUp, Err(Refused::StandingNeeded)),
        (80, 20, Good, Ok(100)),
        (80, 21, Good, Err(Refused::Insufficient)),
        (79, 22, NotLookedUp, Err(Refused::Insufficient)),
        (99, 1, Good, Ok(100)),
        (100, 1, Good, Err(Refused::Exhausted)),
        (100, 1, NotLookedUp, Err(Refused::Exhausted)),
    ];
    for (spent, commands, standing, expected) in table {
        let found = admitted(&rules(100, 2_000), &used(spent), &ask(commands, standing));
        assert_eq!(found, expected, "{commands} commands of a {standing:?} after {spent}");
    }
}

#[test]
fn without_a_reserve_nobody_is_looked_up() {
    let table = [(99, 1, Ok(100)), (99, 2, Err(Refused::Insufficient)), (100, 1, Err(Refused::Exhausted))];
    for (spent, commands, expected) in table {
        let found = admitted(&rules(100, 0), &used(spent), &ask(commands, Standing::NotLookedUp));
        assert_eq!(found, expected, "{commands} commands after {spent}");
    }
    assert_eq!(
        admitted(&rules(0, 2_000), &used(0), &ask(1, Standing::NotLookedUp)),
        Err(Refused::Exhausted),
        "a family without a budget"
    );
}

#[test]
fn what_is_crossed_is_told_once() {
    let rules = rules(100, 2_000);
    let crossings = |day: &FamilyDay, commands| {
        let admitted =
            admit(&rules, &Fence::default(), Some(day), &ask(commands, Standing::Good), NOON_MS).unwrap();
        (admitted.day, (admitted.warned, admitted.entered_reserve, admitted.exhausted))
    };
    let (day, told) = crossings(&used(0), 79);
    assert_eq!(told, (false, false, false));
    let (day, told) = crossings(&day, 1);
    assert_eq!(told, (true, true, false));
    let (day, told) = crossings(&day, 1);
    assert_eq!(told, (false, false, false));
    let (day, told) = crossings(&day, 19);
    assert_eq!(told, (false, false, true));
    assert!(day.stopped && day.phase(&rules) == Phase::Stopped);
}

#[test]
fn a_stop_of_the_day_outlives_a_larger_budget_and_ends_with_the_day_or_a_resume() {
    let larger = rules(1_000, 0);
    let stopped = FamilyDay { stopped: true, ..used(100) };
    assert_eq!(admitted(&larger, &stopped, &ask(1, Standing::Stranger)), Err(Refused::Exhausted));
    let resumed = FamilyDay::resumed(Some(&stopped), NOON_MS);
    assert_eq!(admitted(&larger, &resumed, &ask(1, Standing::Stranger)), Ok(1));
    let next =
        admit(&larger, &Fence::default(), Some(&stopped), &ask(3, Standing::Stranger), NOON_MS + DAY_MS / 2);
    assert_eq!(next.unwrap().day, FamilyDay { used: 3, day: stopped.day + 1, ..FamilyDay::default() });
}

#[test]
fn the_fence_goes_before_everything() {
    let fence = Fence { stopped: true, reason: None, since_ms: 1 };
    let refused = admit(&rules(0, 0), &fence, None, &ask(1, Standing::Stranger), NOON_MS);
    assert_eq!(refused, Err(Refused::Fenced));
}

#[test]
fn one_spent_identity_refuses_the_request_and_charges_nobody() {
    let rules = rules(1_000, 0);
    let quota = |used| Some(Quota { day: NOON_MS / DAY_MS, generation: 0, used });
    // 5 % for a source, 15 % for a /24.
    type Row = (u64, u64, u64, Result<[u64; 2], Refused>);
    let table: [Row; 4] = [
        (49, 149, 1, Ok([50, 150])),
        (50, 0, 1, Err(Refused::Limited { index: 0, remaining: 0 })),
        (0, 150, 1, Err(Refused::Limited { index: 1, remaining: 0 })),
        (48, 0, 3, Err(Refused::Limited { index: 0, remaining: 2 })),
    ];
    for (source, network, commands, expected) in table {
        let identities = [(Axis::Source, quota(source)), (Axis::Network24, quota(network))];
        let ask = Ask { commands, standing: Standing::Stranger, identities: &identities };
        let found = admit(&rules, &Fence::default(), None, &ask, NOON_MS);
        let found = found.map(|admitted| [admitted.quotas[0].used, admitted.quotas[1].used]);
        assert_eq!(found, expected, "{source} and {network} spent");
    }
}

#[test]
fn a_day_begins_once_whatever_the_clock_does() {
    let rules = rules(100, 0);
    let day_ms = |day: u64, hour: u64| day * DAY_MS + hour * 3_600_000;
    // Hours of one family: (day, hour, commands, what is used after it, or why not).
    let table = [
        (10, 23, 100, Ok(100)),
        (10, 23, 1, Err(Refused::Exhausted)),
        (11, 0, 100, Ok(100)),
        (11, 5, 1, Err(Refused::Exhausted)),
        // The clock steps back over midnight: the day that was spent is not handed out again.
        (10, 23, 1, Err(Refused::Exhausted)),
        (11, 1, 1, Err(Refused::Exhausted)),
        (12, 0, 1, Ok(1)),
    ];
    let mut row = None;
    for (day, hour, commands, expected) in table {
        let found = admit(
            &rules,
            &Fence::default(),
            row.as_ref(),
            &ask(commands, Standing::Stranger),
            day_ms(day, hour),
        );
        assert_eq!(found.as_ref().map(|admitted| admitted.day.used).map_err(|refused| *refused), expected);
        row = found.map(|admitted| admitted.day).ok().or(row);
    }
}

#[test]
fn a_reset_clears_the_quotas_of_its_axis() {
    let row = used(500);
    let reset = FamilyDay::with_quotas_reset(Some(&row), Some(Axis::Source), NOON_MS);
    let spent = Quota { day: row.day, generation: 0, used: 50 };
    assert_eq!(Quota::on(Some(&spent), &row, Axis::Source).used, 50);
    assert_eq!(Quota::on(Some(&spent), &reset, Axis::Source).used, 0);
    assert_eq!(Quota::on(Some(&spent), &reset, Axis::Principal).used, 50);
    assert_eq!(reset.used, 500, "usage stays");
    let all = FamilyDay::with_quotas_reset(Some(&row), None, NOON_MS);
    assert!(Axis::ALL.iter().all(|axis| Quota::on(Some(&spent), &all, *axis).used == 0));
}

#[test]
fn a_resume_mends_a_day_that_has_not_come_yet() {
    let ahead = FamilyDay { day: NOON_MS / DAY_MS + 40, used: 100, stopped: true, ..FamilyDay::default() };
    let resumed = FamilyDay::resumed(Some(&ahead), NOON_MS);
    assert_eq!(resumed, FamilyDay { day: NOON_MS / DAY_MS, epoch: 1, ..FamilyDay::default() });
}

#[test]
fn shares_are_rounded_down_and_never_overflow() {
    let rules = FamilyRules { reserve_bp: 3_333, ..FamilyRules::of_budget(99) };
    assert_eq!((rules.reserve(), rules.open(), rules.allowance(Axis::Source)), (32, 67, 4));
    let rules = FamilyRules {
        reserve_bp: 10_000,
        shares_bp: [10_000; Axis::COUNT],
        requires: alloc::vec![Axis::Source],
        ..FamilyRules::of_budget(u64::MAX)
    };
    assert_eq!((rules.reserve(), rules.open(), rules.allowance(Axis::Source)), (u64::MAX, 0, u64::MAX));
}
