//! TLS on the guard's port: both versions of HTTP, by what the client offers.

use std::{
    fs,
    io::Write as _,
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, ClientConnection, RootCertStore, StreamOwned,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::{
    http2::Http2,
    support::{
        DEADLINE,
        message::{incr, one_step, signed},
        server::{SECRET, Server, Setup},
        wire::{self, Wire},
    },
};

#[test]
fn http1_and_http2_by_what_is_offered() {
    let (server, roots) = start();
    assert!(server.banner().contains("https://"), "{}", server.banner());
    for offered in [&[b"http/1.1".as_slice()][..], &[]] {
        let body = one_step("tls", json!([incr("k")])).to_string();
        let mut wire = Wire::over(connect(&server, &roots, offered));
        let reply = wire.exchange(&signed(SECRET, body.as_bytes())).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(wire.exchange(b"GET /healthz HTTP/1.1\r\nhost: guard\r\n\r\n").unwrap().status, 200);
        let expected = offered.first().map(|name| name.to_vec());
        assert_eq!(wire.stream().conn.alpn_protocol().map(<[u8]>::to_vec), expected);
    }

    let (address, config) = (server.guard, client(&roots, &[b"h2", b"http/1.1"]));
    let http2 = Http2::over(async move {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let stream = TlsConnector::from(config).connect(name(), stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
        stream
    });
    let body = one_step("tls", json!([incr("k")])).to_string();
    assert_eq!(http2.post(body.as_bytes()).json()["steps"][0]["results"][0]["value"], 3);
}

#[test]
fn cleartext_gets_no_answer_from_a_tls_port() {
    let (server, _roots) = start();
    let body = one_step("clear", json!([incr("k")])).to_string();
    let mut wire = Wire::tcp(server.guard).unwrap();
    let _ = wire.send(&signed(SECRET, body.as_bytes()));
    let answer = wire.until_closed().unwrap();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[test]
fn a_hello_that_stops_half_way_is_closed_while_others_are_served() {
    let (server, roots) = start();
    // The head of a record that says that a hello of 512 bytes follows, and its first bytes.
    let begun = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let mut stopped: Vec<_> = (0..20)
        .map(|_| {
            let mut wire = Wire::tcp(server.guard).unwrap();
            wire.send(begun).unwrap();
            wire
        })
        .collect();
    let body = one_step("hello", json!([incr("k")])).to_string();
    let mut honest = Wire::over(connect(&server, &roots, &[]));
    assert_eq!(honest.exchange(&signed(SECRET, body.as_bytes())).unwrap().status, 200);
    for wire in &mut stopped {
        assert!(!wire.until_closed().expect("closed in time").starts_with(b"HTTP"));
    }
}

#[test]
fn the_admin_listener_offers_tls_and_its_cookie_stays_there() {
    let (server, roots) = start_with("admin");
    assert!(server.banner().contains(&format!("  admin    https://{}", server.admin)), "{}", server.banner());
    let token = server.made_secret("admin_token");
    for offered in [&[b"http/1.1".as_slice()][..], &[]] {
        let mut wire = Wire::over(connect_to(server.admin, &roots, offered));
        let page = wire.exchange(b"GET /sign-in HTTP/1.1\r\nhost: admin\r\n\r\n").unwrap();
        assert_eq!(page.status, 200, "{}", page.text());
        let form = format!("token={token}");
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let signed_in = wire.exchange(&wire::request("POST", "/sign-in", &headers, form.as_bytes())).unwrap();
        let cookie = signed_in.header("set-cookie").unwrap_or_default();
        assert!(signed_in.status == 303 && cookie.contains("; Secure"), "{}", signed_in.status);
    }
    let mut wire = Wire::tcp(server.admin).unwrap();
    let _ = wire.send(b"GET /sign-in HTTP/1.1\r\nhost: admin\r\n\r\n");
    assert!(!wire.until_closed().unwrap().starts_with(b"HTTP"), "no page in clear text");
}

fn start() -> (Server, RootCertStore) {
    start_with("guard")
}

fn start_with(section: &str) -> (Server, RootCertStore) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["guard.test".to_owned()]).unwrap();
    let files = [("tls_cert", "cert.pem"), ("tls_key", "key.pem")];
    let setup = files
        .iter()
        .fold(Setup::new(), |setup, (key, file)| setup.set(&format!("{section}.{key}"), file))
        .set("guard.header_timeout_ms", "1500");
    fs::write(setup.folder().join("cert.pem"), cert.pem()).unwrap();
    fs::write(setup.folder().join("key.pem"), signing_key.serialize_pem()).unwrap();
    let roots = roots(&setup.folder().join("cert.pem"));
    (setup.start(), roots)
}

fn roots(path: &Path) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(path).unwrap()).unwrap();
    roots
}

fn name() -> ServerName<'static> {
    ServerName::try_from("guard.test").unwrap()
}

fn client(roots: &RootCertStore, offered: &[&[u8]]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

fn connect(
    server: &Server,
    roots: &RootCertStore,
    offered: &[&[u8]],
) -> StreamOwned<ClientConnection, TcpStream> {
    connect_to(server.guard, roots, offered)
}

fn connect_to(
    address: SocketAddr,
    roots: &RootCertStore,
    offered: &[&[u8]],
) -> StreamOwned<ClientConnection, TcpStream> {
    let stream = TcpStream::connect_timeout(&address, DEADLINE).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut stream = StreamOwned::new(ClientConnection::new(client(roots, offered), name()).unwrap(), stream);
    stream.flush().unwrap();
    stream
}
