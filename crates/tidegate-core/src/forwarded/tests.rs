use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::network::Prefix;

const PROXY: &str = "198.51.100.10";

fn trusted() -> PrefixSet {
    ["198.51.100.0/24", "2001:db8:ffff::/48"].map(|text| Prefix::parse(text).unwrap()).into_iter().collect()
}

fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

fn walked(peer: &str, lines: &[&str], source: Source) -> Walk {
    walk(address(peer), lines.iter().map(|line| line.as_bytes()), &trusted(), source)
}

fn check(source: Source, table: &[(&[&str], &str, bool)]) {
    for (lines, client, unreadable) in table {
        let expected = Walk { client: address(client), unreadable: *unreadable };
        let walk = walked(PROXY, lines, source);
        assert!(walk == expected, "{lines:?}: {:?} (unreadable: {})", walk.client.ip(), walk.unreadable);
    }
}

#[test]
fn x_forwarded_for_is_read_from_the_right() {
    check(
        Source::XForwardedFor,
        &[
            (&[], PROXY, false),
            (&[""], PROXY, false),
            (&[" , ,\t,"], PROXY, false),
            (&["203.0.113.1, 192.0.2.7"], "192.0.2.7", false),
            (&["203.0.113.1"], "203.0.113.1", false),
            // Lines are one list, empty elements carry nothing.
            (&["203.0.113.66", "192.0.2.7", "198.51.100.11"], "192.0.2.7", false),
            (&["203.0.113.66, 192.0.2.7,", ",198.51.100.11"], "192.0.2.7", false),
            (&["\t203.0.113.66 ,  192.0.2.7 , , 198.51.100.11 "], "192.0.2.7", false),
            (&["203.0.113.66,192.0.2.7,198.51.100.11"], "192.0.2.7", false),
            // Every hop is trusted: the first of them is as far as can be seen.
            (&["198.51.100.12, 198.51.100.11"], "198.51.100.12", false),
            // A hop that nobody listed is the client: guessing further would trust it.
            (&["203.0.113.5, 203.0.113.99"], "203.0.113.99", false),
            (&["::ffff:192.0.2.1, ::ffff:198.51.100.10"], "192.0.2.1", false),
            (&["64:ff9b::c000:201"], "192.0.2.1", false),
        ],
    );
}

#[test]
fn ports_brackets_and_zones_are_not_part_of_an_address() {
    let table: [(&str, Option<&str>); 29] = [
        ("192.0.2.7", Some("192.0.2.7")),
        ("192.0.2.7:51034", Some("192.0.2.7")),
        ("192.0.2.7:0", Some("192.0.2.7")),
        ("192.0.2.7:", None),
        ("192.0.2.7:99999", None),
        ("192.0.2.7:+1", None),
        ("192.0.2.7:000001", None),
        ("192.0.2.7:80:80", None),
        ("192.0.2.07", None),
        ("192.0.2", None),
        ("[192.0.2.7]", None),
        ("[2001:db8:1:2::5]:443", Some("2001:db8:1:2::5")),
        ("[2001:db8:1:2::5]", Some("2001:db8:1:2::5")),
        ("2001:db8:1:2::5", Some("2001:db8:1:2::5")),
        ("2001:db8::1:8080", Some("2001:db8::1:8080")),
        ("[2001:db8::1", None),
        ("2001:db8::1]", None),
        ("[2001:db8::1]443", None),
        ("[2001:db8::1]:", None),
        ("[]", None),
        ("fe80::1%eth0", Some("fe80::1")),
        ("fe80::1%252", Some("fe80::1")),
        ("[fe80::1%eth0]:80", Some("fe80::1")),
        ("fe80::1%", None),
        ("fe80::1%a b", None),
        ("192.0.2.7%eth0", None),
        ("unknown", None),
        ("{${print(1)}}", None),
        ("\u{661}92.0.2.7", None),
    ];
    for (element, expected) in table {
        assert!(parse_node(element.as_bytes()) == expected.map(address), "{element}");
    }
    assert!(parse_node(b"192.0.2.7\xff").is_none());
}

