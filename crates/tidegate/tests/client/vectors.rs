//! The server's part of the vectors, and the names that the ready-made limits really use.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{
    AttemptBudget, AttemptLimiter, BulkRead, BulkReadGuard, BulkReadLimits, Caller, GuardClient, ReplayFence,
    RouteLimiter, Token, WindowLimit,
};
use tidegate_core::secret::Secret;
use tidegate_store::clock::wall_ms;

use crate::{
    site::all,
    support::{
        message::fresh_op,
        server::{SECRET, Server},
    },
};

fn vectors(part: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../../../../protocol/vectors.json")).unwrap();
    all[part].as_array().unwrap().clone()
}

#[test]
fn requests_at_and_past_each_bound() {
    let server = Server::start();
    for vector in vectors("requests") {
        let reply = server.rpc(&vector["request"]);
        match vector["refused_at"].as_str() {
            None => assert_eq!(reply.status, 200, "{}: {}", vector["name"], reply.text()),
            Some(place) => {
                assert_eq!(reply.status, 400, "{}", vector["name"]);
                let message = reply.message();
                assert!(message.starts_with(&format!("{place}: ")), "{}: {message}", vector["name"]);
            }
        }
    }
}

/// An operator forgets each partition of the vectors by its digest: the rows that the limits wrote are there.
#[tokio::test]
async fn names_of_the_ready_made_limits() {
    let server = Server::start();
    let secret = |text| Secret::new(text).unwrap();
    let pepper = secret("pepper-for-test-vectors-0123456789abcdef");
    let client = GuardClient::new(&format!("http://{}", server.guard), secret(SECRET), &pepper).unwrap();
    for vector in vectors("names") {
        use_limit(&client.clone().with_timeout(tidegate_client::TIMEOUT_MAX), &vector).await;
        for key in vector["keys"].as_array().unwrap() {
            let forget = json!({"partition": vector["partition_digest"], "key": key["digest"]});
            let forgotten = server.order("/control/forget", &forget.to_string());
            assert_eq!(forgotten["forgotten"], 1, "{}: {}", vector["partition"], key["value"]);
        }
    }
}

async fn use_limit(client: &GuardClient, vector: &Value) {
    let (selection, of) = (all(client.clone()), &vector["of"]);
    let scope = of["scope"].as_str().unwrap();
    let caller = of["address"].as_str().map_or_else(Caller::unknown, Caller::at);
    let caller = of["principal"].as_str().map_or(caller, |principal| caller.principal(principal));
    let periods = of["periods_ms"].as_array().into_iter().flatten();
    let windows: Vec<_> =
        periods.map(|ms| WindowLimit::sliding(100, Duration::from_millis(ms.as_u64().unwrap()))).collect();
    let allowed = match vector["limit"].as_str().unwrap() {
        "route" => RouteLimiter::new(&selection, scope, windows).unwrap().check(caller).await.is_allowed(),
        "bulk_read.source" | "bulk_read.actor" => {
            let guard = BulkReadGuard::new(&selection, scope, BulkReadLimits::default()).unwrap();
            let actor = of["actor"].as_str().map(|actor| BulkRead::by(caller, actor).proven());
            // Without an actor it is a 401, and the source's windows are charged.
            guard.check(actor.unwrap_or(BulkRead::unverified(caller))).await.is_allowed() || actor.is_none()
        }
        "replay" => {
            let (id, ends_at_ms) = (of["token"].as_str().unwrap(), wall_ms() + 60_000);
            let token = Token { id, ends_at_ms, principal: &fresh_op() };
            ReplayFence::new(&selection, scope).unwrap().claim(token, caller).await.is_allowed()
        }
        "attempt" => {
            let budget = AttemptBudget::new(5, Duration::from_secs(900));
            let limiter = AttemptLimiter::new(&selection, scope, budget, budget).unwrap();
            limiter.begin(caller, of["target"].as_str().unwrap()).await.is_allowed()
        }
        other => panic!("{other}"),
    };
    assert!(allowed, "{vector}");
}
