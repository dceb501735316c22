//! The PROXY protocol: from trusted peers, whole, or not at all.

use crate::{
    backend::value,
    rig::{Rig, get},
};

const V1: &[u8] = b"PROXY TCP4 192.0.2.66 198.51.100.1 4000 443\r\n";

fn v2(command: u8, length: u16, rest: &[u8]) -> Vec<u8> {
    [b"\r\n\r\n\0\r\nQUIT\n", &[command, 0x11][..], &length.to_be_bytes(), rest].concat()
}

const ADDRESSES: [u8; 12] = [192, 0, 2, 66, 198, 51, 100, 1, 0x0f, 0xa0, 1, 0xbb];

fn required() -> Rig {
    Rig::with(|setup| {
        setup
            .set("ingress.forwarded", "proxy-protocol")
            .set("ingress.trusted_proxies", "127.0.0.1")
            .set("ingress.header_timeout_ms", "1000")
    })
}

#[test]
fn a_trusted_peer_says_whose_connection_it_is() {
    let rig = required();
    for (header, client) in [
        (V1.to_vec(), "192.0.2.66"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (v2(0x21, 12, &ADDRESSES), "192.0.2.66"),
        // LOCAL: whatever addresses stand there.
        (v2(0x20, 12, &ADDRESSES), "127.0.0.1"),
    ] {
        let mut wire = rig.wire();
        let forged = get("/echo", &[("X-Forwarded-For", "203.0.113.1")]);
        let reply = wire.exchange(&[header.clone(), forged.clone()].concat()).unwrap();
        assert_eq!(value(&reply.text(), "x-forwarded-for"), Some(client), "{}", header.escape_ascii());
        let second = wire.exchange(&forged).unwrap();
        assert_eq!(value(&second.text(), "x-forwarded-for"), Some(client));
    }
}

#[test]
fn anything_else_is_closed() {
    let rig = required();
    for bytes in [
        get("/echo", &[]),
        v2(0x21, 65_535, b"abc"),
        [v2(0x21, 12, &ADDRESSES[..3])].concat(),
        b"PROXY TCP4 192.0.2.66".to_vec(),
        b"PROXY TCP4 x y 1 2\r\n".to_vec(),
    ] {
        let mut wire = rig.wire();
        let _ = wire.send(&bytes);
        assert_eq!(wire.until_closed().unwrap(), b"", "{}", bytes.escape_ascii());
    }
    // A second header is no request.
    let mut wire = rig.wire();
    wire.send(&[V1, V1, &get("/echo", &[])].concat()).unwrap();
    assert!(wire.until_closed().unwrap().starts_with(b"HTTP/1.1 400 "));
    // Nobody else connects, header or not.
    for bytes in [get("/echo", &[]), [V1, &get("/echo", &[])].concat()] {
        let mut wire = rig.wire_from("127.0.0.9");
        let _ = wire.send(&bytes);
        assert_eq!(wire.until_closed().unwrap(), b"");
    }
    assert_eq!(rig.backend.whole().len(), 0);
}

#[test]
fn where_it_is_off_it_is_no_request() {
    let rig = Rig::with(|setup| setup.set("ingress.trusted_proxies", "127.0.0.1"));
    for header in [V1.to_vec(), v2(0x21, 12, &ADDRESSES)] {
        let mut wire = rig.wire();
        let _ = wire.send(&[header, get("/echo", &[])].concat());
        let answer = wire.until_closed().unwrap();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400 "), "{}", answer.escape_ascii());
    }
    assert_eq!(rig.backend.whole().len(), 0);
}
