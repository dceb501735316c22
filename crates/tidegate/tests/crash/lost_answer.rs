//! An answer that is lost on the way, and a caller that sends the same operation again.

use std::{
    io::{self, BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    thread,
};

use tidegate_protocol::{Command, CommandResult, Request, Response, StepResult, request::Budget};

use crate::{
    caller::{Caller, body_of, executed, fresh_id, key, partition_of, request},
    support::{
        DEADLINE,
        server::{Server, Setup},
        wire::{Reply, Wire},
    },
};

const HOUR_MS: u64 = 3_600_000;

#[test]
fn a_caller_that_heard_nothing_is_charged_once() {
    let server = Setup::new().start();
    let (proxy, dropped) = deaf_proxy(server.guard);
    for (what, asked) in operations() {
        let body = body_of(&asked);
        let mut first: Option<Response> = None;
        for _ in 0..3 {
            let lost = Caller::to(proxy).post(&body);
            assert!(lost.is_err(), "{what}: the proxy passes nothing back");
            let answer = dropped.recv_timeout(DEADLINE).expect("the server answered the proxy");
            let answer = executed(&answer).expect("and executed the request");
            let first = first.get_or_insert(answer.clone());
            assert_eq!(results(&answer), results(first), "{what}");
        }
        let heard = Caller::to(server.guard).run(&body).expect("an answer");
        let first = first.expect("three answers");
        assert_eq!(results(&heard), results(&first), "{what}");
        assert!(heard.steps[0].replayed && !first.steps[0].replayed, "{what}: {heard:?} after {first:?}");
    }
    assert_counted_once(&server);
}

#[test]
fn a_server_that_was_killed_after_its_commit_answers_the_same() {
    let mut server = Setup::new().set("store.durability", "fsync").start();
    for (what, asked) in operations() {
        let body = body_of(&asked);
        let (proxy, dropped) = deaf_proxy(server.guard);
        assert!(Caller::to(proxy).post(&body).is_err(), "{what}: the proxy passes nothing back");
        let answer = dropped.recv_timeout(DEADLINE).expect("the server answered the proxy");
        let answer = executed(&answer).expect("and executed the request");
        server = server.kill_and_restart();
        let heard = Caller::to(server.guard).run(&body).expect("an answer");
        assert_eq!(results(&heard), results(&answer), "{what}");
        assert!(heard.steps[0].replayed, "{what}: {heard:?}");
    }
    assert_counted_once(&server);
}

/// One of each kind that must not happen twice.
fn operations() -> [(&'static str, Request); 4] {
    let asked = |command| request(fresh_id()).step(partition_of("lost"), [command]);
    let budgets = [Budget::new(key("source"), 10, HOUR_MS), Budget::new(key("target"), 10, HOUR_MS)];
    [
        ("kv.incr", asked(Command::increment(key("counter"), 1, HOUR_MS))),
        ("kv.set nx", asked(Command::claim(key("claim"), "mine", HOUR_MS))),
        ("win.hit", asked(crate::workload::hit(1))),
        ("res.reserve", asked(Command::reserve(budgets))),
    ]
}

#[track_caller]
fn assert_counted_once(server: &Server) {
    let mut caller = Caller::to(server.guard);
    assert_eq!(caller.record("lost", "counter").0.as_deref(), Some("1"));
    assert_eq!(caller.record("lost", "claim").0.as_deref(), Some("mine"));
    let used = match caller.one("lost", crate::workload::hit(0)) {
        CommandResult::Hit { windows, .. } => windows.iter().map(|window| window.used).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(used, [1, 1]);
    let look = Command::reserve([Budget::new(key("source"), 10, HOUR_MS)]).costing(0);
    match caller.one("lost", look) {
        CommandResult::Reserved { budgets, .. } => assert_eq!(budgets[0].used, 1),
        other => panic!("{other:?}"),
    }
}

fn results(response: &Response) -> Vec<&[CommandResult]> {
    response.steps.iter().map(|step: &StepResult| step.results.as_slice()).collect()
}

/// Passes each request on, reads the whole answer, hands it to the test, and closes without a word. It ends
/// when the test no longer listens.
fn deaf_proxy(server: SocketAddr) -> (SocketAddr, Receiver<Reply>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (told, dropped) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            if pass_on(stream, server).is_ok_and(|answer| told.send(answer).is_err()) {
                return;
            }
        }
    });
    (address, dropped)
}

fn pass_on(client: TcpStream, server: SocketAddr) -> io::Result<Reply> {
    client.set_read_timeout(Some(DEADLINE))?;
    let mut client = BufReader::new(client);
    let (mut request, mut length) = (String::new(), 0);
    while client.read_line(&mut request)? > 2 {
        let line = request.lines().next_back().unwrap_or_default();
        length =
            line.strip_prefix("content-length: ").and_then(|length| length.parse().ok()).unwrap_or(length);
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body)?;
    Wire::tcp(server)?.exchange(&[request.as_bytes(), &body].concat())
}