#[test]
fn garbage_ends_the_walk_at_the_hop_that_vouched_for_it() {
    let long = "A".repeat(5000);
    check(
        Source::XForwardedFor,
        &[
            (&["{${print(7)}}"], PROXY, true),
            (&["192.0.2.7, not-an-ip-7"], PROXY, true),
            (&["192.0.2.7, unknown"], PROXY, true),
            (&[&format!("192.0.2.7, {long}")], PROXY, true),
            (&["192.0.2.7, garbage, 198.51.100.11"], "198.51.100.11", true),
            (&["192.0.2.7", "garbage", "198.51.100.11"], "198.51.100.11", true),
            // What stands left of the client is not looked at.
            (&["garbage, 192.0.2.7"], "192.0.2.7", false),
        ],
    );
}

#[test]
fn a_peer_that_is_not_trusted_says_nothing() {
    for lines in [&["192.0.2.1"][..], &["garbage"], &["198.51.100.10"]] {
        let walk = walked("203.0.113.9", lines, Source::XForwardedFor);
        assert!(walk == Walk { client: address("203.0.113.9"), unreadable: false });
    }
    let mapped = walk(
        Address::from("::ffff:198.51.100.10".parse::<IpAddr>().unwrap()),
        ["::ffff:192.0.2.1".as_bytes()].into_iter(),
        &trusted(),
        Source::XForwardedFor,
    );
    assert!(mapped.client == address("192.0.2.1"), "a proxy on a dual-stack socket is the same proxy");
}

#[test]
fn the_walk_is_bounded() {
    let hops = |count: usize| {
        let mut elements: Vec<String> = Vec::from([String::from("192.0.2.7")]);
        elements.extend((0..count).map(|hop| format!("198.51.100.{}", hop % 200)));
        elements.join(",")
    };
    let seen = |list: &str| walked(PROXY, &[list], Source::XForwardedFor).client;
    assert!(seen(&hops(ELEMENTS_MAX - 1)) == address("192.0.2.7"));
    assert!(seen(&hops(ELEMENTS_MAX)) == address("198.51.100.0"));
    assert!(seen(&hops(10_000)) != address("192.0.2.7"));
}

#[test]
fn forwarded_is_read_by_its_own_syntax() {
    check(
        Source::Forwarded,
        &[
            (&["for=192.0.2.7"], "192.0.2.7", false),
            (&["For=\"[2001:db8:1:2::17]:4711\""], "2001:db8:1:2::17", false),
            (&["for=\"192.0.2.7:_p\""], "192.0.2.7", false),
            (&["for=\"192.0.2.7:4711\";by=_x"], "192.0.2.7", false),
            (&["for=192.0.2.7:4711"], "192.0.2.7", false),
            (&["for=unknown"], PROXY, true),
            (&["for=_hidden"], PROXY, true),
            (&["for=192.0.2.7, for=198.51.100.11;proto=https"], "192.0.2.7", false),
            (&["for=192.0.2.7", "proto=https ; for=198.51.100.11"], "192.0.2.7", false),
            (&["for=192.0.2.7,, ,for=198.51.100.11,"], "192.0.2.7", false),
            (&["for=\"192.0.2.7, for=203.0.113.66\""], PROXY, true),
            (&["for=2001:db8::1:8080"], PROXY, true),
            (&["for=\"2001:db8::1\""], PROXY, true),
            (&["for=\"192.0.2.7"], PROXY, true),
            (&["for=192.0.2.7\""], PROXY, true),
            (&["for="], PROXY, true),
            (&["by=192.0.2.7"], PROXY, true),
            (&["for=192.0.2.7;for=192.0.2.8"], PROXY, true),
            (&["host=\"a;for=203.0.113.66\";for=192.0.2.7"], "192.0.2.7", false),
            (&["for=\"192.0.2.\\7\""], "192.0.2.7", false),
            (&["for=\"192.0.2.7\\\""], PROXY, true),
            // A caller's open quote does not reach into what the proxy has appended.
            (&["for=\"203.0.113.66, for=192.0.2.7"], "192.0.2.7", false),
            (&["for=203.0.113.66;host=\"\\\", for=\"192.0.2.7\""], "192.0.2.7", false),
        ],
    );
    assert!(walked(PROXY, &["192.0.2.7"], Source::Forwarded).unreadable, "the other header's form");
}

