//! How these tests raise alerts: a store of 1000 rows that is filled.

use serde_json::json;

use crate::support::{
    message::{digest, set, steps},
    server::Server,
};

/// Writes rows until nearly nine in ten are held: `limit-store-filling`.
pub(crate) fn begin_to_fill(server: &Server) {
    for batch in 0..24 {
        assert_eq!(write(server, batch), 200, "864 rows and a few fit");
    }
}

/// Writes rows until they are refused: `limit-store-full`.
pub(crate) fn fill(server: &Server) {
    let refused = (24..40).find(|batch| write(server, *batch) != 200);
    assert!(refused.is_some(), "the store takes more than it may hold");
}

/// The partition whose rows are written, and a part of each value.
pub(crate) const NAME: &str = "alice@example.com";
pub(crate) const STORED: &str = "a value that somebody stored";

/// 32 records and 4 operation records.
fn write(server: &Server, batch: usize) -> u16 {
    let record = |number: usize| set(&format!("{batch} {number}"), STORED, "always");
    let step = |step: usize| json!({"partition": digest(NAME), "commands": (0..8).map(|number| record(step * 8 + number)).collect::<Vec<_>>()});
    let mut request = steps((0..4).map(step).collect());
    request["fairness"] = json!({"source": digest(NAME), "principal": digest(NAME)});
    server.rpc(&request).status
}
