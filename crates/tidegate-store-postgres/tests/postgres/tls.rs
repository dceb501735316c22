//! What each `sslmode` does, on a server with TLS and on one without.

use tidegate_store_postgres::{Options, PostgresBackend, migrate};
use tidegate_test_servers::{PostgresServer, PostgresSetup};

use crate::setup::{Observer, options_on};

struct Certificates {
    authority: String,
    server: String,
    key: String,
}

/// A certificate for `name`, and the authority that it comes from.
fn certificates(name: &str) -> Certificates {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signed = authority.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(authority, key);
    let server_key = rcgen::KeyPair::generate().unwrap();
    let server = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    let server = server.signed_by(&server_key, &issuer).unwrap();
    Certificates { authority: signed.pem(), server: server.pem(), key: server_key.serialize_pem() }
}

/// Whether a store can be opened with these parameters, and if so whether its session is encrypted.
async fn outcome(server: &PostgresServer, options: &Options, parameters: &str) -> Result<bool, String> {
    let url = server.url();
    let options = Options { url: format!("{url}?{parameters}").into(), ..options.clone() };
    let backend = PostgresBackend::connect(&options).await.map_err(|error| format!("{error:?}"))?;
    let observer = Observer::on(server, "public").await;
    let encrypted = observer
        .rows("SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'tidegate'")
        .await;
    drop(backend);
    Ok(encrypted[0].get(0))
}

#[tokio::test]
async fn each_mode_does_what_it_says() {
    let right = certificates("127.0.0.1");
    let other = certificates("127.0.0.1");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("sslmode=verify-full&sslrootcert={}", path.display())
    };
    let (root, other_root, empty) =
        (file("right.pem", &right.authority), file("other.pem", &other.authority), file("empty.pem", ""));
    let without = PostgresServer::start().unwrap();
    let with = PostgresServer::start_with(&PostgresSetup {
        tls: Some((&right.server, &right.key)),
        ..PostgresSetup::default()
    })
    .unwrap();
    let wrong_name = certificates("elsewhere.example");
    let misnamed = PostgresServer::start_with(&PostgresSetup {
        tls: Some((&wrong_name.server, &wrong_name.key)),
        ..PostgresSetup::default()
    })
    .unwrap();
    let wrong_root = file("misnamed.pem", &wrong_name.authority);
    let table: [(&PostgresServer, &str, &str, Result<bool, &str>); 12] = [
        (&without, "without TLS", "sslmode=disable", Ok(false)),
        (&without, "without TLS", "sslmode=prefer", Ok(false)),
        (&without, "without TLS", "sslmode=require", Err("does not support TLS")),
        (&without, "without TLS", &root, Err("does not support TLS")),
        (&with, "with TLS", "sslmode=disable", Ok(false)),
        (&with, "with TLS", "", Ok(true)),
        (&with, "with TLS", "sslmode=require", Ok(true)),
        (&with, "with TLS", &root, Ok(true)),
        (&with, "with TLS", &other_root, Err("InvalidCertificate")),
        (&with, "with TLS", &empty, Err("no certificate")),
        (&misnamed, "with another's name", "sslmode=require", Ok(true)),
        (&misnamed, "with another's name", &wrong_root, Err("NotValidForName")),
    ];
    let options = options_on(&without);
    for server in [&without, &with, &misnamed] {
        migrate(&Options { url: server.url().into(), ..options.clone() }).await.unwrap();
    }
    for (server, what, parameters, right) in table {
        let seen = outcome(server, &options, parameters).await;
        match (&seen, right) {
            (Ok(seen), Ok(right)) => assert_eq!(*seen, right, "{what}, {parameters}"),
            (Err(seen), Err(right)) => assert!(seen.contains(right), "{what}, {parameters}: {seen}"),
            _ => panic!("{what}, {parameters}: {seen:?}"),
        }
    }
}
