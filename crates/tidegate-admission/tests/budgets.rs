//! The rules of both stages, through the layer.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod support;

use axum::{Router, body::Body, extract::Path, routing::get};
use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use prometheus_client::{encoding::text::encode, registry::Registry};
use support::{admission, answer, layer, request, status};
use tidegate_admission::{Fingerprint, HttpAdmission, RateLimited, Scope, StageTwo};
use tidegate_core::tracker::{Limit, Share};
use tower::ServiceExt as _;

/// `/tenant/principal/resource`, of which only the resource `there` exists.
async fn handler(
    Path((tenant, principal, resource)): Path<(String, String, String)>,
    two: StageTwo,
) -> Result<&'static str, RateLimited> {
    let scope = Scope::new().tenant(tenant.as_bytes()).resource(resource.as_bytes());
    let scope = match principal.strip_prefix("secret-") {
        Some(secret) => scope.capability(Fingerprint::of(secret.as_bytes())),
        None => scope.principal(principal.as_bytes()),
    };
    two.admit(&scope)?;
    Ok(if resource == "there" { "found" } else { "missing" })
}

fn app(admission: &HttpAdmission) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/{tenant}/{principal}/{resource}", get(handler).put(handler))
        .layer(layer(admission))
}

async fn times(app: &Router, method: Method, path: &str, count: usize) -> usize {
    let mut admitted = 0;
    for _ in 0..count {
        admitted += usize::from(status(app, method.clone(), path).await == 200);
    }
    admitted
}

#[tokio::test]
async fn each_identity_has_a_budget_of_its_own() {
    let (admission, clock) = admission(|profile| {
        profile.http.tenant = Limit::even(10, 10);
        profile.http.principal = Limit::even(4, 10);
        profile.http.capability = Limit::even(3, 10);
        profile.http.resource = Limit::even(6, 10);
    });
    let app = app(&admission);
    for (path, admitted) in [
        ("/a/ann/there", 4),
        ("/a/bob/there", 2),      // the resource's 6
        ("/a/bob/elsewhere", 2),  // bob's 4
        ("/a/secret-x/third", 2), // the tenant's 10
        ("/a/eve/fourth", 0),
        ("/b/ann/there", 4),      // nothing of tenant a is shared
        ("/b/secret-x/third", 1), // capabilities are the same in every tenant
    ] {
        assert_eq!(times(&app, Method::GET, path, 20).await, admitted, "{path}");
    }
    clock.advance(10_000);
    assert_eq!(times(&app, Method::GET, "/a/ann/there", 20).await, 4, "the next window");
}

