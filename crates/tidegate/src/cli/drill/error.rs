//! Why a drill did not take place, or ended early.

use std::io;

use thiserror::Error;
use tidegate_client::GuardUnavailable;
use tidegate_store_embedded::OpenError;

use crate::{
    cli::{call::SendError, control::ControlError},
    config::Fault,
    secrets::SecretsError,
};

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
