//! An answer that comes after the time-out changes nothing for who asked; the same operation id tells what
//! became of it.

use std::time::Duration;

use tidegate_client::{AttemptBudget, AttemptLimiter, GuardClient, Reason, operation_id};
use tidegate_protocol::{Command, CommandResult, Request, Response, identity::Purpose, name::Family};

use crate::{
    proxy::Way,
    site::{Limits, Site, all, caller},
};

#[tokio::test]
async fn the_same_operation_id_gives_the_original_result() {
    let site = Site::start();
    // Long enough to be executed on a busy machine before it gives up.
    let impatient = site.client();
    for (way, reason) in [(Way::Hold, Reason::Timeout), (Way::CutAfter, Reason::Transport)] {
        let counting = counting(&impatient, operation_id().unwrap(), way);
        site.proxy.set(way);
        assert_eq!(impatient.run(&counting).await.unwrap_err().reason(), reason);
        // It is let go, and nobody listens any more.
        site.proxy.set(Way::Through);
        for _ in 0..2 {
            let answer = site.client().run(&counting).await.unwrap();
            assert!(answer.steps[0].replayed, "{way:?}: it was executed the first time");
            assert_eq!(sum(&answer), 1, "{way:?}");
        }
        // A fresh id is another operation.
        let another =
            site.client().run(&self::counting(&impatient, operation_id().unwrap(), way)).await.unwrap();
        assert_eq!((sum(&another), another.steps[0].replayed), (2, false));
    }
}

#[tokio::test]
async fn an_attempt_whose_answer_was_late_stays_refused_and_charged() {
    let site = Site::start();
    let limiter = |client| {
        let budget = AttemptBudget::new(1, Duration::from_secs(900));
        AttemptLimiter::new(&all(client), "late", budget, budget).unwrap()
    };
    site.proxy.set(Way::Hold);
    let refusal = limiter(site.client()).begin(caller(1), "alice").await.into_result().unwrap_err();
    assert_eq!(refusal.code.status(), 503);
    site.proxy.wait_until_held(1);
    site.proxy.set(Way::Through);
    let refusal = limiter(site.client()).begin(caller(1), "alice").await.into_result().unwrap_err();
    assert_eq!(refusal.code.status(), 429, "the late reservation counts");
}

#[tokio::test]
async fn a_hanging_store_holds_no_more_than_its_share_of_callers() {
    let site = Site::start();
    site.proxy.set(Way::Answer(""));
    let client = hanging();
    let asked = (0..tidegate_client::CALLS_MAX + 8).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.run(&looking(&client)).await.unwrap_err().reason() })
    });
    let asked: Vec<_> = asked.collect();
    let mut reasons = Vec::new();
    for call in asked {
        reasons.push(call.await.unwrap());
    }
    let count = |reason| reasons.iter().filter(|other| **other == reason).count();
    assert_eq!(count(Reason::Unavailable), 8, "these fail at once");
    assert_eq!(count(Reason::Timeout), tidegate_client::CALLS_MAX);
    // Those who waited have made room.
    assert_eq!(client.run(&looking(&client)).await.unwrap_err().reason(), Reason::Timeout);
    assert_eq!(Limits::over(&all(site.client())).route.denials_remembered(), 0);
}

/// A client of a socket that takes connections and never answers.
fn hanging() -> GuardClient {
    let folder = Box::leak(Box::new(tempfile::tempdir().unwrap()));
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            held.push(stream);
        }
    });
    let pepper = tidegate_core::secret::Secret::new(crate::site::PEPPER).unwrap();
    GuardClient::over_socket(path, &pepper).with_timeout(tidegate_client::TIMEOUT_MAX)
}

fn counting(client: &GuardClient, op: tidegate_protocol::name::OperationId, way: Way) -> Request {
    let key = client.digest(Purpose::Key, &format!("{way:?}"));
    Request::new(op, Family::parse("proxy").unwrap())
        .step(client.digest(Purpose::Partition, "late"), [Command::increment(key, 1, 600_000)])
}

fn looking(client: &GuardClient) -> Request {
    let key = client.digest(Purpose::Key, "k");
    Request::new(operation_id().unwrap(), Family::parse("proxy").unwrap())
        .step(client.digest(Purpose::Partition, "p"), [Command::get(key)])
}

fn sum(answer: &Response) -> i64 {
    match answer.steps[0].results[0] {
        CommandResult::Increment { value, .. } => value,
        ref other => panic!("{other:?}"),
    }
}
