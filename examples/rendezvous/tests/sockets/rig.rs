//! A running service, callers of its HTTP side, and players' sockets.

use std::{net::SocketAddr, sync::Arc};

use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rendezvous::{
    capability::Capability,
    edge::{Edge as _, System},
    run::Running,
    service::Service,
    wire::{self, DATAGRAM_BYTES, Message},
};
use serde_json::Value;
use tidegate_admission::Profile;
use tokio::{net::UdpSocket, sync::watch};

use crate::support::{ANN, BOB, LIMITS, bind, service};

pub(crate) struct Rig {
    pub(crate) service: Arc<Service>,
    pub(crate) mediator: SocketAddr,
    url: String,
    client: Client<HttpConnector, Full<Bytes>>,
    _running: Running,
    _ended: watch::Sender<bool>,
}

pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Rig {
    pub(crate) async fn start(profile: &Profile) -> Self {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let (service, ended) = (service(LIMITS), watch::Sender::new(false));
        let running =
            Running::start(Arc::clone(&service), profile, here, here, ended.subscribe()).await.unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let (url, mediator) = (format!("http://{}", running.http), running.mediator);
        Self { service, mediator, url, client, _running: running, _ended: ended }
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: impl Into<Bytes>,
    ) -> Answered {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .unwrap();
        let answer = self.client.request(request).await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Answered { status, headers, body }
    }

    /// Lists a game of Ann's; its id.
    pub(crate) async fn game(&self) -> String {
        let listed = self.call("POST", "/v1/listings", ANN, r#"{"name": "a game"}"#).await;
        assert_eq!(listed.status, StatusCode::CREATED);
        listed.body["id"].as_str().unwrap().to_owned()
    }

    /// Bob's attempt at a new game of Ann's: the capabilities of host and joiner.
    pub(crate) async fn attempt(&self) -> (Capability, Capability) {
        let game = self.game().await;
        let path = format!("/v1/listings/{game}/attempts");
        let joiner = self.call("POST", &path, BOB, "").await;
        let host = self.call("GET", &path, ANN, "").await;
        let capability = |body: &Value| Capability::parse(body["capability"].as_str().unwrap()).unwrap();
        (capability(&host.body["attempts"][0]), capability(&joiner.body))
    }

    /// A player's socket that sends to the mediator and hears nobody else.
    pub(crate) async fn socket(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(self.mediator).await.unwrap();
        socket
    }
}

/// A bind that would be taken, sent now.
pub(crate) fn good(capability: &Capability, sequence: u64) -> [u8; DATAGRAM_BYTES] {
    bind(capability, sequence, System.now_ms(), &[])
}

/// The next datagram that comes in, which must be an introduction.
pub(crate) async fn introduction(socket: &UdpSocket, capability: &Capability) -> Message {
    let mut datagram = [0; 2 * DATAGRAM_BYTES];
    let bytes = socket.recv(&mut datagram).await.unwrap();
    wire::read_introduction(&datagram[..bytes], capability).expect("an introduction of this very attempt")
}
