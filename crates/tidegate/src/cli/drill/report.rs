//! What a drill found: who got through, when the family changed state, and what that says.

use std::{collections::BTreeMap, fmt::Write};

use serde::Serialize;
use tidegate_core::admission::{Axis, FamilyRules};

use crate::cli::words::{Column, table};

/// What a drill found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// Which drill.
    pub(crate) drill: &'static str,
    /// On which family.
    pub(crate) family: String,
    /// Whether in this process, on a simulated clock.
    pub(crate) simulated: bool,
    /// What the family may spend a day, by whom.
    pub(crate) rules: Rules,
    /// Who asked, and what became of it.
    pub(crate) groups: Vec<Group>,
    /// When the family changed state.
    pub(crate) timeline: Vec<Turn>,
    /// What is to be known beside it.
    pub(crate) notes: Vec<String>,
    /// What it says.
    pub(crate) verdicts: Vec<Verdict>,
}

/// A family's budget and what of it is whose, in commands a day.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Rules {
    pub(crate) budget: u64,
    pub(crate) open: u64,
    pub(crate) reserve: u64,
    /// What one identity may spend, by axis.
    pub(crate) allowances: BTreeMap<&'static str, u64>,
}

/// Who asked, and what became of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// RPCs.
    pub(crate) asked: u64,
    /// RPCs.
    pub(crate) admitted: u64,
    /// Commands of the RPCs that were admitted.
    pub(crate) spent: u64,
    /// RPCs that were not, by axis or reason.
    pub(crate) refused: BTreeMap<&'static str, u64>,
}

/// A change of the family's state.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Turn {
    /// On the store's clock, in ms since the epoch.
    pub(crate) at_ms: u64,
    /// The same, for people.
    pub(crate) at: String,
    /// What it became.
    pub(crate) state: &'static str,
}

/// One thing that the drill says of the configuration.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Verdict {
    /// Whether that is as it should be.
    pub(crate) pass: bool,
    /// What it says.
    pub(crate) text: String,
}

impl Report {
    /// Whether everything is as it should be.
    pub(crate) fn passed(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.pass)
    }

    /// The group of this name.
    #[cfg(test)]
    pub(crate) fn group(&self, name: &str) -> &Group {
        self.groups.iter().find(|group| group.name == name).expect("a group of the drill")
    }

    /// The report as people read it.
    pub(crate) fn for_people(&self) -> String {
        let Rules { budget, open, reserve, allowances } = &self.rules;
        let against = if self.simulated { "simulated: nothing was sent" } else { "live" };
        let shares: Vec<String> = allowances.iter().map(|(axis, spend)| format!("{axis} {spend}")).collect();
        let mut text = format!(
            "{} on the family {} ({against})\n{budget} commands a day: {open} open, {reserve} kept for known-good \
             identities\none identity may spend: {}\n\n{}",
            self.drill,
            self.family,
            shares.join(", "),
            self.groups_table()
        );
        if !self.timeline.is_empty() {
            text.push_str("\nstate of the family\n");
        }
        for turn in &self.timeline {
            let _ = writeln!(text, "  {}  {}", turn.at, turn.state);
        }
        for note in &self.notes {
            let _ = writeln!(text, "\nnote: {note}");
        }
        text.push('\n');
        for Verdict { pass, text: said } in &self.verdicts {
            let _ = writeln!(text, "{}  {said}", if *pass { "pass" } else { "FAIL" });
        }
        text
    }

    fn groups_table(&self) -> String {
        let row = |group: &Group| {
            let refused = group.refused.iter().map(|(why, count)| format!("{count} {why}"));
            let refused: Vec<String> = refused.collect();
            [
                group.name.clone(),
                group.asked.to_string(),
                group.admitted.to_string(),
                group.spent.to_string(),
                if refused.is_empty() { "none".to_owned() } else { refused.join(", ") },
            ]
        };
        let columns = [
            Column::Left("who"),
            Column::Right("asked"),
            Column::Right("admitted"),
            Column::Right("commands"),
            Column::Left("refused"),
        ];
        table(columns, &self.groups.iter().map(row).collect::<Vec<_>>())
    }
}

impl Rules {
    pub(crate) fn of(rules: &FamilyRules) -> Self {
        let allowances = Axis::ALL.map(|axis| (axis.as_str(), rules.allowance(axis)));
        Self {
            budget: rules.budget,
            open: rules.open(),
            reserve: rules.reserve(),
            allowances: allowances.into(),
        }
    }
}

impl Group {
    pub(crate) fn called(name: impl Into<String>) -> Self {
        Self { name: name.into(), asked: 0, admitted: 0, spent: 0, refused: BTreeMap::new() }
    }

    /// Whether everything that was asked was admitted, and something was.
    pub(crate) fn all_admitted(&self) -> bool {
        self.admitted == self.asked && self.asked > 0
    }
}

impl Verdict {
    pub(crate) fn of(pass: bool, text: impl Into<String>) -> Self {
        Self { pass, text: text.into() }
    }
}
