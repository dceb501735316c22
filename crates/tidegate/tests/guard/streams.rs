//! HTTP/2 streams that are given up: their connection and the server go on.

use serde_json::json;

use crate::{
    http2::Http2,
    support::{
        message::{incr, one_step},
        server::{Server, Setup},
    },
};

#[test]
fn streams_that_are_reset_half_way_leave_the_connection_free() {
    let server = Server::start();
    let http2 = Http2::connect(server.guard);
    // More in all than may be open at once.
    for round in 0..60 {
        let begun: Vec<_> = (0..10)
            .map(|_| {
                let body = one_step("half", json!([incr("k")])).to_string();
                let mut stream = http2.begin(body.as_bytes());
                http2.send(&mut stream, &body.as_bytes()[..50], false).unwrap();
                stream
            })
            .collect();
        let whole = http2.post(one_step("whole", json!([incr("k")])).to_string().as_bytes());
        assert_eq!(whole.json()["steps"][0]["results"][0]["value"], round + 1);
        begun.into_iter().for_each(crate::http2::Stream::reset);
    }
    assert_eq!(server.counter("half", "k"), json!(null));
    assert_eq!(server.counter("whole", "k"), json!("60"));
}

/// A flood of streams that are begun and reset at once: the connection may be ended over it, the others are
/// served, and so is the next connection.
#[test]
fn a_flood_of_resets_harms_nobody_else() {
    let server = Server::start();
    let honest = Http2::connect(server.guard);
    for _ in 0..5 {
        let flooding = Http2::connect(server.guard);
        for _ in 0..200 {
            let body = one_step("flood", json!([incr("k")])).to_string();
            let Some(stream) = flooding.try_begin(body.as_bytes()) else { break };
            stream.reset();
        }
        let reply = honest.post(one_step("honest", json!([incr("k")])).to_string().as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(server.run("honest", incr("k"))["value"], 6);
}

/// Silent streams do not keep the body's time-out from coming.
#[test]
fn a_stream_whose_body_stops_is_answered_408_and_the_others_go_on() {
    let server = Setup::new().set("guard.body_timeout_ms", "300").start();
    let http2 = Http2::connect(server.guard);
    let body = one_step("stops", json!([incr("k")])).to_string();
    let mut stopped = http2.begin(body.as_bytes());
    http2.send(&mut stopped, &body.as_bytes()[..50], false).unwrap();
    let other = http2.post(one_step("goes on", json!([incr("k")])).to_string().as_bytes());
    assert_eq!(other.status, 200);
    assert_eq!(http2.answer(stopped).unwrap().status, 408);
    let other = http2.post(one_step("goes on", json!([incr("k")])).to_string().as_bytes());
    assert_eq!(other.json()["steps"][0]["results"][0]["value"], 2);
    assert_eq!(server.counter("stops", "k"), json!(null));
}

#[test]
fn a_head_that_is_too_long_is_refused_on_its_stream_alone() {
    let server = Server::start();
    let http2 = Http2::connect(server.guard);
    let long = "a".repeat(40_000);
    let stream = http2.begin_with("POST", "/v1/rpc", &[("x-long", &long)]);
    match http2.answer(stream) {
        Ok(reply) => assert!(matches!(reply.status, 431 | 401), "{reply:?}"),
        Err(error) => assert!(error.is_reset(), "{error}"),
    }
    let reply = http2.post(one_step("after", json!([incr("k")])).to_string().as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
}
