//! Families of commands: their names, their budgets, what they require and how they are shared.

use std::collections::BTreeMap;

use super::{
    fault::{Fault, Place, Scope},
    settings::Settings,
    value::Value,
};

/// An identity that an RPC can carry and that has a share of a family's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// The caller's address (IPv6: its /64).
    Source,
    /// The IPv4 network of 256 addresses.
    Network24,
    /// The IPv6 network of a site.
    Network56,
    /// The IPv6 network of an organisation.
    Network48,
    /// The signed-in user.
    Principal,
}

impl Axis {
    /// Every axis.
    pub const ALL: [Self; 5] =
        [Self::Source, Self::Network24, Self::Network56, Self::Network48, Self::Principal];

    /// The name on the wire and in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Network24 => "network/24",
            Self::Network56 => "network/56",
            Self::Network48 => "network/48",
            Self::Principal => "principal",
        }
    }

    /// The share of a family's budget, in basis points, where none is configured.
    #[must_use]
    pub const fn default_share_bp(self) -> u64 {
        match self {
            Self::Source | Self::Principal => 500,
            Self::Network24 | Self::Network56 => 1_500,
            Self::Network48 => 2_500,
        }
    }

    /// Requiring a network would shut out every caller of the other address family.
    #[must_use]
    pub const fn can_be_required(self) -> bool {
        matches!(self, Self::Source | Self::Principal)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|axis| axis.name() == name)
    }
}

/// A family, as the configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// Commands a UTC day.
    pub budget: u64,
    /// What an RPC must carry.
    pub requires: Vec<Axis>,
    /// What one identity may spend of the budget a day, in basis points.
    pub shares_bp: BTreeMap<Axis, u64>,
    /// The part of the budget that is kept for known-good identities, in basis points.
    pub reserve_bp: u64,
}

/// The families that exist without any configuration: name, per cent of the daily budget, what they require.
const DEFAULT_FAMILIES: [(&str, u64, &[Axis]); 4] = [
    ("offline", 60, &[]),
    ("replay", 10, &[Axis::Source, Axis::Principal]),
    ("proxy", 20, &[]),
    ("password", 10, &[Axis::Source]),
];

/// Kept for known-good identities where a family requires an identity.
const DEFAULT_RESERVE_BP: u64 = 2_000;

/// The longest name of a family.
const NAME_CHARS_MAX: usize = 64;

/// What is wrong with the name of a family in a key's path, if anything is.
pub(super) fn name_fault(path: &str) -> Option<&'static str> {
    let name = path.strip_prefix("guard.families.")?.split('.').next()?;
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    let good = (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(allowed);
    (!good).then_some("the name of a family has 1 to 64 of a-z, 0-9, _ and -")
}

/// Every family with its budget. A faulty split leaves the default one and a fault.
pub(super) fn build(settings: &Settings, faults: &mut Vec<Fault>) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = DEFAULT_FAMILIES
        .into_iter()
        .map(|(name, _, requires)| (name.to_owned(), family(name, requires, settings)))
        .collect();
    for name in settings.family_names() {
        families.entry(name.clone()).or_insert_with(|| family(&name, &[], settings));
    }
    split(&mut families, settings, faults);
    families
}

fn family(name: &str, requires: &[Axis], settings: &Settings) -> Family {
    let setting = |key: &str| settings.value(&format!("guard.families.{name}.{key}"));
    let requires = match setting("requires") {
        Some(Value::Axes(axes)) => axes.clone(),
        _ => requires.to_vec(),
    };
    let mut shares_bp: BTreeMap<_, _> =
        Axis::ALL.into_iter().map(|axis| (axis, axis.default_share_bp())).collect();
    if let Some(Value::Entries(entries)) = setting("shares_bp") {
        shares_bp.extend(entries.iter().filter_map(|(name, share)| Some((Axis::named(name)?, *share))));
    }
    let reserve_bp = match setting("reserve_bp") {
        Some(Value::Integer(reserve)) => *reserve,
        _ if requires.is_empty() => 0,
        _ => DEFAULT_RESERVE_BP,
    };
    Family { budget: 0, requires, shares_bp, reserve_bp }
}

fn split(families: &mut BTreeMap<String, Family>, settings: &Settings, faults: &mut Vec<Fault>) {
    let daily_budget = settings.integer("guard.daily_budget");
    let place = settings.place("guard.family_budgets");
    match settings.value("guard.family_budgets") {
        Some(Value::Entries(entries)) if !entries.is_empty() => {
            for (name, budget) in entries {
                match families.get_mut(name) {
                    Some(family) => family.budget = *budget,
                    None => faults.push(no_such_family(name, families, place.clone())),
                }
            }
            let sum = entries.iter().map(|(_, budget)| u128::from(*budget)).sum::<u128>();
            if sum > u128::from(daily_budget) {
                let message = format!("hands out {sum} commands; guard.daily_budget is {daily_budget}");
                faults.push(budgets_fault(place, message));
            }
        }
        _ => default_split(families, daily_budget, settings, faults),
    }
}

fn default_split(
    families: &mut BTreeMap<String, Family>,
    daily_budget: u64,
    settings: &Settings,
    faults: &mut Vec<Fault>,
) {
    for (name, per_cent, _) in DEFAULT_FAMILIES {
        if let Some(family) = families.get_mut(name) {
            let share = u128::from(daily_budget) * u128::from(per_cent) / 100;
            family.budget = u64::try_from(share).unwrap_or(daily_budget);
        }
    }
    if settings.is_faulty("guard.family_budgets") {
        return;
    }
    for name in settings.family_names() {
        if DEFAULT_FAMILIES.iter().all(|(known, ..)| *known != name) {
            let message = "has no budget; name it in guard.family_budgets";
            let place = settings.family_place(&name);
            faults.push(Fault::new(Scope::Guard, format!("guard.families.{name}"), place, message));
        }
    }
}

fn no_such_family(name: &str, families: &BTreeMap<String, Family>, place: Place) -> Fault {
    let hint = super::nearest::suggestion(name, families.keys());
    budgets_fault(place, format!("names the family {name:?}, which is not configured{hint}"))
}

fn budgets_fault(place: Place, message: String) -> Fault {
    Fault::new(Scope::Guard, "guard.family_budgets", place, message)
}
