//! The command line: verbs, the flags that all of them share, and those verbs that need no server.

mod api;
pub mod apps;
pub mod call;
pub mod canary;
pub mod control;
mod demo;
pub mod drill;
mod keygen;
mod store;
pub mod token;
mod token_file;
mod verbs;
mod visitors;
mod words;

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::Sources;

pub use api::ApiError;
pub use demo::{DemoArgs, DemoError, demo};
pub use keygen::KeygenArgs;
pub use store::store;
pub use token_file::TokenFileError;
pub(crate) use verbs::consequence;
pub use verbs::{check, completions, config};
pub(crate) use words::Utc;

/// What was typed.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    about = "Abuse protection that you run yourself",
    long_about = "Abuse protection that you run yourself: rate windows, replay fences, attempt reservations and \
                  daily budgets that services share, in one binary.",
    after_help = EXAMPLES,
    after_long_help = AFTER_LONG_HELP,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What every verb takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The flags that every verb takes. They win over the environment and the file.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// The configuration file [default: ./tidegate.toml where it exists]
    #[arg(long, global = true, value_name = "FILE", env = "TIDEGATE_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// The data directory (store.path)
    #[arg(long, global = true, value_name = "DIRECTORY")]
    pub data_dir: Option<String>,
    /// How log lines are written (log.format)
    #[arg(long, global = true, value_name = "FORMAT", value_enum)]
    pub log_format: Option<LogFormatName>,
    /// What is logged (log.level): error, warn, info, debug, trace, off, or target=level
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

/// The values of `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormatName {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run the reverse proxy, the guard store and the dashboard
    Serve {
        /// Take the listening sockets of the process that serves from the same data directory, which then answers
        /// what it has accepted and ends: a restart that refuses nobody
        #[arg(long)]
        take_over: bool,
    },
    /// Name every fault of the configuration; exits with 0 only where there is none
    Check {
        /// Print one JSON object: {"faults": [{"key", "place", "line", "message", "consequence"}]}
        #[arg(long)]
        json: bool,
    },
    /// Print the effective configuration, secrets redacted, and where each value comes from
    Config {
        /// Print every key with its meaning and its default instead
        #[arg(long)]
        reference: bool,
        /// Print one JSON object, by section and key, secrets redacted
        #[arg(long, conflicts_with = "reference")]
        json: bool,
    },
    /// Send one command to a guard store; exits with 0 allowed, 1 denied, 2 no answer
    Call(Box<call::CallArgs>),
    /// Stop and resume everything, see budgets, let somebody in again: the operator's calls
    Control(Box<control::ControlArgs>),
    /// The apps behind the proxy: what their abuse defense counts, blocks, and would block
    Apps(Box<apps::AppsArgs>),
    /// Who may use the dashboard and the admin API: make, list and revoke tokens
    Token(token::TokenArgs),
    /// Try out what an attack, a stop or a restart would do; exits with 0 only if all is as it should be
    Drill(Box<drill::DrillArgs>),
    /// Measure a running guard store: latency, row writes and disk flushes, with a bounded number of RPCs
    Canary(canary::CanaryArgs),
    /// Print a fresh secret
    Keygen(KeygenArgs),
    /// Watch it at work: a login under attack, and an app with visitors, one of them greedy
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Make or upgrade the tables of a store that has some: PostgreSQL, SQLite, MySQL
    Migrate,
    /// Look after the embedded store
    #[command(subcommand)]
    Store(StoreVerb),
}

/// What to do with the embedded store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum StoreVerb {
    /// Read the whole log and say whether it is sound; changes nothing
    Verify,
    /// Cut damage out of the log, keeping what was before it
    Repair,
}

impl Global {
    /// The sources of the configuration: the file, `environment`, and these flags over both.
    #[must_use]
    pub fn sources(&self, environment: Vec<(OsString, OsString)>) -> Sources {
        let mut sources = Sources::gather(self.config.as_deref(), environment);
        let format = self.log_format.map(|format| match format {
            LogFormatName::Text => "text".to_owned(),
            LogFormatName::Json => "json".to_owned(),
        });
        let flags = [
            ("store.path", self.data_dir.clone(), "--data-dir"),
            ("log.format", format, "--log-format"),
            ("log.level", self.log_level.clone(), "--log-level"),
        ];
        for (key, text, flag) in flags {
            if let Some(text) = text {
                sources.flag(key, text, flag);
            }
        }
        sources
    }
}

const EXAMPLES: &str = "\
Examples:
  tidegate serve                                    # start with no configuration at all
  tidegate call win.hit login:alice 5/1m            # may alice try once more?
  tidegate call kv.set job:42 owner me --ttl 10m --nx
  tidegate control state                            # the fence, and every family's budget
  tidegate apps list                                # the apps behind the proxy, and who hits them too hard
  tidegate drill prefix-rotation                    # would your shares stop an attacker with a /48?
  tidegate check --config /etc/tidegate.toml        # before a restart
  tidegate config --reference                       # every key, with its default";

const AFTER_LONG_HELP: &str = "\
Examples:
  tidegate serve
      Starts with no configuration at all: state in ./tidegate-data, listeners on this machine only, secrets made
      at the first start.
  tidegate call win.hit login:alice 5/1m 20/1h
      May alice try once more? Five times a minute and twenty times an hour. Names are hashed before they are sent.
  tidegate call kv.set job:42 owner me --ttl 10m --nx
      Claims a job for ten minutes.
  tidegate control stop --reason 'card testing'
      Stops everything until `tidegate control resume`; `tidegate control --help` has the operator's other verbs.
  tidegate drill prefix-rotation
      Simulates an attack on the configured budgets and shares. Nothing is sent.
  tidegate keygen --env >> .env
      Makes secrets for an installation without a data directory.
  tidegate check --config /etc/tidegate.toml
      Names every fault, with its key and line, before a restart would.
  tidegate config --reference
      Every key with its meaning, its default and its environment variable.

Environment:
  TIDEGATE_<SECTION>__<KEY>   sets a key over the file, such as TIDEGATE_GUARD__SECRETS (comma lists for lists)
  TIDEGATE_CLIENT_<KEY>       the same for `call` and for applications, such as TIDEGATE_CLIENT_URL
  TIDEGATE_CONFIG             the configuration file

Exit codes:
  0 done or allowed, 1 denied or not as it should be, 2 an error or a wrong flag, 78 a faulty configuration";

#[cfg(test)]
mod tests;
