//! Listeners and TLS.

use super::*;
use Scope::Fatal;

#[test]
fn addresses_that_are_refused() {
    let public = "there is no TLS";
    let table = [
        ("[guard]\nlisten = \"8787\"", "tidegate.toml:2: guard.listen: ", "an IP address and a port"),
        ("[guard]\nlisten = \":8787\"", "tidegate.toml:2: guard.listen: ", "0.0.0.0:8787"),
        ("[guard]\nlisten = \"127.0.0.1\"", "tidegate.toml:2: guard.listen: ", "an IP address and a port"),
        (
            "[guard]\nlisten = \"127.0.0.1:65536\"",
            "tidegate.toml:2: guard.listen: ",
            "an IP address and a port",
        ),
        (
            "[guard]\nlisten = \"127.0.00.1:80\"",
            "tidegate.toml:2: guard.listen: ",
            "an IP address and a port",
        ),
        (
            "[guard]\nlisten = \"localhost:8787\"",
            "tidegate.toml:2: guard.listen: ",
            "an IP address and a port",
        ),
        ("[guard]\nlisten = \"0.0.0.0:8787\"", "tidegate.toml:2: guard.listen: ", public),
        ("[guard]\nlisten = \"[::]:8787\"", "tidegate.toml:2: guard.listen: ", public),
        ("[guard]\nlisten = \"10.0.0.5:8787\"", "tidegate.toml:2: guard.listen: ", public),
        ("[guard]\nlisten = \"[::ffff:10.0.0.5]:8787\"", "tidegate.toml:2: guard.listen: ", public),
        ("[admin]\nlisten = \"203.0.113.1:9090\"", "tidegate.toml:2: admin.listen: ", public),
        (
            "[admin]\nlisten = \"127.0.0.1:8787\"",
            "tidegate.toml:2: admin.listen: ",
            "same port as guard.listen",
        ),
        (
            "[guard]\nlisten = \"127.0.0.1:9090\"",
            "tidegate.toml:2: guard.listen: ",
            "same port as admin.listen",
        ),
        (
            "[guard]\nallow_cleartext = true\nlisten = \"0.0.0.0:9090\"",
            "tidegate.toml:3: guard.listen: ",
            "same port as admin.listen",
        ),
    ];
    for (toml, begins, holds) in table {
        one_fault(toml, &[], Fatal, begins, holds);
    }
    let long = format!("[guard]\nsocket = \"/{}\"", "x".repeat(107));
    one_fault(&long, &[], Fatal, "tidegate.toml:2: guard.socket: ", "has 108 bytes");
}

#[test]
fn addresses_that_are_taken() {
    let table = [
        "[guard]\nlisten = \"[::1]:8787\"",
        "[guard]\nlisten = \"[::ffff:127.0.0.1]:8787\"",
        "[guard]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"",
        "[guard]\nlisten = \"0.0.0.0:8787\"\nallow_cleartext = true",
        "[admin]\nlisten = \"0.0.0.0:9090\"\nallow_cleartext = true",
        "[guard]\nlisten = \"127.0.0.1:9000\"\n[admin]\nlisten = \"127.0.0.2:9000\"",
    ];
    for toml in table {
        good(toml, &[]);
    }
}

#[test]
fn certificates() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let cert =
        write("cert.pem", "# a comment\n-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n");
    let key = write("key.pem", "-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----\n");
    let missing = folder.path().join("missing.pem").to_str().unwrap().to_owned();
    let both = |cert: &str, key: &str| format!("[guard]\ntls_cert = \"{cert}\"\ntls_key = \"{key}\"");

    let configuration = good(&format!("{}\nlisten = \"0.0.0.0:443\"", both(&cert, &key)), &[]);
    assert_eq!(configuration.listener.tls.unwrap().key, Path::new(&key));
    let alone = format!("[guard]\ntls_cert = \"{cert}\"");
    one_fault(&alone, &[], Fatal, "tidegate.toml:2: guard.tls_cert: ", "needs guard.tls_key");
    let alone = format!("[guard]\ntls_key = \"{key}\"");
    one_fault(&alone, &[], Fatal, "tidegate.toml:2: guard.tls_key: ", "needs guard.tls_cert");
    one_fault(&both(&missing, &key), &[], Fatal, "tidegate.toml:2: guard.tls_cert: ", "can't be read");
    one_fault(&both(&cert, &missing), &[], Fatal, "tidegate.toml:3: guard.tls_key: ", "can't be read");
    one_fault(&both(&key, &key), &[], Fatal, "tidegate.toml:2: guard.tls_cert: ", "there is no CERTIFICATE");
    one_fault(&both(&cert, &cert), &[], Fatal, "tidegate.toml:3: guard.tls_key: ", "there is no PRIVATE KEY");
}

#[test]
fn urls_that_stay_on_this_machine_or_are_encrypted() {
    let table = [
        ("https://guard.example", true),
        ("http://127.0.0.1:8787", true),
        ("http://127.8.9.1/path", true),
        ("http://[::1]:8787/", true),
        ("http://[::1]", true),
        ("http://localhost", true),
        ("http://guard.example", false),
        ("http://localhost.example", false),
        ("http://localhost@guard.example", false),
        ("http://localhost:80@guard.example/", false),
        ("http://127.0.0.1.example:80", false),
        ("http://10.0.0.1", false),
        ("ftp://127.0.0.1", false),
        ("127.0.0.1:8787", false),
    ];
    for (url, expected) in table {
        assert_eq!(is_private_url(url), expected, "{url}");
    }
}
