//! Secrets that come and go without a restart, and a guard whose secrets can't be used.

use std::{fs, path::Path};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    eventually,
    message::{fresh_op, incr, one_step, post_to},
    operator::call,
    server::{Server, Setup},
    spending::{budgeted, carrying, looks},
    wire::{self, Reply, Wire},
};

const FIRST: &str = "first-secret-0123456789abcdef-012345678";
const SECOND: &str = "second-secret-0123456789abcdef-01234567";
const THIRD: &str = "third-secret-0123456789abcdef-012345678";
const TOKEN: &str = "first-operator-token-0123456789abcdef-01";

#[test]
fn the_current_and_the_previous_secret() {
    let server = Setup::new().set("guard.secrets", format!("{SECOND},{FIRST}")).start();
    assert_eq!([FIRST, SECOND, THIRD].map(|secret| status(&server, secret)), [200, 200, 401]);
}

#[test]
fn a_reload_adds_and_removes_and_a_faulty_one_changes_nothing() {
    let setup = Setup::new().unset("guard.secrets").set("guard.secrets_file", "signing");
    let file = setup.folder().join("signing");
    fs::write(&file, FIRST).unwrap();
    let server = setup.start();
    let all = || [FIRST, SECOND, THIRD].map(|secret| status(&server, secret));
    assert_eq!(all(), [200, 401, 401]);

    reload(&server, &file, &format!("{SECOND}\n{FIRST}\n"));
    eventually("the second secret", || (all() == [200, 200, 401]).then_some(()));

    reload(&server, &file, &format!("{THIRD}\nshort\n"));
    server.wait_for_log("reload-refused");
    assert_eq!(all(), [200, 200, 401], "the secrets in force stay");

    reload(&server, &file, &format!("{SECOND}\r\n"));
    eventually("the first secret's end", || (all() == [401, 200, 401]).then_some(()));
    let log = server.log();
    assert!([FIRST, SECOND, THIRD].iter().all(|secret| !log.contains(secret)), "{log}");
}

/// What has been spent, and a stop, outlive every secret but the one that names the rows.
#[test]
fn what_a_new_secret_begins_anew() {
    // No other test's rows are named under it.
    let (store_secret, another) = (fresh_op(), fresh_op());
    let cases = [
        ("guard.secrets", SECOND, true),
        ("guard.operator_token", "second-operator-token-0123456789abcdef-0", true),
        ("store.secret", &another, false),
    ];
    for (key, secret, is_kept) in cases {
        let store_secret = format!("{store_secret}, {key}");
        let setup = budgeted(100).set("guard.secrets", FIRST).set("store.secret", store_secret);
        let server = setup.set("guard.operator_token", TOKEN).start();
        let visit = |server: &Server, secret: &str| {
            let body = carrying(looks("proxy", 5), "source", "it").to_string();
            post_to(server.guard, secret, body.as_bytes()).unwrap().status
        };
        assert_eq!([visit(&server, FIRST), visit(&server, FIRST)], [200, 429]);
        operate(&server, TOKEN, "POST", "/control/stop");
        let setup = server.setup().clone().set(key, secret);
        drop(server);

        let server = setup.start();
        let token = if key == "guard.operator_token" { secret } else { TOKEN };
        let state = operate(&server, token, "GET", "/control/state");
        assert_eq!(state["fence"]["stopped"], is_kept, "{key}");
        assert_eq!(state["families"]["proxy"]["used"], if is_kept { 5 } else { 0 }, "{key}");
        operate(&server, token, "POST", "/control/resume");
        let secret = if key == "guard.secrets" { secret } else { FIRST };
        assert_eq!(visit(&server, secret), if is_kept { 429 } else { 200 }, "{key}");
        let entries = operate(&server, token, "GET", "/control/audit")["entries"].as_array().unwrap().len();
        assert_eq!(entries, if is_kept { 2 } else { 1 }, "{key}");
    }
}

#[test]
fn line_ends_after_a_secret_are_the_editors() {
    for end in ["", "\n", "\r\n", "\n\n"] {
        let setup = Setup::new().unset("guard.secrets").set("guard.secrets_file", "signing");
        fs::write(setup.folder().join("signing"), format!("{FIRST}{end}")).unwrap();
        assert_eq!(status(&setup.start(), FIRST), 200, "{end:?}");
    }
}

#[test]
fn a_guard_without_usable_secrets_answers_503_while_the_process_lives() {
    let blank = " ".repeat(40);
    let outer_space = format!("{FIRST} ");
    let marked = format!("\u{feff}{FIRST}");
    let table = [
        "",
        "   ",
        &blank,
        "short",
        "change-me-in-production-0123456789-abc",
        &outer_space,
        &marked,
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    for secret in table {
        let setup = Setup::new().unset("guard.secrets").set("guard.secrets_file", "signing");
        let file = setup.folder().join("signing");
        fs::write(&file, secret).unwrap();
        let server = setup.even_if_not_ready().start();
        assert_eq!(probes(&server), [200, 503], "{secret:?}");
        assert_unavailable(&rpc(&server, FIRST));
        server.wait_for_log("guard-misconfigured");
        server.wait_for_log("guard.secrets_file");
        let log = server.log();
        assert!(secret.trim().len() < 5 || !log.contains(secret), "{log}");
    }
}

#[test]
fn a_reload_mends_a_guard_that_could_not_be_served() {
    let setup = Setup::new().set("guard.secrets", "short").even_if_not_ready();
    let server = setup.start();
    assert_unavailable(&rpc(&server, FIRST));
    drop(server);

    let setup = Setup::new().unset("guard.secrets").set("guard.secrets_file", "signing").even_if_not_ready();
    let file = setup.folder().join("signing");
    let server = setup.start();
    assert_unavailable(&rpc(&server, FIRST));
    reload(&server, &file, FIRST);
    eventually("the mended guard", || (status(&server, FIRST) == 200).then_some(()));
    assert_eq!(probes(&server), [200, 200]);
}

#[track_caller]
fn operate(server: &Server, token: &str, method: &str, target: &str) -> Value {
    let reply = Wire::tcp(server.guard).unwrap().exchange(&call(token, method, target, "")).unwrap();
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    reply.json()
}

fn probes(server: &Server) -> [u16; 2] {
    ["/healthz", "/readyz"].map(|path| wire::get(server.guard, path).unwrap().status)
}

fn reload(server: &Server, file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    server.signal(Signal::HUP);
}

fn status(server: &Server, secret: &str) -> u16 {
    rpc(server, secret).status
}

fn rpc(server: &Server, secret: &str) -> Reply {
    let body = one_step("rotation", json!([incr("k")])).to_string();
    post_to(server.guard, secret, body.as_bytes()).unwrap()
}

#[track_caller]
fn assert_unavailable(reply: &Reply) {
    assert_eq!((reply.status, reply.code().as_str()), (503, "guard_unavailable"));
    assert_eq!(reply.header("retry-after"), Some("30"));
    assert_eq!(reply.json()["error"]["retry_after_ms"], 30_000);
}
