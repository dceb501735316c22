//! A store that is full, of records and then of identities: operators still get through.

use serde_json::{Value, json};

use crate::support::{
    message::{digest, set, steps},
    server::{Server, Setup},
    spending::{assert_refused, carrying, looks},
};

const ROWS_MAX: usize = 1_000;

#[test]
fn an_operator_gets_through_to_a_store_that_takes_nothing_more() {
    let server = Setup::new().set("store.max_entries", ROWS_MAX.to_string()).start();
    server.ok(&carrying(looks("proxy", 1), "source", "known"));
    fill_with_records(&server);
    // A new identity is taken, since it needs a row beside those that count.
    assert_eq!(visit(&server, 0).0, 200);
    fill_with_identities(&server);

    // Who is known goes on.
    assert_eq!(server.rpc(&carrying(looks("proxy", 1), "source", "known")).status, 200);
    let stopped = server.order("/control/stop", r#"{"reason":"a flood"}"#);
    assert_eq!(stopped["fence"]["stopped"], true);
    assert_refused(&server.rpc(&looks("proxy", 1)), "guard_stopped", "operator_stop");
    server.order("/control/resume", "");
    server.order("/control/fairness/reset", r#"{"family":"proxy"}"#);
    assert_eq!(server.audit().len(), 3);
    server.order("/control/forget", &json!({"partition": digest("crowd")}).to_string());
    assert_eq!(server.audit()[0]["action"], "forget");
    assert_eq!(visit(&server, ROWS_MAX).0, 200, "there is room again");
}

fn fill_with_records(server: &Server) {
    let record = |number: usize| set(&format!("record {number}"), "kept", "always");
    let refused = (0..ROWS_MAX).step_by(8).any(|first| {
        let step = json!({"partition": digest("crowd"), "commands": (first..first + 8).map(record).collect::<Vec<Value>>()});
        server.rpc(&steps(json!([step]))).status == 503
    });
    assert!(refused, "more records than there is room for");
}

fn fill_with_identities(server: &Server) {
    let refused =
        (1..ROWS_MAX).find_map(|number| Some(visit(server, number)).filter(|(status, _)| *status != 200));
    assert_eq!(refused, Some((503, "guard_unavailable".to_owned())));
}

/// One look of a source and a principal that nobody has seen before.
fn visit(server: &Server, number: usize) -> (u16, String) {
    let request = carrying(looks("offline", 1), "source", &format!("source {number}"));
    let reply = server.rpc(&carrying(request, "principal", &format!("principal {number}")));
    (reply.status, reply.code())
}
