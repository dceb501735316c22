//! What `tidegate drill` takes, and what each drill needs.

use clap::{Args, ValueEnum};
use tidegate_core::admission::{BASIS_POINTS, FamilyRules};
use tidegate_protocol::{control::Axis, name::Family};

use super::{DrillError, prefix_rotation, restart, shared_nat, stop_resume, sybil};
use crate::cli::control::Reach;

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

impl DrillName {
    pub(super) fn default_family(self) -> Result<Family, DrillError> {
        let name = match self {
            Self::PrefixRotation => "password",
            Self::Sybil | Self::SharedNat => "replay",
            Self::StopResume | Self::Restart => "proxy",
        };
        Family::parse(name).map_err(|_| DrillError::NoFamily { family: name.to_owned(), known: Vec::new() })
    }

    /// RPCs that the drill sends at most.
    pub(super) fn rpcs_needed(self, rules: &FamilyRules, users: u64) -> u64 {
        match self {
            Self::PrefixRotation => prefix_rotation::rpcs_needed(rules),
            Self::Sybil => sybil::rpcs_needed(rules),
            Self::StopResume => stop_resume::RPCS_NEEDED,
            Self::Restart => restart::rpcs_needed(rules),
            Self::SharedNat => shared_nat::rpcs_needed(users),
        }
    }

    /// Commands of the open part without which a live drill would say nothing.
    pub(super) fn open_needed(self, rules: &FamilyRules, users: u64) -> u64 {
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
    pub(super) fn of(&self, configured: &FamilyRules) -> FamilyRules {
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
