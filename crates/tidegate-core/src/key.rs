//! How rows are named in a limit store: hashed, fixed in size, and grouped.

use core::fmt;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// The name of one row: 64 bits that it shares with the rows of its group, and 128 bits of its own.
///
/// Both come from SHA-256 over length-prefixed parts, so that no two different lists of parts share a
/// name by being joined. What was hashed can't be read back, and is never kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; Key::BYTES]);

/// A store's secret, prepared for many keys; see [`Key::under`].
#[derive(Clone)]
pub struct KeySecret(Hmac<Sha256>);

/// The 64 bits that the rows of one group (a partition of the guard store, say) have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Group([u8; 8]);

/// The 48 bits that the rows of one member of a group (a key within a partition, say) have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Member([u8; MEMBER_BYTES]);

/// Some rows that belong together: a whole group, or one member of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The group.
    pub group: Group,
    /// The member; none: all of them.
    pub member: Option<Member>,
}

const GROUP_BYTES: usize = 8;
const MEMBER_BYTES: usize = 6;
/// Where the member stands in a key: at its end, since hash tables look at what comes first.
const MEMBER: usize = Key::BYTES - MEMBER_BYTES;

impl Group {
    /// The group called `name`.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        Self(leading_bytes(&digest(&[b"group", name])))
    }

    /// The row of this group that `parts` name.
    #[must_use]
    pub fn key(self, parts: &[&[u8]]) -> Key {
        Key::join(self.0, leading_bytes(&digest(parts)))
    }

    /// The row of this group and member that `parts` name, the member's name among them: what tells it from
    /// the rows of other members is still 128 bits.
    #[must_use]
    pub fn key_of(self, member: Member, parts: &[&[u8]]) -> Key {
        let mut key = self.key(parts);
        key.0[MEMBER..].copy_from_slice(&member.0);
        key
    }
}

impl Member {
    /// The member called `name`.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        Self(leading_bytes(&digest(&[b"member", name])))
    }
}

impl Scope {
    /// Whether it holds the row.
    #[must_use]
    pub fn holds(&self, key: &Key) -> bool {
        key.0[..GROUP_BYTES] == self.group.0 && self.member.is_none_or(|member| key.0[MEMBER..] == member.0)
    }
}

impl Key {
    /// Bytes of a key: 8 of its group, 16 of its own.
    pub const BYTES: usize = 24;

    /// The row that `parts` name, in the group of their first part.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        Group::of(parts.first().copied().unwrap_or_default()).key(parts)
    }

    /// The same row under a store's secret: without the secret nobody can tell which row it is.
    #[must_use]
    pub fn under(self, secret: &[u8]) -> Self {
        let mut keys = [self];
        KeySecret::new(secret).apply(&mut keys);
        keys[0]
    }

    /// The bytes, as a backend stores them.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// A key read back from a backend.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// 64 well-mixed bits of the row's own part, for hash tables and shards.
    #[must_use]
    pub fn hash_bits(&self) -> u64 {
        u64::from_le_bytes(leading_bytes(&self.0[8..]))
    }

    /// The group that the row belongs to.
    #[must_use]
    pub fn group(&self) -> Group {
        Group(leading_bytes(&self.0))
    }

    /// The member that the row belongs to, if it was named as one of a member's.
    #[must_use]
    pub fn member(&self) -> Member {
        Member(leading_bytes(&self.0[MEMBER..]))
    }

    fn join(group: [u8; 8], own: [u8; 16]) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&group);
        bytes[8..].copy_from_slice(&own);
        Self(bytes)
    }
}

