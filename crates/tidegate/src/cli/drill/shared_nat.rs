//! The drill of many honest users behind one address.

use tidegate_core::admission::{BASIS_POINTS, FamilyRules};
use tidegate_protocol::{
    control::{AUDIT_LIMIT_MAX, Action, Axis, FairnessReset},
    identity::{Digest, Purpose},
    request::Fairness,
};

use super::{
    DrillError,
    field::{Ask, Caller, Field, GroupId, Refused},
    report::{Report, Verdict},
    target::Target,
};

const DRILL: &str = "shared-nat";
/// How often each user comes that day, and what one visit costs: a read and a claim.
const VISITS: u64 = 2;
const VISIT_COMMANDS: u64 = 2;
/// From one visit to the next.
const BETWEEN_MS: u64 = 6 * 3_600_000;

/// Commands of the open part that must be there at the start.
pub(super) const fn open_needed(users: u64) -> u64 {
    users * VISITS * VISIT_COMMANDS
}

/// RPCs that the drill sends at most.
pub(super) const fn rpcs_needed(users: u64) -> u64 {
    2 * users * VISITS
}

/// Runs it.
pub(super) async fn run<T: Target>(mut field: Field<T>, users: u64) -> Result<Report, DrillError> {
    let callers = callers(&field, users);
    let refused = visits(&mut field, &callers).await?;
    let mut verdicts = vec![lets_in_all(&field, users, refused.len())];

    let axes = refused_axes(&refused);
    let identities = field.caller(ADDRESS, &[(24, ADDRESS)], None).fairness;
    for axis in &axes {
        let identity = digest_of(*axis, &identities);
        let reset = FairnessReset { family: field.family, axis: Some(*axis), identity };
        field.target.control().reset_fairness(reset).await?;
    }
    let after = field.group("the same after a reset");
    let again = refused.iter().map(|(caller, _)| visit(after, caller)).collect();
    field.send(again).await?;
    verdicts.push(came_in(&field, refused.len(), field.tally(after).admitted));
    verdicts.push(stands_in_the_audit(&field, &axes, &identities).await?);
    Ok(field.report(DRILL, verdicts))
}

/// The same day on a field whose share has room for everybody, after one where it had not: shows that the
/// share is what locks out.
pub(super) async fn with_room<T: Target>(
    mut report: Report,
    mut field: Field<T>,
    users: u64,
) -> Result<Report, DrillError> {
    let share = field.rules.shares_bp[Axis::Source as usize];
    let callers = callers(&field, users);
    let refused = visits(&mut field, &callers).await?.len();
    let text = format!("with a source share of {share} bp: {refused} visits refused");
    report.verdicts.push(Verdict::of(refused == 0, text));
    let groups = field.report(DRILL, Vec::new()).groups;
    report.groups.extend(groups.into_iter().map(|mut group| {
        group.name = format!("{} ({share} bp)", group.name);
        group
    }));
    Ok(report)
}

/// The rules with a source share, and a share of its network, that has room for everybody; none if they have
/// it already, or no share has.
pub(super) fn roomier(rules: &FamilyRules, users: u64) -> Option<FamilyRules> {
    let needed = open_needed(users);
    if needed > rules.budget || needed <= rules.allowance(Axis::Source).min(rules.allowance(Axis::Network24))
    {
        return None;
    }
    let share = share_for(rules, needed)?;
    let mut roomier = rules.clone();
    for axis in [Axis::Source, Axis::Network24] {
        let share_bp = &mut roomier.shares_bp[axis as usize];
        *share_bp = share.max(*share_bp);
    }
    Some(roomier)
}

/// The smallest share of the budget with room for `commands`, in basis points.
fn share_for(rules: &FamilyRules, commands: u64) -> Option<u64> {
    let share = (u128::from(commands) * u128::from(BASIS_POINTS)).div_ceil(u128::from(rules.budget.max(1)));
    u64::try_from(share).ok().filter(|share| *share <= BASIS_POINTS)
}

const ADDRESS: &str = "the one address";

fn callers<T: Target>(field: &Field<T>, users: u64) -> Vec<Caller> {
    let user = |place| {
        let account = format!("user {place}");
        let caller = field.caller(ADDRESS, &[(24, ADDRESS)], Some(&account));
        Caller { partition: field.digest(Purpose::Partition, &account), ..caller }
    };
    (0..users).map(user).collect()
}

