//! The drill of an attacker who rotates addresses within one IPv6 /48.

use tidegate_core::admission::FamilyRules;
use tidegate_protocol::control::{Axis, Phase};

use super::{
    DrillError,
    field::{Ask, Caller, Field, GroupId},
    report::{Report, Verdict},
    target::Target,
};

/// /64s of the attacker, each in another /56 of the one /48.
const PREFIXES: usize = 20;
/// Requests a second.
const PER_SECOND: u64 = 5;
/// 5.6 hours.
const ATTACK_S: u64 = 20_160;
const DAY_S: u64 = 24 * 3600;
/// How often the family's state is looked at.
const LOOK_S: u64 = 60;
/// Strangers and known-good identities, and how often each asks: three times an hour.
const CLIENTS: u64 = 220;
const ASKS_A_DAY: u64 = 72;
/// Together they ask for at most so much of the budget, so that a small one is not spent by them alone.
const CLIENTS_PER_CENT: u64 = 16;
/// The networks that spend the open part on the second day, where shares allow so few.
const FLOOD_NETWORKS: u64 = 200;
/// From one of them to the next, where time is simulated.
const FLOOD_PAUSE_MS: u64 = 60_000;
/// Known-good requests after the open part is spent, of each identity.
const LAST_ASKS: u64 = 10;

/// Who asks beside the attacker, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    strangers: u64,
    good: u64,
    asks_each: u64,
}

impl Load {
    fn of(rules: &FamilyRules) -> Self {
        let total = rules.budget.saturating_mul(CLIENTS_PER_CENT) / 100;
        let allowance = smallest_allowance(rules);
        let asks_each = (total / CLIENTS).clamp(1, ASKS_A_DAY).min((allowance / 2).max(1));
        let clients = (total / asks_each).min(CLIENTS);
        let good = clients / 11;
        Self { strangers: clients - good, good, asks_each }
    }

    const fn asks(self) -> u64 {
        (self.strangers + self.good) * self.asks_each + self.good
    }
}

/// What one caller alone in its network may spend.
fn smallest_allowance(rules: &FamilyRules) -> u64 {
    let mut axes = vec![Axis::Source, Axis::Network24];
    axes.extend(rules.requires.iter());
    axes.into_iter().map(|axis| rules.allowance(axis)).min().unwrap_or_default()
}

/// Commands of the open part that must be there at the start, so that honest callers are not refused for
/// want of them.
pub(super) fn open_needed(rules: &FamilyRules) -> u64 {
    let attack = rules.allowance(Axis::Network48).min(ATTACK_S * PER_SECOND);
    Load::of(rules).asks() + if attack < rules.open() { attack } else { 0 }
}

/// RPCs that the drill sends at most.
pub(super) fn rpcs_needed(rules: &FamilyRules) -> u64 {
    let load = Load::of(rules);
    // Each network of the flood finds its end by halving.
    let flood = rules.budget / 32 + flood_networks(rules) * 12;
    ATTACK_S * PER_SECOND + load.asks() + flood + load.strangers + load.good * LAST_ASKS
}

fn flood_networks(rules: &FamilyRules) -> u64 {
    rules.open().div_ceil(flood_share(rules)) + 1
}

fn flood_share(rules: &FamilyRules) -> u64 {
    smallest_allowance(rules).min(rules.open() / FLOOD_NETWORKS).max(1)
}

/// Runs it.
pub(super) async fn run<T: Target>(mut field: Field<T>) -> Result<Report, DrillError> {
    let load = Load::of(&field.rules);
    if load.good == 0 {
        return Err(DrillError::TooSmall { family: field.family.as_str().to_owned() });
    }
    let people = People::on(&field, load);
    let attack = attack_day(&mut field, &people, load).await?;
    let last = flood(&mut field, &people).await?;
    let verdicts = verdicts(&field, attack, last);
    Ok(field.report("prefix-rotation", verdicts))
}

struct People {
    attackers: Vec<Caller>,
    strangers: Vec<Caller>,
    good: Vec<Caller>,
}

impl People {
    fn on<T: Target>(field: &Field<T>, load: Load) -> Self {
        let attacker = |place: usize| {
            let (name, wide) = (format!("attacker {place}"), format!("attacker's {place}"));
            field.caller(&name, &[(56, &wide), (48, "attacker's")], None)
        };
        Self {
            attackers: (0..PREFIXES).map(attacker).collect(),
            strangers: (0..load.strangers).map(|place| field.loner(&format!("stranger {place}"))).collect(),
            good: (0..load.good).map(|place| field.loner(&format!("good {place}"))).collect(),
        }
    }
}

/// The groups of the first day.
#[derive(Clone, Copy)]
struct Attack {
    attacker: GroupId,
    strangers: GroupId,
    good: GroupId,
}

