//! Whatever is wrong with the defense, the app is served, it is counted, and the status says why.

use std::{fs, path::Path};

use serde_json::json;
use tidegate_core::policy::PolicyHead;
use tidegate_rate_limit::{LimitStore, OpenStore, StoreKind, StoreOptions};
use tidegate_store::{Key, LimitStoreExt};

use crate::{
    backend::Backend,
    log_file::LogFile,
    rig::{Rig, get, setup},
    support::{
        eventually,
        message::{incr, one_step},
        server::{Server, Setup},
        wire,
    },
};

/// One request, and no second one for a quarter of an hour.
const STRICT: &str = r#"{"mode":"enforce","rps":0.001,"burst":1}"#;
const TOKEN: &str = "configured-admin-token-0123456789abcdef";

/// A server whose store and secrets hold `STRICT`, ended: its folder is to be harmed.
fn with_a_policy() -> (Setup, Backend) {
    let rig = Rig::start();
    rig.put(STRICT);
    assert_eq!(asks(&rig, 3), [200, 429, 429]);
    let (setup, backend) = (rig.server.setup().clone(), rig.backend);
    assert_eq!(rig.server.terminate().status.code(), Some(0));
    (setup, backend)
}

fn asks(rig: &Rig, count: usize) -> Vec<u16> {
    (0..count).map(|_| rig.get("/echo", &[]).status).collect()
}

#[track_caller]
fn served_without_a_check(rig: &Rig, app: &str, condition: &str, because: &str) {
    let metric = format!("http_abuse_fail_open_total{{app=\"{app}\"}}");
    let before = rig.server.metric(&metric);
    let ask = |_| rig.wire().exchange(&get_of(app)).unwrap().status;
    assert_eq!((0..5).map(ask).collect::<Vec<_>>(), [200; 5], "{app}");
    assert_eq!(rig.server.metric(&metric), before + 5, "{app}");
    let view = rig.told(&format!("/apps/{app}/abuse"));
    assert_eq!(view["counters"]["fail_open"], before + 5, "{app}");
    assert_eq!((&view["policy"], &view["status"]["condition"]), (&json!(null), &json!(condition)), "{app}");
    let message = view["status"]["message"].as_str().unwrap();
    assert!(message.contains(because), "{app}: {message}");
}

/// The dashboard and the command line show how the app stands.
#[track_caller]
fn shown_to_people(rig: &Rig, app: &str) {
    let url = format!("http://{}", rig.server.admin);
    let verb = ["apps", "abuse", "get", app, "--url", &url];
    let said = rig.server.setup().command(&verb).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("InvalidPolicy") && said.contains("the stored policy is damaged"), "{said}");
    assert!(said.contains("5 failed open"), "{said}");

    let form = format!("token={}", rig.server.made_secret("admin_token"));
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let sign_in = wire::request("POST", "/sign-in", &headers, form.as_bytes());
    let signed_in = wire::Wire::tcp(rig.server.admin).unwrap().exchange(&sign_in).unwrap();
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    for page in ["/".to_owned(), format!("/apps/{app}")] {
        let page = wire::get_with(rig.server.admin, &page, &[("cookie", &cookie)]).unwrap();
        assert_eq!(page.status, 200, "{}", page.text());
        assert!(page.text().contains("InvalidPolicy"), "{}", page.text());
    }
    let page = wire::get_with(rig.server.admin, &format!("/apps/{app}"), &[("cookie", &cookie)]).unwrap();
    assert!(page.text().contains("Failed open") && page.text().contains("the stored policy is damaged"));
}

/// A GET of an app whose domain is its name below `example`.
fn get_of(app: &str) -> Vec<u8> {
    format!("GET /echo HTTP/1.1\r\nHost: {app}.example\r\n\r\n").into_bytes()
}

/// Writes rows into the store of a server that does not run.
fn write(setup: &Setup, rows: Vec<(Key, Vec<u8>)>) {
    let options =
        StoreOptions { path: setup.folder().join("tidegate-data"), ..StoreOptions::of(StoreKind::Embedded) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let open = OpenStore::open(&options).await.unwrap();
        let store: std::sync::Arc<dyn LimitStore> = open.limit_store();
        let (keys, values): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let written = store.update(keys, move |view| {
            for (place, value) in values.iter().enumerate() {
                view.put_lasting(place, value.as_slice());
            }
        });
        written.await.unwrap();
        open.shutdown().await;
    });
}

