//! Many at once: one effect, one winner, never over a limit.

use std::{
    net::SocketAddr,
    sync::{Arc, Barrier},
    thread,
};

use serde_json::{Value, json};

use crate::{
    http2::Http2,
    support::{
        message::{hit, incr, one_step, post_to, set, signed},
        server::{SECRET, Server},
        wire::{Reply, Wire},
    },
};

const ROUNDS: usize = 5;

#[test]
fn twenty_deliveries_of_one_operation_have_one_effect() {
    let server = Server::start();
    for round in 0..ROUNDS {
        let partition = format!("round {round}");
        let request = one_step(&partition, json!([incr("k"), set("claim", "v", "nx")]));
        let body = request.to_string().into_bytes();
        for replies in [at_once(server.guard, vec![body.clone(); 20]), over_http2(&server, &vec![body; 20])] {
            let first = &replies[0]["steps"][0]["results"];
            assert!(replies.iter().all(|reply| reply["steps"][0]["results"] == *first), "{replies:?}");
            assert_eq!(first[0]["value"], 1);
            let fresh = replies.iter().filter(|reply| reply["steps"][0]["replayed"] == false).count();
            assert!(fresh <= 1, "{fresh} were executed");
        }
        assert_eq!(server.counter(&partition, "k"), json!("1"));
    }
}

#[test]
fn fifty_claims_have_one_winner() {
    let server = Server::start();
    for round in 0..ROUNDS {
        let partition = format!("round {round}");
        let claim = |index| one_step(&partition, json!([set("owner", &format!("claimant {index}"), "nx")]));
        let bodies = (0..50).map(|index| claim(index).to_string().into_bytes()).collect();
        let replies = at_once(server.guard, bodies);
        let result = |reply: &Value| reply["steps"][0]["results"][0].clone();
        let winners: Vec<_> = (0..50).filter(|index| result(&replies[*index])["written"] == true).collect();
        assert_eq!(winners.len(), 1, "{winners:?}");
        let owner = json!(format!("claimant {}", winners[0]));
        let losers = replies.iter().map(result).filter(|result| result["written"] == false);
        assert!(losers.clone().all(|result| result["current"] == owner));
        assert_eq!(losers.count(), 49);
        assert_eq!(server.counter(&partition, "owner"), owner);
    }
}

#[test]
fn fifty_first_requests_at_once_get_five_places() {
    let server = Server::start();
    for round in 0..ROUNDS {
        for way in ["connections", "streams"] {
            let partition = format!("{way} {round}");
            let bodies: Vec<_> = (0..50)
                .map(|_| one_step(&partition, json!([hit("k", 5)])).to_string().into_bytes())
                .collect();
            let replies = match way {
                "streams" => over_http2(&server, &bodies),
                _ => at_once(server.guard, bodies),
            };
            let allowed = |reply: &&Value| reply["steps"][0]["results"][0]["allowed"] == true;
            assert_eq!(replies.iter().filter(allowed).count(), 5, "{partition}");
            let denied = replies.iter().filter(|reply| reply["denied"] == true).count();
            assert_eq!(denied, 45, "{partition}");
            let mut look = hit("k", 5);
            look["cost"] = json!(0);
            assert_eq!(server.run(&partition, look)["windows"][0]["used"], 5);
        }
    }
}

#[test]
fn no_increment_is_lost() {
    let server = Server::start();
    let bodies: Vec<_> =
        (0..50).map(|_| one_step("sum", json!([incr("k")])).to_string().into_bytes()).collect();
    let mut seen: Vec<_> = at_once(server.guard, bodies)
        .iter()
        .map(|reply| reply["steps"][0]["results"][0]["value"].as_u64().unwrap())
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=50).collect::<Vec<_>>());
}

/// Sends each body on a connection of its own, the last byte of all at once.
pub(crate) fn at_once(address: SocketAddr, bodies: Vec<Vec<u8>>) -> Vec<Value> {
    let barrier = Arc::new(Barrier::new(bodies.len()));
    let send = |body: Vec<u8>| {
        let barrier = Arc::clone(&barrier);
        thread::spawn(move || -> Reply {
            let mut wire = Wire::tcp(address).unwrap();
            let request = signed(SECRET, &body);
            let (most, last) = request.split_at(request.len() - 1);
            wire.send(most).unwrap();
            barrier.wait();
            wire.exchange(last).unwrap()
        })
    };
    let threads: Vec<_> = bodies.into_iter().map(send).collect();
    threads.into_iter().map(|thread| executed(thread.join().expect("it was answered"))).collect()
}

fn over_http2(server: &Server, bodies: &[Vec<u8>]) -> Vec<Value> {
    Http2::connect(server.guard).post_all(bodies).into_iter().map(executed).collect()
}

#[track_caller]
fn executed(reply: Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// The control: a limit kept by looking first and counting afterwards is overrun by the same fifty.
#[test]
fn the_same_fifty_overrun_a_look_followed_by_a_count() {
    let server = Server::start();
    let address = server.guard;
    let barrier = Arc::new(Barrier::new(50));
    let attempt = |_| {
        let barrier = Arc::clone(&barrier);
        thread::spawn(move || {
            let mut look = hit("k", 5);
            look["cost"] = json!(0);
            let run = |command: Value| {
                let body = one_step("look", json!([command])).to_string();
                executed(post_to(address, SECRET, body.as_bytes()).unwrap())["steps"][0]["results"][0].clone()
            };
            let has_room = run(look)["windows"][0]["remaining"] != 0;
            barrier.wait();
            if has_room {
                run(incr("admitted"));
                run(hit("k", 5));
            }
        })
    };
    let threads: Vec<_> = (0..50).map(attempt).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("it was answered"));
    assert_eq!(server.counter("look", "admitted"), json!("50"));
}
