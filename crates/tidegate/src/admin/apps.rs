//! The apps as the pages see them, over the abuse defense.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;
use tidegate_ingress::defense::{self, AbuseView, Defense, PutError, ReplayError, ReplayReport};

use super::shapes::{Abuse, App, PolicyFault, Traffic};

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

    pub(super) const fn of_defense(self) -> defense::Window {
        match self {
            Self::Minute => defense::Window::Minute,
            Self::Hour => defense::Window::Hour,
            Self::Day => defense::Window::Day,
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

/// The defense of this instance; none where no app can be served.
pub(super) struct Apps(pub(super) Option<Defense>);

impl Apps {
    pub(super) fn overview(&self) -> Vec<App> {
        self.0.as_ref().map(|defense| read(&defense.overview())).unwrap_or_default()
    }

    pub(super) fn abuse(&self, app: &str, window: Window) -> Option<Abuse> {
        self.0.as_ref()?.view(app, window.of_defense()).map(|view| read(&view))
    }

    pub(super) fn traffic(&self, app: &str, window: Window) -> Option<Traffic> {
        self.0.as_ref()?.traffic(app, window.of_defense()).map(|view| read(&view))
    }

    /// What the defense answers to a draft. It may take a second, so it runs beside the requests.
    pub(super) async fn replay(&self, app: &str, document: Vec<u8>) -> Result<ReplayReport, PolicyRefused> {
        let defense = self.0.clone().ok_or(PolicyRefused::NoSuchApp)?;
        let app = app.to_owned();
        let replayed = tokio::task::spawn_blocking(move || defense.replay(&app, &document)).await;
        let replayed =
            replayed.map_err(|_| PolicyRefused::Unavailable("the replay did not end".to_owned()))?;
        replayed.map_err(|error| match error {
            ReplayError::NoSuchApp => PolicyRefused::NoSuchApp,
            ReplayError::Invalid(faults) => PolicyRefused::Invalid(faults.into_iter().map(fault).collect()),
            ReplayError::Busy => {
                PolicyRefused::Unavailable("other replays are running; try again in a second".to_owned())
            }
        })
    }

    /// Puts a policy in force, over the version `if_match` if there is one.
    pub(super) async fn put(
        &self,
        app: &str,
        if_match: Option<u64>,
        document: &[u8],
        actor: &str,
    ) -> Result<AbuseView, PolicyRefused> {
        let defense = self.0.as_ref().ok_or(PolicyRefused::NoSuchApp)?;
        defense.put_policy(app, if_match, document, actor).await.map_err(|error| match error {
            PutError::NoSuchApp => PolicyRefused::NoSuchApp,
            PutError::Invalid(faults) => PolicyRefused::Invalid(faults.into_iter().map(fault).collect()),
            PutError::Stale { version } => PolicyRefused::Stale { version },
            PutError::Unavailable(error) => {
                tracing::error!(%error, "a policy was not saved");
                PolicyRefused::Unavailable("the store does not answer".to_owned())
            }
        })
    }
}

fn fault(fault: tidegate_core::policy::PolicyFault) -> PolicyFault {
    PolicyFault { field: fault.field, message: fault.message }
}

/// What the defense tells, in the shape that the documents describe. The two are the same; a test holds them
/// together.
pub(super) fn read<T: DeserializeOwned + Default>(told: &impl Serialize) -> T {
    let read = serde_json::to_value(told).and_then(serde_json::from_value);
    read.unwrap_or_else(|error| {
        tracing::error!(%error, "an answer has another shape than its document says");
        T::default()
    })
}
