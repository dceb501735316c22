//! The admin listener's router, with a defense that has seen some traffic. What needs the whole process is in
//! the tests of the binary.

mod api;
mod pages;
mod tokens;

use std::{net::IpAddr, path::Path, sync::Arc};

use axum::body::{Body, to_bytes};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use prometheus_client::registry::Registry;
use serde_json::Value;
use tidegate_guard::{
    Metrics,
    service::{Face, Peer, Service, ServiceOptions},
};
use tidegate_ingress::defense::{AppSetup, Defense, DefenseOptions};
use tidegate_store::{
    Driver, DriverOptions, MemoryBackend,
    clock::{Clock, ManualClock},
};
use tokio::sync::watch;
use tower::ServiceExt;

use super::{Admin, Parts};
use crate::config::{self, FileText, Sources};

/// A token for each set of abilities.
const TOKENS: [(&str, &str); 5] = [
    ("everything", r#"["read", "read:sensitive", "write", "operator"]"#),
    ("read", r#"["read"]"#),
    ("sensitive", r#"["read:sensitive"]"#),
    ("write", r#"["write"]"#),
    ("readwrite", r#"["read", "write"]"#),
];

fn token(name: &str) -> String {
    format!("token-of-{name}-0123456789abcdef0123456789")
}

/// The router and what is behind it.
struct Bench {
    admin: Arc<Admin>,
    defense: Defense,
    clock: Arc<ManualClock>,
    directory: tempfile::TempDir,
    _shutdown: watch::Sender<bool>,
}

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Reply {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(1_764_460_800_000));
        let backend = MemoryBackend::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let store = Arc::new(Driver::start(backend, DriverOptions::new("memory", 100_000)));
        let apps = ["shop", "blog"].map(|name| AppSetup { name: name.to_owned(), routed: true });
        let options = DefenseOptions {
            apps: apps.into(),
            tracked_clients_max: 1000,
            access_log_entries: 10_000,
            access_log_ms: 900_000,
            ..DefenseOptions::default()
        };
        let defense = Defense::open(store, Arc::clone(&clock) as Arc<dyn Clock>, options).await;
        let (shutdown, told) = watch::channel(false);
        let mut registry = Registry::default();
        let metrics = Arc::new(Metrics::register(&mut registry));
        let service = Service::new(Face::Misconfigured, ServiceOptions::default(), metrics);
        let admin = Admin::new(Parts {
            registry,
            configuration: config::load(&sources()).regardless(),
            secrets: None,
            data_directory: Some(directory.path()),
            service: Arc::new(service),
            defense: Some(defense.clone()),
            is_tls: false,
            shutdown: told,
        });
        Self { admin: Arc::new(admin.unwrap()), defense, clock, directory, _shutdown: shutdown }
    }

    /// `count` requests of a client to the shop, one every 100 ms.
    fn traffic(&self, client: &str, count: u64) {
        let app = self.defense.app("shop").unwrap();
        let peer: IpAddr = client.parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static("SecretBrowser/1.0"));
        for _ in 0..count {
            self.clock.advance_to(self.clock.now_ms() + 100);
            let caller = self.defense.caller(peer, &headers);
            let judged = self.defense.judge(&app, &caller, "GET", "/cart?secret=1");
            judged.record.finish(judged.refusal.map_or(200, |refusal| refusal.status().into()));
        }
    }

    async fn send(&self, request: Request<Body>) -> Reply {
        let answer = self.admin.router().oneshot(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let text = String::from_utf8(to_bytes(body, 1 << 24).await.unwrap().to_vec()).unwrap();
        Reply { status: head.status, headers: head.headers, text }
    }

    /// A call of the API, as whoever has the token of that name.
    async fn call(&self, name: &str, method: Method, path: &str, body: &str) -> Reply {
        self.call_if(name, method, path, body, None).await
    }

    async fn call_if(
        &self,
        name: &str,
        method: Method,
        path: &str,
        body: &str,
        if_match: Option<&str>,
    ) -> Reply {
        let mut request = Request::new(Body::from(body.to_owned()));
        *request.method_mut() = method;
        *request.uri_mut() = format!("/api/v1{path}").parse().unwrap();
        if !name.is_empty() {
            let bearer = format!("Bearer {}", token(name));
            request.headers_mut().insert(header::AUTHORIZATION, bearer.parse().unwrap());
        }
        if let Some(version) = if_match {
            request.headers_mut().insert(header::IF_MATCH, version.parse().unwrap());
        }
        self.send(request).await
    }

    async fn page(&self, method: Method, path: &str, cookie: &str, form: &str) -> Reply {
        let request = Request::builder().method(method).uri(path).header(header::COOKIE, cookie);
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let mut request = request.body(Body::from(form.to_owned())).unwrap();
        request.extensions_mut().insert(Peer::Address([127, 0, 0, 1].into()));
        self.send(request).await
    }

    /// Signs in, and answers the cookie and what forms carry.
    async fn sign_in(&self, name: &str) -> (String, String) {
        let reply = self.page(Method::POST, "/sign-in", "", &format!("token={}", token(name))).await;
        assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.text);
        let cookie = reply.header(header::SET_COOKIE).split(';').next().unwrap().to_owned();
        let page = self.page(Method::GET, "/audit", &cookie, "").await;
        (cookie, csrf_of(&page.text))
    }

    fn directory(&self) -> &Path {
        self.directory.path()
    }
}

#[track_caller]
fn csrf_of(page: &str) -> String {
    let (_, rest) = page.split_once(r#"name="csrf" value=""#).expect("a form with its token");
    rest.split('"').next().unwrap().to_owned()
}

fn sources() -> Sources {
    let tokens = TOKENS.map(|(name, abilities)| {
        format!("{{ name = {name:?}, token = {:?}, abilities = {abilities} }}", token(name))
    });
    let text = format!("[admin]\ntokens = [{}]\n", tokens.join(", "));
    let file = FileText { path: Path::new("tidegate.toml").into(), text: zeroize::Zeroizing::new(text) };
    Sources { file: Some(file), ..Sources::default() }
}
