//! Admission in front of a real axum server.

use std::net::SocketAddr;

use axum::{Router, extract::ConnectInfo, routing::get};
use http::request::Parts;
use http_body_util::BodyExt as _;
use tidegate_admission::{
    AdmissionLayer, Clock, HttpAdmission, Operation, Profile, RateLimited, Scope, Seed, StageTwo,
};
use tower::ServiceExt as _;

async fn hello(two: StageTwo) -> Result<String, RateLimited> {
    two.admit(&Scope::new().tenant(b"t").principal(b"p").resource(b"r"))?;
    Ok("hello".into())
}

fn classify(_: &Parts) -> Operation {
    Operation::optional(0)
}

#[tokio::test]
async fn smoke() {
    let mut profile = Profile::default();
    profile.http.resource.spent.all = 2;
    profile.http.resource.spent.optional = 2;
    let admission = HttpAdmission::new(&profile, Seed::from([7; 16]), Clock::manual()).unwrap();
    let app = Router::new().route("/", get(hello)).layer(AdmissionLayer::new(admission.clone(), classify));
    for expected in [200, 200, 429] {
        let mut request = http::Request::new(axum::body::Body::empty());
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 1))));
        let response = app.clone().oneshot(request).await.unwrap();
        assert_eq!(admission.active(), 1);
        assert_eq!(response.status(), expected);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        println!("{body:?}");
        assert_eq!(admission.active(), 0);
    }
}
