//! What is refused before anything runs, or is undone whole.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    Handles, Key, Keys, LONG_MS, LimitStoreExt, Outcome, ROOMY, Seen, Store, StoreError, at_once, bump, case,
    holds, key, put, same, value,
};
use crate::{Invalid, KEYS_MAX, LIFE_MS_MAX, VALUE_BYTES_MAX, testing::ContractCase};

pub(super) const CASES: &[ContractCase] = &[
    case("values are bounded", ROOMY, |store| Box::pin(values(store))),
    case("expiries are bounded", ROOMY, |store| Box::pin(expiries(store))),
    case("a key stands once in an update", ROOMY, |store| Box::pin(duplicates(store))),
    case("keys of an update are bounded", ROOMY, |store| Box::pin(too_many(store))),
    case("watched rows are read and not written", ROOMY, |store| Box::pin(watched(store))),
    case("an invalid update leaves nothing", ROOMY, |store| Box::pin(invalid(store))),
    case("an invalid update harms no other", ROOMY, |store| Box::pin(neighbours(store))),
];

async fn watched(store: Handles) -> Seen {
    let (seen, copy) = (key("seen"), key("copy"));
    put(&store.first, seen, b"3", LONG_MS).await?;
    let keys = || Keys::from(vec![copy]).watching([seen]);
    let update = store.second.update_watching(keys(), |view| {
        let value = view.get(1).map(|row| row.value.clone()).unwrap_or_default();
        view.put(0, value, view.now_ms() + LONG_MS);
    });
    update.await?;
    same("what was copied from a watched row", value(&store.first, copy).await?, Some(b"3".to_vec()))?;
    let refused =
        store.first.update_watching(keys(), |view| view.put(1, b"4".as_slice(), view.now_ms() + LONG_MS));
    same("writing a watched row", refused.await, Err(Invalid::Watched { index: 1 }.into()))?;
    let refused = store.first.update_watching(keys(), |view| view.delete(1));
    same("deleting a watched row", refused.await, Err(Invalid::Watched { index: 1 }.into()))?;
    same("the watched row", value(&store.second, seen).await?, Some(b"3".to_vec()))?;

    let pair = || [key("one half"), key("other half")];
    let watchers = (0..MANY_WATCHERS).map(|number| {
        let store = Arc::clone(store.by_turns(number));
        async move {
            if number % 4 == 0 {
                let both = store.update(pair().to_vec(), move |view| {
                    (0..2).for_each(|index| {
                        view.put(index, number.to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
                    });
                    true
                });
                return both.await;
            }
            let keys = Keys::from(vec![key(format!("watcher {number}"))]).watching(pair());
            let equal = store.update_watching(keys, |view| {
                view.put(0, b"was here".as_slice(), view.now_ms() + LONG_MS);
                view.get(1) == view.get(2)
            });
            equal.await
        }
    });
    for equal in at_once(watchers).await? {
        same("whether both halves were the same to a watcher", equal?, true)?;
    }
    Ok(Outcome::Kept)
}

const MANY_WATCHERS: usize = 120;

async fn values(store: Handles) -> Seen {
    let largest: Vec<u8> = (0..=u8::MAX).cycle().take(VALUE_BYTES_MAX).collect();
    put(&store.first, key("largest"), &largest, LONG_MS).await?;
    holds(
        "the largest value came back changed",
        value(&store.second, key("largest")).await? == Some(largest),
    )?;
    let bytes = VALUE_BYTES_MAX + 1;
    let refused = put(&store.first, key("larger"), &vec![0; bytes], LONG_MS).await;
    let right = Invalid::ValueTooLarge { index: 0, bytes };
    same("a value one byte larger", refused, Err(right.into()))?;
    same("its row", value(&store.second, key("larger")).await?, None)?;
    Ok(Outcome::Kept)
}

async fn expiries(store: Handles) -> Seen {
    let out_of_range = || Err(StoreError::from(Invalid::ExpiryOutOfRange { index: 0 }));
    put(&store.first, key("longest"), b"x", LIFE_MS_MAX).await?;
    put(&store.first, key("shortest"), b"x", 1).await?;
    for (name, life_ms) in
        [("no life at all", 0), ("120 days and 1 ms", LIFE_MS_MAX + 1), ("beyond", u64::MAX / 2)]
    {
        same(name, put(&store.first, key(name), b"x", life_ms).await, out_of_range())?;
        same("its row", value(&store.second, key(name)).await?, None)?;
    }
    for (name, expires_at_ms) in [("the epoch", 0), ("a second ago", 1000)] {
        let update = store.first.update(vec![key(name)], move |view| {
            view.put(0, b"x".as_slice(), if expires_at_ms == 0 { 0 } else { view.now_ms() - expires_at_ms });
        });
        same(name, update.await, out_of_range())?;
    }
    Ok(Outcome::Kept)
}

/// What an update with `keys` is answered, and whether it ran.
async fn attempt(store: &Store, keys: Vec<Key>) -> (Result<(), StoreError>, bool) {
    let ran = Arc::new(AtomicBool::new(false));
    let running = Arc::clone(&ran);
    let answer = store.update(keys, move |_| running.store(true, Ordering::SeqCst)).await;
    (answer, ran.load(Ordering::SeqCst))
}

async fn duplicates(store: Handles) -> Seen {
    let many = |second: usize| -> Vec<Key> {
        (0..100).map(|number| if number == second { key(7) } else { key(number) }).collect()
    };
    let table =
        [(vec![key("a"), key("a")], 1), (vec![key("a"), key("b"), key("c"), key("b")], 3), (many(60), 60)];
    for (keys, index) in table {
        let right: Result<(), StoreError> = Err(Invalid::DuplicateKey { index }.into());
        same("an update, and whether it ran", attempt(&store.first, keys.clone()).await, (right, false))?;
        let read = store.second.read(keys).await.map(|_| ());
        same("a read", read, right)?;
    }
    Ok(Outcome::Kept)
}

async fn too_many(store: Handles) -> Seen {
    let keys = |count: usize| -> Vec<Key> { (0..count).map(key).collect() };
    same("the most keys", attempt(&store.first, keys(KEYS_MAX)).await, (Ok(()), true))?;
    let right = Err(Invalid::TooManyKeys { keys: KEYS_MAX + 1 }.into());
    same("one more", attempt(&store.first, keys(KEYS_MAX + 1)).await, (right, false))?;
    same("none at all", attempt(&store.first, Vec::new()).await, (Ok(()), true))?;
    Ok(Outcome::Kept)
}

async fn invalid(store: Handles) -> Seen {
    let keys = vec![key("first"), key("second"), key("third")];
    bump(&store.first, key("second"), LONG_MS).await?;
    let update = store.first.update(keys.clone(), |view| {
        view.put(0, b"new".as_slice(), view.now_ms() + LONG_MS);
        view.delete(1);
        view.put(2, vec![0; VALUE_BYTES_MAX + 1], view.now_ms() + LONG_MS);
        // Going on after the fault must not save it.
        view.put(2, b"small".as_slice(), view.now_ms() + LONG_MS);
    });
    let right = Invalid::ValueTooLarge { index: 2, bytes: VALUE_BYTES_MAX + 1 };
    same("its answer", update.await, Err(right.into()))?;
    for handle in [&store.first, &store.second] {
        let rows = handle.read(keys.clone()).await?;
        same("which rows there are", rows.iter().map(Option::is_some).collect(), vec![false, true, false])?;
    }
    same("the count that it deleted", bump(&store.second, key("second"), LONG_MS).await?, 2)?;
    Ok(Outcome::Kept)
}

async fn neighbours(store: Handles) -> Seen {
    let calls = (0..40).map(|number| {
        let handle = Arc::clone(store.by_turns(number / 2));
        async move {
            if number % 4 == 0 {
                let answer = put(&handle, key("shared"), &vec![0; VALUE_BYTES_MAX + 1], LONG_MS).await;
                same(
                    "an invalid one",
                    answer.map_err(|error| matches!(error, StoreError::Invalid(_))),
                    Err(true),
                )
            } else {
                Ok(bump(&handle, key("shared"), LONG_MS).await.map(|_| ())?)
            }
        }
    });
    at_once(calls).await?.into_iter().collect::<Result<Vec<()>, _>>()?;
    same("the count of the others", bump(&store.first, key("shared"), LONG_MS).await?, 31)?;
    Ok(Outcome::Kept)
}
