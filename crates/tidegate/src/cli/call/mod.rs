//! `tidegate call`: one command to a guard store, with names that people can read.

mod answer;
mod credentials;
mod curl;
mod grammar;
mod intent;
mod send;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tidegate_core::duration;

pub use credentials::{ClientCredentials, ClientError, client_credentials, guard_url};
pub(super) use credentials::{from_here, own_url};
pub use grammar::{BudgetWord, WindowWord};
pub use intent::{Call, CallError, Command, Intent, Output, Payload, SetMode, Target};
pub use send::{SendError, client_at, configured_client, send};

/// What `tidegate call` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_value_name = "COMMAND", subcommand_help_heading = "Commands")]
pub struct CallArgs {
    /// The guard store [default: client.url, or guard.listen of the configuration]
    #[arg(long, global = true, value_name = "URL", help_heading = TRANSPORT)]
    pub url: Option<String>,
    /// A Unix socket of the guard store instead; nothing is signed
    #[arg(long, global = true, value_name = "PATH", help_heading = TRANSPORT, conflicts_with = "url")]
    pub socket: Option<PathBuf>,
    /// Print the server's answer as it came
    #[arg(long, global = true, help_heading = TRANSPORT)]
    pub json: bool,
    /// Print a curl command that sends the same, and send nothing
    #[arg(long, global = true, help_heading = TRANSPORT, conflicts_with = "json")]
    pub curl: bool,
    /// Send this request as it stands, names hashed already
    #[arg(long, value_name = "FILE", help_heading = TRANSPORT)]
    pub file: Option<PathBuf>,
    /// The family whose budget pays
    #[arg(long, global = true, default_value = "proxy", help_heading = IDENTITY)]
    pub family: String,
    /// The operation id; the same id again is answered without doing anything twice [default: a fresh one]
    #[arg(long, global = true, value_name = "ID", help_heading = IDENTITY)]
    pub op: Option<String>,
    /// The caller's address
    #[arg(long, global = true, value_name = "ADDRESS", help_heading = IDENTITY)]
    pub source: Option<String>,
    /// The caller's account
    #[arg(long, global = true, value_name = "NAME", help_heading = IDENTITY)]
    pub principal: Option<String>,
    /// Vouch that source and principal have just succeeded
    #[arg(long, global = true, help_heading = IDENTITY)]
    pub good: bool,
    /// The command.
    #[command(subcommand)]
    pub command: Option<CallCommand>,
}

/// The commands of a guard store.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum CallCommand {
    /// Charge rate windows: all of them or none
    #[command(name = "win.hit")]
    Hit {
        /// Whose windows, such as login:alice
        partition: String,
        /// LIMIT/PERIOD, such as 5/1m; NAME=LIMIT/PERIOD for two of the same period
        #[arg(required = true, num_args = 1..=4, value_name = "WINDOW")]
        windows: Vec<WindowWord>,
        /// How much to charge; 0 only looks
        #[arg(long, default_value = "1", value_parser = grammar::number)]
        cost: u64,
        /// How the windows count
        #[arg(long, value_enum, default_value = "sliding")]
        algorithm: AlgorithmWord,
    },
    /// Read a record
    #[command(name = "kv.get")]
    Get {
        /// Whose record
        partition: String,
        /// Its key
        key: String,
    },
    /// Write a record
    #[command(name = "kv.set")]
    Set {
        /// Whose record
        partition: String,
        /// Its key
        key: String,
        /// What it holds
        value: String,
        /// How long it lives, such as 10m
        #[arg(long, value_parser = duration::parse_ms)]
        ttl: Option<u64>,
        /// Only where there is none
        #[arg(long, conflicts_with = "xx")]
        nx: bool,
        /// Only where there is one
        #[arg(long)]
        xx: bool,
        /// Leave the expiry of the record that is there
        #[arg(long)]
        keep_ttl: bool,
    },
    /// Remove a record
    #[command(name = "kv.del")]
    Delete {
        /// Whose record
        partition: String,
        /// Its key
        key: String,
    },
    /// How long a record still lives
    #[command(name = "kv.ttl")]
    Ttl {
        /// Whose record
        partition: String,
        /// Its key
        key: String,
    },
    /// Let a record live for TTL from now
    #[command(name = "kv.expire")]
    Expire {
        /// Whose record
        partition: String,
        /// Its key
        key: String,
        /// How long it lives from now, such as 10m
        #[arg(value_parser = duration::parse_ms)]
        ttl: u64,
    },
    /// Add to a counter
    #[command(name = "kv.incr")]
    Increment {
        /// Whose counter
        partition: String,
        /// Its key
        key: String,
        /// How much to add
        #[arg(default_value = "1", allow_negative_numbers = true, value_parser = grammar::signed)]
        by: i64,
        /// How long a counter lives that this call creates, such as 1h
        #[arg(long, value_parser = duration::parse_ms)]
        ttl: u64,
    },
    /// Reserve an attempt in budgets: all of them or none
    #[command(name = "res.reserve")]
    Reserve {
        /// Whose budgets, such as login
        partition: String,
        /// LIMIT/PERIOD:KEY, such as 10/15m:203.0.113.7
        #[arg(required = true, num_args = 1..=4, value_name = "BUDGET")]
        budgets: Vec<BudgetWord>,
        /// The budget whose end is the receipt's [default: the last]
        #[arg(long, value_name = "KEY")]
        target: Option<String>,
        /// How much to reserve; 0 only looks
        #[arg(long, default_value = "1", value_parser = grammar::number)]
        cost: u64,
    },
    /// Give a reservation back
    #[command(name = "res.refund")]
    Refund {
        /// Whose budgets
        partition: String,
        /// What res.reserve answered
        receipt: String,
    },
}

/// How a window counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AlgorithmWord {
    /// Two buckets, the older one weighed by what is left of it
    Sliding,
    /// One bucket a period
    Fixed,
    /// A token bucket that refills evenly
    Bucket,
}

const TRANSPORT: &str = "Sending";
const IDENTITY: &str = "Request";

const EXAMPLES: &str = "\
Examples:
  tidegate call win.hit login:alice 5/1m 20/1h      # five a minute and twenty an hour
  tidegate call win.hit api:alice burst=20/1m 100/1m --algorithm bucket --cost 3
  tidegate call kv.set job:42 owner me --ttl 10m --nx
  tidegate call kv.incr visits today --ttl 1d
  tidegate call res.reserve login 10/15m:203.0.113.7 20/1h:alice
  tidegate call win.hit login:alice 5/1m --curl     # the same for curl

Partitions, keys and identities are hashed before they are sent. Spans are whole numbers with ms, s, m, h or d.
Exit codes: 0 done or allowed, 1 denied, not written or not refunded, 2 no answer.";

#[cfg(test)]
mod tests;
