//! Textual addresses: what is read has one canonical form, and the networks around it hold it.
#![cfg_attr(fuzzing, no_main)]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use tidegate_core::address::{Address, UNKNOWN, source_or_unknown};

fuzz_target!(|text: &str| {
    let source = source_or_unknown(Some(text));
    let Ok(address) = Address::parse(text) else {
        assert_eq!(source, UNKNOWN);
        return;
    };
    assert_eq!(source, address.source());
    assert!(!text.contains(['/', '%', '[', ' ', '+']), "more than an address was read");
    assert!(!format!("{address:?} {address}").contains(text), "an address reached a text for logs");

    // The canonical address reads back as itself: nothing is mapped twice.
    let again = Address::parse(&address.ip().to_string()).expect("the standard library's own text");
    assert_eq!(again, address);

    let source_prefix = if address.ip().is_ipv4() { 32 } else { 64 };
    holds(address.ip(), &source, source_prefix);
    for network in address.networks() {
        assert!(network.prefix < source_prefix);
        holds(address.ip(), &network.text, network.prefix);
    }
});

/// `network` is the canonical text of the `prefix` bits that `ip` begins with.
fn holds(ip: IpAddr, network: &str, prefix: u8) {
    let (first, written_prefix) = network.split_once('/').expect("a network has its prefix");
    assert_eq!(written_prefix, prefix.to_string());
    let expected: IpAddr = match ip {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & !mask(32 - prefix)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !(u128::MAX >> prefix)).into()),
    };
    assert_eq!(first, expected.to_string());
}

/// The lowest `bits` of 32.
fn mask(bits: u8) -> u32 {
    1_u32.checked_shl(bits.into()).map_or(u32::MAX, |bit| bit - 1)
}
