//! `tidegate drill`: what an attack, a stop or a restart would do, tried out.
//!
//! A simulated drill runs in this process, on a clock that it moves and with the families of the
//! configuration, so that an operator can judge their budgets and shares in seconds. A live one goes to a
//! running server.

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

use clap::{Args, ValueEnum};
use thiserror::Error;
use tidegate_client::GuardUnavailable;
use tidegate_core::admission::{BASIS_POINTS, FamilyRules};
use tidegate_protocol::{control::Axis, name::Family};
use tidegate_store_embedded::OpenError;

use self::{
    field::{FamiliesRules, Field},
    live::Live,
    report::Report,
    simulated::Simulated,
    target::Target,
};
use super::{
    call::{SendError, client_at},
    control::{ControlError, Reach},
};
use crate::{
    config::{Fault, Loaded},
    process::{EXIT_DENIED, EXIT_GOOD},
    secrets::SecretsError,
};

/// What `tidegate drill` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct DrillArgs {
    /// Which drill
    #[arg(value_enum)]
    pub name: DrillName,
    /// In this process, on a simulated clock, with the configured families (the default)
    #[arg(long, conflicts_with = "live")]
    pub simulated: bool,
    /// Against the configured server. It spends the family's real budget of today
    #[arg(long)]
    pub live: bool,
    /// The family [default: password for prefix-rotation, replay for sybil and shared-nat, else proxy]
    #[arg(long)]
    pub family: Option<Family>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Honest users of shared-nat
    #[arg(long, value_name = "N", default_value_t = 2500, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub users: u64,
    /// RPCs to send at most [default: what the drill needs]
    #[arg(long, value_name = "N")]
    pub rpcs: Option<u64>,
    /// Yes to a server on another machine, and to more than 2000000 RPCs
    #[arg(long)]
    pub yes: bool,
    /// Where, and as whom.
    #[command(flatten)]
    pub reach: Reach,
    /// What is simulated otherwise than it is configured.
    #[command(flatten)]
    pub variation: Variation,
}

/// A drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrillName {
    /// 20 IPv6 /64s of one /48, five requests a second for 5.6 hours, beside honest callers
    PrefixRotation,
    /// 20 accounts from 20 sources try to drain the family
    Sybil,
    /// A stop and a resume under load: nothing is executed after the stop has answered
    StopResume,
    /// A restart: what was spent stays spent
    Restart,
    /// 2500 honest users behind one address
    SharedNat,
}

/// What is simulated otherwise than it is configured: to see what it is good for.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Instead of what is configured (simulated only)")]
pub struct Variation {
    /// No shares of networks: only source and principal have some
    #[arg(long, conflicts_with = "live")]
    pub tiers_off: bool,
    /// The family's budget, in commands a day
    #[arg(long, value_name = "N", conflicts_with = "live", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub budget: Option<u64>,
    /// What a source may spend of it
    #[arg(long, value_name = "BP", conflicts_with = "live", value_parser = clap::value_parser!(u64).range(0..=BASIS_POINTS))]
    pub source_share_bp: Option<u64>,
    /// What a principal may spend of it
    #[arg(long, value_name = "BP", conflicts_with = "live", value_parser = clap::value_parser!(u64).range(0..=BASIS_POINTS))]
    pub principal_share_bp: Option<u64>,
    /// What is kept of it for known-good identities
    #[arg(long, value_name = "BP", conflicts_with = "live", value_parser = clap::value_parser!(u64).range(0..=BASIS_POINTS))]
    pub reserve_bp: Option<u64>,
}

