//! What an operator asks for.

use alloc::{format, string::String, vec::Vec};

use serde::Serialize;
use tidegate_core::admission::REASON_BYTES_MAX;

use super::{Axis, wire};
use crate::{BadRequest, identity::Digest, name::Family, request::read_json, word};

/// Stop everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Stop {
    /// Why: at most 256 bytes, no control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Take the fence down, and let families go on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Resume {
    /// Whose stop and usage are cleared; none: everybody's. An empty list is nobody's, and takes down the fence alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub families: Option<Vec<Family>>,
}

/// Clear quotas of a family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FairnessReset {
    /// Whose.
    pub family: Family,
    /// Of which axis; none: of all.
    #[serde(with = "word::optional", skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// Of which identity; none: of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Digest>,
}

/// Remove the rows of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Forget {
    /// Which.
    pub partition: Digest,
    /// Of which key; none: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
}

impl Stop {
    /// Reads the body of a call; an empty one asks for nothing more.
    ///
    /// # Errors
    /// The body says more or less than it may. The error names the place.
    pub fn from_json(body: &[u8]) -> Result<Self, BadRequest> {
        let stop = if body.is_empty() { Self::default() } else { read_json::<wire::Stop>(body)?.0 };
        stop.validate()?;
        Ok(stop)
    }

    /// Whether the reason is within its bounds.
    ///
    /// # Errors
    /// It is not.
    pub fn validate(&self) -> Result<(), BadRequest> {
        let clean = |reason: &String| {
            !reason.is_empty() && reason.len() <= REASON_BYTES_MAX && !reason.contains(char::is_control)
        };
        if self.reason.as_ref().is_none_or(clean) {
            return Ok(());
        }
        let message = format!("must have 1 to {REASON_BYTES_MAX} bytes and no control characters");
        Err(BadRequest { place: "reason".into(), message })
    }
}

macro_rules! read_from_json {
    ($($ask:ident $(or $empty:expr)?),+) => {
        $(
            impl $ask {
                /// Reads the body of a call.
                ///
                /// # Errors
                /// The body says more or less than it may. The error names the place.
                pub fn from_json(body: &[u8]) -> Result<Self, BadRequest> {
                    $(
                        if body.is_empty() {
                            return Ok($empty);
                        }
                    )?
                    Ok(read_json::<wire::$ask>(body)?.0)
                }
            }
        )+
    };
}

read_from_json!(Resume or Self::default(), FairnessReset, Forget);
