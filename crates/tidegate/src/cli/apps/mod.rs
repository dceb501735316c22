//! `tidegate apps`: the apps behind the proxy, and their abuse defense.

mod change;
mod show;

use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand, ValueEnum};
use http::Method;
use serde_json::Value;

use self::change::Change;
use super::api::{Answered, Api, ApiError, ReachArgs};
use crate::{
    admin::{
        path_part,
        shapes::{Abuse, Apps, Replay},
    },
    config::Loaded,
    process::{EXIT_DENIED, EXIT_GOOD},
};

/// What `tidegate apps` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct AppsArgs {
    /// Where, and as whom.
    #[command(flatten)]
    pub reach: ReachArgs,
    /// What to do.
    #[command(subcommand)]
    pub verb: AppsVerb,
}

/// What to do with apps.
#[derive(Debug, Clone, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one in a run")]
pub enum AppsVerb {
    /// Every app, how its defense stands, and what it did in the last hour
    List,
    /// The abuse defense of an app
    #[command(subcommand)]
    Abuse(AbuseVerb),
}

/// What to do with an app's abuse defense.
#[derive(Debug, Clone, Subcommand)]
pub enum AbuseVerb {
    /// Tell the policy, how it stands and what it counted
    Get {
        /// The app
        app: String,
        /// Of the last minute, hour or day
        #[arg(long, value_enum, default_value_t = WindowName::Hour)]
        window: WindowName,
    },
    /// Change the policy; what is not named stays
    Set {
        /// The app
        app: String,
        /// What becomes of it
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Replay the policy, show what it would have blocked, and enforce it if you say so
    Enforce {
        /// The app
        app: String,
        /// Enforce without asking
        #[arg(long)]
        yes: bool,
    },
    /// Tell what the policy, or a draft of it, would have blocked of the traffic that has just been; changes nothing
    Replay {
        /// The app
        app: String,
        /// What the draft differs in
        #[command(flatten)]
        change: ChangeArgs,
    },
}

/// The values of `--window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WindowName {
    /// The last minute
    Minute,
    /// The last hour
    Hour,
    /// The last day
    Day,
}

/// How a policy is changed.
#[derive(Debug, Clone, Default, Args)]
pub struct ChangeArgs {
    /// Begin with the policy in this file (JSON; - for the standard input) instead of the one in force
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// off or log_only; `enforce` is a verb of its own
    #[arg(long, value_parser = ["off", "log_only"])]
    pub mode: Option<String>,
    /// Requests a second for each client; 0 turns the limit off
    #[arg(long, value_name = "N")]
    pub rps: Option<f64>,
    /// The most tokens that a client can have
    #[arg(long, value_name = "N")]
    pub burst: Option<u64>,
    /// Refuse this network too
    #[arg(long, value_name = "NETWORK")]
    pub deny_cidr: Vec<String>,
    /// Refuse this User-Agent too: a part of it, or re: and a pattern
    #[arg(long, value_name = "TEXT")]
    pub deny_user_agent: Vec<String>,
    /// Refuse requests without a User-Agent
    #[arg(long, value_name = "BOOL")]
    pub deny_missing_user_agent: Option<bool>,
    /// Never refuse this network
    #[arg(long, value_name = "NETWORK")]
    pub allow_cidr: Vec<String>,
    /// Take this network out of both lists
    #[arg(long, value_name = "NETWORK")]
    pub remove_cidr: Vec<String>,
    /// Take this User-Agent out of the list
    #[arg(long, value_name = "TEXT")]
    pub remove_user_agent: Vec<String>,
    /// Which IPv6 prefix is one client
    #[arg(long, value_name = "BITS")]
    pub ipv6_prefix: Option<u8>,
}

const EXAMPLES: &str = "\
Examples:
  tidegate apps list
  tidegate apps abuse get shop
  tidegate apps abuse set shop --rps 5 --burst 20              # counts what it would block, blocks nothing
  tidegate apps abuse replay shop --rps 2 --burst 10           # what would a stricter one have blocked?
  tidegate apps abuse set shop --deny-cidr 203.0.113.0/24
  tidegate apps abuse enforce shop                             # replays first, then asks
  tidegate apps abuse set shop --mode log_only                 # and back

Exit codes: 0 done, 1 not enforced, 2 refused or no answer.";