async fn attack_day<T: Target>(
    field: &mut Field<T>,
    people: &People,
    load: Load,
) -> Result<Attack, DrillError> {
    let groups = Attack {
        attacker: field.group("attacker, one /48"),
        strangers: field.group("strangers"),
        good: field.group("known-good"),
    };
    let one = |group, caller: &Caller, good| Ask { group, caller: caller.clone(), commands: 1, good };
    field.send(people.good.iter().map(|caller| one(groups.good, caller, true)).collect()).await?;
    let honest = people.strangers.iter().map(|caller| (groups.strangers, caller));
    let honest: Vec<_> = honest.chain(people.good.iter().map(|caller| (groups.good, caller))).collect();
    let mut due = schedule(honest.len() as u64, load.asks_each).into_iter().peekable();
    let mut prefixes = people.attackers.iter().cycle();
    // A live server is asked as fast as it answers: by the minute, so that more than a few are on their way.
    let step_s = if field.target.simulated_from_ms().is_some() { 1 } else { LOOK_S };
    for second in (0..DAY_S).step_by(usize::try_from(step_s).unwrap_or(1)) {
        let mut asks = Vec::new();
        if second < ATTACK_S {
            let asking = (0..step_s * PER_SECOND).zip(prefixes.by_ref());
            asks.extend(asking.map(|(_, caller)| one(groups.attacker, caller, false)));
        }
        while let Some((_, place)) = due.next_if(|(at_s, _)| *at_s < second + step_s) {
            let (group, caller) = honest[place];
            asks.push(one(group, caller, false));
        }
        if !asks.is_empty() {
            field.send(asks).await?;
        }
        field.pass(step_s * 1000);
        if (second + step_s).is_multiple_of(LOOK_S) {
            field.look().await?;
        }
    }
    Ok(groups)
}

/// When which of the honest callers asks: evenly over the day, in the order of time.
fn schedule(callers: u64, asks_each: u64) -> Vec<(u64, usize)> {
    let mut due: Vec<(u64, usize)> = (0..callers)
        .zip(0..)
        .flat_map(|(caller, place)| {
            let phase = caller * DAY_S / callers;
            (0..asks_each).map(move |ask| ((ask * DAY_S + phase) / asks_each, place))
        })
        .collect();
    due.sort_unstable();
    due
}

/// How the second day ended.
#[derive(Clone, Copy)]
struct Last {
    good: GroupId,
    phase: Phase,
}

/// On the next day, where time is simulated: the open part is spent from many networks.
async fn flood<T: Target>(field: &mut Field<T>, people: &People) -> Result<Last, DrillError> {
    let flood = field.group("flood, many networks");
    let strangers = field.group("strangers after it");
    let good = field.group("known-good after it");
    let share = flood_share(&field.rules);
    for place in 0..flood_networks(&field.rules) {
        let left = field.look().await?.open_remaining;
        if left == 0 {
            break;
        }
        let caller = field.loner(&format!("flood {place}"));
        field.spend(flood, &caller, share.min(left)).await?;
        field.pass(FLOOD_PAUSE_MS);
    }
    let state = field.look().await?;
    let one = |group, caller: &Caller| Ask { group, caller: caller.clone(), commands: 1, good: false };
    field.send(people.strangers.iter().map(|caller| one(strangers, caller)).collect()).await?;
    let allowed = smallest_allowance(&field.rules) / 2;
    let asks_each = (state.reserve_remaining / people.good.len() as u64).min(LAST_ASKS).min(allowed).max(1);
    for _ in 0..asks_each {
        field.send(people.good.iter().map(|caller| one(good, caller)).collect()).await?;
    }
    field.look().await?;
    Ok(Last { good, phase: state.state })
}

fn verdicts<T: Target>(field: &Field<T>, attack: Attack, last: Last) -> Vec<Verdict> {
    let share = field.configured.allowance(Axis::Network48);
    let (attacker, good) = (field.tally(attack.attacker), field.tally(last.good));
    let day = |who: &str, group| {
        let tally = field.tally(group);
        let text = format!("{who} beside the attack: {} of {} admitted", tally.admitted, tally.asked);
        Verdict::of(tally.all_admitted(), text)
    };
    let spent = attacker.spent;
    let after = match last.phase {
        Phase::Open => "the open part could not be spent from many networks".to_owned(),
        _ => format!("known-good after the open part is spent: {} of {} admitted", good.admitted, good.asked),
    };
    vec![
        Verdict::of(spent <= share, format!("the attacker spent {spent} commands; a /48's share is {share}")),
        day("strangers", attack.strangers),
        day("known-good", attack.good),
        Verdict::of(last.phase != Phase::Open && good.all_admitted(), after),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn honest_callers_ask_evenly_over_the_day() {
        let due = schedule(220, 72);
        assert_eq!(due.len(), 220 * 72);
        assert!(due.iter().all(|(at_s, _)| *at_s < DAY_S));
        for hour in 0..24 {
            let asked = due.iter().filter(|(at_s, _)| at_s / 3600 == hour).count();
            assert!((655..=665).contains(&asked), "hour {hour}: {asked}");
        }
    }

    #[test]
    fn the_load_fits_small_budgets() {
        let default = FamilyRules::of_budget(100_000);
        assert_eq!(Load::of(&default), Load { strangers: 200, good: 20, asks_each: 72 });
        for budget in [100, 1000, 5000, 50_000, 10_000_000] {
            let rules = FamilyRules::of_budget(budget);
            let load = Load::of(&rules);
            assert!(load.good > 0 && load.asks() * 5 <= budget, "{budget}: {load:?}");
        }
        assert_eq!(Load::of(&FamilyRules::of_budget(10)).good, 0);
    }
}
