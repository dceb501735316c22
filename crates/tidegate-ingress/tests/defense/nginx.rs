//! The real nginx asks, with the configuration that the documentation shows.

use std::{net::SocketAddr, path::Path, process::Command};

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::{rt::TokioIo, server::conn::auto};
use tempfile::TempDir;
use tidegate_ingress::defense::DefenseOptions;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket},
};

use crate::{
    authz,
    support::{Site, networks, options},
};

const CONFIGURATION: &str = include_str!("../../../../docs/forward-auth/nginx.conf");

/// An nginx that is stopped when it is dropped.
struct Nginx {
    folder: TempDir,
    address: SocketAddr,
}

impl Nginx {
    /// In front of `app`, asking `authz`. It returns once nginx listens.
    fn start(app: SocketAddr, authz: SocketAddr) -> Self {
        for _ in 0..10 {
            let folder = tempfile::tempdir().unwrap();
            let address = free_address();
            let server = CONFIGURATION
                .replace("listen 80;", &format!("listen {address};"))
                .replace("127.0.0.1:3000", &app.to_string())
                .replace("127.0.0.1:9091", &authz.to_string());
            let path = |name: &str| folder.path().join(name).display().to_string();
            let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map(|kind| format!("{kind}_temp_path {};\n", path(kind)))
                .concat();
            let whole = format!(
                "master_process off; pid {}; error_log {};\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{server}}}\n",
                path("pid"),
                path("error.log"),
            );
            std::fs::write(path("nginx.conf"), whole).unwrap();
            // It goes into the background once its sockets are bound.
            if nginx(folder.path(), &[]) {
                return Self { folder, address };
            }
        }
        panic!("nginx did not start; install it with: apt-get install nginx-light");
    }
}

/// The status line and headers, and the body, of a proxy's answer to a client at `from`.
pub(crate) async fn get(proxy: SocketAddr, from: &str, request: &str) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    let mut stream = socket.connect(proxy).await.unwrap();
    let request = format!("{request} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
        .write_all(b"User-Agent: curl\r\nX-Forwarded-Uri: /\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

impl Drop for Nginx {
    fn drop(&mut self) {
        nginx(self.folder.path(), &["-s", "stop"]);
    }
}

fn nginx(folder: &Path, arguments: &[&str]) -> bool {
    let log = folder.join("start.log");
    let mut command =
        Command::new(if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" });
    command
        .arg("-p")
        .arg(folder)
        .arg("-c")
        .arg(folder.join("nginx.conf"))
        .arg("-e")
        .arg(&log)
        .args(arguments);
    command.status().is_ok_and(|status| status.success())
}

pub(crate) fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub(crate) async fn app() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(async |_| {
                Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from_static(
                    b"the app",
                ))))
            });
            tokio::spawn(async move {
                let executor = hyper_util::rt::TokioExecutor::new();
                auto::Builder::new(executor).serve_connection(TokioIo::new(stream), service).await
            });
        }
    });
    address
}

/// What every proxy is told that asks: a site that limits a route and denies 127.0.0.66.
pub(crate) async fn asked() -> Site {
    let site = Site::with(DefenseOptions { trusted: networks(&["127.0.0.1"]), ..options() }).await;
    site.put(
        r#"{"mode":"enforce","deny_cidrs":["127.0.0.66"],
            "routes":[{"path_prefix":"/login","methods":["POST"],"rps":0.1,"burst":2}]}"#,
    )
    .await;
    site
}

/// That `proxy` does as it is told.
pub(crate) async fn does_as_it_is_told(proxy: SocketAddr) {
    let table = [
        ("127.0.0.7", "GET /", "200 OK"),
        ("127.0.0.7", "POST /login?x", "200 OK"),
        ("127.0.0.7", "POST //LOGIN", "200 OK"),
        ("127.0.0.7", "POST /%6cogin", "429 Too Many Requests"),
        ("127.0.0.7", "GET /login", "200 OK"),
        ("127.0.0.8", "POST /login", "200 OK"),
        ("127.0.0.66", "GET /", "403 Forbidden"),
    ];
    for (client, request, expected) in table {
        let answer = get(proxy, client, request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{client} {request}: {answer}");
        assert_eq!(answer.contains("the app"), expected.starts_with("200"), "{answer}");
        let lower = answer.to_ascii_lowercase();
        let headers = ["retry-after: 10\r\n", "ratelimit: \"route\";r=0;t=10\r\n"];
        let retry = headers.iter().all(|header| lower.contains(header));
        assert_eq!(retry, expected.starts_with("429"), "{answer}");
    }
}

/// Without Tidegate the app is served.
pub(crate) async fn serves_without_it(proxy: SocketAddr) {
    for _ in 0..3 {
        let answer = get(proxy, "127.0.0.66", "POST /login").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("the app"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_asks_and_does_as_it_is_told() {
    let site = asked().await;
    let (authz, serving) = authz::serve(authz::authz(&site)).await;
    let nginx = Nginx::start(app().await, authz);
    does_as_it_is_told(nginx.address).await;
    serving.abort();
    let _ = serving.await;
    serves_without_it(nginx.address).await;
}
