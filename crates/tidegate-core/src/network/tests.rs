use alloc::string::ToString;

use proptest::prelude::*;

use super::*;

fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

fn prefix(text: &str) -> Prefix {
    Prefix::parse(text).unwrap()
}

#[test]
fn networks_as_they_are_written() {
    let table = [
        ("198.51.100.0/24", "198.51.100.0/24"),
        ("198.51.100.10", "198.51.100.10"),
        ("198.51.100.10/32", "198.51.100.10"),
        (" 192.0.2.0/24", "192.0.2.0/24"),
        ("\n198.51.100.0/24\n", "198.51.100.0/24"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::/0", "::/0"),
        ("2001:DB8::/32", "2001:db8::/32"),
        ("2001:db8::7", "2001:db8::7"),
        ("::1/128", "::1"),
        // IPv4 in the forms that sockets and translators give it.
        ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
        ("64:ff9b::192.0.2.7", "192.0.2.7"),
        ("64:ff9b::192.0.0.0/106", "192.0.0.0/10"),
    ];
    for (text, shown) in table {
        assert_eq!(prefix(text).to_string(), shown, "{text:?}");
        assert_eq!(prefix(shown), prefix(text));
    }
}

#[test]
fn what_is_no_network_is_refused() {
    let host_bits = |network| InvalidPrefix::HostBits { network: prefix(network) };
    let table = [
        ("198.51.100.0/33", InvalidPrefix::Length { longest: 32 }),
        ("2001:db8::/129", InvalidPrefix::Length { longest: 128 }),
        ("198.51.100.3/24", host_bits("198.51.100.0/24")),
        ("192.0.2.1/0", host_bits("0.0.0.0/0")),
        ("2001:db8::1/64", host_bits("2001:db8::/64")),
        ("::ffff:192.0.2.1/120", host_bits("192.0.2.0/24")),
        ("::ffff:0:0/96", InvalidPrefix::AllIpv4),
        ("64:ff9b::/96", InvalidPrefix::AllIpv4),
        ("::ffff:0:0/90", host_bits("::ffc0:0:0/90")),
        ("198.51.100.0/ 24", InvalidPrefix::Malformed),
        ("198.51.100.0 /24", InvalidPrefix::Malformed),
        ("198.51.100.0/+24", InvalidPrefix::Malformed),
        ("198.51.100.0/024", InvalidPrefix::Malformed),
        ("198.51.100.0/", InvalidPrefix::Malformed),
        ("198.51.100.0/24/24", InvalidPrefix::Malformed),
        ("198.51.100.010/32", InvalidPrefix::Malformed),
        ("[2001:db8::]/32", InvalidPrefix::Malformed),
        ("proxy.example", InvalidPrefix::Malformed),
        ("", InvalidPrefix::Malformed),
    ];
    for (text, fault) in table {
        assert_eq!(Prefix::parse(text), Err(fault), "{text:?}");
    }
}

#[test]
fn every_form_of_an_address_is_found() {
    let set: PrefixSet =
        ["203.0.113.0/24", "0.0.0.0/8", "::1", "2001:db8::/32"].map(prefix).into_iter().collect();
    let table = [
        ("203.0.113.1", true),
        ("::ffff:203.0.113.1", true),
        ("64:ff9b::cb00:7101", true),
        ("203.0.114.0", false),
        ("203.0.112.255", false),
        ("::ffff:192.0.2.1", false),
        ("::1", true),
        ("::2", false),
        ("::c000:201", false),
        ("0.0.0.1", true),
        ("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true),
        ("2001:db9::", false),
    ];
    for (text, contained) in table {
        assert_eq!(set.contains(address(text)), contained, "{text}");
    }
    assert!(!PrefixSet::default().contains(address("192.0.2.1")), "an empty list holds nobody");
}

#[test]
fn families_keep_apart() {
    let all_v6: PrefixSet = [prefix("::/0")].into_iter().collect();
    let all_v4: PrefixSet = [prefix("0.0.0.0/0")].into_iter().collect();
    for (text, v4) in [("192.0.2.1", true), ("::ffff:192.0.2.1", true), ("2001:db8::1", false), ("::", false)]
    {
        assert_eq!((all_v4.contains(address(text)), all_v6.contains(address(text))), (v4, !v4), "{text}");
    }
}

#[test]
fn entries_end() {
    let networks = [("192.0.2.0/24", 100), ("192.0.2.128/25", 50), ("192.0.2.129", 200), ("192.0.2.129", 10)];
    let set = PrefixSet::ending(networks.map(|(text, until_ms)| (prefix(text), until_ms)));
    let table = [
        ("192.0.2.1", 99, true),
        ("192.0.2.1", 100, false),
        // The network around it ends later.
        ("192.0.2.130", 99, true),
        ("192.0.2.130", 100, false),
        ("192.0.2.129", 199, true),
        ("192.0.2.129", 200, false),
        ("192.0.3.0", 0, false),
    ];
    for (text, at_ms, contained) in table {
        assert_eq!(set.contains_at(address(text), at_ms), contained, "{text} at {at_ms}");
    }
}

/// Few bits differ, so that networks nest and addresses fall into them.
fn some_address() -> impl Strategy<Value = Address> {
    prop_oneof![
        (0_u32..64).prop_map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits << 26))),
        (0_u32..8).prop_map(|bits| IpAddr::from(Ipv4Addr::from_bits(u32::MAX - bits))),
        (0_u128..64).prop_map(|bits| IpAddr::from(Ipv6Addr::from_bits(bits << 122))),
        (0_u128..8).prop_map(|bits| IpAddr::from(Ipv6Addr::from_bits(u128::MAX - bits))),
    ]
    .prop_map(Address::from)
}

fn some_network() -> impl Strategy<Value = Prefix> {
    (some_address(), 0_u8..=128).prop_map(|(address, length)| {
        let place = Place::of(address);
        let length = length.min(u8::try_from(place.width()).unwrap());
        Prefix::exact(place, length).unwrap_or_else(|fault| match fault {
            InvalidPrefix::HostBits { network } => network,
            fault => panic!("{fault}"),
        })
    })
}

proptest! {
    #[test]
    fn a_set_holds_what_one_of_its_networks_holds(
        networks in prop::collection::vec((some_network(), 1_u64..5), 0..12),
        address in some_address(),
        at_ms in 0_u64..6,
    ) {
        let naive = networks.iter().any(|(network, until_ms)| network.contains(address) && *until_ms > at_ms);
        let set = PrefixSet::ending(networks);
        prop_assert_eq!(set.contains_at(address, at_ms), naive);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-f:./ ]{0,24}") {
        if let Ok(network) = Prefix::parse(&text) {
            prop_assert_eq!(Prefix::parse(&network.to_string()), Ok(network));
        }
    }
}
