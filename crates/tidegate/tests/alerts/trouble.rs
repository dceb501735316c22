//! Receivers that are down, refuse, or never answer.

use std::time::Duration;

use crate::{
    raise::{begin_to_fill, fill},
    receiver::{Receiver, SECRET, TARGET},
    support::{
        eventually,
        message::get,
        now,
        server::{Ended, Server},
    },
};

#[test]
fn a_receiver_in_trouble_is_asked_again_and_the_next_alert_waits_for_its_turn() {
    let receiver = Receiver::answering(&["500 Internal Server Error", "503 Service Unavailable", "200 OK"]);
    let server = receiver.of_alerts().start();
    begin_to_fill(&server);
    fill(&server);
    let posts = [(); 4].map(|()| receiver.next());
    let kinds = posts.each_ref().map(|post| post.kind().replace("limit-store-", ""));
    assert_eq!(kinds, ["filling", "filling", "filling", "full"]);
    assert!(posts[..3].iter().all(|post| post.body == posts[0].body && post.is_signed(SECRET, TARGET)));
    let signatures = posts.each_ref().map(|post| post.header("tidegate-signature"));
    assert!(signatures[0] != signatures[1] && signatures[1] != signatures[2], "each attempt is signed anew");
    eventually("both delivered", || (deliveries(&server) == [2, 0]).then_some(()));
    assert!(receiver.has_no_more());
    assert!(!server.terminate().log.contains("webhook-failed"));
}

#[test]
fn a_redirect_is_not_followed_and_a_refusal_is_not_asked_again() {
    let receiver =
        Receiver::answering(&["307 Temporary Redirect\r\nlocation: /hooks/elsewhere", "403 Forbidden"]);
    let server = receiver.of_alerts().set("log.level", "trace").start();
    begin_to_fill(&server);
    fill(&server);
    for kind in ["limit-store-filling", "limit-store-full"] {
        let post = receiver.next();
        assert_eq!((post.kind().as_str(), post.line), (kind, format!("POST {TARGET} HTTP/1.1")));
    }
    eventually("both failed", || (deliveries(&server) == [0, 2]).then_some(()));
    assert!(receiver.has_no_more());
    let log = server.terminate().log;
    assert_eq!(log.matches("webhook-failed").count(), 2, "{log}");
    assert!(log.contains("307 Temporary Redirect") && log.contains("403 Forbidden"), "{log}");
    assert_tells_no_secret(&log);
}

#[test]
fn a_receiver_that_never_answers_holds_nobody_up() {
    let receiver = Receiver::answering(&[""]);
    let server = receiver.of_alerts().start();
    begin_to_fill(&server);
    fill(&server);
    receiver.next();
    let began = now();
    for _ in 0..20 {
        server.run("anybody", get("k"));
    }
    assert!(began.elapsed() < Duration::from_secs(4), "less than one attempt: {:?}", began.elapsed());
    let ended = ended_soon(server);
    assert!(ended.log.contains("webhook-failed") && ended.log.contains("alerts=2"), "{}", ended.log);
    assert_tells_no_secret(&ended.log);
}

/// The last alert is on its way when the process is told to stop.
#[test]
fn what_waits_at_the_stop_is_delivered() {
    let receiver = Receiver::answering(&["200 OK"]);
    let server = receiver.of_alerts().start();
    begin_to_fill(&server);
    fill(&server);
    let ended = ended_soon(server);
    assert!(!ended.log.contains("webhook-failed"), "{}", ended.log);
    assert_eq!([receiver.next().kind(), receiver.next().kind()], ["limit-store-filling", "limit-store-full"]);
}

/// Delivered ones and failed ones.
fn deliveries(server: &Server) -> [u64; 2] {
    ["delivered", "failed"]
        .map(|outcome| server.metric(&format!("tidegate_webhook_deliveries_total{{outcome=\"{outcome}\"}}")))
}

#[track_caller]
fn ended_soon(server: Server) -> Ended {
    let began = now();
    let ended = server.terminate();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
    assert!(ended.log.contains("good bye"), "{}", ended.log);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    ended
}

#[track_caller]
fn assert_tells_no_secret(log: &str) {
    assert!(!log.contains("Zq7-only-for-us") && !log.contains(SECRET) && !log.contains("v1="), "{log}");
}
