//! TLS to the server, and which certificates are believed.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tidegate_test_servers::RedisServer;

use super::{bump, key, options, store};
use crate::RedisBackend;

/// An authority's certificate, and a server's with its key, in PEM.
fn certificates() -> [(&'static str, String); 3] {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&key).unwrap();
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let server = server.signed_by(&server_key, &Issuer::new(authority, key)).unwrap();
    [("root.pem", root.pem()), ("server.pem", server.pem()), ("key.pem", server_key.serialize_pem())]
}

#[tokio::test]
async fn a_server_is_believed_with_the_right_certificate_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (name, text) in certificates() {
        std::fs::write(path(name), text).unwrap();
    }
    std::fs::write(path("other.pem"), &certificates()[0].1).unwrap();
    let (port, certificate, private) =
        (tidegate_test_servers::free_port().unwrap(), path("server.pem"), path("key.pem"));
    let arguments =
        ["--tls-port", &port.to_string(), "--tls-cert-file", &certificate, "--tls-key-file", &private];
    let arguments = [&arguments[..], &["--tls-auth-clients", "no"]].concat();
    let server = RedisServer::start(&arguments).unwrap();
    let url = |ca_file: &str| format!("rediss://127.0.0.1:{port}?ca_file={ca_file}");
    assert_eq!(bump(&store(&options(&url(&path("root.pem")))).await, key("row")).await, Ok(1));
    let refused = [
        (url(&path("other.pem")), "certificate"),
        (url(&path("none.pem")), "none.pem"),
        (format!("rediss://127.0.0.1:{port}"), "certificate"),
        (format!("redis://127.0.0.1:{port}"), "Server"),
        (format!("rediss://127.0.0.1:{}?ca_file={}", server.port(), path("root.pem")), "Server"),
    ];
    for (url, why) in refused {
        let error = RedisBackend::connect(&options(&url)).await.unwrap_err();
        assert!(format!("{error:?}").contains(why), "{url}: {error:?}");
    }
}
