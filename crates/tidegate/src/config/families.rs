//! Families of commands: their names, their budgets, what they require and how they are shared.

use std::collections::BTreeMap;

use tidegate_core::admission::{Axis, FamilyRules};

use super::{
    fault::{Fault, Place, Scope},
    names,
    settings::Settings,
    value::Value,
};

/// The families that exist without any configuration: name, per cent of the daily budget, what they require.
const DEFAULT_FAMILIES: [(&str, u64, &[Axis]); 4] = [
    ("offline", 60, &[]),
    ("replay", 10, &[Axis::Source, Axis::Principal]),
    ("proxy", 20, &[]),
    ("password", 10, &[Axis::Source]),
];

/// Kept for known-good identities where a family requires an identity.
const DEFAULT_RESERVE_BP: u64 = 2_000;

/// An operator's call reads and writes all of them at once.
const FAMILIES_MAX: usize = 100;

/// Where families have keys of their own.
const FAMILIES: &str = "guard.families";

/// Every family with its budget. A faulty split leaves the default one and a fault.
pub(super) fn build(settings: &Settings, faults: &mut Vec<Fault>) -> BTreeMap<String, FamilyRules> {
    let mut families: BTreeMap<String, FamilyRules> = DEFAULT_FAMILIES
        .into_iter()
        .map(|(name, _, requires)| (name.to_owned(), family(name, requires, settings)))
        .collect();
    for name in settings.names_in(FAMILIES) {
        families.entry(name.clone()).or_insert_with(|| family(&name, &[], settings));
    }
    if families.len() > FAMILIES_MAX {
        let message = format!("are {}; at most {FAMILIES_MAX} are served", families.len());
        let place = settings
            .names_in(FAMILIES)
            .last()
            .map_or(Place::Default, |name| settings.place_of(FAMILIES, name));
        faults.push(Fault::new(Scope::Guard, "guard.families", place, message));
    }
    split(&mut families, settings, faults);
    families
}

fn family(name: &str, requires: &[Axis], settings: &Settings) -> FamilyRules {
    let setting = |key: &str| settings.value(&format!("guard.families.{name}.{key}"));
    let requires: Vec<Axis> = match setting("requires") {
        Some(Value::Axes(axes)) => axes.clone(),
        _ => requires.to_vec(),
    };
    let mut rules = FamilyRules::of_budget(0);
    if let Some(Value::Entries(entries)) = setting("shares_bp") {
        for (axis, share) in entries.iter().filter_map(|(name, share)| Some((Axis::named(name)?, *share))) {
            rules.shares_bp[axis as usize] = share;
        }
    }
    rules.reserve_bp = match setting("reserve_bp") {
        Some(Value::Integer(reserve)) => *reserve,
        _ if requires.is_empty() => 0,
        _ => DEFAULT_RESERVE_BP,
    };
    rules.requires = requires;
    rules
}

fn split(families: &mut BTreeMap<String, FamilyRules>, settings: &Settings, faults: &mut Vec<Fault>) {
    let daily_budget = settings.integer("guard.daily_budget");
    let (budgets, place) = settings.readable("guard.family_budgets");
    match budgets {
        Some(Value::Entries(entries)) if !entries.is_empty() => {
            for (name, budget) in entries {
                match families.get_mut(name) {
                    Some(family) => family.budget = *budget,
                    None => faults.push(no_such_family(name, families, place.clone())),
                }
            }
            let sum = entries.iter().map(|(_, budget)| u128::from(*budget)).sum::<u128>();
            if sum > u128::from(daily_budget) && !settings.is_faulty("guard.daily_budget") {
                let message = format!("hands out {sum} commands; guard.daily_budget is {daily_budget}");
                faults.push(budgets_fault(place, message));
            }
        }
        _ => default_split(families, daily_budget, settings, faults),
    }
}

fn default_split(
    families: &mut BTreeMap<String, FamilyRules>,
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
    for name in settings.names_in(FAMILIES) {
        // Whose name is none can't be named there either, and has its fault.
        let can_have_one = names::name_fault(&format!("{FAMILIES}.{name}")).is_none();
        if can_have_one && DEFAULT_FAMILIES.iter().all(|(known, ..)| *known != name) {
            let message = "has no budget; name it in guard.family_budgets";
            let place = settings.place_of(FAMILIES, &name);
            faults.push(Fault::new(Scope::Guard, format!("guard.families.{name}"), place, message));
        }
    }
}

fn no_such_family(name: &str, families: &BTreeMap<String, FamilyRules>, place: Place) -> Fault {
    let hint = super::nearest::suggestion(name, families.keys());
    budgets_fault(place, format!("names the family {name:?}, which is not configured{hint}"))
}

fn budgets_fault(place: Place, message: String) -> Fault {
    Fault::new(Scope::Guard, "guard.family_budgets", place, message)
}
