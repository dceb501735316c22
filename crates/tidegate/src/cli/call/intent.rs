//! What a call asks for, as a plain value: names still readable, nothing hashed, nothing sent.

use std::path::PathBuf;

use thiserror::Error;
use tidegate_core::address::Address;

use super::{AlgorithmWord, BudgetWord, CallArgs, CallCommand, WindowWord};
use crate::config::is_private_url;

/// A call that was typed without a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Where it goes.
    pub target: Target,
    /// What is sent.
    pub payload: Payload,
    /// What is printed.
    pub output: Output,
}

/// Where a call goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Where the configuration says.
    Configured,
    /// This guard store; https, or this machine.
    Url(String),
    /// This Unix socket, unsigned.
    Socket(PathBuf),
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The verdict and the windows, for people.
    People,
    /// The server's answer as it came.
    Json,
    /// A curl command; nothing is sent.
    Curl,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// This file's text as it stands.
    File(PathBuf),
    /// One command.
    Intent(Intent),
}

/// One command, with readable names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The family whose budget pays.
    pub family: String,
    /// The operation id; none: a fresh one.
    pub operation: Option<String>,
    /// Whether the caller vouches for source and principal.
    pub good: bool,
    /// The caller's address.
    pub source: Option<Address>,
    /// The caller's account.
    pub principal: Option<String>,
    /// Whose state.
    pub partition: String,
    /// The command.
    pub command: Command,
}

/// A command of a guard store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the command line, which documents them")]
pub enum Command {
    /// `win.hit`; the keys are distinct.
    Hit { windows: Vec<WindowWord>, algorithm: AlgorithmWord, cost: u64 },
    /// `kv.get`
    Get { key: String },
    /// `kv.set`
    Set { key: String, value: String, ttl_ms: Option<u64>, mode: SetMode, keep_ttl: bool },
    /// `kv.del`
    Delete { key: String },
    /// `kv.ttl`
    Ttl { key: String },
    /// `kv.expire`
    Expire { key: String, ttl_ms: u64 },
    /// `kv.incr`
    Increment { key: String, by: i64, ttl_ms: u64 },
    /// `res.reserve`; the keys are distinct and `target` is the place of one of them.
    Reserve { budgets: Vec<BudgetWord>, target: usize, cost: u64 },
    /// `res.refund`
    Refund { receipt: String },
}

/// When a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetMode {
    /// In any case.
    Always,
    /// Only where there is none.
    Nx,
    /// Only where there is one.
    Xx,
}

/// Why a call that the flags allow can't be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// Neither a command nor a file.
    #[error("say what to send: a command such as `win.hit login:alice 5/1m`, or --file")]
    Nothing,
    /// Both a command and a file.
    #[error("--file holds the whole request: it takes no command beside it")]
    Both,
    /// Cleartext to another machine.
    #[error("--url must be https, or http to this machine: a signature does not hide what is sent")]
    Cleartext,
    /// Not an address.
    #[error("--source must be an IP address, such as 192.0.2.7")]
    Source,
    /// Two windows or budgets of one name would be one row.
    #[error("two of the {what} have the key {key:?}; name one of them, such as {example}")]
    SameKey {
        /// Windows or budgets.
        what: &'static str,
        /// The key.
        key: String,
        /// How to name one.
        example: &'static str,
    },
    /// The target is no budget.
    #[error("--target must be the key of one of the budgets: {keys}")]
    Target {
        /// The keys that there are.
        keys: String,
    },
    /// `--keep-ttl` alone says nothing about a record that is not there.
    #[error("--keep-ttl needs --xx, or a --ttl for the case that there is no record")]
    KeepTtl,
    /// Every record has an end.
    #[error("kv.set needs --ttl, such as --ttl 10m")]
    NoTtl,
}

