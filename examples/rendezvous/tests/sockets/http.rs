//! The HTTP side behind admission: typed refusals, tenants kept apart, rotation.

use axum::http::StatusCode;
use rendezvous::capability::Capability;
use tidegate_admission::Profile;
use tidegate_core::tracker::Limit;

use crate::{
    rig::{Rig, good, introduction},
    support::{ANN, BOB, EVE, KEY, credentials},
};

#[tokio::test]
async fn typed_refusals() {
    let mut profile = Profile::default();
    profile.http.principal = Limit::even(2, 32);
    let rig = Rig::start(&profile).await;
    let long = format!(r#"{{"name": "{}"}}"#, "n".repeat(16_384));
    let refused = rig.call("POST", "/v1/listings", BOB, long).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(refused.body["error"]["code"], "BodyTooLarge");
    rig.game().await;
    rig.game().await;
    let refused = rig.call("GET", "/v1/listings", ANN, "").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.body["error"]["code"], "RateLimited");
    let seconds = refused.body["error"]["retry_after_seconds"].as_u64().unwrap();
    assert!((1..=10).contains(&seconds), "{seconds}");
    assert_eq!(refused.headers["retry-after"], seconds.to_string());
    assert!(rig.call("GET", "/v1/listings", BOB, "").await.status.is_success(), "another has its own");
    assert!(rig.call("GET", "/healthz", "", "").await.status.is_success());
}

/// The same answers, and the same budget spent, whether a listing is another tenant's or is not there.
#[tokio::test]
async fn nothing_tells_whether_it_is_there() {
    let rig = Rig::start(&Profile::default()).await;
    let (there, not_there) = (rig.game().await, "0".repeat(32));
    for (method, tail, body) in [
        ("PUT", "", r#"{"name": "mine"}"#),
        ("DELETE", "", ""),
        ("POST", "/renew", ""),
        ("POST", "/attempts", ""),
        ("GET", "/attempts", ""),
    ] {
        let mut answers = Vec::new();
        for id in [&there, &not_there, "no id at all"] {
            let path = format!("/v1/listings/{}{tail}", id.replace(' ', "%20"));
            let answer = rig.call(method, &path, EVE, body).await;
            let mut headers = answer.headers;
            headers.remove("date");
            answers.push((answer.status, answer.body, headers));
        }
        assert_eq!(answers[0].0, StatusCode::NOT_FOUND, "{method} {tail}");
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{method} {tail}: {answers:?}");
    }
    let list = rig.call("GET", "/v1/listings", EVE, "").await;
    assert_eq!(list.body["listings"].as_array().unwrap().len(), 0);
    for (token, status) in [("", 401), ("wrong", 401), (EVE, 404), (BOB, 404), (ANN, 204)] {
        let answer = rig.call("DELETE", &format!("/v1/listings/{there}"), token, "").await;
        assert_eq!(answer.status.as_u16(), status, "{token}");
    }
}

#[tokio::test]
async fn credentials_rotate_under_an_attempt() {
    let rig = Rig::start(&Profile::default()).await;
    let (host, joiner) = rig.attempt().await;
    let (hosting, joining) = (rig.socket().await, rig.socket().await);
    hosting.send(&good(&host, 1)).await.unwrap();
    rig.service.replace_credentials(credentials(&[(2, "key-after-rotation-0123456789abcd"), (1, KEY)]));
    let (new_host, new_joiner) = rig.attempt().await;
    assert_eq!((host.claims().key_id, new_joiner.claims().key_id), (1, 2));
    joining.send(&good(&joiner, 1)).await.unwrap();
    introduction(&hosting, &host).await;
    introduction(&joining, &joiner).await;

    // The old key is taken away: what it signed is over, what the new one signed goes on.
    rig.service.replace_credentials(credentials(&[(2, "key-after-rotation-0123456789abcd")]));
    hosting.send(&good(&host, 2)).await.unwrap();
    hosting.send(&good(&new_host, 1)).await.unwrap();
    joining.send(&good(&new_joiner, 1)).await.unwrap();
    introduction(&hosting, &new_host).await;
}

/// HTTP can't say where an introduction goes, and what it hands out is for one role.
#[tokio::test]
async fn http_supplies_no_target() {
    let rig = Rig::start(&Profile::default()).await;
    let game = rig.game().await;
    let path = format!("/v1/listings/{game}/attempts");
    let target = r#"{"target": "203.0.113.1:53", "endpoint": "203.0.113.1:53"}"#;
    let started = rig.call("POST", &path, BOB, target).await;
    let joiner = Capability::parse(started.body["capability"].as_str().unwrap()).unwrap();
    let host = rig.call("GET", &path, ANN, "").await;
    let host = Capability::parse(host.body["attempts"][0]["capability"].as_str().unwrap()).unwrap();
    let (hosting, joining) = (rig.socket().await, rig.socket().await);
    hosting.send(&good(&host, 1)).await.unwrap();
    joining.send(&good(&joiner, 1)).await.unwrap();
    let told = introduction(&hosting, &host).await;
    assert_eq!(told.endpoints[0].socket_address(), joining.local_addr().unwrap());
    assert_eq!(told.endpoints[1..].len(), 0);
}
