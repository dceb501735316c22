//! Whether something changed what the server holds.

use serde_json::{Value, json};

use super::{
    message::{digest, get, hit, incr, one_step},
    server::Server,
};

/// One row of each kind, in a partition of its own, looked at without changing them.
#[derive(Debug)]
pub(crate) struct Watched<'a> {
    server: &'a Server,
    partition: &'static str,
    before: Value,
}

impl<'a> Watched<'a> {
    /// Makes a counter at 1, a window with one hit and a budget with one reservation in `partition`, and
    /// remembers them.
    #[track_caller]
    pub(crate) fn new(server: &'a Server, partition: &'static str) -> Self {
        server.ok(&one_step(partition, json!([incr(KEY), hit(KEY, 100), reserve(1)])));
        let mut watched = Self { server, partition, before: Value::Null };
        watched.before = watched.look();
        watched
    }

    /// The counter, the window and the budget as they are now.
    #[track_caller]
    pub(crate) fn look(&self) -> Value {
        let mut look = hit(KEY, 100);
        look["cost"] = json!(0);
        let answer = self.server.ok(&one_step(self.partition, json!([get(KEY), look, reserve(0)])));
        let results = &answer["steps"][0]["results"];
        json!({
            "counter": results[0]["value"],
            "window": results[1]["windows"][0]["used"],
            "budget": results[2]["budgets"][0]["used"],
        })
    }

    /// Whether nothing of it has changed.
    #[track_caller]
    pub(crate) fn is_unchanged(&self) -> bool {
        self.look() == self.before
    }

    /// # Panics
    /// Something has changed since `new`.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self, after: &str) {
        assert_eq!(self.look(), self.before, "after {after}");
    }
}

/// The key of all three rows.
pub(crate) const KEY: &str = "watched";

fn reserve(cost: u64) -> Value {
    let budget = json!({"key": digest(KEY), "limit": 100, "period_ms": 3_600_000});
    json!({"cmd": "res.reserve", "budgets": [budget], "cost": cost})
}