#[tokio::test]
async fn a_refusal_is_the_same_whether_the_resource_is_there() {
    let (admission, clock) = admission(|profile| profile.http.resource = Limit::even(3, 10));
    let app = app(&admission);
    clock.advance(3500);
    let mut answers = Vec::new();
    for resource in ["there", "absent"] {
        assert_eq!(times(&app, Method::GET, &format!("/a/ann/{resource}"), 3).await, 3);
        let refused = request("192.0.2.1", Method::GET, &format!("/a/ann/{resource}"), Body::empty());
        let response = app.clone().oneshot(refused).await.unwrap();
        assert_eq!(response.headers()[header::RETRY_AFTER], "7");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let headers = response.headers().clone();
        answers.push((response.status(), headers, response.into_body().collect().await.unwrap().to_bytes()));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0, 429);
    assert_eq!(answers[0].2, r#"{"error":{"code":"RateLimited","retry_after_seconds":7}}"#);
}

/// A public flood: probes are answered all along, and critical work from what is kept for it.
#[tokio::test]
async fn probes_and_critical_work_go_on_in_a_flood() {
    let (admission, clock) = admission(|profile| {
        profile.http.global.spent = Share { all: 100, optional: 70 };
        profile.http.health_source_prefix = Limit::even(20, 4);
    });
    let app = app(&admission);
    let flood = |range: std::ops::Range<u8>| {
        let app = app.clone();
        async move {
            let mut admitted = 0;
            for number in range.flat_map(|network| [network; 20]) {
                let path = format!("/t{number}/p/r{number}");
                let request = request(&format!("198.51.{number}.1"), Method::GET, &path, Body::empty());
                admitted += usize::from(answer(&app, request).await.0 == 200);
            }
            admitted
        }
    };
    for window in 0..3 {
        assert_eq!(flood(0..10).await, 70, "window {window}");
        for _ in 0..10 {
            assert_eq!(status(&app, Method::GET, "/healthz").await, 200);
            assert_eq!(flood(10..12).await, 0);
        }
        assert_eq!(times(&app, Method::PUT, "/a/ann/there", 50).await, 30, "the reserve");
        assert_eq!(times(&app, Method::GET, "/healthz", 50).await, 10, "bounded too");
        clock.advance(10_000);
    }
}

#[tokio::test]
async fn only_the_exact_probe_is_one() {
    let (admission, _clock) = admission(|profile| profile.http.global.spent = Share::even(1));
    let app = app(&admission);
    assert_eq!(status(&app, Method::GET, "/a/ann/there").await, 200);
    for (method, path, expected) in [
        (Method::GET, "/healthz", 200),
        (Method::GET, "/healthz?x", 200),
        (Method::POST, "/healthz", 429),
        (Method::GET, "/healthz/../login", 429),
        (Method::GET, "/a/ann/there", 429),
    ] {
        assert_eq!(status(&app, method.clone(), path).await, expected, "{method} {path}");
    }
    let large = request("192.0.2.1", Method::POST, "/healthz", vec![0; 1 << 20]);
    assert_eq!(answer(&app, large).await.0, 413);
}

/// Optional work can't use the last keys; critical work and probes can; nobody passes the ceiling.
#[tokio::test]
async fn an_exhausted_tracker_fails_closed() {
    let (admission, clock) = admission(|profile| {
        profile.http.global.active = Share::even(2);
        profile.http.health_operation.active = Share::even(2);
        profile.http.bounds.max_tracked_keys = 40;
        profile.http.bounds.critical_tracked_key_reserve = 20;
    });
    let app = app(&admission);
    let from = |network: usize, method, path: &str| {
        let app = app.clone();
        let request = request(&format!("198.51.{network}.1"), method, path, Body::empty());
        async move { answer(&app, request).await.0 }
    };
    let mut admitted = 0;
    for network in 0..50 {
        admitted += usize::from(from(network, Method::GET, "/nothing").await == 404);
    }
    assert_eq!((admitted, admission.tracked_keys()), (20, 20));
    for network in 0..50 {
        let expected = if network < 40 { 404 } else { 429 };
        assert_eq!(from(network, Method::PUT, "/nothing").await, expected, "{network}");
    }
    assert_eq!(admission.tracked_keys(), 40);
    assert_eq!(from(60, Method::GET, "/healthz").await, 429, "the ceiling is hard");
    clock.advance(10_000);
    assert_eq!(from(60, Method::GET, "/healthz").await, 200);
    assert_eq!(admission.tracked_keys(), 1);
}

#[tokio::test]
async fn the_source_is_the_peer_or_whom_trusted_proxies_name() {
    let (trusting, _clock) = admission(|profile| {
        profile.http.source_prefix = Limit::even(1, 10);
        profile.client_address.trusted_proxies = vec!["198.51.100.0/24".to_owned()];
    });
    let (alone, _clock) = admission(|profile| profile.http.source_prefix = Limit::even(1, 10));
    for (admission, peer, forwarded, expected) in [
        (&trusting, "198.51.100.10", &["192.0.2.1"][..], 404),
        (&trusting, "::ffff:198.51.100.10", &["::ffff:192.0.2.99"], 429),
        (&trusting, "192.0.2.3", &[], 429),
        (&trusting, "198.51.100.10", &["9.9.9.9", "203.0.113.7, 198.51.100.2"], 404),
        (&trusting, "198.51.100.10", &["8.8.8.8, 203.0.113.8"], 429),
        (&trusting, "198.51.100.10", &["nonsense"], 404),
        (&trusting, "203.0.113.9", &["1.1.1.1"], 429),
        (&alone, "203.0.113.9", &["192.0.2.1"], 404),
        (&alone, "203.0.113.9", &["1.1.1.1"], 429),
        (&alone, "2001:db8:0:1::1", &[], 404),
        (&alone, "2001:db8:0:ff::1", &[], 429),
        (&alone, "2001:db8:0:100::1", &[], 404),
    ] {
        let mut request = request(peer, Method::GET, "/nothing", Body::empty());
        for line in forwarded {
            request.headers_mut().append("x-forwarded-for", line.parse().unwrap());
        }
        assert_eq!(answer(&app(admission), request).await.0, expected, "{peer} {forwarded:?}");
    }
}

#[tokio::test]
async fn strangers_never_share_a_budget() {
    let (admission, _clock) = admission(|_| ());
    let request = || Request::new(Body::empty());
    assert_eq!(answer(&app(&admission), request()).await.0, 503);
    assert_eq!(admission.tracked_keys(), 0);
    let named = layer(&admission).with_peer([127, 0, 0, 1].into());
    let app = Router::new().route("/", get(|| async { "ok" })).layer(named);
    assert_eq!(answer(&app, request()).await.0, 200, "a listener without addresses has a name");
}

#[tokio::test]
async fn a_handler_without_a_layer_is_closed() {
    let app = Router::new().route("/{a}/{b}/{c}", get(handler));
    assert_eq!(status(&app, Method::GET, "/a/ann/there").await, 503);
}

#[tokio::test]
async fn metrics_have_no_identities() {
    let (admission, _clock) = admission(|profile| profile.http.principal = Limit::even(2, 10));
    let mut registry = Registry::default();
    admission.register(&mut registry);
    let app = app(&admission);
    let series = |text: &mut String| encode(text, &registry).unwrap();
    let (mut before, mut after) = (String::new(), String::new());
    series(&mut before);
    assert_eq!(times(&app, Method::GET, "/tenant77/principal77/resource77", 5).await, 2);
    series(&mut after);
    assert_eq!(before.lines().count(), after.lines().count());
    assert!(!after.contains("77") && !after.contains("192"), "{after}");
    assert!(after.contains("tidegate_admission_http_tracked_keys 4\n"), "{after}");
    assert!(after.contains(r#"http_refused_total{dimension="principal",cause="rate"} 3"#), "{after}");
}