impl CallArgs {
    /// What was asked for.
    ///
    /// # Errors
    /// What does not fit together.
    pub fn into_call(self) -> Result<Call, CallError> {
        let output = match (self.json, self.curl) {
            (true, _) => Output::Json,
            (_, true) => Output::Curl,
            _ => Output::People,
        };
        let target = match (&self.url, &self.socket) {
            (Some(url), _) if is_private_url(url) => Target::Url(url.clone()),
            (Some(_), _) => return Err(CallError::Cleartext),
            (None, Some(path)) => Target::Socket(path.clone()),
            (None, None) => Target::Configured,
        };
        let payload = match (self.file.clone(), self.command.clone()) {
            (Some(_), Some(_)) => return Err(CallError::Both),
            (None, None) => return Err(CallError::Nothing),
            (Some(file), None) => Payload::File(file),
            (None, Some(command)) => Payload::Intent(self.into_intent(command)?),
        };
        Ok(Call { target, payload, output })
    }

    fn into_intent(self, command: CallCommand) -> Result<Intent, CallError> {
        let source = self.source.as_deref().map(Address::parse).transpose().map_err(|_| CallError::Source)?;
        let (partition, command) = split(command)?;
        Ok(Intent {
            family: self.family,
            operation: self.op,
            good: self.good,
            source,
            principal: self.principal,
            partition,
            command,
        })
    }
}

fn split(command: CallCommand) -> Result<(String, Command), CallError> {
    Ok(match command {
        CallCommand::Hit { partition, windows, cost, algorithm } => {
            let keys: Vec<_> = windows.iter().map(|window| window.key.as_str()).collect();
            distinct("windows", &keys, "burst=5/1m")?;
            (partition, Command::Hit { windows, algorithm, cost })
        }
        CallCommand::Get { partition, key } => (partition, Command::Get { key }),
        CallCommand::Set { partition, key, value, ttl, nx, xx, keep_ttl } => {
            match ttl {
                None if keep_ttl && !xx => return Err(CallError::KeepTtl),
                None if !keep_ttl => return Err(CallError::NoTtl),
                _ => {}
            }
            let mode = if nx {
                SetMode::Nx
            } else if xx {
                SetMode::Xx
            } else {
                SetMode::Always
            };
            (partition, Command::Set { key, value, ttl_ms: ttl, mode, keep_ttl })
        }
        CallCommand::Delete { partition, key } => (partition, Command::Delete { key }),
        CallCommand::Ttl { partition, key } => (partition, Command::Ttl { key }),
        CallCommand::Expire { partition, key, ttl } => (partition, Command::Expire { key, ttl_ms: ttl }),
        CallCommand::Increment { partition, key, by, ttl } => {
            (partition, Command::Increment { key, by, ttl_ms: ttl })
        }
        CallCommand::Reserve { partition, budgets, target, cost } => {
            let keys: Vec<_> = budgets.iter().map(|budget| budget.key.as_str()).collect();
            distinct("budgets", &keys, "10/15m:alice")?;
            let target = target_of(&budgets, target.as_deref())?;
            (partition, Command::Reserve { budgets, target, cost })
        }
        CallCommand::Refund { partition, receipt } => (partition, Command::Refund { receipt }),
    })
}

fn distinct(what: &'static str, keys: &[&str], example: &'static str) -> Result<(), CallError> {
    let repeated = keys.iter().enumerate().find(|(index, key)| keys[..*index].contains(key));
    match repeated {
        Some((_, key)) => Err(CallError::SameKey { what, key: (*key).to_owned(), example }),
        None => Ok(()),
    }
}

fn target_of(budgets: &[BudgetWord], target: Option<&str>) -> Result<usize, CallError> {
    let Some(target) = target else {
        return Ok(budgets.len().saturating_sub(1));
    };
    budgets.iter().position(|budget| budget.key == target).ok_or_else(|| CallError::Target {
        keys: budgets.iter().map(|budget| budget.key.as_str()).collect::<Vec<_>>().join(", "),
    })
}
