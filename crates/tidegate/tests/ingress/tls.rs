//! TLS: both versions of HTTP by what is offered, certificates by host, and renewed ones without a restart.

use std::{fs, net::TcpStream, path::Path, sync::Arc};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::process::Signal;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
};

use crate::{
    rig::{HOST, Rig, get},
    support::{DEADLINE, wire::Wire},
};

/// Writes a certificate for `host` and its key; answers the certificate.
fn certificate(folder: &Path, host: &str) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([host.to_owned()]).unwrap();
    fs::write(folder.join(format!("{host}.pem")), cert.pem()).unwrap();
    fs::write(folder.join(format!("{host}.key")), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

fn connect(
    rig: &Rig,
    host: &str,
    root: &CertificateDer<'static>,
    offered: &[&[u8]],
) -> std::io::Result<Wire<StreamOwned<ClientConnection, TcpStream>>> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(tls_address(rig))?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let mut stream = StreamOwned::new(connection, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(Wire::over(stream))
}

fn tls_address(rig: &Rig) -> String {
    let banner = rig.server.banner();
    let line = banner.lines().find(|line| line.starts_with("  apps ")).unwrap();
    line.split("https://").nth(1).unwrap().trim().to_owned()
}

#[test]
fn apps_are_served_over_tls_with_certificates_that_renew() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (first, other) = (certificate(folder.path(), HOST), certificate(folder.path(), "other.example"));
    let rig = Rig::with(|setup| {
        setup
            .set("ingress.tls_listen", "127.0.0.1:0")
            .set("ingress.tls_cert", path("shop.example.pem"))
            .set("ingress.tls_key", path("shop.example.key"))
            .set("apps.other.domains", "other.example")
            .set("apps.other.upstreams", "127.0.0.1:1")
            .set("apps.other.tls_cert", path("other.example.pem"))
            .set("apps.other.tls_key", path("other.example.key"))
    });
    let mut wire = connect(&rig, HOST, &first, &[b"http/1.1"]).unwrap();
    let reply = wire.exchange(&get("/echo", &[])).unwrap();
    assert!(reply.text().contains("x-forwarded-proto: https"), "{}", reply.text());
    connect(&rig, "other.example", &other, &[b"http/1.1"]).unwrap();
    let http2 = connect(&rig, HOST, &first, &[b"h2", b"http/1.1"]).unwrap();
    assert_eq!(http2.stream().conn.alpn_protocol(), Some(b"h2".as_slice()));
    // Cleartext finds no HTTP there.
    let mut plain = Wire::over(TcpStream::connect(tls_address(&rig)).unwrap());
    plain.send(&get("/echo", &[])).unwrap();
    assert!(!plain.until_closed().unwrap().starts_with(b"HTTP"));

    // A faulty renewal changes nothing; a good one is shown to new connections, and old ones go on.
    fs::write(path("shop.example.key"), "no key").unwrap();
    rig.server.signal(Signal::HUP);
    rig.server.wait_for_log("reload-refused");
    connect(&rig, HOST, &first, &[]).unwrap();
    let renewed = certificate(folder.path(), HOST);
    rig.server.signal(Signal::HUP);
    rig.server.wait_for_log("configuration reloaded");
    assert!(connect(&rig, HOST, &first, &[]).is_err());
    let mut fresh = connect(&rig, HOST, &renewed, &[]).unwrap();
    assert_eq!(fresh.exchange(&get("/echo", &[])).unwrap().status, 200);
    assert_eq!(wire.exchange(&get("/echo", &[])).unwrap().status, 200);
}
