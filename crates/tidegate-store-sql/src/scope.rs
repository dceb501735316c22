//! A scope as a range of keys, which an index can be asked for.

use tidegate_store::{Key, Scope};

const GROUP_BYTES: usize = 8;
const MEMBER_BYTES: usize = 6;

/// The keys of a scope: those from `first` to `last`, of which only some end as a member's do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRange {
    pub(crate) first: [u8; Key::BYTES],
    pub(crate) last: [u8; Key::BYTES],
    pub(crate) ends_with: Option<[u8; MEMBER_BYTES]>,
}

/// How many bytes [`KeyRange::ends_with`] has.
pub(crate) const ENDING_BYTES: usize = MEMBER_BYTES;

impl KeyRange {
    pub(crate) fn of(scope: Scope) -> Self {
        let any = scope.group.key(&[]);
        let filled = |with: u8| {
            let mut bytes = [with; Key::BYTES];
            bytes[..GROUP_BYTES].copy_from_slice(&any.as_bytes()[..GROUP_BYTES]);
            bytes
        };
        let ends_with = scope.member.map(|member| {
            let mut ending = [0; MEMBER_BYTES];
            ending.copy_from_slice(&scope.group.key_of(member, &[]).as_bytes()[Key::BYTES - MEMBER_BYTES..]);
            ending
        });
        Self { first: filled(0), last: filled(u8::MAX), ends_with }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_store::{Group, Member};

    use super::*;

    impl KeyRange {
        fn holds(&self, key: &Key) -> bool {
            let bytes = key.as_bytes();
            let ends = self.ends_with.is_none_or(|ending| bytes.ends_with(&ending));
            (self.first..=self.last).contains(bytes) && ends
        }
    }

    proptest! {
        #[test]
        fn a_range_holds_what_its_scope_holds(group in 0..3_u8, member in 0..3_u8, name: [u8; 4], whole: bool) {
            let (groups, members) = (Group::of(&[1]), Member::of(&[1]));
            let scope = Scope { group: groups, member: (!whole).then_some(members) };
            let key = Group::of(&[group]).key_of(Member::of(&[member]), &[&name]);
            prop_assert_eq!(KeyRange::of(scope).holds(&key), scope.holds(&key));
        }
    }
}
