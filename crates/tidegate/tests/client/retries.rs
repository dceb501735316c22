//! Nothing is sent twice, whatever fails.

use tidegate_client::{Caller, Reason, operation_id};
use tidegate_protocol::{Command, Request, identity::Purpose, name::Family};

use crate::{
    proxy::Way,
    site::{Limits, Site, all},
};

/// Answers of something that is no guard store, or of one that refuses.
const ANSWERS: [(&str, Reason); 7] = [
    ("HTTP/1.1 500 -\r\ncontent-length: 0\r\n\r\n", Reason::Transport),
    ("HTTP/1.1 302 -\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n", Reason::Transport),
    ("HTTP/1.1 200 -\r\ncontent-length: 2\r\n\r\n{}", Reason::Transport),
    ("HTTP/1.1 200 -\r\ncontent-length: 100\r\n\r\n{", Reason::Transport),
    (
        "HTTP/1.1 429 -\r\nretry-after: 1\r\ncontent-length: 81\r\n\r\n\
         {\"error\":{\"code\":\"guard_limited\",\"message\":\"spent for today\",\"retry_after_ms\":1}}",
        Reason::Limited,
    ),
    (
        "HTTP/1.1 503 -\r\nretry-after: 0\r\ncontent-length: 58\r\n\r\n\
         {\"error\":{\"code\":\"guard_unavailable\",\"message\":\"not now\"}}",
        Reason::Unavailable,
    ),
    (
        "HTTP/1.1 401 -\r\ncontent-length: 55\r\n\r\n{\"error\":{\"code\":\"unauthenticated\",\"message\":\"no, no\"}}",
        Reason::Authentication,
    ),
];

#[tokio::test]
async fn one_call_is_one_request() {
    let site = Site::start();
    let ways = [
        (Way::Through, None),
        (Way::Hold, Some(Reason::Timeout)),
        (Way::CutBefore, Some(Reason::Transport)),
        (Way::CutAfter, Some(Reason::Transport)),
    ];
    let answers = ANSWERS.map(|(answer, reason)| (Way::Answer(answer), Some(reason)));
    for (way, expected) in ways.into_iter().chain(answers) {
        // Once on a new connection, and once on one that was kept alive.
        for is_kept in [false, true] {
            let client = if way == Way::Hold { site.impatient() } else { site.client() };
            if is_kept {
                site.proxy.set(Way::Through);
                client.run(&looking(&client)).await.unwrap();
            }
            site.proxy.seen();
            site.proxy.set(way);
            let answer = client.run(&looking(&client)).await;
            assert_eq!(answer.err().map(|error| error.reason()), expected, "{way:?}");
            let (requests, connections) = site.proxy.seen();
            // On a busy machine a call may give up before it was sent.
            assert!(requests == 1 || (way == Way::Hold && requests == 0), "{way:?}: {requests}");
            assert!(connections <= usize::from(!is_kept), "{way:?}, kept alive: {is_kept}: {connections}");
        }
        site.proxy.set(Way::Through);
    }
}

/// The count sees a client that sends a call again.
#[tokio::test]
async fn control_a_retry_is_seen() {
    let site = Site::start();
    site.proxy.set(Way::CutBefore);
    let client = site.client();
    let request = looking(&client);
    for _ in 0..2 {
        client.run(&request).await.unwrap_err();
    }
    assert_eq!(site.proxy.seen().0, 2);
}

#[tokio::test]
async fn one_call_of_a_limit_is_one_request() {
    let site = Site::start();
    for way in [Way::Through, Way::Hold, Way::CutBefore, Way::CutAfter, Way::Answer(ANSWERS[4].0)] {
        site.proxy.set(way);
        let limits = Limits::over(&all(if way == Way::Hold { site.impatient() } else { site.client() }));
        site.proxy.seen();
        for number in 0..3 {
            let _ = limits.ask_each(number).await;
            let (requests, _) = site.proxy.seen();
            assert!(requests == 4 || (way == Way::Hold && requests < 4), "{way:?}: {requests} for four");
        }
        site.proxy.set(Way::Through);
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_before_anything_was_said_is_not_tried_again() {
    let site = Site::start();
    site.proxy.set(Way::CutAtOnce);
    let client = site.client();
    for _ in 0..3 {
        let error = client.run(&looking(&client)).await.unwrap_err();
        assert_eq!(error.reason(), Reason::Transport);
        assert_eq!(site.proxy.seen().1, 1, "one connection");
    }
}

/// A server that closes kept connections, or was restarted, costs no call.
#[tokio::test]
async fn a_connection_that_has_ended_is_replaced() {
    let site = Site::start();
    site.proxy.set(Way::ThroughAndClose);
    let client = site.client();
    for _ in 0..5 {
        let seen = client.run(&looking(&client)).await;
        // The close may cross the next request on its way: then it fails, and is not sent again either.
        assert!(seen.is_ok() || seen.unwrap_err().reason() == Reason::Transport);
        assert!(site.proxy.seen().0 <= 1);
    }
}

#[tokio::test]
async fn what_is_out_of_bounds_is_not_sent() {
    let site = Site::start();
    let client = site.client();
    let view = client.with_fairness(Some("192.0.2.7"), tidegate_client::Networks::Around, None);
    let too_many = vec![Command::get(client.digest(Purpose::Key, "k")); 9];
    let request = Request::new(operation_id().unwrap(), Family::parse("proxy").unwrap())
        .step(client.digest(Purpose::Partition, "p"), too_many);
    for error in [client.run(&request).await.unwrap_err(), view.run(&request).await.unwrap_err()] {
        assert_eq!(error.reason(), Reason::Request);
        assert!(error.to_string().contains("steps[0].commands"), "{error}");
    }
    let route = site.limits().route;
    assert!(route.check(Caller::unknown()).await.is_allowed());
    assert_eq!(site.proxy.seen(), (1, 1), "only the last one was sent");
}

fn looking(client: &tidegate_client::GuardClient) -> Request {
    let key = client.digest(Purpose::Key, "k");
    Request::new(operation_id().unwrap(), Family::parse("proxy").unwrap())
        .step(client.digest(Purpose::Partition, "p"), [Command::get(key)])
}
