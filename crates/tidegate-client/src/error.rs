//! Why there is no answer: one error, with its cause.

use thiserror::Error;
use tidegate_protocol::response::{Axis, ErrorBody, ErrorCode, StopReason};

/// The guard store gave no answer to act on. Callers apply their fail mode.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the guard store is unavailable: {cause}")]
pub struct GuardUnavailable {
    /// Why.
    pub cause: Cause,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Cause {
    /// Nothing came in time; the request may have been executed.
    #[error("no answer in time")]
    TimedOut,
    /// The connection could not be made or broke; the request may have been executed.
    #[error("no connection: {0}")]
    Transport(String),
    /// What answered is no guard store.
    #[error("what answered ({status}) is no guard store")]
    NotAGuard {
        /// The HTTP status.
        status: u16,
    },
    /// The request is out of bounds, here or there; nothing was executed.
    #[error("the request is refused: {0}")]
    BadRequest(String),
    /// The server does not know the secret, or the clocks differ; nothing was executed.
    #[error("not authenticated: {0}")]
    Unauthenticated(String),
    /// The operation id is known with other commands; nothing was executed.
    #[error("operation conflict: {0}")]
    Conflict(String),
    /// An identity's quota is spent; nothing was executed.
    #[error("limited: {message}")]
    Limited {
        /// Whose.
        axis: Option<Axis>,
        /// In words.
        message: String,
        /// How long to wait, in ms.
        retry_after_ms: Option<u64>,
    },
    /// An operator or a spent budget stops the family; nothing was executed.
    #[error("stopped: {message}")]
    Stopped {
        /// Which of them.
        reason: Option<StopReason>,
        /// In words.
        message: String,
        /// How long to wait, in ms.
        retry_after_ms: Option<u64>,
    },
    /// The server can't answer now, or too many calls of this client are under way.
    #[error("the server can't answer: {0}")]
    Unavailable(String),
    /// The configuration is incomplete or invalid; nothing was sent.
    #[error("the configuration of the guard store's client: {0}")]
    Configuration(String),
    /// Switched off by configuration; nothing was sent.
    #[error("the guard store is switched off")]
    Off,
}

/// A [`Cause`] in one word, for metrics and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// [`Cause::TimedOut`].
    Timeout,
    /// [`Cause::Transport`] and [`Cause::NotAGuard`].
    Transport,
    /// [`Cause::Unauthenticated`].
    Authentication,
    /// [`Cause::Configuration`].
    Configuration,
    /// [`Cause::BadRequest`] and [`Cause::Conflict`].
    Request,
    /// [`Cause::Stopped`].
    Stopped,
    /// [`Cause::Limited`].
    Limited,
    /// [`Cause::Unavailable`].
    Unavailable,
    /// [`Cause::Off`].
    Off,
}

impl Reason {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::Authentication => "authentication",
            Self::Configuration => "configuration",
            Self::Request => "request",
            Self::Stopped => "stopped",
            Self::Limited => "limited",
            Self::Unavailable => "unavailable",
            Self::Off => "off",
        }
    }
}

impl GuardUnavailable {
    /// The cause in one word.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match &self.cause {
            Cause::TimedOut => Reason::Timeout,
            Cause::Transport(_) | Cause::NotAGuard { .. } => Reason::Transport,
            Cause::Unauthenticated(_) => Reason::Authentication,
            Cause::Configuration(_) => Reason::Configuration,
            Cause::BadRequest(_) | Cause::Conflict(_) => Reason::Request,
            Cause::Stopped { .. } => Reason::Stopped,
            Cause::Limited { .. } => Reason::Limited,
            Cause::Unavailable(_) => Reason::Unavailable,
            Cause::Off => Reason::Off,
        }
    }
}

/// A client can't be made of this.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigurationFault {
    /// Not a URL with a scheme and a host, or one with a path, a query or a user.
    #[error("the URL must be an origin, such as https://guard.example:8787")]
    Url,
    /// Cleartext that would leave this machine.
    #[error("the URL must be https, or http to this machine: others must not read what is sent")]
    Cleartext,
    /// The system has no certificates to trust.
    #[error("no trusted certificates: {0}")]
    Certificates(String),
}

impl From<Cause> for GuardUnavailable {
    fn from(cause: Cause) -> Self {
        Self { cause }
    }
}

impl Cause {
    pub(crate) fn of_refusal(refusal: ErrorBody) -> Self {
        let error = refusal.error;
        match error.code {
            ErrorCode::BadRequest | ErrorCode::BodyTooLarge => Self::BadRequest(error.message),
            ErrorCode::Unauthenticated => Self::Unauthenticated(error.message),
            ErrorCode::OperationConflict => Self::Conflict(error.message),
            ErrorCode::GuardLimited => Self::Limited {
                axis: error.axis,
                message: error.message,
                retry_after_ms: error.retry_after_ms,
            },
            ErrorCode::GuardStopped => Self::Stopped {
                reason: error.reason,
                message: error.message,
                retry_after_ms: error.retry_after_ms,
            },
            ErrorCode::GuardUnavailable => Self::Unavailable(error.message),
        }
    }
}
