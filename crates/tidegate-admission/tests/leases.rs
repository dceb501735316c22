//! Leases end when the request does, however it ends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod support;

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
    routing::get,
};
use futures_util::{StreamExt as _, stream};
use http::{Method, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use support::{admission, layer, request, serve, status, until_idle};
use tidegate_admission::{HttpAdmission, RateLimited, Scope, StageTwo};
use tidegate_core::tracker::{Limit, Share};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::{Notify, Semaphore},
};
use tower::ServiceExt as _;

const SCOPE: fn() -> Scope<'static> = || Scope::new().tenant(b"t").principal(b"p").resource(b"r");

/// Endless; each piece is larger than what a socket takes at once.
async fn endless(two: StageTwo) -> Result<Body, RateLimited> {
    two.admit(&SCOPE())?;
    let pieces = stream::repeat(vec![0_u8; 1 << 16]).map(Ok::<_, Infallible>);
    Ok(Body::from_stream(pieces))
}

async fn panics(two: StageTwo) -> &'static str {
    two.admit(&SCOPE()).unwrap();
    panic!("a handler that panics")
}

async fn hangs(two: StageTwo) -> &'static str {
    two.admit(&SCOPE()).unwrap();
    std::future::pending().await
}

/// Echoes what comes through the tunnel, for as long as it stands.
async fn upgrades(two: StageTwo, mut request: Request) -> Result<Response, RateLimited> {
    two.admit(&SCOPE())?;
    let (tunnel, upgrade) = (two.tunnel(), hyper::upgrade::on(&mut request));
    tokio::spawn(async move {
        let _tunnel = tunnel;
        let io = TokioIo::new(upgrade.await.unwrap());
        let (mut read, mut write) = tokio::io::split(io);
        tokio::io::copy(&mut read, &mut write).await
    });
    let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    Ok(response
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "echo")
        .body(Body::empty())
        .unwrap())
}

fn app(admission: &HttpAdmission) -> Router {
    Router::new()
        .route("/", get(|| async { "ok" }))
        .route("/endless", get(endless))
        .route("/panics", get(panics))
        .route("/hangs", get(hangs))
        .route("/upgrades", get(upgrades))
        .layer(layer(admission))
}

