//! Whose request it is: the walk ends within its bound, at the peer or at an address that is written there; and of a
//! PROXY header exactly as much is read as belongs to it.
#![cfg_attr(fuzzing, no_main)]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use tidegate_core::{
    address::Address,
    forwarded::{ELEMENTS_MAX, Source, parse_node, walk},
    network::{Prefix, PrefixSet},
    proxy_header::{self, PROXY_HEADER_BYTES_MAX, ProxyHeader},
};

fuzz_target!(|input: &[u8]| {
    let peer = address("198.51.100.10");
    let trusted: PrefixSet = ["198.51.100.0/24", "2001:db8:ffff::/48"].map(prefix).into_iter().collect();
    for source in [Source::XForwardedFor, Source::Forwarded] {
        let lines = || input.split(|byte| *byte == b'\n');
        let walked = walk(peer, lines(), &trusted, source);
        let client = walked.client;
        assert!(client == peer || is_listed(client, input), "a client that stands nowhere");
        // From a peer that is not trusted nothing counts.
        let stranger = address("203.0.113.9");
        let of_stranger = walk(stranger, lines(), &trusted, source);
        assert!(of_stranger.client == stranger && !of_stranger.unreadable);
        // What a caller writes to the left of all that is looked at changes nothing.
        let right =
            vec![if source == Source::Forwarded { "for=198.51.100.1" } else { "198.51.100.1" }; ELEMENTS_MAX];
        let right = right.join(",");
        let lines = lines().chain([right.as_bytes()]);
        assert_eq!(
            walk(peer, lines.collect::<Vec<_>>().into_iter(), &trusted, source).client,
            address("198.51.100.1")
        );
    }
    read_header(input);
});

/// Reads as a connection does: what is asked for, and no byte more.
fn read_header(input: &[u8]) {
    let mut read = 0;
    loop {
        assert!(read <= PROXY_HEADER_BYTES_MAX, "{read} bytes were asked for");
        match proxy_header::read(&input[..read]) {
            Ok(ProxyHeader::More(more)) => {
                assert!(more > 0, "it would never end");
                read += more;
                if read > input.len() {
                    return;
                }
            }
            Ok(ProxyHeader::Whole(Some(IpAddr::V4(v4)))) => {
                let written = v4.to_string();
                let header = &input[..read];
                assert!(contains(header, written.as_bytes()) || contains(header, &v4.octets()));
                return;
            }
            Ok(ProxyHeader::Whole(_)) | Err(_) => return,
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Whether some part of the input, between anything that may stand around an address, is read as this one.
fn is_listed(client: Address, input: &[u8]) -> bool {
    let unescaped: Vec<u8> = input.iter().copied().filter(|byte| *byte != b'\\').collect();
    [input, &unescaped].into_iter().any(|input| {
        let of_node = |byte: &u8| !matches!(byte, b',' | b';' | b'"' | b' ' | b'\t' | b'=' | b'\n');
        input.split(|byte| !of_node(byte)).any(|node| parse_node(node) == Some(client))
    })
}

fn address(text: &str) -> Address {
    Address::parse(text).expect("an address")
}

fn prefix(text: &str) -> Prefix {
    Prefix::parse(text).expect("a network")
}
