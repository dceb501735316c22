//! `tidegate control`: what an operator does to a guard store, with names that people can read.

mod credentials;
mod order;
mod show;

use std::{io::Write, path::PathBuf};

use clap::{Args, Subcommand};
use thiserror::Error;
use tidegate_client::{
    ConfigurationFault, GuardUnavailable,
    control::{Call, ControlClient},
};
use tidegate_protocol::{
    control::{AUDIT_LIMIT_DEFAULT, AUDIT_LIMIT_MAX, Axis},
    identity::{Digest, InvalidDigest},
    name::Family,
    request::BadRequest,
};

use super::call::{ClientError, guard_url};
use crate::{
    config::{Hidden, Loaded},
    process::{EXIT_ERROR, EXIT_GOOD},
};

pub use credentials::{CredentialsError, operator_token};
pub use order::OrderError;
pub(super) use show::phase_name;

/// What `tidegate control` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ControlArgs {
    /// Where, and as whom.
    #[command(flatten)]
    pub reach: Reach,
    /// Print the server's answer as it came
    #[arg(long, global = true, help_heading = REACHING)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub verb: ControlVerb,
}

/// Where the guard store is, and its operator's token.
#[derive(Debug, Clone, Default, Args)]
pub struct Reach {
    /// The guard store [default: client.url, or guard.listen of the configuration]
    #[arg(long, global = true, value_name = "URL", help_heading = REACHING)]
    pub url: Option<String>,
    /// A file with the operator's token [default: guard.operator_token(_file), or the data directory's]
    #[arg(long, global = true, value_name = "FILE", help_heading = REACHING)]
    pub token_file: Option<PathBuf>,
}

/// What an operator does.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ControlVerb {
    /// Tell how everything stands: the fence, and every family's budget
    State,
    /// Stop everything: once this has answered, no RPC executes a step on any instance. Data is kept
    Stop {
        /// Why, for the audit log and for whoever asks for the state
        #[arg(long)]
        reason: Option<String>,
    },
    /// Take the fence down, and let stopped families go on with a full budget; quotas of identities stay
    Resume {
        /// The families whose budgets begin anew [default: all of them]
        families: Vec<Family>,
    },
    /// Clear what identities have spent of a family's budget, so that they get in again today
    Reset {
        /// The family
        family: Family,
        /// Only of this axis: source, network/24, network/56, network/48 or principal
        #[arg(long, value_parser = axis)]
        axis: Option<Axis>,
        /// Only of this identity: an address (for a network: any in it) or `unknown`; an account for principal
        #[arg(long, value_name = "VALUE", requires = "axis")]
        identity: Option<String>,
        /// The same, hashed already
        #[arg(long, value_parser = parse_digest, requires = "axis", conflicts_with = "identity", allow_hyphen_values = true)]
        digest: Option<Digest>,
    },
    /// Remove a partition's rows, or one key's, so that somebody who is locked out gets in
    Forget {
        /// Whose rows, such as login:alice
        #[arg(required_unless_present = "digest", conflicts_with = "digest")]
        partition: Option<String>,
        /// Of this key only
        #[arg(conflicts_with = "key_digest")]
        key: Option<String>,
        /// The partition, hashed already
        #[arg(long, value_parser = parse_digest, allow_hyphen_values = true)]
        digest: Option<Digest>,
        /// The key, hashed already
        #[arg(long, value_name = "DIGEST", value_parser = parse_digest, allow_hyphen_values = true)]
        key_digest: Option<Digest>,
    },
    /// Tell what operators did, the newest first
    Audit {
        /// How many entries
        #[arg(long, value_name = "N", default_value_t = AUDIT_LIMIT_DEFAULT, value_parser = audit_limit)]
        limit: usize,
    },
}

/// Why nothing was asked, or nothing came back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The configuration does not say where the guard store is, or is faulty there.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// There is no token to show.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The names don't fit together.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The reason.
    #[error("--reason {}", .0.message)]
    Reason(BadRequest),
    /// The URL.
    #[error(transparent)]
    Url(#[from] ConfigurationFault),
    /// No answer.
    #[error(transparent)]
    Unavailable(#[from] GuardUnavailable),
    /// The output is gone.
    #[error("writing the answer")]
    Output(#[from] std::io::Error),
}

/// Carries out an operator's verb and answers the exit code: 0 done, 2 refused or no answer.
///
/// # Errors
/// Nothing was asked, or nothing came back in time; the error says which.
pub async fn control(
    arguments: ControlArgs,
    loaded: &Loaded,
    out: &mut dyn Write,
) -> Result<u8, ControlError> {
    let ControlArgs { reach, json, verb } = arguments;
    let call = order::call(&verb, loaded)?;
    if let Call::Stop(stop) = &call {
        stop.validate().map_err(ControlError::Reason)?;
    }
    let raw = reach.client(loaded)?.send_raw(&call).await?;
    if json {
        out.write_all(&raw.body)?;
        writeln!(out)?;
    } else {
        out.write_all(show::answer(&call, &raw).as_bytes())?;
    }
    Ok(if raw.status == 200 { EXIT_GOOD } else { EXIT_ERROR })
}

impl Reach {
    /// A client of the operator's calls.
    ///
    /// # Errors
    /// The URL or the token is missing or can't be used.
    pub fn client(&self, loaded: &Loaded) -> Result<ControlClient, ControlError> {
        let token = credentials::token(self.token_file.as_deref(), loaded)?;
        Ok(ControlClient::new(self.origin(loaded)?.expose(), token)?)
    }

    /// The guard store's URL.
    ///
    /// # Errors
    /// The configuration is faulty where a client reads it.
    pub fn origin(&self, loaded: &Loaded) -> Result<Hidden, ClientError> {
        self.url.as_ref().map_or_else(|| guard_url(loaded), |url| Ok(Hidden::new(url)))
    }
}

/// An axis as it is typed.
pub(super) fn axis(text: &str) -> Result<Axis, String> {
    let names = || Axis::ALL.map(Axis::as_str).join(", ");
    Axis::named(text).ok_or_else(|| format!("must be one of {}", names()))
}

fn parse_digest(text: &str) -> Result<Digest, InvalidDigest> {
    Digest::parse(text)
}

fn audit_limit(text: &str) -> Result<usize, String> {
    let limit = tidegate_core::decimal::parse::<i64>(text).and_then(|number| usize::try_from(number).ok());
    let fits = limit.filter(|limit| (1..=AUDIT_LIMIT_MAX).contains(limit));
    fits.ok_or_else(|| format!("must be a whole number from 1 to {AUDIT_LIMIT_MAX}"))
}

pub(super) const REACHING: &str = "Reaching the server";

const EXAMPLES: &str = "\
Examples:
  tidegate control state
  tidegate control stop --reason 'card testing on checkout'
  tidegate control resume                           # everything; or name families
  tidegate control reset replay --axis source --identity 192.0.2.7
  tidegate control forget login:alice               # let alice try again
  tidegate control audit --limit 20

Names and addresses are hashed before they are sent; --digest takes what was hashed elsewhere.
Exit codes: 0 done, 2 refused or no answer.";

#[cfg(test)]
mod tests;