fn head_key(app: &str) -> Key {
    Key::of(&[b"defense", b"policy", app.as_bytes()])
}

/// The rows of an app's policy that was saved as `document`: its head, and a piece.
fn rows_of(app: &str, document: &[u8]) -> Vec<(Key, Vec<u8>)> {
    let mut head = Vec::new();
    PolicyHead::of(document, 7, 1).encode(&mut head);
    let piece = Key::of(&[b"defense", b"policy", app.as_bytes(), &0_u64.to_le_bytes()]);
    vec![(head_key(app), head), (piece, document.to_vec())]
}

#[test]
fn a_policy_row_that_is_damaged_on_the_disk() {
    let piece_is = |app, piece: &[u8]| {
        let mut rows = rows_of(app, STRICT.as_bytes());
        rows[1].1 = piece.to_vec();
        rows
    };
    let table = [
        ("garbage", vec![(head_key("garbage"), vec![0xff; 20])], "the stored policy is damaged"),
        ("nothing", vec![(head_key("nothing"), Vec::new())], "the stored policy is damaged"),
        ("another", piece_is("another", b"{}"), "the stored policy is damaged"),
        ("half", piece_is("half", b"{\"mode\":"), "the stored policy is damaged"),
        (
            "faulty",
            rows_of("faulty", br#"{"mode":"enforce","rps":5,"burst":0}"#),
            "the stored policy is invalid: burst must be 1 or more",
        ),
        ("newer", rows_of("newer", br#"{"tarpit":true}"#), "tarpit is no field of a policy"),
        ("zeros", rows_of("zeros", b"\0\0\0\0"), "the document is no JSON"),
    ];
    let backend = Backend::start();
    let setup = table.iter().fold(setup(&backend), |setup, (app, _, _)| {
        setup
            .set(&format!("apps.{app}.domains"), format!("{app}.example"))
            .set(&format!("apps.{app}.upstreams"), backend.address.to_string())
    });
    let rig = Rig { server: setup.start(), backend };
    rig.put(STRICT);
    assert_eq!(rig.server.terminate().status.code(), Some(0));
    write(&setup, table.iter().flat_map(|(_, rows, _)| rows.clone()).collect());

    let rig = Rig { server: setup.start(), backend: rig.backend };
    assert_eq!(asks(&rig, 2), [200, 429], "other apps are as they were");
    for (app, _, because) in &table {
        served_without_a_check(&rig, app, "InvalidPolicy", because);
    }
    rig.server.wait_for_log("requests served without a check");
    shown_to_people(&rig, "garbage");
    // Whoever saves a policy writes over it.
    for (app, _, _) in &table {
        let saved = rig.api("PUT", &format!("/apps/{app}/abuse"), STRICT).json();
        assert_eq!(saved["status"]["condition"], "Enforcing", "{app}");
    }
    let rig = Rig { server: rig.server.restart(), backend: rig.backend };
    for (app, _, _) in &table {
        let statuses = [(); 2].map(|()| rig.wire().exchange(&get_of(app)).unwrap().status);
        assert_eq!(statuses, [200, 429], "{app}");
    }
}

/// The engine finds its log damaged: apps are served, the guard is not, and a repair is taken up as it is.
#[test]
fn a_store_whose_file_is_damaged() {
    let (setup, backend) = with_a_policy();
    let mut log = LogFile::in_directory(&setup.folder().join("tidegate-data"));
    let first = log.batches()[0];
    log.bytes[first.middle()] ^= 0x10;
    log.save();

    let rig = Rig { server: setup.clone().even_if_not_ready().start(), backend };
    let because = format!("0000000001.log is damaged at byte {}", first.offset);
    served_without_a_check(&rig, "shop", "Pending", &because);
    assert!(rig.server.log().contains(&because), "{}", rig.server.log());
    assert_eq!(wire::get(rig.server.guard, "/readyz").unwrap().status, 503);
    let counting = one_step("p", json!([incr("k")]));
    let unserved = rig.server.rpc(&counting);
    assert_eq!((unserved.status, unserved.code().as_str()), (503, "guard_unavailable"));
    let saved = rig.api("PUT", "/apps/shop/abuse", STRICT);
    assert_eq!(saved.status, 503, "nothing is acknowledged that is not stored: {}", saved.text());

    let repaired = setup.command(&["store", "repair"]).output().unwrap();
    assert!(repaired.status.success(), "{repaired:?}");
    rig.server.wait_for_log("the store is open");
    eventually("ready", || (wire::get(rig.server.guard, "/readyz").ok()?.status == 200).then_some(()));
    eventually("checked again", || (rig.status().0 == "LogOnly").then_some(()));
    assert_eq!(rig.server.rpc(&counting).status, 200, "the guard is back, too");
    rig.put(STRICT);
    assert_eq!(asks(&rig, 2), [200, 429]);
    let rig = Rig { server: rig.server.restart(), backend: rig.backend };
    assert_eq!(asks(&rig, 2), [200, 429], "what was saved in it is kept");
}

/// Nothing of the data directory can be read, the secrets neither. Who asks shows a token of the configuration.
#[test]
fn a_store_directory_that_cannot_be_read() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 2] = [
        ("a file in its place", |data| {
            fs::remove_dir_all(data).unwrap();
            fs::write(data, b"no directory").unwrap();
        }),
        ("its log is a directory", |data| {
            let log = LogFile::in_directory(data).path;
            fs::remove_file(&log).unwrap();
            fs::create_dir(log).unwrap();
        }),
    ];
    for (what, harm) in harms {
        let (setup, backend) = with_a_policy();
        harm(&setup.folder().join("tidegate-data"));
        let tokens = format!(r#"[{{ name = "reader", token = "{TOKEN}", abilities = ["read"] }}]"#);
        let server = setup.set("admin.tokens", tokens).even_if_not_ready().start();
        let rig = Rig { server, backend };
        assert_eq!(asks(&rig, 5), [200; 5], "{what}");
        let bearer = [("authorization", concat!("Bearer ", "configured-admin-token-0123456789abcdef"))];
        let view = rig.api_with("GET", "/apps/shop/abuse", &bearer, "").json();
        assert_eq!((&view["counters"]["fail_open"], &view["policy"]), (&json!(5), &json!(null)), "{what}");
        let status = &view["status"];
        assert_eq!(status["condition"], "Pending", "{what}");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.starts_with("The policy store can't be read: ") && message.contains("directory"),
            "{message}"
        );
        let metrics = wire::get_with(rig.server.admin, "/metrics", &bearer).unwrap().text();
        assert!(metrics.contains("http_abuse_fail_open_total{app=\"shop\"} 5\n"), "{what}: {metrics}");
        assert_eq!(wire::get(rig.server.guard, "/readyz").unwrap().status, 503, "{what}");
        assert_eq!(rig.server.terminate().status.code(), Some(0), "{what}");
    }
}

/// Who has no app to serve learns at the start that nothing works.
#[test]
fn without_apps_a_store_that_cannot_be_opened_ends_the_start() {
    let setup = Setup::new();
    fs::write(setup.folder().join("tidegate-data"), b"no directory").unwrap();
    let ended = setup.try_start().expect_err("nothing to serve");
    assert_eq!(ended.status.code(), Some(78), "{}", ended.log);
    // Nor is it served where the directory is another process's: that is a fault of the configuration.
    let first = Rig::start();
    let second = first.server.setup().try_start().expect_err("two on one store");
    assert!(second.log.contains("in use by process"), "{}", second.log);
}

/// A build with debug assertions can be told to panic over a path: the binary under test is one.
#[test]
#[cfg(debug_assertions)]
fn a_decision_that_panics() {
    let backend = Backend::start();
    let server: Server = setup(&backend).variable("TEST_TIDEGATE_DECISION_PANICS_AT", "/boom").start();
    let rig = Rig { server, backend };
    rig.put(STRICT);
    let mut kept = rig.wire();
    assert_eq!(kept.exchange(&get("/echo", &[])).unwrap().status, 200);
    for _ in 0..10 {
        assert_eq!(kept.exchange(&get("/boom?x=1", &[])).unwrap().status, 200, "it is served");
    }
    assert_eq!(kept.exchange(&get("/echo", &[])).unwrap().status, 429, "others are decided about as before");
    assert_eq!(rig.server.metric(r#"http_abuse_fail_open_total{app="shop"}"#), 10);
    assert_eq!(rig.counted("fail_open"), json!(10));
    assert_eq!(rig.status().0, "Enforcing");
    rig.server.wait_for_log("requests served without a check");
    let log = rig.told("/apps/shop/access-log");
    let outcomes = log["entries"].as_array().unwrap().iter().filter(|entry| entry["outcome"] == "fail_open");
    assert_eq!(outcomes.count(), 10);
}
