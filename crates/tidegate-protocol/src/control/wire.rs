//! The JSON of an operator's calls, read as strictly as a request's.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Deserializer};

use super::Axis;
use crate::{
    identity::Digest,
    name::Family,
    strict::{object, present},
    word,
};

pub(super) struct Stop(pub(super) super::Stop);
pub(super) struct Resume(pub(super) super::Resume);
pub(super) struct FairnessReset(pub(super) super::FairnessReset);
pub(super) struct Forget(pub(super) super::Forget);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopFields {
    #[serde(default, deserialize_with = "present")]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResumeFields {
    #[serde(default, deserialize_with = "present")]
    families: Option<Vec<Family>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FairnessResetFields {
    family: Family,
    #[serde(default, deserialize_with = "word::optional::deserialize")]
    axis: Option<Axis>,
    #[serde(default, deserialize_with = "present")]
    identity: Option<Digest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForgetFields {
    partition: Digest,
    #[serde(default, deserialize_with = "present")]
    key: Option<Digest>,
}

impl<'de> Deserialize<'de> for Stop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StopFields { reason } = object(deserializer)?;
        Ok(Self(super::Stop { reason }))
    }
}

impl<'de> Deserialize<'de> for Resume {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ResumeFields { families } = object(deserializer)?;
        Ok(Self(super::Resume { families }))
    }
}

impl<'de> Deserialize<'de> for FairnessReset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let FairnessResetFields { family, axis, identity } = object(deserializer)?;
        Ok(Self(super::FairnessReset { family, axis, identity }))
    }
}

impl<'de> Deserialize<'de> for Forget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ForgetFields { partition, key } = object(deserializer)?;
        Ok(Self(super::Forget { partition, key }))
    }
}
