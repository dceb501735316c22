//! `tidegate drill`: what an attack, a stop or a restart would do, tried out.
//!
//! A simulated drill runs in this process, on a clock that it moves and with the families of the
//! configuration, so that an operator can judge their budgets and shares in seconds. A live one goes to a
//! running server.

mod args;
mod error;
mod field;
mod live;
mod prefix_rotation;
mod report;
mod restart;
mod shared_nat;
mod simulated;
mod stop_resume;
mod sybil;
mod target;

use std::{
    io::{self, Write},
    net::IpAddr,
};

use tidegate_core::admission::FamilyRules;
use tidegate_protocol::name::Family;

pub use self::{
    args::{DrillArgs, DrillName, Variation},
    error::DrillError,
};
use self::{
    field::{FamiliesRules, Field},
    live::Live,
    report::Report,
    simulated::Simulated,
    target::Target,
};
use super::{
    call::client_at,
    control::{ControlError, Reach},
};
use crate::{
    config::Loaded,
    process::{EXIT_DENIED, EXIT_GOOD},
};

/// Runs a drill and answers the exit code: 0 if everything is as it should be, 1 if not.
///
/// # Errors
/// The drill did not take place, or ended early. A live one has spent what it has sent.
pub async fn drill(
    arguments: DrillArgs,
    loaded: &Loaded,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, DrillError> {
    let plan = Plan::of(&arguments, loaded)?;
    let report = if arguments.live {
        plan.live(&arguments.reach, loaded, err).await?
    } else {
        plan.simulated().await?
    };
    if arguments.json {
        let json = serde_json::to_string(&report).map_err(io::Error::other)?;
        writeln!(out, "{json}")?;
    } else {
        out.write_all(report.for_people().as_bytes())?;
    }
    Ok(if report.passed() { EXIT_GOOD } else { EXIT_DENIED })
}

/// A drill, with everything that is known before it begins.
#[derive(Debug, Clone)]
struct Plan {
    name: DrillName,
    family: Family,
    families: FamiliesRules,
    /// What the family is simulated with.
    rules: FamilyRules,
    users: u64,
    rpcs_max: u64,
    yes: bool,
}

/// More than this is sent only after a yes.
const RPCS_WITHOUT_YES: u64 = 2_000_000;

impl Plan {
    fn of(arguments: &DrillArgs, loaded: &Loaded) -> Result<Self, DrillError> {
        let families = families(loaded)?;
        let family = arguments.family.map_or_else(|| arguments.name.default_family(), Ok)?;
        let Some(configured) = families.get(&family) else {
            let known = families.keys().map(|family| family.as_str().to_owned()).collect();
            return Err(DrillError::NoFamily { family: family.as_str().to_owned(), known });
        };
        let rules = arguments.variation.of(configured);
        let (name, users, yes) = (arguments.name, arguments.users, arguments.yes);
        let needed = name.rpcs_needed(&rules, users);
        let rpcs_max = arguments.rpcs.unwrap_or(needed);
        if needed > rpcs_max {
            return Err(DrillError::Rpcs { needed, allowed: rpcs_max });
        }
        if needed > RPCS_WITHOUT_YES && !yes {
            return Err(DrillError::Many { needed });
        }
        Ok(Self { name, family, families, rules, users, rpcs_max, yes })
    }

    async fn simulated(self) -> Result<Report, DrillError> {
        let target = match self.name {
            DrillName::Restart => Simulated::on_disk(self.simulated_families())?,
            _ => Simulated::in_memory(self.simulated_families())?,
        };
        let report = self.run(self.field(target, 0).await?).await?;
        let roomier = match self.name {
            DrillName::SharedNat => shared_nat::roomier(&self.rules, self.users),
            _ => None,
        };
        let Some(rules) = roomier else { return Ok(report) };
        let plan = Self { rules, ..self };
        let target = Simulated::in_memory(plan.simulated_families())?;
        shared_nat::with_room(report, plan.field(target, 0).await?, plan.users).await
    }

    /// Every family, the drilled one as it is simulated.
    fn simulated_families(&self) -> FamiliesRules {
        let mut families = self.families.clone();
        families.insert(self.family, self.rules.clone());
        families
    }

    async fn live(self, reach: &Reach, loaded: &Loaded, err: &mut dyn Write) -> Result<Report, DrillError> {
        let origin = reach.origin(loaded).map_err(ControlError::from)?;
        if !is_this_machine(origin.expose()) && !self.yes {
            return Err(DrillError::Elsewhere);
        }
        writeln!(
            err,
            "up to {} RPCs spend the real budget of the family {} today; shares are taken from the configuration here",
            self.rpcs_max, self.family
        )?;
        if self.name == DrillName::StopResume {
            writeln!(
                err,
                "it stops everything for a moment; if you interrupt it, run `tidegate control resume`"
            )?;
        }
        let target = Live::new(client_at(&origin, loaded)?, reach.client(loaded)?);
        let open_needed = self.name.open_needed(&self.rules, self.users);
        self.run(self.field(target, open_needed).await?).await
    }

    async fn field<T: Target>(&self, target: T, open_needed: u64) -> Result<Field<T>, DrillError> {
        let configured = self.families.get(&self.family).unwrap_or(&self.rules).clone();
        Field::enter(target, self.family, configured, self.rules.clone(), self.rpcs_max, open_needed).await
    }

    async fn run<T: Target>(&self, field: Field<T>) -> Result<Report, DrillError> {
        match self.name {
            DrillName::PrefixRotation => prefix_rotation::run(field).await,
            DrillName::Sybil => sybil::run(field).await,
            DrillName::StopResume => stop_resume::run(field).await,
            DrillName::Restart => restart::run(field).await,
            DrillName::SharedNat => shared_nat::run(field, self.users).await,
        }
    }
}

fn families(loaded: &Loaded) -> Result<FamiliesRules, DrillError> {
    let rules = loaded.regardless().guard.as_ref().map_err(|faults| DrillError::Faults(faults.clone()))?;
    let families = rules.families.iter();
    Ok(families.filter_map(|(name, rules)| Some((Family::parse(name).ok()?, rules.clone()))).collect())
}

fn is_this_machine(url: &str) -> bool {
    let uri = url.parse::<http::Uri>().ok();
    uri.as_ref().and_then(http::Uri::host).is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
    })
}

#[cfg(test)]
mod tests;