/// Why a drill did not take place, or ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DrillError {
    /// The families are faulty.
    #[error("the configuration is faulty:\n{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Fault>),
    /// The family.
    #[error("there is no family {family:?}; --family takes one of {}", known.join(", "))]
    NoFamily {
        /// What was asked for.
        family: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Every caller would be refused for want of budget.
    #[error("the budget of the family {family} is too small for this drill; --budget simulates another")]
    TooSmall {
        /// Whose.
        family: String,
    },
    /// Not today.
    #[error(
        "the open part of the family {family} has {left} commands left today; the drill needs {needed} \
         (`tidegate control resume {family}` begins it anew)"
    )]
    TooLittle {
        /// Whose.
        family: String,
        /// What there is.
        left: u64,
        /// What is needed.
        needed: u64,
    },
    /// An operator has stopped everything.
    #[error("the guard store is stopped; `tidegate control resume` lets it go on")]
    Fenced,
    /// More than is allowed.
    #[error("the drill needs up to {needed} RPCs; --rpcs allows {allowed}")]
    Rpcs {
        /// What is needed.
        needed: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// Very many.
    #[error("the drill needs up to {needed} RPCs; say --yes to send them")]
    Many {
        /// What is needed.
        needed: u64,
    },
    /// Another machine.
    #[error("the server is on another machine, and the drill spends its real budget; say --yes to go on")]
    Elsewhere,
    /// The drill has sent all the RPCs that it said it needed.
    #[error("the drill would send more RPCs than it said; it has ended")]
    Bound,
    /// A part of the drill panicked.
    #[error("a part of the drill has ended early")]
    Ended,
    /// An answer that does not fit.
    #[error("the guard store answered something else than was asked")]
    Unexpected,
    /// The rows of a store in memory don't survive a restart.
    #[error("nothing is kept of a store in memory")]
    NothingKept,
    /// The operator did not.
    #[error("the server was not restarted in time: it {}", if *answers { "does not answer" } else { "did not go away" })]
    NotRestarted {
        /// What was waited for.
        answers: bool,
    },
    /// No folder for the simulated store.
    #[error("making a temporary folder")]
    Folder(#[source] io::Error),
    /// The simulated store.
    #[error("opening the simulated store")]
    Store(#[from] OpenError),
    /// No secret for the simulated callers.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The server can't be reached.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Nothing to sign with.
    #[error(transparent)]
    Send(#[from] SendError),
    /// No answer, or one that ends the drill.
    #[error(transparent)]
    Unavailable(#[from] GuardUnavailable),
    /// The output is gone.
    #[error("writing the report")]
    Output(#[from] io::Error),
}

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

impl DrillName {
    fn default_family(self) -> Result<Family, DrillError> {
        let name = match self {
            Self::PrefixRotation => "password",
            Self::Sybil | Self::SharedNat => "replay",
            Self::StopResume | Self::Restart => "proxy",
        };
        Family::parse(name).map_err(|_| DrillError::NoFamily { family: name.to_owned(), known: Vec::new() })
    }

    /// RPCs that the drill sends at most.
    fn rpcs_needed(self, rules: &FamilyRules, users: u64) -> u64 {
        match self {
            Self::PrefixRotation => prefix_rotation::rpcs_needed(rules),
            Self::Sybil => sybil::rpcs_needed(rules),
            Self::StopResume => stop_resume::RPCS_NEEDED,
            Self::Restart => restart::rpcs_needed(rules),
            Self::SharedNat => shared_nat::rpcs_needed(users),
        }
    }

    /// Commands of the open part without which a live drill would say nothing.
    fn open_needed(self, rules: &FamilyRules, users: u64) -> u64 {
        match self {
            Self::PrefixRotation => prefix_rotation::open_needed(rules),
            Self::Sybil => sybil::OPEN_NEEDED,
            Self::StopResume => stop_resume::OPEN_NEEDED,
            Self::Restart => restart::open_needed(rules),
            Self::SharedNat => shared_nat::open_needed(users),
        }
    }
}

impl Variation {
    /// The rules with this instead.
    fn of(&self, configured: &FamilyRules) -> FamilyRules {
        let mut rules = configured.clone();
        let mut share = |axis: Axis, share_bp: Option<u64>| {
            if let Some(share_bp) = share_bp {
                rules.shares_bp[axis as usize] = share_bp;
            }
        };
        share(Axis::Source, self.source_share_bp);
        share(Axis::Principal, self.principal_share_bp);
        for axis in [Axis::Network24, Axis::Network56, Axis::Network48] {
            share(axis, self.tiers_off.then_some(BASIS_POINTS));
        }
        rules.budget = self.budget.unwrap_or(rules.budget);
        rules.reserve_bp = self.reserve_bp.unwrap_or(rules.reserve_bp);
        rules
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

const EXAMPLES: &str = "\
Examples:
  tidegate drill prefix-rotation                    # would your shares stop an attacker with a /48?
  tidegate drill prefix-rotation --tiers-off        # what happens without shares of networks
  tidegate drill shared-nat --source-share-bp 1000
  tidegate drill sybil --family replay --json
  tidegate drill stop-resume --live                 # on a staging server

A simulated drill takes seconds and sends nothing. A live one uses identities that no real caller has, spends the
family's real budget of today, and asks the server as fast as it answers.
Exit codes: 0 every verdict is `pass`, 1 one is `FAIL`, 2 the drill did not take place.";

#[cfg(test)]
mod tests;
