//! Bounded, staged admission for services that take public HTTP and UDP.
//!
//! Every request and datagram is hostile until shown otherwise. Stage one charges what is known before anything
//! is parsed: the whole service, the source's network, the operation. Stage two charges what is known after
//! authentication: tenant, caller, resource; or capability, role, exchange. Each decision charges all of its
//! budgets or none, and all that is kept is bounded by the [`Profile`].

pub mod body;
mod clock;
mod http;
mod identity;
pub mod layer;
mod metrics;
mod operation;
pub mod profile;
mod refusal;
mod stage_two;
mod tracker;
mod udp;

#[cfg(feature = "axum")]
pub use self::stage_two::NoAdmission;
pub use self::{
    clock::Clock,
    http::{HttpAdmission, Lease, Scope},
    identity::{Fingerprint, Seed, SourcePrefix},
    layer::{AdmissionLayer, Peer},
    operation::Operation,
    profile::Profile,
    refusal::{BodyTooLarge, Cause, Dimension, RateLimited},
    stage_two::{StageTwo, Tunnel},
    udp::{Allowance, Sender, UdpGate, Unverified},
};

/// The documents' examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/admission.md")]
mod documents {}
