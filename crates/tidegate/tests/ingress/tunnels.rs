//! WebSockets: a tunnel is one long request.

use rustix::process::Signal;

use crate::{
    rig::{Rig, get},
    support::eventually,
};

const UPGRADE: [(&str, &str); 2] = [("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket")];

#[track_caller]
fn open(rig: &Rig) -> crate::support::wire::Wire<std::net::TcpStream> {
    let mut wire = rig.wire();
    let reply = wire.exchange(&get("/ws", &UPGRADE)).expect("an answer");
    assert_eq!((reply.status, reply.header("upgrade")), (101, Some("websocket")), "{}", reply.text());
    wire
}

#[track_caller]
fn echoes(wire: &mut crate::support::wire::Wire<std::net::TcpStream>, text: &[u8]) {
    wire.send(text).unwrap();
    assert_eq!(wire.take(text.len()).unwrap(), text);
}

#[test]
fn bytes_go_both_ways_and_ends_arrive() {
    let rig = Rig::start();
    let mut wire = rig.wire();
    // What follows the request at once is the tunnel's too.
    wire.send(&[get("/ws", &UPGRADE), b"early".to_vec()].concat()).unwrap();
    assert_eq!(wire.reply().unwrap().status, 101);
    assert_eq!(wire.take(5).unwrap(), b"early");
    echoes(&mut wire, b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n");
    wire.finish_sending().unwrap();
    assert_eq!(wire.until_closed().unwrap(), b"");
    let head = &rig.backend.whole()[0];
    assert!(head.contains("upgrade: websocket") && head.contains("connection: upgrade"), "{head}");
}

#[test]
fn a_tunnel_has_its_place_until_its_end() {
    let rig = Rig::with(|setup| {
        setup.set("apps.shop.shield.max_concurrency", "3").set("ingress.tunnel_idle_timeout_ms", "60000")
    });
    let mut tunnels: Vec<_> = (0..3).map(|_| open(&rig)).collect();
    assert_eq!(rig.get("/ws", &UPGRADE).status, 503);
    drop(tunnels.pop());
    let mut again = eventually("a closed tunnel's place is free", || {
        let mut wire = rig.wire();
        (wire.exchange(&get("/ws", &UPGRADE)).ok()?.status == 101).then_some(wire)
    });
    echoes(&mut again, b"hello");
    drop(again);
    // A refused upgrade gives its place back at once.
    eventually("a refused upgrade", || (rig.get("/refuse", &UPGRADE).status == 403).then_some(()));
    for _ in 0..5 {
        assert_eq!(rig.get("/refuse", &UPGRADE).status, 403);
    }
}

#[test]
fn a_silent_tunnel_is_closed() {
    let rig = Rig::with(|setup| setup.set("ingress.tunnel_idle_timeout_ms", "300"));
    assert_eq!(open(&rig).until_closed().unwrap(), b"");
}

#[test]
fn a_reload_cuts_no_tunnel() {
    let rig = Rig::start();
    let mut wire = open(&rig);
    rig.server.signal(Signal::HUP);
    rig.server.wait_for_log("configuration reloaded");
    echoes(&mut wire, b"still here");
}

#[test]
fn nobody_changes_the_protocol_unasked() {
    let rig = Rig::start();
    let head = rig.seen(&[("Upgrade", "websocket")]);
    assert!(!head.contains("upgrade"), "{head}");
    let body = [("Connection", "upgrade"), ("Upgrade", "websocket"), ("Content-Length", "1")];
    let mut wire = rig.wire();
    wire.send(&[get("/echo", &body), b"a".to_vec()].concat()).unwrap();
    assert_eq!(wire.reply().unwrap().status, 200);
}