/// Carries out the verb and answers the exit code.
///
/// # Errors
/// Nothing was asked, or the server refused or did not answer.
pub async fn apps(arguments: AppsArgs, loaded: &Loaded, out: &mut dyn Write) -> Result<u8, ApiError> {
    let AppsArgs { reach, verb } = arguments;
    let api = Api::new(&reach, loaded)?;
    let asked = Asked { api, json: reach.json };
    match verb {
        AppsVerb::List => {
            let answered = asked.api.get("/apps").await?;
            asked.tell(&answered, out, |answered| Ok(show::apps(&answered.read::<Apps>()?)))?;
        }
        AppsVerb::Abuse(AbuseVerb::Get { app, window }) => {
            let answered = asked.api.get(&format!("{}?window={}", path(&app), window.name())).await?;
            asked.tell_abuse(&answered, out)?;
        }
        AppsVerb::Abuse(AbuseVerb::Set { app, change }) => {
            let (version, policy) = asked.changed(&app, change).await?;
            if policy["mode"] == "enforce" && asked.in_force(&app).await?.1["mode"] != "enforce" {
                let message =
                    "this would begin to enforce; that is `tidegate apps abuse enforce`, which replays first";
                return Err(ApiError::Given(message.to_owned()));
            }
            asked.put(&app, version, &policy, out).await?;
        }
        AppsVerb::Abuse(AbuseVerb::Replay { app, change }) => {
            let (_, policy) = asked.changed(&app, change).await?;
            let answered = asked.replay(&app, &policy).await?;
            asked.tell(&answered, out, |answered| Ok(show::replay(&answered.read::<Replay>()?)))?;
        }
        AppsVerb::Abuse(AbuseVerb::Enforce { app, yes }) => return asked.enforce(&app, yes, out).await,
    }
    Ok(EXIT_GOOD)
}

struct Asked {
    api: Api,
    json: bool,
}

impl Asked {
    /// The policy in force and its version.
    async fn in_force(&self, app: &str) -> Result<(u64, Value), ApiError> {
        let abuse: Value = self.api.get(&path(app)).await?.read()?;
        Ok((abuse["version"].as_u64().unwrap_or_default(), abuse["policy"].clone()))
    }

    /// The policy in force with the change, and the version it was made from.
    async fn changed(&self, app: &str, change: ChangeArgs) -> Result<(u64, Value), ApiError> {
        let (version, policy) = self.in_force(app).await?;
        let policy = Change::new(change).apply(policy).map_err(ApiError::Given)?;
        Ok((version, policy))
    }

    async fn replay(&self, app: &str, policy: &Value) -> Result<Answered, ApiError> {
        self.api.call(Method::POST, &format!("{}/replay", path(app)), None, Some(policy)).await
    }

    async fn put(
        &self,
        app: &str,
        version: u64,
        policy: &Value,
        out: &mut dyn Write,
    ) -> Result<(), ApiError> {
        let answered = self.api.call(Method::PUT, &path(app), Some(version), Some(policy)).await?;
        self.tell_abuse(&answered, out)
    }

    async fn enforce(&self, app: &str, yes: bool, out: &mut dyn Write) -> Result<u8, ApiError> {
        let (version, mut policy) = self.in_force(app).await?;
        let replayed = self.replay(app, &policy).await?;
        if !self.json {
            out.write_all(show::replay(&replayed.read::<Replay>()?).as_bytes())?;
        }
        let enforces = yes || if self.json { asks(app, &mut io::stderr())? } else { asks(app, out)? };
        policy["mode"] = Value::from("enforce");
        let answered = match enforces {
            true => self.api.call(Method::PUT, &path(app), Some(version), Some(&policy)).await?,
            false => self.api.get(&path(app)).await?,
        };
        match (self.json, enforces) {
            // One document: how the defense stands now, and what was shown before.
            (true, _) => {
                let mut told: Value = answered.read()?;
                told["replay"] = replayed.read()?;
                writeln!(out, "{told}")?;
            }
            (false, true) => self.tell_abuse(&answered, out)?,
            (false, false) => writeln!(out, "Not enforced.")?,
        }
        Ok(if enforces { EXIT_GOOD } else { EXIT_DENIED })
    }

    fn tell_abuse(&self, answered: &Answered, out: &mut dyn Write) -> Result<(), ApiError> {
        self.tell(answered, out, |answered| Ok(show::abuse(&answered.read::<Abuse>()?)))
    }

    fn tell(
        &self,
        answered: &Answered,
        out: &mut dyn Write,
        text: impl FnOnce(&Answered) -> Result<String, ApiError>,
    ) -> Result<(), ApiError> {
        if self.json {
            return answered.print(out);
        }
        out.write_all(text(answered)?.as_bytes())?;
        Ok(())
    }
}

/// Whether somebody at the terminal says yes; nobody is there to say it where there is no terminal.
fn asks(app: &str, out: &mut dyn Write) -> Result<bool, ApiError> {
    if !io::stdin().is_terminal() {
        let message = "nobody is here to ask: give --yes to enforce";
        return Err(ApiError::Given(message.to_owned()));
    }
    write!(out, "\nEnforce this for {app}? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn path(app: &str) -> String {
    format!("/apps/{}/abuse", path_part(app))
}

impl WindowName {
    const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}
