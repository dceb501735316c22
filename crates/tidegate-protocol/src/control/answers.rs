//! What an operator is answered.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{Action, Axis, Phase};
use crate::{
    identity::Digest,
    name::Family,
    word::{self, Word},
};

/// How everything stands: the answer of state, stop and resume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The store's clock, in ms since the epoch.
    pub now_ms: u64,
    /// From now until the next UTC day.
    pub next_reset_ms: u64,
    /// Whether an operator has stopped everything.
    pub fence: Fence,
    /// Every family that is configured.
    pub families: BTreeMap<Family, FamilyState>,
}

/// Whether an operator has stopped everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// Nothing is admitted.
    pub stopped: bool,
    /// What the operator said.
    pub reason: Option<String>,
    /// Since when, in ms since the epoch; null while nothing is stopped.
    pub since_ms: Option<u64>,
}

/// How a family stands today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilyState {
    /// Commands a UTC day.
    pub budget: u64,
    /// Commands spent.
    pub used: u64,
    /// What everybody may still spend.
    pub open_remaining: u64,
    /// What only known-good identities may still spend.
    pub reserve_remaining: u64,
    /// In one word.
    #[serde(with = "word")]
    pub state: Phase,
    /// The warning at 80 % was given.
    pub warned: bool,
}

/// What operators did, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// The entries.
    pub entries: Vec<AuditEntry>,
}

/// One thing that an operator did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When, in ms since the epoch.
    pub at_ms: u64,
    /// What.
    #[serde(with = "word")]
    pub action: Action,
    /// Of which family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Of which axis.
    #[serde(default, with = "word::optional", skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// Of which identity or partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Digest>,
    /// Of which key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The address that the call came from.
    pub from: String,
}

/// What a reset of quotas answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    /// Always true.
    pub reset: bool,
}

/// What forgetting a partition answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// How many rows were removed.
    pub forgotten: u64,
}

macro_rules! json {
    ($($answer:ty),+) => {
        $(
            impl $answer {
                /// The JSON to answer with.
                #[must_use]
                pub fn to_json(&self) -> Vec<u8> {
                    serde_json::to_vec(self).expect("an answer has string keys and plain values only")
                }

                /// Reads an answer. Fields that a later server may add are passed over.
                ///
                /// # Errors
                /// The bytes are no such answer.
                pub fn from_json(json: &[u8]) -> Result<Self, serde_json::Error> {
                    serde_json::from_slice(json)
                }
            }
        )+
    };
}

json!(State, Audit, Reset, Forgotten);

impl Word for Phase {
    const WHAT: &'static str = "a family's state";
    const NAMES: &'static [(&'static str, Self)] =
        &[("open", Self::Open), ("reserve", Self::Reserve), ("stopped", Self::Stopped)];
}

impl Word for Action {
    const WHAT: &'static str = "an operator's action";
    const NAMES: &'static [(&'static str, Self)] = &[
        (Self::Stop.as_str(), Self::Stop),
        (Self::Resume.as_str(), Self::Resume),
        (Self::FairnessReset.as_str(), Self::FairnessReset),
        (Self::Forget.as_str(), Self::Forget),
    ];
}
