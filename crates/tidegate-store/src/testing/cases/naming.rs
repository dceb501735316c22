//! Which row a key names.

use super::{Handles, Key, LONG_MS, Outcome, ROOMY, Seen, bump, case, counts, same};
use crate::{Group, Member, Scope, testing::ContractCase};

pub(super) const CASES: &[ContractCase] = &[
    case("different keys are different rows", ROOMY, |store| Box::pin(different(store))),
    case("forgetting removes what belongs together", ROOMY, |store| Box::pin(forgetting(store))),
];

/// More than goes into one update.
const MANY: u64 = 700;

async fn forgetting(store: Handles) -> Seen {
    let (group, other) = (Group::of(b"forgotten"), Group::of(b"kept"));
    let (alice, bob) = (Member::of(b"alice"), Member::of(b"bob"));
    let rows = [
        group.key_of(alice, &[b"window", b"alice"]),
        group.key_of(alice, &[b"record", b"alice"]),
        group.key_of(bob, &[b"window", b"bob"]),
        group.key(&[b"of the group alone"]),
        other.key_of(alice, &[b"window", b"alice"]),
    ];
    for row in rows {
        bump(&store.first, row, LONG_MS).await?;
    }
    let forgotten = store.second.forget(Scope { group, member: Some(alice) }).await?;
    same("how many rows of a member were forgotten", forgotten, 2)?;
    same("after a member was forgotten", counts(&store.first, rows.to_vec()).await?, vec![0, 0, 1, 1, 1])?;
    for number in 0..MANY {
        bump(&store.first, group.key(&[&number.to_le_bytes()]), LONG_MS).await?;
    }
    let forgotten = store.second.forget(Scope { group, member: None }).await?;
    same("how many rows of a group were forgotten", forgotten, MANY + 2)?;
    same("after a group was forgotten", counts(&store.first, rows.to_vec()).await?, vec![0, 0, 0, 0, 1])?;
    same("what is left to forget", store.first.forget(Scope { group, member: None }).await?, 0)?;
    Ok(Outcome::Kept)
}

async fn different(store: Handles) -> Seen {
    let keys = composed().into_iter().chain(neighbours()).collect::<Vec<_>>();
    for (number, key) in keys.iter().enumerate() {
        let seen = bump(store.by_turns(number), *key, LONG_MS).await?;
        same(&format!("the first count of key {number}"), seen, 1)?;
    }
    for (number, key) in keys.iter().enumerate() {
        let seen = bump(store.by_turns(number), *key, LONG_MS).await?;
        same(&format!("the second count of key {number}"), seen, 2)?;
    }
    Ok(Outcome::Kept)
}

/// Parts that would be the same when joined, or when cut.
fn composed() -> Vec<Key> {
    let long = |end: &str| "u".repeat(300) + end;
    vec![
        Key::of(&[b"a", b"b:c"]),
        Key::of(&[b"a:b", b"c"]),
        Key::of(&[b"192.0.2.1", b"1/x"]),
        Key::of(&[b"192.0.2.11", b"/x"]),
        Key::of(&[b"a", b""]),
        Key::of(&[b"a"]),
        Key::of(&[b"user", long("1").as_bytes()]),
        Key::of(&[b"user", long("2").as_bytes()]),
    ]
}

/// Keys that differ from one in a single bit, at either end of each byte: nothing of a key may be lost.
fn neighbours() -> Vec<Key> {
    let one = Key::of(&[b"neighbours"]);
    let changed = |byte: usize, bit: u8| {
        let mut bytes = *one.as_bytes();
        bytes[byte] ^= bit;
        Key::from_bytes(bytes)
    };
    let others = (0..Key::BYTES).flat_map(|byte| [changed(byte, 1), changed(byte, 0x80)]);
    std::iter::once(one).chain(others).collect()
}