async fn connect(address: std::net::SocketAddr, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn read_some(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 1024];
    let count = stream.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

#[tokio::test]
async fn the_client_goes_in_the_middle_of_the_body() {
    let (admission, clock) = admission(|_| ());
    let address = serve(app(&admission)).await;
    for _ in 0..3 {
        let mut stream = connect(address, "/endless", "").await;
        assert!(read_some(&mut stream).await.starts_with("HTTP/1.1 200"));
        assert_eq!(admission.active(), 1);
        drop(stream);
        until_idle(&admission).await;
    }
    clock.advance(10_000);
    assert_eq!(admission.tracked_keys(), 0, "no key is held by a lease");
}

#[tokio::test]
async fn the_handler_panics() {
    let (admission, clock) = admission(|_| ());
    let address = serve(app(&admission)).await;
    let mut stream = connect(address, "/panics", "").await;
    assert_eq!(read_some(&mut stream).await, "", "the connection ends");
    until_idle(&admission).await;
    clock.advance(10_000);
    assert_eq!(admission.tracked_keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_request_times_out() {
    let (admission, clock) = admission(|_| ());
    let request = request("192.0.2.1", Method::GET, "/hangs", Body::empty());
    let answer = tokio::time::timeout(Duration::from_secs(5), app(&admission).oneshot(request)).await;
    assert!(answer.is_err());
    assert_eq!(admission.active(), 0);
    clock.advance(10_000);
    assert_eq!(admission.tracked_keys(), 0);
}

#[tokio::test]
async fn a_tunnel_holds_its_lease_until_it_ends() {
    let (admission, clock) = admission(|profile| profile.http.resource = Limit::even(100, 2));
    let address = serve(app(&admission)).await;
    let upgrade = "connection: upgrade\r\nupgrade: echo\r\n";
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(address, "/upgrades", upgrade).await;
        assert!(read_some(&mut stream).await.starts_with("HTTP/1.1 101"));
        stream.write_all(b"hello").await.unwrap();
        assert_eq!(read_some(&mut stream).await, "hello");
        open.push(stream);
    }
    assert_eq!(admission.active(), 2);
    let mut third = connect(address, "/upgrades", upgrade).await;
    assert!(read_some(&mut third).await.starts_with("HTTP/1.1 429"));
    open.pop();
    while admission.active() > 1 {
        tokio::task::yield_now().await;
    }
    let mut fourth = connect(address, "/upgrades", upgrade).await;
    assert!(read_some(&mut fourth).await.starts_with("HTTP/1.1 101"));
    drop((open, fourth));
    until_idle(&admission).await;
    clock.advance(10_000);
    assert_eq!(admission.tracked_keys(), 0);
}

#[tokio::test]
async fn a_lease_lasts_as_long_as_the_body() {
    let (admission, _clock) = admission(|_| ());
    let app = app(&admission);
    let response = app.oneshot(request("192.0.2.1", Method::GET, "/", Body::empty())).await.unwrap();
    assert_eq!(admission.active(), 1, "the body has not been sent");
    let mut body = response.into_body();
    while body.frame().await.is_some() {}
    assert_eq!(admission.active(), 0, "sent");
    drop(body);
    assert_eq!(admission.active(), 0, "not twice");
}

#[tokio::test]
async fn nothing_is_admitted_after_the_request() {
    let (admission, clock) = admission(|_| ());
    let kept = Arc::new(parking_lot::Mutex::new(None));
    let keep = |State(kept): State<Arc<parking_lot::Mutex<Option<StageTwo>>>>, two: StageTwo| async move {
        *kept.lock() = Some(two);
    };
    let app = Router::new().route("/", get(keep)).with_state(Arc::clone(&kept)).layer(layer(&admission));
    assert_eq!(status(&app, Method::GET, "/").await, 200);
    let two = kept.lock().take().unwrap();
    assert!(two.admit(&SCOPE()).is_err() && two.tunnel().is_none());
    clock.advance(10_000);
    assert_eq!(admission.tracked_keys(), 0);
}

/// A request has one tenant, caller and resource: one more of them would go past its budget or its lease.
#[tokio::test]
async fn a_request_has_one_of_each() {
    let (admission, _clock) = admission(|_| ());
    let two = |two: StageTwo| async move {
        let first = [two.admit(&Scope::new().tenant(b"t")), two.admit(&SCOPE()), two.admit(&SCOPE())];
        let other = two.admit(&Scope::new().tenant(b"t").principal(b"p").resource(b"other"));
        format!("{:?} {}", first.map(|outcome| outcome.is_ok()), other.is_ok())
    };
    let app = Router::new().route("/", get(two)).layer(layer(&admission));
    let answer = support::answer(&app, request("192.0.2.1", Method::GET, "/", Body::empty())).await;
    assert_eq!(answer, (200, "[true, true, true] false".to_owned()));
    assert_eq!(admission.tracked_keys(), 4);
}

/// Over many connections, all at once, a ceiling of five is one ceiling, and so is a budget of five.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_1500_parallel_requests_five_are_admitted() {
    const CALLERS: u32 = 1500;
    for limit in [Limit::even(5, 10_000), Limit { spent: Share::even(10_000), active: Share::even(5) }] {
        let (admission, _clock) = admission(|profile| {
            profile.http.resource = limit;
            let wide = Limit::even(100_000, 10_000);
            let http = &mut profile.http;
            (http.source_prefix, http.tenant, http.principal) = (wide, wide, wide);
        });
        let gate = Arc::new((Semaphore::new(0), Notify::new()));
        let waits = |State(gate): State<Arc<(Semaphore, Notify)>>, two: StageTwo| async move {
            two.admit(&SCOPE())?;
            gate.1.notify_one();
            let _open = gate.0.acquire().await;
            Ok::<_, RateLimited>("admitted")
        };
        let app = Router::new().route("/", get(waits)).with_state(Arc::clone(&gate)).layer(layer(&admission));
        let address = serve(app).await;
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn(async move {
                let mut stream = connect(address, "/", "").await;
                read_some(&mut stream).await
            });
        }
        // The refused are answered while the admitted still hold their leases.
        let (mut admitted, mut refused) = (0, 0);
        while let Some(answer) = callers.join_next().await {
            match answer.unwrap() {
                answer if answer.starts_with("HTTP/1.1 200") => admitted += 1,
                answer if answer.starts_with("HTTP/1.1 429") => refused += 1,
                answer => panic!("{answer}"),
            }
            if refused == CALLERS - 5 {
                gate.0.add_permits(5);
            }
        }
        assert_eq!((admitted, refused), (5, CALLERS - 5), "{limit:?}");
        until_idle(&admission).await;
    }
}
