//! Rows are read back as they were written, and nothing else is read.

use alloc::{string::String, vec::Vec};

use proptest::prelude::*;

use crate::{
    admission::{Action, AuditEntry, Axis, FamilyDay, Fence, Lease, Quota},
    codec::DecodeError,
};

fn text(longest: usize) -> impl Strategy<Value = Option<String>> {
    prop::option::of(prop::collection::vec(prop::sample::select(b"aZ9-_ ".to_vec()), 0..=longest))
        .prop_map(|text| text.map(|bytes| String::from_utf8(bytes).unwrap()))
}

proptest! {
    #[test]
    fn family_days(day in 0..1_u64 << 36, used: u64, warned: bool, stopped: bool, rest: ([u64; 5], u64), holders in prop::collection::vec(any::<u64>(), 0..64)) {
        let (generations, epoch) = rest;
        let row = FamilyDay { day, used, warned, stopped, generations, epoch, holders: holders.into() };
        let mut bytes = Vec::new();
        row.encode(&mut bytes);
        prop_assert_eq!(FamilyDay::decode(&bytes), Ok(row));
    }

    #[test]
    fn quotas(day: u64, generation: u64, used: u64) {
        let row = Quota { day, generation, used };
        let mut bytes = Vec::new();
        row.encode(&mut bytes);
        prop_assert_eq!(Quota::decode(&bytes), Ok(row));
    }

    #[test]
    fn leases(day: u64, epoch: u64, granted: u64, spent: u64) {
        let row = Lease { day, epoch, granted, spent };
        let mut bytes = Vec::new();
        row.encode(&mut bytes);
        prop_assert_eq!(Lease::decode(&bytes), Ok(row));
    }

    #[test]
    fn fences(stopped: bool, since_ms: u64, reason in text(256)) {
        let row = Fence { stopped, reason, since_ms };
        let mut bytes = Vec::new();
        row.encode(&mut bytes);
        prop_assert_eq!(Fence::decode(&bytes), Ok(row));
    }

    #[test]
    fn audit_entries(
        number: u64,
        at_ms: u64,
        action in prop::sample::select(Action::ALL.to_vec()),
        axis in prop::option::of(prop::sample::select(Axis::ALL.to_vec())),
        words in [text(64), text(64), text(64)],
        reason in text(256),
    ) {
        let [family, identity, key] = words;
        let row = AuditEntry { number, at_ms, action, family, axis, identity, key, reason, from: "::1".into() };
        let mut bytes = Vec::new();
        row.encode(&mut bytes);
        prop_assert!(bytes.len() < 700);
        prop_assert_eq!(AuditEntry::decode(&bytes), Ok(row));
    }

    #[test]
    fn other_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = FamilyDay::decode(&bytes);
        let _ = Quota::decode(&bytes);
        let _ = Lease::decode(&bytes);
        let _ = Fence::decode(&bytes);
        let _ = AuditEntry::decode(&bytes);
    }
}

#[test]
fn a_row_of_another_kind_is_refused() {
    let mut bytes = Vec::new();
    Quota::default().encode(&mut bytes);
    let refused = DecodeError::Version { first_byte: bytes[0] };
    assert_eq!(FamilyDay::decode(&bytes), Err(refused));
    assert_eq!(Fence::decode(&bytes), Err(refused));
    assert_eq!(AuditEntry::decode(&bytes), Err(refused));
}
