use alloc::{format, string::ToString};

use proptest::prelude::*;

use super::*;

#[test]
fn addresses_and_their_sources() {
    let table = [
        ("192.0.2.7", "192.0.2.7/32"),
        ("0.0.0.0", "0.0.0.0/32"),
        ("255.255.255.255", "255.255.255.255/32"),
        ("::ffff:192.0.2.1", "192.0.2.1/32"),
        ("::ffff:c000:201", "192.0.2.1/32"),
        ("::FFFF:C000:0201", "192.0.2.1/32"),
        ("64:ff9b::c000:201", "192.0.2.1/32"),
        ("64:ff9b::203.0.113.1", "203.0.113.1/32"),
        // These only look like an IPv4 address.
        ("::1", "::/64"),
        ("::c000:201", "::/64"),
        ("::192.0.2.1", "::/64"),
        ("::ffff:0:192.0.2.1", "::/64"),
        ("64:ff9b:1::c000:201", "64:ff9b:1::/64"),
        ("64:ff9b:0:0:1::c000:201", "64:ff9b::/64"),
        ("2002:c000:201::1", "2002:c000:201::/64"),
        ("2001:db8:0:1::", "2001:db8:0:1::/64"),
        ("2001:DB8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"),
        ("2001:db8:0:0:1::", "2001:db8::/64"),
        ("2001:0:0:1::5", "2001:0:0:1::/64"),
        ("fe80::1", "fe80::/64"),
    ];
    for (text, source) in table {
        assert_eq!(Address::parse(text).map(Address::source).as_deref(), Ok(source), "{text}");
        assert_eq!(source_or_unknown(Some(text)), source);
    }
}

#[test]
fn anything_else_is_unknown() {
    for text in [
        "",
        " ",
        "unknown",
        "192.0.2.7 ",
        " 192.0.2.7",
        "192.0.2.7:80",
        "192.0.2.7/32",
        "192.0.2",
        "192.0.2.7.1",
        "192.0.02.7",
        "192.0.2.07",
        "192.0.2.256",
        "0xc0.0.2.7",
        "3221225991",
        "+1.0.2.7",
        "[2001:db8::1]",
        "[2001:db8::1]:443",
        "2001:db8::1%eth0",
        "fe80::1%25eth0",
        "fe80::1%",
        "2001:db8::1/64",
        "2001:db8:::1",
        ":",
        "2001:db8::00001",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "::ffff:192.0.02.1",
        "１92.0.2.7",
        "192.0.2.7\0",
        "192.0.2.7\n",
        "localhost",
        "192.0.2.7, 192.0.2.8",
    ] {
        assert_eq!(Address::parse(text), Err(InvalidAddress), "{text:?}");
        assert_eq!(source_or_unknown(Some(text)), UNKNOWN, "{text:?}");
    }
    assert_eq!(source_or_unknown(None), UNKNOWN);
}

#[test]
fn networks() {
    let table: [(&str, &[(u8, &str)]); 4] = [
        ("192.0.2.7", &[(24, "192.0.2.0/24")]),
        ("::ffff:192.0.2.7", &[(24, "192.0.2.0/24")]),
        ("2001:db8:0:12ff::1", &[(56, "2001:db8:0:1200::/56"), (48, "2001:db8::/48")]),
        ("::1", &[(56, "::/56"), (48, "::/48")]),
    ];
    for (text, expected) in table {
        let networks = Address::parse(text).unwrap().networks();
        let networks: Vec<_> =
            networks.iter().map(|network| (network.prefix, network.text.as_str())).collect();
        assert_eq!(networks, expected, "{text}");
    }
}

#[test]
fn a_socket_and_a_header_name_the_same_host() {
    let mapped = IpAddr::V6(Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped());
    assert_eq!(Address::from(mapped), Address::parse("192.0.2.1").unwrap());
    assert_eq!(Address::from(mapped).ip(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    assert_ne!(Address::parse("::c000:201"), Address::parse("192.0.2.1"));
    assert_eq!(Address::parse("::1").unwrap().ip(), IpAddr::V6(Ipv6Addr::LOCALHOST));
}

#[test]
fn nothing_printed_shows_it() {
    let address = Address::parse("192.0.2.7").unwrap();
    for printed in [format!("{address:?}"), address.to_string(), format!("{:?}", address.networks())] {
        assert!(!printed.contains("192"), "{printed}");
    }
}

proptest! {
    #[test]
    fn hosts_of_a_64_share_their_source(bits: u128, other: u64) {
        let (one, two) = (Ipv6Addr::from_bits(bits), Ipv6Addr::from_bits(bits >> 64 << 64 | u128::from(other)));
        prop_assume!(carried_ipv4(one).is_none() && carried_ipv4(two).is_none());
        let source = Address::from(IpAddr::V6(one)).source();
        prop_assert_eq!(&source, &Address::from(IpAddr::V6(two)).source());
        let network = source.strip_suffix("/64").unwrap().parse::<Ipv6Addr>().unwrap();
        prop_assert_eq!(network.to_bits(), bits >> 64 << 64);
    }

    #[test]
    fn an_ipv4_host_is_one_however_it_is_written(bits: u32) {
        let v4 = Ipv4Addr::from_bits(bits);
        let expected = Address::from(IpAddr::V4(v4));
        let nat64 = Ipv6Addr::from_bits(0x0064_ff9b << 96 | u128::from(bits));
        for text in [v4.to_string(), v4.to_ipv6_mapped().to_string(), nat64.to_string()] {
            prop_assert_eq!(Address::parse(&text), Ok(expected));
        }
    }

    #[test]
    fn no_text_panics(text in "[0-9a-f:.%/\\[\\] ]{0,24}") {
        let _ = source_or_unknown(Some(&text));
    }
}
