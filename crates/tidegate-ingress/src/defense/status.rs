//! The condition of an app's policy, and what it means.

use serde::Serialize;
use tidegate_core::policy::Mode;

use super::app::{InForce, Rules};

/// How it stands with an app's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// In a word.
    pub condition: Condition,
    /// In a sentence.
    pub message: String,
}

/// The conditions of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Condition {
    /// It refuses.
    Enforcing,
    /// It counts and refuses nothing.
    LogOnly,
    /// It looks at nothing.
    Off,
    /// The app is not reached through this instance.
    NoRoutes,
    /// A proxy in front hides whose requests they are.
    #[serde(rename = "ClientIPHidden")]
    ClientIpHidden,
    /// The stored policy can't be used.
    InvalidPolicy,
    /// It is not in force everywhere yet.
    Pending,
}

impl Condition {
    /// Its name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforcing => "Enforcing",
            Self::LogOnly => "LogOnly",
            Self::Off => "Off",
            Self::NoRoutes => "NoRoutes",
            Self::ClientIpHidden => "ClientIPHidden",
            Self::InvalidPolicy => "InvalidPolicy",
            Self::Pending => "Pending",
        }
    }
}

/// What besides the policy says how it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// Why the store can't be read, if it can't.
    pub(super) store_fault: Option<&'a str>,
    pub(super) routed: bool,
    pub(super) hides_clients: bool,
    /// Whether other instances may not have the policy yet.
    pub(super) spreading: bool,
}

pub(super) fn status(in_force: &InForce, surroundings: Surroundings<'_>) -> Status {
    let (condition, message) = match &in_force.policy {
        Rules::Unknown => {
            let fault = surroundings.store_fault.map(|fault| format!(": {fault}")).unwrap_or_default();
            let without = "Requests are served without a check until it can.";
            (Condition::Pending, format!("The policy store can't be read{fault}. {without}"))
        }
        Rules::Invalid(fault) => (
            Condition::InvalidPolicy,
            format!("Requests are served without a check: {fault}. Save a policy to replace it."),
        ),
        Rules::Policy(policy) => {
            let (condition, message) = of_policy(policy.mode(), surroundings);
            (condition, message.to_owned())
        }
    };
    Status { condition, message }
}

fn of_policy(mode: Mode, surroundings: Surroundings<'_>) -> (Condition, &'static str) {
    match mode {
        _ if !surroundings.routed => (
            Condition::NoRoutes,
            "No request reaches the app through this instance: it has no domain, or it is stopped.",
        ),
        _ if surroundings.spreading => {
            (Condition::Pending, "The policy is saved; other instances take it up within seconds.")
        }
        Mode::Off => (Condition::Off, "The policy looks at nothing."),
        _ if surroundings.hides_clients => (
            Condition::ClientIpHidden,
            "Nearly all requests come from a few peers with a forwarded header, and none of the peers is \
             trusted: every visitor shares one limit. Name the proxy in ingress.trusted_proxies.",
        ),
        Mode::LogOnly => (Condition::LogOnly, "The policy counts what it would refuse, and refuses nothing."),
        Mode::Enforce => (Condition::Enforcing, "The policy refuses requests."),
    }
}

#[cfg(test)]
mod tests;
