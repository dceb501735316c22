//! A receiver that a running process is told of.

use std::fs;

use rustix::process::Signal;

use crate::{
    raise::{begin_to_fill, fill},
    receiver::{Receiver, SECRET, TARGET, setup},
    support::server::Server,
};

#[test]
fn a_reload_brings_a_receiver_and_takes_it_away() {
    let receiver = Receiver::answering(&["200 OK"]);
    let server = setup().start();
    begin_to_fill(&server);
    server.wait_for_log("limit-store-filling");
    let url = format!("http://{}{TARGET}", receiver.address);
    reload(&server, &format!("[admin]\nwebhook_url = \"{url}\"\nwebhook_secret = \"{SECRET}\"\n"));
    server.wait_for_log("admin.webhook_secret, admin.webhook_url");
    fill(&server);
    let post = receiver.next();
    assert_eq!(post.kind(), "limit-store-full", "what was raised before is not kept");
    assert!(post.is_signed(SECRET, TARGET));
    assert_eq!(
        server.metric(r#"tidegate_alerts_total{kind="limit-store-filling"}"#),
        1,
        "counted all the same"
    );

    reload(&server, &format!("[admin]\nwebhook_url = \"{url}\"\n"));
    server.wait_for_log("reload-refused");
    let log = server.terminate().log;
    assert!(!log.contains("Zq7-only-for-us") && !log.contains(SECRET), "{log}");
}

fn reload(server: &Server, text: &str) {
    fs::write(server.setup().folder().join("tidegate.toml"), text).unwrap();
    server.signal(Signal::HUP);
}
