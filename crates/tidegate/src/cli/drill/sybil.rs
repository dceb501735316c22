//! The drill of an attacker with many accounts and many sources.

use tidegate_core::admission::FamilyRules;

use super::{
    DrillError,
    field::{Ask, Caller, Field, is_open_part_spent},
    report::{Report, Verdict},
    target::Target,
};

/// Accounts, each with a source and a network of its own.
const ATTACKERS: u64 = 20;
/// Identities that are known to be good, and strangers.
const OTHERS: u64 = 20;
/// What each known-good identity asks for at the end.
const LAST_ASKS: u64 = 10;

/// Commands of the open part that must be there at the start.
pub(super) const OPEN_NEEDED: u64 = 4 * OTHERS;

/// RPCs that the drill sends at most.
pub(super) fn rpcs_needed(rules: &FamilyRules) -> u64 {
    // Each attacker finds its end by halving, with a few on their way at once.
    rules.budget / 32 + ATTACKERS * 64 + OTHERS * (LAST_ASKS + 2)
}

/// Runs it.
pub(super) async fn run<T: Target>(mut field: Field<T>) -> Result<Report, DrillError> {
    let member = |field: &Field<T>, name: String| field.caller(&name, &[(24, &name)], Some(&name));
    let good: Vec<Caller> = (0..OTHERS).map(|place| member(&field, format!("good {place}"))).collect();
    let one = |group, caller: &Caller, good| Ask { group, caller: caller.clone(), commands: 1, good };

    let before = field.group("known-good before");
    field.send(good.iter().map(|caller| one(before, caller, true)).collect()).await?;

    let open_left = field.look().await?.open_remaining;
    let attackers = field.group("20 accounts, 20 sources");
    for place in 0..ATTACKERS {
        let caller = member(&field, format!("attacker {place}"));
        field.spend(attackers, &caller, field.rules.budget).await?;
        field.look().await?;
        field.pass(60_000);
    }
    let state = field.look().await?;

    let strangers = field.group("strangers after it");
    let callers = (0..OTHERS).map(|place| member(&field, format!("stranger {place}")));
    let asks = callers.map(|caller| one(strangers, &caller, false)).collect();
    field.send(asks).await?;

    let after = field.group("known-good after it");
    let reserve = field.configured.reserve();
    let asks_each = (reserve / OTHERS).clamp(1, LAST_ASKS);
    for _ in 0..asks_each {
        field.send(good.iter().map(|caller| one(after, caller, false)).collect()).await?;
    }
    field.look().await?;

    let (spent, after) = (field.tally(attackers).spent, field.tally(after));
    let open = field.configured.open().min(open_left);
    let when = if is_open_part_spent(&state) { "the open part is spent" } else { "the attack" };
    let last = format!("known-good after {when}: {} of {} admitted", after.admitted, after.asked);
    let verdicts = vec![
        Verdict::of(spent <= open, format!("the attackers spent {spent} commands; the open part had {open}")),
        Verdict::of(after.all_admitted(), last),
    ];
    Ok(field.report("sybil", verdicts))
}