/// A walk with a rule broken: garbage is skipped.
fn walk_past_garbage(peer: Address, list: &str) -> Address {
    let mut client = peer;
    for element in list.rsplit(',') {
        if !trusted().contains(client) {
            break;
        }
        client = parse_node(element.trim().as_bytes()).unwrap_or(client);
    }
    client
}

#[test]
fn skipping_garbage_would_let_a_caller_choose() {
    let list = "203.0.113.66, garbage, 198.51.100.11";
    assert!(walk_past_garbage(address(PROXY), list) == address("203.0.113.66"), "the control");
    assert!(walked(PROXY, &[list], Source::XForwardedFor).client == address("198.51.100.11"));
}

fn any_hop() -> impl Strategy<Value = String> {
    prop_oneof![
        (0_u8..4).prop_map(|host| format!("198.51.100.{host}")),
        (0_u8..4).prop_map(|host| format!("192.0.2.{host}:80")),
        (0_u16..4).prop_map(|host| format!("[2001:db8:ffff::{host}]")),
        Just(String::from("garbage")),
        Just(String::new()),
    ]
}

proptest! {
    /// The short way for what most elements are reads the same addresses as everybody does.
    #[test]
    fn four_numbers_are_read_as_everywhere(text in "[0-9.]{0,16}", bits: u32) {
        for text in [text, Ipv4Addr::from(bits).to_string()] {
            let expected = text.parse::<Ipv4Addr>().ok().map(|ip| Address::from(IpAddr::V4(ip)));
            prop_assert!(parse_node(text.as_bytes()) == expected, "{}", text);
        }
    }

    /// Whatever the caller writes to the left of what the trusted proxies have appended changes nothing.
    #[test]
    fn what_a_caller_writes_does_not_matter(
        written in "[ -~]{0,60}",
        client in 1_u8..200,
        proxies in 0_u8..4,
        split in any::<bool>(),
    ) {
        let appended: Vec<_> = core::iter::once(format!("192.0.2.{client}"))
            .chain((0..proxies).map(|proxy| format!("198.51.100.{proxy}")))
            .collect();
        for source in [Source::XForwardedFor, Source::Forwarded] {
            let element = |hop: &String| match source {
                Source::XForwardedFor => hop.clone(),
                Source::Forwarded => format!("for={hop}"),
            };
            let appended = appended.iter().map(element).collect::<Vec<_>>().join(", ");
            let joined = format!("{written}, {appended}");
            let lines: Vec<&str> = if split { Vec::from([&*written, &*appended]) } else { Vec::from([&*joined]) };
            let expected = address(&format!("192.0.2.{client}"));
            prop_assert!(walked(PROXY, &lines, source).client == expected, "{:?}", source);
        }
    }

    #[test]
    fn the_walk_is_the_plain_rule(hops in prop::collection::vec(any_hop(), 0..8), split in 0_usize..8) {
        let mut expected = address(PROXY);
        for hop in hops.iter().rev().filter(|hop| !hop.is_empty()) {
            let Some(next) = parse_node(hop.as_bytes()) else { break };
            expected = next;
            if !trusted().contains(next) {
                break;
            }
        }
        let (first, second) = hops.split_at(split.min(hops.len()));
        let lines = [first.join(","), second.join(" , ")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        prop_assert!(walked(PROXY, &lines, Source::XForwardedFor).client == expected);
    }

    #[test]
    fn any_bytes_give_an_address(
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4),
        peer in any::<u128>(),
    ) {
        let peer = Address::from(IpAddr::V6(Ipv6Addr::from_bits(peer)));
        for source in [Source::XForwardedFor, Source::Forwarded] {
            let lines = || lines.iter().map(Vec::as_slice);
            prop_assert!(walk(peer, lines(), &trusted(), source).client == peer);
            walk(address(PROXY), lines(), &trusted(), source);
        }
    }
}
