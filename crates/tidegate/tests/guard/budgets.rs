//! Many callers at once spend a budget to its last command, and not one more.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crate::{
    http2::Http2,
    support::{
        message::signed,
        server::{SECRET, Server},
        spending::{budgeted, carrying, looks},
        wire::{Reply, Wire},
    },
};

const CONNECTIONS: usize = 32;

#[test]
fn connections_at_once_spend_a_budget_to_the_last_command() {
    // (budget, commands of a request, how many of them are admitted)
    for (budget, size, admitted) in [(500, 1, 500), (500, 3, 166), (40, 32, 1)] {
        for http2 in [false, true] {
            let server = budgeted(budget).start();
            let admitted_now = spend_at_once(&server, size, http2);
            let what = format!("requests of {size} under {budget}, HTTP/2: {http2}");
            assert_eq!(admitted_now, admitted, "{what}");
            let used = (admitted * size) as u64;
            assert_eq!(server.used("proxy"), used, "{what}");
            let phase = if used == budget { "stopped" } else { "open" };
            assert_eq!(server.state()["families"]["proxy"]["state"], phase, "{what}");
        }
    }
}

#[test]
fn the_connections_of_one_identity_spend_its_share_to_the_last_command() {
    let server = budgeted(1_000).start();
    let from_it = || carrying(looks("proxy", 1), "source", "it").to_string().into_bytes();
    let admitted = at_once(server.guard, |wire| spend(wire, &from_it));
    assert_eq!((admitted, server.used("proxy")), (50, 50));
}

/// The control: the same count notices commands beyond the budget, as a resume in between hands them out.
#[test]
fn the_count_notices_a_budget_that_was_handed_out_twice() {
    let server = budgeted(500).start();
    let done = AtomicBool::new(false);
    let admitted = thread::scope(|scope| {
        let resume = || {
            while server.used("proxy") < 100 && !done.load(Ordering::Relaxed) {}
            server.order("/control/resume", "");
        };
        scope.spawn(resume);
        let admitted = spend_at_once(&server, 1, false);
        done.store(true, Ordering::Relaxed);
        admitted
    });
    assert!(admitted > 500 || server.used("proxy") < 500, "{admitted} admitted");
}

/// Every connection sends requests of `size` commands until one is refused; how many were admitted.
fn spend_at_once(server: &Server, size: usize, http2: bool) -> usize {
    let body = move || looks("proxy", size).to_string().into_bytes();
    if http2 {
        return over_http2(server.guard, &body);
    }
    at_once(server.guard, |wire| spend(wire, &body))
}

fn at_once(address: SocketAddr, spend: impl Fn(Wire<std::net::TcpStream>) -> usize + Sync) -> usize {
    let barrier = Barrier::new(CONNECTIONS);
    thread::scope(|scope| {
        let connection = || {
            let wire = Wire::tcp(address).unwrap();
            barrier.wait();
            spend(wire)
        };
        let running: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(connection)).collect();
        running.into_iter().map(|thread| thread.join().expect("it was answered")).sum()
    })
}

fn spend(mut wire: Wire<std::net::TcpStream>, body: &impl Fn() -> Vec<u8>) -> usize {
    (0..).take_while(|_| is_admitted(&wire.exchange(&signed(SECRET, &body())).unwrap())).count()
}

/// Eight streams of each connection at once, until one of them is refused.
fn over_http2(address: SocketAddr, body: &(impl Fn() -> Vec<u8> + Sync)) -> usize {
    let barrier = Arc::new(Barrier::new(CONNECTIONS));
    thread::scope(|scope| {
        let connection = || {
            let http2 = Http2::connect(address);
            barrier.wait();
            let mut admitted = 0;
            loop {
                let bodies: Vec<_> = (0..8).map(|_| body()).collect();
                let of_these = http2.post_all(&bodies).iter().filter(|reply| is_admitted(reply)).count();
                admitted += of_these;
                if of_these < bodies.len() {
                    return admitted;
                }
            }
        };
        let running: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(connection)).collect();
        running.into_iter().map(|thread| thread.join().expect("it was answered")).sum()
    })
}

/// # Panics
/// It is neither admitted nor refused for want of budget.
fn is_admitted(reply: &Reply) -> bool {
    let refused = matches!(reply.status, 429 | 503)
        && matches!(reply.code().as_str(), "guard_stopped" | "guard_limited");
    assert!(reply.status == 200 || refused, "{}", reply.text());
    reply.status == 200
}
