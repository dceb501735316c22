//! Requests that spend a family's budget, and servers with budgets so small that they can be spent.

use serde_json::{Value, json};
use tidegate_store::clock::wall_ms;

use super::{
    eventually,
    message::{digest, fresh_op, get},
    server::Setup,
    wire::Reply,
};

pub(crate) const DAY_MS: u64 = 86_400_000;

/// The family `proxy` with this budget, and no other with any. It is not handed out at the end of a UTC day,
/// which would begin every budget afresh amid the test.
pub(crate) fn budgeted(commands: u64) -> Setup {
    split(commands, &format!("proxy={commands}"))
}

/// Families with these budgets, out of so much for all.
pub(crate) fn split(daily_budget: u64, family_budgets: &str) -> Setup {
    eventually("the next UTC day", || (until_midnight_ms() > MARGIN_MS).then_some(()));
    let setup = Setup::new().set("guard.daily_budget", daily_budget.to_string());
    setup.set("guard.family_budgets", family_budgets)
}

/// From now to the next UTC day.
pub(crate) fn until_midnight_ms() -> u64 {
    DAY_MS - wall_ms() % DAY_MS
}

/// Longer than one of these tests runs, and shorter than `eventually` waits.
const MARGIN_MS: u64 = 15_000;

/// A request of `commands` looks, under a fresh operation id.
pub(crate) fn looks(family: &str, commands: usize) -> Value {
    let step = |first: usize| json!({"partition": digest("looked at"), "commands": vec![get("k"); 8.min(commands - first)]});
    let steps: Vec<_> = (0..commands).step_by(8).map(step).collect();
    json!({"op": fresh_op(), "family": family, "steps": steps})
}

/// The request, with an identity: an axis such as `source` or `network/24`, and a name.
pub(crate) fn carrying(mut request: Value, axis: &str, name: &str) -> Value {
    let digest = digest(name);
    match axis.strip_prefix("network/") {
        None => request["fairness"][axis] = json!(digest),
        Some(prefix) => {
            let prefix: u8 = prefix.parse().expect("a prefix");
            request["fairness"]["networks"] = json!([{"prefix": prefix, "digest": digest}]);
        }
    }
    request
}

/// # Panics
/// The reply is not a refusal of this code, whose reason or axis is `why`, and which says when to ask again: in
/// 30 s, or on the next UTC day.
#[track_caller]
pub(crate) fn assert_refused(reply: &Reply, code: &str, why: &str) {
    let error = &reply.json()["error"];
    let (status, field) = if code == "guard_limited" { (429, "axis") } else { (503, "reason") };
    assert_eq!((reply.status, &error["code"], &error[field]), (status, &json!(code), &json!(why)), "{error}");
    let wait_ms = error["retry_after_ms"].as_u64().expect("a number");
    let seconds = wait_ms.div_ceil(1000).to_string();
    assert_eq!(reply.header("retry-after"), Some(seconds.as_str()));
    if matches!(why, "operator_stop" | "budget_insufficient") {
        assert_eq!(wait_ms, 30_000, "{error}");
    } else {
        // The store's clock may be a little ahead of the system's.
        let left_ms = until_midnight_ms();
        assert!(wait_ms.abs_diff(left_ms) < MARGIN_MS, "{error}: midnight is {left_ms} ms from now");
    }
    let fields = error.as_object().expect("an object").len();
    assert_eq!(fields, 4, "code, {field}, message, retry_after_ms and nothing else: {error}");
}
