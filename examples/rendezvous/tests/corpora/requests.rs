//! 5 000 arbitrary HTTP and credential inputs through the routes.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode, request::Parts},
};
use rendezvous::{
    capability::Capability,
    credentials::Credentials,
    http::{Face, routes},
    registry::Metadata,
    run::operation,
};
use tidegate_admission::{
    AdmissionLayer, Clock, HttpAdmission, Operation, Profile, Seed, layer::AdmissionService,
};
use tower::{Layer as _, ServiceExt as _};

use crate::support::{ANN, EVE, LIMITS, Random, Still, service};

const SEED: u64 = 0x0015_4a50;
const INPUTS: usize = 5_000;

const STATUSES: [StatusCode; 9] = [
    StatusCode::OK,
    StatusCode::CREATED,
    StatusCode::NO_CONTENT,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::CONFLICT,
    StatusCode::PAYLOAD_TOO_LARGE,
];

#[tokio::test]
async fn each_is_answered_and_none_reaches_another_tenant() {
    let mut random = Random::new(SEED);
    let clock = Clock::manual();
    let admission = HttpAdmission::new(&Profile::default(), Seed::random().unwrap(), clock.clone()).unwrap();
    let layer = AdmissionLayer::new(admission.clone(), operation).with_peer([192, 0, 2, 1].into());
    let routes = layer.layer(routes(Face { service: service(LIMITS), edge: Arc::new(Still::new()) }));
    for number in 0..INPUTS {
        if number % 5 == 0 {
            arbitrary_credential(&mut random);
            continue;
        }
        clock.advance(50);
        let (request, written) = arbitrary_request(&mut random);
        let response = routes.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let context = format!("input {number} of seed {SEED:#x}: {written}");
        assert!(STATUSES.contains(&status), "{context}: {status}");
        let body = to_bytes(Body::new(response.into_body()), 1 << 20).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(!body.contains(ANN) && !body.contains(EVE) && !body.contains("<script"), "{context}: {body}");
        if !status.is_success() {
            let error: serde_json::Value = serde_json::from_str(&body).expect(&context);
            assert!(error["error"]["code"].is_string(), "{context}");
        }
    }
    assert_eq!(admission.active(), 0, "every lease has ended");
    assert_eq!(count(&routes, EVE).await, 0, "nobody listed anything for the other tenant");
}

/// Text that is no capability, no credentials file and no metadata, or is held to the bounds.
fn arbitrary_credential(random: &mut Random) {
    let bytes = *random.of(&[0, 1, 31, 32, 33, Capability::TEXT_BYTES - 1, Capability::TEXT_BYTES, 500]);
    let text = arbitrary_text(random, bytes);
    assert!(Capability::parse(&text).is_err(), "{text:?}");
    assert!(Credentials::read(&text).is_err(), "{text:?}");
    if let Ok(metadata) = Metadata::new(text.clone(), [(text.clone(), text)].into()) {
        assert!(metadata.name().len() <= Metadata::KEY_BYTES_MAX);
    }
}

fn arbitrary_request(random: &mut Random) -> (Request<Body>, String) {
    let method = *random.of(&["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "BREW"]);
    let id_bytes = *random.of(&[0, 31, 32, 33, 400]);
    let id = match random.below(3) {
        0 => format!("{:032x}", random.below(8)),
        _ => arbitrary_text(random, id_bytes).bytes().map(|byte| format!("%{byte:02x}")).collect(),
    };
    let path = match random.below(5) {
        0 => "/v1/listings".to_owned(),
        1 => format!("/v1/listings/{id}"),
        2 => format!("/v1/listings/{id}/renew"),
        3 => format!("/v1/listings/{id}/attempts"),
        _ => format!("/{id}"),
    };
    let size = *random.of(&[0, 1, 64, 65, 128, 129, 1_000, 16_384, 16_385, 40_000]);
    let body = match random.below(4) {
        0 => random.bytes(size),
        1 => serde_json::json!({ "name": arbitrary_text(random, size) }).to_string().into_bytes(),
        2 => serde_json::json!({ "name": "g", "metadata": { "map": arbitrary_text(random, size) } })
            .to_string()
            .into_bytes(),
        _ => br#"{"name": "a game", "metadata": {"map": "forest"}}"#.to_vec(),
    };
    let authorization = match random.below(4) {
        0 => None,
        1 => Some(random.bytes(20)),
        2 => Some(format!("Bearer {}", &ANN[..random.below(ANN.len())]).into_bytes()),
        _ => Some(format!("Bearer {ANN}").into_bytes()),
    };
    let written = format!("{method} {path} with {} bytes", body.len());
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    // A header that can't be sent at all is left out.
    if let Some(value) = authorization.and_then(|value| axum::http::HeaderValue::from_bytes(&value).ok()) {
        request = request.header("authorization", value);
    }
    // HEAD answers have no body to look at.
    let request = request.body(Body::from(body)).unwrap();
    if method == "HEAD" { (Request::new(Body::empty()), "GET /".to_owned()) } else { (request, written) }
}

fn arbitrary_text(random: &mut Random, bytes: usize) -> String {
    let alphabet =
        ["a", "0", "f", "<", "\"", "&", "é", "\u{0}", "/", ".", "-", "<script>", "\u{202e}", "{", ":"];
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(alphabet[random.below(alphabet.len())]);
    }
    text
}

async fn count<C>(routes: &AdmissionService<Router, C>, token: &str) -> usize
where
    C: Fn(&Parts) -> Operation + Clone,
{
    let request = Request::get("/v1/listings").header("authorization", format!("Bearer {token}"));
    let response = routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let body = to_bytes(Body::new(response.into_body()), 1 << 20).await.unwrap();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    body["listings"].as_array().unwrap().len()
}
