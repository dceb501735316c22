//! The end of the process: what was accepted is answered.

use std::thread;

use rustix::process::Signal;

use crate::{
    backend::Backend,
    rig::{Rig, chunk, get, post, setup},
    support::eventually,
};

#[test]
fn what_was_accepted_is_answered() {
    let Rig { mut server, backend } = Rig::start();
    let address = server.apps;
    let mut wire = crate::support::wire::Wire::tcp(address).unwrap();
    let mut idle = crate::support::wire::Wire::tcp(address).unwrap();
    assert_eq!(idle.exchange(&get("/echo", &[])).unwrap().status, 200);
    wire.send(&post("/length", "Transfer-Encoding: chunked\r\n", &chunk(b"abc"))).unwrap();
    eventually("the app has the request", || (backend.body_bytes() == 3).then_some(()));
    server.signal(Signal::TERM);
    server.wait_for_log("answering what was accepted");
    // A request that was on its way on an idle connection is answered too, and told that it is the last.
    let last = idle.exchange(&get("/echo", &[])).unwrap();
    assert_eq!((last.status, last.header("connection")), (200, Some("close")));
    wire.send(b"0\r\n\r\n").unwrap();
    assert_eq!(wire.reply().unwrap().text(), "3");
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
}

/// Clients that connect anew for every request, over and over, while the process is replaced by another.
#[test]
fn a_restart_that_takes_over_drops_no_request() {
    let backend = Backend::start();
    let old = setup(&backend).start();
    let address = old.apps;
    let clients: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let mut served = 0;
                loop {
                    let mut wire = crate::support::wire::Wire::tcp(address)
                        .map_err(|error| format!("connecting: {error}"))?;
                    let reply = wire
                        .exchange(&get("/echo", &[]))
                        .map_err(|error| format!("after {served}: {error}"))?;
                    if reply.status != 200 {
                        return Err(format!("{}", reply.status));
                    }
                    served += 1;
                    if served >= 150 {
                        return Ok::<_, String>(served);
                    }
                }
            })
        })
        .collect();
    eventually("clients are served", || (backend.whole().len() > 50).then_some(()));
    let new = old.setup().take_over();
    let mut old = old;
    assert_eq!(old.wait().status.code(), Some(0));
    for client in clients {
        client.join().unwrap().unwrap();
    }
    assert_eq!(new.apps, address);
}
