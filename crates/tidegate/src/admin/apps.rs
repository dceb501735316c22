//! The apps as the pages see them, over the abuse defense.

use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;

use super::shapes::{Abuse, App, Policy, PolicyFault, Replay, Traffic};

/// How far back numbers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Window {
    Minute,
    #[default]
    Hour,
    Day,
}

impl Window {
    pub(super) const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Minute => "Minute",
            Self::Hour => "Hour",
            Self::Day => "Day",
        }
    }
}

/// Why a policy was not taken or not replayed. The one in force stays.
#[derive(Debug, Error)]
pub(super) enum PolicyRefused {
    #[error("there is no app of this name")]
    NoSuchApp,
    #[error("the policy has faults")]
    Invalid(Vec<PolicyFault>),
    #[error("version {version} is in force")]
    Stale { version: u64 },
    #[error("{0}")]
    Unavailable(String),
}

pub(super) struct Apps;

impl Apps {
    pub(super) fn overview(&self) -> Vec<App> {
        Vec::new()
    }

    pub(super) fn abuse(&self, _app: &str, _window: Window) -> Option<Abuse> {
        None
    }

    pub(super) fn traffic(&self, _app: &str, _window: Window) -> Option<Traffic> {
        None
    }

    pub(super) async fn replay(&self, _app: &str, _policy: &Policy) -> Result<Replay, PolicyRefused> {
        Err(PolicyRefused::NoSuchApp)
    }

    pub(super) async fn put(
        &self,
        _app: &str,
        _if_match: Option<u64>,
        _policy: &Policy,
        _actor: &str,
    ) -> Result<Abuse, PolicyRefused> {
        Err(PolicyRefused::NoSuchApp)
    }
}