impl KeySecret {
    /// Prepares `secret`, of any length.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(Hmac::new_from_slice(secret).expect("HMAC takes a key of any length"))
    }

    /// Replaces each of `keys` by [`Key::under`] this secret. Neighbours of one group share its part of the
    /// work.
    pub fn apply(&self, keys: &mut [Key]) {
        let mut last: Option<(Group, Group)> = None;
        for key in keys {
            let group = match last {
                Some((group, keyed)) if group == key.group() => keyed,
                _ => self.group(key.group()),
            };
            last = Some((key.group(), group));
            let member = self.member(key.group(), key.member());
            *key = Key::join(group.0, leading_bytes(&self.digest(b"row", &key.0[GROUP_BYTES..])));
            key.0[MEMBER..].copy_from_slice(&member.0);
        }
    }

    /// The same rows under this secret.
    #[must_use]
    pub fn scope(&self, scope: Scope) -> Scope {
        let member = scope.member.map(|member| self.member(scope.group, member));
        Scope { group: self.group(scope.group), member }
    }

    fn group(&self, group: Group) -> Group {
        Group(leading_bytes(&self.digest(b"group", &group.0)))
    }

    fn member(&self, group: Group, member: Member) -> Member {
        let mut both = [0; GROUP_BYTES + MEMBER_BYTES];
        both[..GROUP_BYTES].copy_from_slice(&group.0);
        both[GROUP_BYTES..].copy_from_slice(&member.0);
        Member(leading_bytes(&self.digest(b"member", &both)))
    }

    fn digest(&self, label: &[u8], bytes: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(label);
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

impl fmt::Debug for Key {
    /// Redacted: a key stands for an identity.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Member(…)")
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("of_one_member", &self.member.is_some()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Group(…)")
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

fn leading_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[..N]);
    out
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn joined_parts_never_collide() {
        let pairs: [[&[&[u8]]; 2]; 3] = [
            [&[b"a", b"b:c"], &[b"a:b", b"c"]],
            [&[b"192.0.2.1", b"1/x"], &[b"192.0.2.11", b"/x"]],
            [&[b"a", b""], &[b"a"]],
        ];
        for [left, right] in pairs {
            assert_ne!(Key::of(left), Key::of(right));
        }
    }

    #[test]
    fn a_secret_changes_every_part_of_the_name() {
        let key = Key::of(&[b"group", b"row"]);
        let keyed = key.under(b"one secret of a store");
        assert_ne!(key.as_bytes()[..8], keyed.as_bytes()[..8]);
        assert_ne!(key.as_bytes()[8..], keyed.as_bytes()[8..]);
        assert_ne!(keyed, key.under(b"another secret of it"));
    }

    #[test]
    fn many_keys_under_a_secret_are_each_under_it() {
        let (group, other) = (Group::of(b"partition"), Group::of(b"other"));
        let keys = [group.key(&[b"a"]), group.key(&[b"b"]), other.key(&[b"a"]), group.key(&[b"a"])];
        let mut keyed = keys;
        KeySecret::new(b"one secret of a store").apply(&mut keyed);
        assert_eq!(keyed, keys.map(|key| key.under(b"one secret of a store")));
        assert_eq!(keyed[0].group(), keyed[1].group());
        assert_ne!(keyed[0].group(), keyed[2].group());
    }

    #[test]
    fn scopes_hold_their_rows_with_and_without_a_secret() {
        let (group, other) = (Group::of(b"partition"), Group::of(b"other"));
        let (alice, bob) = (Member::of(b"alice"), Member::of(b"bob"));
        let secret = KeySecret::new(b"one secret of a store");
        let keys = [
            group.key_of(alice, &[b"window", b"alice"]),
            group.key_of(alice, &[b"record", b"alice"]),
            group.key_of(bob, &[b"window", b"bob"]),
            group.key(&[b"operation"]),
            other.key_of(alice, &[b"window", b"alice"]),
        ];
        let table = [
            (Scope { group, member: None }, [true, true, true, true, false]),
            (Scope { group, member: Some(alice) }, [true, true, false, false, false]),
            (Scope { group: other, member: Some(bob) }, [false; 5]),
        ];
        for (scope, expected) in table {
            assert_eq!(keys.map(|key| scope.holds(&key)), expected);
            let mut keyed = keys;
            secret.apply(&mut keyed);
            let scope = secret.scope(scope);
            assert_eq!(keyed.map(|key| scope.holds(&key)), expected, "under a secret");
        }
        assert_ne!(keys[0], keys[1]);
        assert_ne!(keys[0].hash_bits(), keys[1].hash_bits());
    }

    #[test]
    fn the_rows_of_a_group_share_it() {
        let group = Group::of(b"partition");
        assert_eq!(group.key(&[b"a"]).group(), group);
        assert_ne!(group.key(&[b"a"]), group.key(&[b"b"]));
        assert_ne!(Group::of(b"other").key(&[b"a"]), group.key(&[b"a"]));
    }

    proptest! {
        #[test]
        fn distinct_tuples_have_distinct_keys(
            left in prop::collection::vec(prop::collection::vec(prop::sample::select(b":/\0a1".to_vec()), 0..4), 1..4),
            right in prop::collection::vec(prop::collection::vec(prop::sample::select(b":/\0a1".to_vec()), 0..4), 1..4),
        ) {
            let parts = |tuple: &[Vec<u8>]| Key::of(&tuple.iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert_eq!(parts(&left) == parts(&right), left == right);
        }
    }
}
