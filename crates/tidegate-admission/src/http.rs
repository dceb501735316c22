//! Admission of requests: who holds what, and until when.

use std::{fmt, net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::gauge::ConstGauge,
    registry::Registry,
};
use tidegate_core::{
    address::Address,
    forwarded::{self, Source},
    tracker::{Key, Limit},
};

use crate::{
    clock::Clock,
    identity::{Fingerprint, Seed, SourcePrefix},
    metrics::{Metrics, Stage},
    operation::{Class, Operation},
    profile::{HttpProfile, InvalidProfile, Profile, Trust},
    refusal::{BodyTooLarge, Dimension, RateLimited},
    tracker::{Charge, Decision, Size, Tracker},
};

/// The budgets and leases of a service's requests. Clones share them.
#[derive(Debug, Clone)]
pub struct HttpAdmission(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    profile: HttpProfile,
    trust: Trust,
    tracker: Tracker,
    seed: Seed,
    clock: Clock,
    metrics: Metrics,
}

/// Whom and what a request turned out to concern. Give everything that is known, and give the resource as it was
/// asked for, before looking whether it is there: so a refusal tells nothing of it.
#[derive(Clone, Copy, Default)]
pub struct Scope<'a> {
    tenant: Option<&'a [u8]>,
    caller: Option<Caller<'a>>,
    resource: Option<&'a [u8]>,
}

#[derive(Clone, Copy)]
enum Caller<'a> {
    Principal(&'a [u8]),
    Capability(Fingerprint),
}

/// An admitted request. It holds a lease of everything it was charged with until it is dropped.
#[must_use = "dropping it ends the request's leases"]
pub struct Lease {
    admission: HttpAdmission,
    operation: Operation,
    source: Key,
    /// Tenant, caller and resource, as far as they were charged.
    scope: [Option<Key>; SCOPE_DIMENSIONS],
}

const SCOPE_DIMENSIONS: usize = 3;

impl HttpAdmission {
    /// Budgets of which nothing is spent.
    ///
    /// # Errors
    /// The profile has faults.
    pub fn new(profile: &Profile, seed: Seed, clock: Clock) -> Result<Self, InvalidProfile> {
        profile.validate()?;
        let metrics = Metrics::default();
        let tracker = Tracker::new(Size::of(profile.http.bounds, FIXED_ROWS), metrics.admitted());
        let trust = profile.client_address.trust()?;
        let profile = profile.http.clone();
        Ok(Self(Arc::new(Inner { profile, trust, tracker, seed, clock, metrics })))
    }

    /// Stage one, before anything is parsed: charges the global, source-prefix and operation budgets, and holds
    /// a lease of each.
    ///
    /// # Errors
    /// One of them has no room. Nothing was charged.
    pub fn stage_one(&self, source: SourcePrefix, operation: Operation) -> Result<Lease, RateLimited> {
        let inner = &*self.0;
        let (dimension, limit) = match operation.class() {
            Class::Health => (Dimension::HealthSourcePrefix, inner.profile.health_source_prefix),
            Class::Critical | Class::Optional => (Dimension::SourcePrefix, inner.profile.source_prefix),
        };
        let key = inner.seed.key(dimension, None, source.bytes());
        let global = Charge { place: GLOBAL, limit: inner.profile.global, dimension: Dimension::Global };
        let of_operation = Charge {
            place: 1 + operation.place(),
            limit: inner.limit_of(operation.class()),
            dimension: Dimension::Operation,
        };
        let fixed = [global, of_operation];
        let decision = Decision {
            fixed: if operation.class() == Class::Health { &fixed[1..] } else { &fixed },
            keyed: &[Charge { place: key, limit, dimension }],
            ..operation.decision(Stage::One)
        };
        inner.decide(&decision)?;
        Ok(Lease { admission: self.clone(), operation, source: key, scope: [None; SCOPE_DIMENSIONS] })
    }

    /// The largest body that is read, in bytes.
    #[must_use]
    pub fn body_bytes_max(&self) -> u64 {
        self.0.profile.body_bytes_max
    }

    /// Identities that are counted at present.
    #[must_use]
    pub fn tracked_keys(&self) -> usize {
        self.0.tracker.tracked(self.0.clock.now_ms())
    }

    /// Requests under way, health probes apart.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.0.tracker.active(GLOBAL)
    }

    /// Bytes of memory that the tracked keys take up.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.tracker.bytes()
    }

    /// Puts counters and gauges into a registry, under `tidegate_admission_http_`.
    pub fn register(&self, registry: &mut Registry) {
        self.0.metrics.register("http", registry);
        registry.register_collector(Box::new(Gauges(self.clone())));
    }

    /// The source of a request from `peer`: the client that trusted proxies name, or else `peer`.
    #[must_use]
    pub fn source(&self, peer: IpAddr, headers: &HeaderMap) -> SourcePrefix {
        let (peer, trust) = (Address::from(peer), &self.0.trust);
        if trust.proxies.is_empty() {
            return peer.into();
        }
        let name = match trust.source {
            Source::XForwardedFor => X_FORWARDED_FOR,
            Source::Forwarded => header::FORWARDED,
        };
        let lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        forwarded::client_address(peer, lines, &trust.proxies, trust.source).into()
    }

    pub(crate) fn body_cap(&self) -> BodyTooLarge {
        BodyTooLarge { body_bytes_max: self.body_bytes_max() }
    }

    pub(crate) fn body_too_large(&self) -> BodyTooLarge {
        self.0.metrics.bodies_too_large.inc();
        self.body_cap()
    }

    pub(crate) fn peer_unknown(&self) {
        self.0.metrics.peers_unknown.inc();
    }
}

