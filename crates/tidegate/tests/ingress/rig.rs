//! A server with an app before a backend, and requests to it.

use std::{net::IpAddr, time::Duration};

use crate::{
    backend::Backend,
    support::{
        server::{Server, Setup},
        wire::{Reply, Wire},
    },
};

/// Where a test's app is.
pub(crate) const HOST: &str = "shop.example";

/// A server, and the backend of its app `shop`.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) backend: Backend,
}

impl Rig {
    pub(crate) fn start() -> Self {
        Self::with(|setup| setup)
    }

    /// With more of the configuration.
    #[track_caller]
    pub(crate) fn with(change: impl FnOnce(Setup) -> Setup) -> Self {
        let backend = Backend::start();
        let server = change(setup(&backend)).start();
        Self { server, backend }
    }

    /// A connection to the apps.
    #[track_caller]
    pub(crate) fn wire(&self) -> Wire<std::net::TcpStream> {
        Wire::tcp(self.server.apps).expect("the server listens")
    }

    /// From another address of this machine.
    #[track_caller]
    pub(crate) fn wire_from(&self, source: &str) -> Wire<std::net::TcpStream> {
        let source: IpAddr = source.parse().expect("an address");
        Wire::tcp_from(source, self.server.apps).expect("the server listens")
    }

    /// A GET on a connection of its own.
    #[track_caller]
    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.wire().exchange(&get(path, headers)).expect("an answer")
    }

    /// What the backend saw of a GET: its head.
    #[track_caller]
    pub(crate) fn seen(&self, headers: &[(&str, &str)]) -> String {
        let reply = self.get("/echo", headers);
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.text()
    }
}

/// The app `shop` before this backend, with bounds that a test can reach.
pub(crate) fn setup(backend: &Backend) -> Setup {
    Setup::new()
        .set("apps.shop.domains", HOST)
        .set("apps.shop.upstreams", format!("http://{}", backend.address))
}

/// The bytes of a GET of the app.
pub(crate) fn get(path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{lines}\r\n").into_bytes()
}

/// A request with these lines of a head, and what follows it.
pub(crate) fn post(path: &str, lines: &str, body: &[u8]) -> Vec<u8> {
    [format!("POST {path} HTTP/1.1\r\nHost: {HOST}\r\n{lines}\r\n").as_bytes(), body].concat()
}

/// One chunk of a chunked body.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Milliseconds as a configuration has them.
pub(crate) fn ms(duration: Duration) -> String {
    duration.as_millis().to_string()
}