/// Everybody's visits of a day; answers who was refused, and why.
async fn visits<T: Target>(
    field: &mut Field<T>,
    callers: &[Caller],
) -> Result<Vec<(Caller, Refused)>, DrillError> {
    let mut refused = Vec::new();
    for number in 1..=VISITS {
        let group = field.group(&format!("users, visit {number}"));
        let outcomes = field.send(callers.iter().map(|caller| visit(group, caller)).collect()).await?;
        let with_outcome = callers.iter().zip(outcomes);
        refused.extend(with_outcome.filter_map(|(caller, outcome)| Some((caller.clone(), outcome.err()?))));
        field.look().await?;
        field.pass(BETWEEN_MS);
    }
    Ok(refused)
}

fn visit(group: GroupId, caller: &Caller) -> Ask {
    Ask { group, caller: caller.clone(), commands: VISIT_COMMANDS, good: false }
}

fn lets_in_all<T: Target>(field: &Field<T>, users: u64, refused: usize) -> Verdict {
    let (share, allowance) =
        (field.rules.shares_bp[Axis::Source as usize], field.rules.allowance(Axis::Source));
    let visits = users * VISITS;
    let text = format!(
        "{users} users behind one address: {refused} of {visits} visits refused with a source share of {share} bp \
         ({allowance} commands)"
    );
    let hint = match share_for(&field.rules, open_needed(users)) {
        Some(share) if refused > 0 => {
            format!("; guard.families.{}.shares_bp with source at {share} would let all in", field.family)
        }
        _ => String::new(),
    };
    Verdict::of(refused == 0, text + &hint)
}

/// The axes to reset: those that refused somebody, or the source's if none did, so that the audit is looked at.
fn refused_axes(refused: &[(Caller, Refused)]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = refused
        .iter()
        .filter_map(|(_, why)| match why {
            Refused::Limited(axis) => *axis,
            _ => None,
        })
        .collect();
    axes.sort_unstable();
    axes.dedup();
    if axes.is_empty() { vec![Axis::Source] } else { axes }
}

fn digest_of(axis: Axis, fairness: &Fairness) -> Option<Digest> {
    match axis {
        Axis::Source => fairness.source,
        _ => fairness.networks.first().map(|network| network.digest),
    }
}

fn came_in<T: Target>(field: &Field<T>, refused: usize, admitted: u64) -> Verdict {
    // A reset gives the share once more, and no more than that.
    let allowance = field.rules.allowance(Axis::Source).min(field.rules.allowance(Axis::Network24));
    let expected = (refused as u64).min(allowance / VISIT_COMMANDS);
    let text = match refused {
        0 => "nobody had to be let in by a reset of the quota".to_owned(),
        _ => format!("after a reset of the quota: {admitted} of the {refused} that were refused come in"),
    };
    Verdict::of(admitted >= expected, text)
}

async fn stands_in_the_audit<T: Target>(
    field: &Field<T>,
    axes: &[Axis],
    identities: &Fairness,
) -> Result<Verdict, DrillError> {
    let entries = field.target.control().audit(AUDIT_LIMIT_MAX).await?.entries;
    let found = axes.iter().all(|axis| {
        entries.iter().any(|entry| {
            entry.action == Action::FairnessReset
                && entry.family == Some(field.family)
                && entry.axis == Some(*axis)
                && entry.identity == digest_of(*axis, identities)
        })
    });
    Ok(Verdict::of(
        found,
        if found { "the reset stands in the audit" } else { "the reset is missing in the audit" },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_would_do() {
        let rules = FamilyRules::of_budget(100_000);
        assert_eq!(share_for(&rules, 10_000), Some(1000));
        assert_eq!(share_for(&rules, 10_001), Some(1001));
        assert_eq!(share_for(&rules, 100_001), None);
        let roomy = roomier(&rules, 2500).expect("5 % are too few");
        assert_eq!(roomy.allowance(Axis::Source), 10_000);
        assert!(roomier(&roomy, 2500).is_none(), "it has room already");
        assert!(roomier(&rules, 50_000).is_none(), "no share has room");
    }
}
