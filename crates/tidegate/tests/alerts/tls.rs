//! A receiver behind TLS, whose certificate the system knows or does not.

use std::{fs, net::TcpStream, sync::Arc};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{PrivateKeyDer, pem::PemObject},
};

use crate::{
    raise::begin_to_fill,
    receiver::{Receiver, SECRET, TARGET},
    support::server::Server,
};

#[test]
fn the_receiver_must_be_who_it_says() {
    let (known, stranger) = (certified(), certified());
    let receiver = receiver(&known);
    let server = start(&receiver, &known);
    begin_to_fill(&server);
    assert!(receiver.next().is_signed(SECRET, TARGET));

    let server = start(&receiver, &stranger);
    begin_to_fill(&server);
    server.wait_for_log("webhook-failed");
    assert!(receiver.has_no_more());
    assert!(server.log().contains("certificate"), "{}", server.log());
}

fn certified() -> CertifiedKey<rcgen::KeyPair> {
    generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap()
}

fn receiver(certified: &CertifiedKey<rcgen::KeyPair>) -> Receiver {
    let key = PrivateKeyDer::from_pem_slice(certified.signing_key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let wrap = move |stream: TcpStream| {
        StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream)
    };
    Receiver::over(wrap, &["200 OK"])
}

/// On a system that knows this certificate and no other.
fn start(receiver: &Receiver, known: &CertifiedKey<rcgen::KeyPair>) -> Server {
    let setup =
        receiver.of_alerts().set("admin.webhook_url", format!("https://{}{TARGET}", receiver.address));
    fs::write(setup.folder().join("known.pem"), known.cert.pem()).unwrap();
    setup.variable("SSL_CERT_FILE", "known.pem").start()
}
