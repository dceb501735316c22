//! The drill of a restart: what was spent stays spent.

use tidegate_core::admission::FamilyRules;
use tidegate_protocol::control::Axis;

use super::{
    DrillError,
    field::{Ask, Field, Refused},
    report::{Report, Verdict},
    target::Target,
};

/// Callers that spend a little, and how much each does.
const CALLERS: u64 = 10;
const COMMANDS_EACH: u64 = 10;

/// Commands of the open part that must be there at the start.
pub(super) fn open_needed(rules: &FamilyRules) -> u64 {
    CALLERS * COMMANDS_EACH + rules.allowance(Axis::Source) + 1
}

/// RPCs that the drill sends at most.
pub(super) fn rpcs_needed(rules: &FamilyRules) -> u64 {
    CALLERS + rules.allowance(Axis::Source) / 32 + 64
}

/// Runs it.
pub(super) async fn run<T: Target>(mut field: Field<T>) -> Result<Report, DrillError> {
    let (some, greedy) = (field.group("ten callers"), field.group("one that spends its share"));
    let callers: Vec<_> = (0..CALLERS).map(|place| field.loner(&format!("caller {place}"))).collect();
    let asks = callers.iter().map(|caller| Ask {
        group: some,
        caller: caller.clone(),
        commands: COMMANDS_EACH,
        good: false,
    });
    field.send(asks.collect()).await?;
    let spender = field.loner("spender");
    field.spend(greedy, &spender, field.rules.budget).await?;
    let before = field.look().await?;

    let mut field = field.restarted().await?;

    let after = field.look().await?;
    let (again, fresh) =
        (field.group("the same after the restart"), field.group("another after the restart"));
    let ask = |group, caller| Ask { group, caller, commands: 1, good: false };
    let newcomer = field.loner("newcomer");
    let outcomes = field.send(vec![ask(again, spender), ask(fresh, newcomer)]).await?;
    let last = field.look().await?;
    let verdicts = vec![
        Verdict::of(
            after.used == before.used,
            format!("commands spent before the restart: {}, after it: {}", before.used, after.used),
        ),
        Verdict::of(
            matches!(outcomes[0], Err(Refused::Limited(_) | Refused::Stopped(_))),
            "who has spent its share is refused after the restart as well",
        ),
        Verdict::of(
            outcomes[1].is_ok() && last.used == after.used + 1,
            format!("another goes on from there: {}", last.used),
        ),
    ];
    Ok(field.report("restart", verdicts))
}