impl Inner {
    fn decide(&self, decision: &Decision<'_>) -> Result<(), RateLimited> {
        self.tracker.decide(self.clock.now_ms(), decision).map_err(|refusal| {
            self.metrics.count(&refusal);
            refusal.into()
        })
    }

    /// For the places of a list that hold none.
    const fn no_charge(&self) -> Charge<Key> {
        Charge { place: Key(0), limit: self.profile.tenant, dimension: Dimension::Tenant }
    }

    const fn limit_of(&self, class: Class) -> Limit {
        match class {
            Class::Critical => self.profile.critical_operation,
            Class::Optional => self.profile.optional_operation,
            Class::Health => self.profile.health_operation,
        }
    }
}

impl<'a> Scope<'a> {
    /// Nobody and nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Within this tenant. Principals and resources of different tenants never share a budget.
    #[must_use]
    pub fn tenant(self, tenant: &'a [u8]) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    /// By somebody who has signed in.
    #[must_use]
    pub fn principal(self, principal: &'a [u8]) -> Self {
        Self { caller: Some(Caller::Principal(principal)), ..self }
    }

    /// By whoever holds this capability.
    #[must_use]
    pub fn capability(self, capability: Fingerprint) -> Self {
        Self { caller: Some(Caller::Capability(capability)), ..self }
    }

    /// On this resource, whether it is there or not.
    #[must_use]
    pub fn resource(self, resource: &'a [u8]) -> Self {
        Self { resource: Some(resource), ..self }
    }

    fn charges(&self, inner: &Inner) -> [Option<Charge<Key>>; SCOPE_DIMENSIONS] {
        let profile = &inner.profile;
        let charge = |dimension, limit, within, identity: &[u8]| Charge {
            place: inner.seed.key(dimension, within, identity),
            limit,
            dimension,
        };
        let tenant = self.tenant.map(|tenant| charge(Dimension::Tenant, profile.tenant, None, tenant));
        let within = tenant.map(|charge| charge.place);
        let caller = self.caller.as_ref().map(|caller| match caller {
            Caller::Principal(name) => charge(Dimension::Principal, profile.principal, within, name),
            Caller::Capability(fingerprint) => {
                charge(Dimension::Capability, profile.capability, None, fingerprint.bytes())
            }
        });
        let resource = self.resource.map(|name| charge(Dimension::Resource, profile.resource, within, name));
        [tenant, caller, resource]
    }
}

impl Lease {
    /// Stage two, once it is known who asks for what: charges the budgets of all that `scope` names, and holds
    /// a lease of each.
    ///
    /// A request has one tenant, one caller and one resource. Naming one again charges nothing, and naming
    /// another is refused.
    ///
    /// # Errors
    /// One of them has no room. Nothing more was charged; what the request holds, it still holds.
    pub fn stage_two(&mut self, scope: &Scope<'_>) -> Result<(), RateLimited> {
        let inner = &*self.admission.0;
        let (mut keyed, mut new, mut held) = ([inner.no_charge(); SCOPE_DIMENSIONS], 0, self.scope);
        for (held, charge) in held.iter_mut().zip(scope.charges(inner)) {
            match (&held, charge) {
                (None, Some(charge)) => {
                    *held = Some(charge.place);
                    keyed[new] = charge;
                    new += 1;
                }
                (Some(held), Some(charge)) if *held != charge.place => {
                    return Err(RateLimited { retry_after_seconds: 1 });
                }
                _ => {}
            }
        }
        inner.decide(&Decision { keyed: &keyed[..new], ..self.operation.decision(Stage::Two) })?;
        self.scope = held;
        Ok(())
    }

    /// The budgets that it is part of.
    #[must_use]
    pub const fn admission(&self) -> &HttpAdmission {
        &self.admission
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let fixed = [GLOBAL, 1 + self.operation.place()];
        let fixed = if self.operation.class() == Class::Health { &fixed[1..] } else { &fixed };
        let (mut keyed, mut count) = ([self.source; 1 + SCOPE_DIMENSIONS], 1);
        for key in self.scope.iter().flatten() {
            keyed[count] = *key;
            count += 1;
        }
        self.admission.0.tracker.release(self.operation.work(), fixed, &keyed[..count]);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({:?}, …)", self.operation)
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scope(…)")
    }
}

/// What is looked up when the metrics are asked for.
#[derive(Debug)]
struct Gauges(HttpAdmission);

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let keys = i64::try_from(self.0.tracked_keys()).unwrap_or(i64::MAX);
        for (name, help, value) in [
            ("tidegate_admission_http_tracked_keys", "Identities that are counted at present", keys),
            ("tidegate_admission_http_active", "Requests under way, probes apart", self.0.active().into()),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The place of the global budget; those of the operations follow it.
const GLOBAL: usize = 0;
const FIXED_ROWS: usize = 1 + Operation::PLACES;
