use std::collections::HashSet;

use super::{Dimension, Fingerprint, Key, Seed, SourcePrefix};

fn prefix(text: &str) -> SourcePrefix {
    text.parse::<std::net::IpAddr>().unwrap().into()
}

#[test]
fn a_source_is_its_network() {
    for (one, other, same) in [
        ("192.0.2.9", "192.0.2.200", true),
        ("192.0.2.9", "192.0.3.9", false),
        ("192.0.2.9", "::ffff:192.0.2.77", true),
        ("192.0.2.9", "64:ff9b::c000:2ff", true),
        ("203.0.113.1", "::ffff:192.0.2.1", false),
        ("::1", "0.0.0.1", false),
        ("::c000:209", "192.0.2.9", false),
        ("2001:db8:aa:bb00::1", "2001:db8:aa:bbff::1", true),
        ("2001:db8:aa:bb00::1", "2001:db8:aa:bc00::1", false),
    ] {
        assert_eq!(prefix(one) == prefix(other), same, "{one} {other}");
    }
}

#[test]
fn an_identity_has_a_key_in_each_dimension_and_tenant_and_seed() {
    let (seed, other) = (Seed::from([1; 16]), Seed::from([2; 16]));
    let keys = [
        seed.key(Dimension::Tenant, None, b"ab"),
        seed.key(Dimension::Resource, None, b"ab"),
        seed.key(Dimension::Resource, Some(Key(1)), b"ab"),
        seed.key(Dimension::Resource, Some(Key(2)), b"ab"),
        seed.key(Dimension::Resource, None, b"\x01\0\0\0\0\0\0\0ab"),
        other.key(Dimension::Tenant, None, b"ab"),
    ];
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    assert_eq!(keys[0], seed.key(Dimension::Tenant, None, b"ab"));
}

#[test]
fn nothing_that_is_printed_tells_who_it_was() {
    let secret = b"c9f0f895fb98ab91";
    let fingerprint = Fingerprint::of(secret);
    let printed = format!("{fingerprint:?} {:?} {:?}", prefix("192.0.2.9"), Seed::from(*secret));
    assert_eq!(printed, "Fingerprint(…) SourcePrefix(…) Seed(…)");
    assert_eq!(fingerprint.bytes().len(), 16);
    assert_eq!(Fingerprint::of(&[7; 100_000]).bytes().len(), 16, "however long the secret");
    assert_ne!(fingerprint.bytes(), Fingerprint::of(b"c9f0f895fb98ab92").bytes());
}
