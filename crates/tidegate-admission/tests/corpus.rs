//! Five thousand arbitrary requests and credentials, the same in every run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod support;

use axum::{
    Router,
    body::{Body, Bytes},
    routing::any,
};
use http::{HeaderName, HeaderValue, Method, Request, header};
use support::{admission, answer, layer, request};
use tidegate_admission::{Fingerprint, Profile, RateLimited, Scope, StageTwo};
use tidegate_core::tracker::Limit;

const SEED: u64 = 0x0015_4A50;
const INPUTS: usize = 5000;
const CAP: usize = 1024;
const KEYS_MAX: u32 = 2048;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below the bound")
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

fn narrow(profile: &mut Profile) {
    let http = &mut profile.http;
    http.body_bytes_max = CAP as u64;
    http.global.active.all = 64;
    http.global.active.optional = 60;
    http.health_operation = Limit::even(50, 10);
    http.bounds.max_tracked_keys = KEYS_MAX;
    http.bounds.critical_tracked_key_reserve = 256;
    http.capability = Limit::even(2, 2);
    profile.client_address.trusted_proxies = vec!["10.0.0.0/8".to_owned()];
}

/// Whatever the credential is, it is a capability; whatever is asked for, it is a resource.
async fn handler(two: StageTwo, request: axum::extract::Request) -> Result<String, RateLimited> {
    let credential = request.headers().get(header::AUTHORIZATION).map_or(&b""[..], HeaderValue::as_bytes);
    let scope = Scope::new().capability(Fingerprint::of(credential));
    two.admit(&scope.resource(request.uri().path().as_bytes()))?;
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap_or_default();
    Ok(body.len().to_string())
}

fn arbitrary(random: &mut Random) -> (Request<Body>, usize) {
    let method = random.of(&["GET", "PUT", "DELETE", "POST", "OPTIONS", "PATCH", "BREW"]);
    let (one, two) = (format!("/{:x}", random.next()), format!("/{}", random.below(20)));
    let path = random.of(&["/healthz", "/healthz/../x", "/%00%ff", "/", &one, &two, "*"]).to_owned();
    let fresh = format!("{}.{}.0.1", random.below(256), random.below(256));
    let peer =
        random.of(&["10.0.0.1", "192.0.2.1", "::1", "::ffff:10.1.1.1", "2001:db8::1", &fresh]).to_owned();
    let sizes = [0, 1, CAP - 1, CAP, CAP + 1, 10 * CAP, random.below(2 * CAP)];
    let size = sizes[random.below(sizes.len())];
    let bytes = Bytes::from(random.bytes(size));
    let pieces: Vec<_> =
        bytes.chunks(100).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
    let body = if random.below(2) == 0 {
        Body::from(bytes)
    } else {
        Body::from_stream(futures_util::stream::iter(pieces))
    };
    let mut request = request(&peer, Method::from_bytes(method.as_bytes()).unwrap(), &path, body);
    for _ in 0..random.below(6) {
        let name = random.of(&[
            "authorization",
            "x-forwarded-for",
            "forwarded",
            "content-length",
            "expect",
            "x-junk",
        ]);
        let length = random.below(64);
        let junk = random.bytes(length);
        let value = random.of(&[
            &junk[..],
            b"192.0.2.1, 10.0.0.9",
            b"[::1]:80",
            b",,, ,",
            b"-1",
            b"+5",
            b"99999999999999999999",
            b"Bearer \xff",
        ]);
        if let Ok(value) = HeaderValue::from_bytes(value) {
            request.headers_mut().append(HeaderName::from_static(name), value);
        }
    }
    (request, size)
}

#[tokio::test]
async fn arbitrary_requests_are_answered_in_bounds() {
    let (admission, clock) = admission(narrow);
    let app = Router::new().fallback(any(handler)).layer(layer(&admission));
    let mut random = Random(SEED);
    let mut statuses = std::collections::BTreeMap::new();
    for number in 0..INPUTS {
        let (request, size) = arbitrary(&mut random);
        let shown = format!("input {number} of seed {SEED:#x}: {request:?}");
        let (status, body) = answer(&app, request).await;
        *statuses.entry(status).or_insert(0) += 1;
        match status {
            200 => assert!(size <= CAP && body == size.to_string(), "{shown}: {body}"),
            413 => assert_eq!(body, r#"{"error":{"code":"BodyTooLarge","body_bytes_max":1024}}"#, "{shown}"),
            429 => assert!(
                body.starts_with(r#"{"error":{"code":"RateLimited","retry_after_seconds":"#),
                "{shown}"
            ),
            _ => panic!("{shown}: {status} {body}"),
        }
        assert_eq!(admission.active(), 0, "{shown}");
        if number % 64 == 0 {
            clock.advance(random.next() % 4000);
            assert!(admission.tracked_keys() <= KEYS_MAX as usize, "{shown}");
        }
    }
    assert!(
        statuses.len() == 3 && statuses.values().all(|count| *count > 200),
        "all kinds are met: {statuses:?}"
    );
    clock.advance(10_000);
    assert_eq!(admission.tracked_keys(), 0);
}

#[tokio::test]
async fn the_configured_capacity_is_met_and_not_passed() {
    let (admission, _clock) = admission(narrow);
    let mut random = Random(SEED);
    let mut refused = 0;
    for _ in 0..INPUTS {
        let source = std::net::Ipv4Addr::from_bits((random.next() >> 32) as u32);
        let Ok(mut lease) = admission
            .stage_one(std::net::IpAddr::from(source).into(), tidegate_admission::Operation::critical(0))
        else {
            refused += 1;
            continue;
        };
        let length = random.below(300);
        let (tenant, secret) = (random.bytes(length), random.bytes(length));
        let scope = Scope::new().tenant(&tenant).capability(Fingerprint::of(&secret)).resource(&secret);
        refused += usize::from(lease.stage_two(&scope).is_err());
    }
    assert!(refused > 0, "the capacity was met");
    assert_eq!((admission.tracked_keys(), admission.active()), (KEYS_MAX as usize, 0));
}
