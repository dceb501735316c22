//! Updates that run at once must not show.

use std::sync::Arc;

use super::{
    Handles, Key, LONG_MS, LimitStoreExt, Outcome, ROOMY, Seen, Store, at_once, bump, case, count, counts,
    holds, key, same,
};
use crate::{StoreError, View, testing::ContractCase};

pub(super) const CASES: &[ContractCase] = &[
    case("an update sees those before it", ROOMY, |store| Box::pin(in_turn(store))),
    case("first attempts at once are counted", ROOMY, |store| Box::pin(first_attempts(store))),
    case("updates at once never see the same count", ROOMY, |store| Box::pin(distinct(store))),
    case("rows of one update change together", ROOMY, |store| Box::pin(together(store))),
    case("conflicting key orders lose no update", ROOMY, |store| Box::pin(orders(store))),
    case("a claim has one holder at a time", ROOMY, |store| Box::pin(claims(store))),
    case("many callers are all served", ROOMY, |store| Box::pin(many(store))),
];

async fn in_turn(store: Handles) -> Seen {
    for turn in 0..20 {
        let seen = bump(store.by_turns(turn), key("turn"), LONG_MS).await?;
        same("the count, by turns over both handles", seen, turn as u64 + 1)?;
    }
    Ok(Outcome::Kept)
}

/// A key's first attempt is the hardest: there is no row yet to lock.
async fn first_attempts(store: Handles) -> Seen {
    const LIMIT: u64 = 5;
    for round in 0..20 {
        let row = key(round);
        let attempts = (0..50).map(|attempt| {
            let handle = Arc::clone(store.by_turns(attempt));
            async move {
                let attempt = handle.update(vec![row], |view| {
                    let used = count(view.get(0));
                    if used < LIMIT {
                        view.put(0, (used + 1).to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
                    }
                    used < LIMIT
                });
                attempt.await
            }
        });
        let answers = at_once(attempts).await?.into_iter().collect::<Result<Vec<bool>, _>>()?;
        let admitted = answers.into_iter().filter(|admitted| *admitted).count();
        same(&format!("admitted of 50 at once, round {round}"), admitted as u64, LIMIT)?;
        same("the counter", counts(&store.first, vec![row]).await?, vec![LIMIT])?;
    }
    Ok(Outcome::Kept)
}

async fn distinct(store: Handles) -> Seen {
    let calls = (0..60).map(|number| {
        let handle = Arc::clone(store.by_turns(number));
        async move { bump(&handle, key("distinct"), LONG_MS).await }
    });
    let mut seen = at_once(calls).await?.into_iter().collect::<Result<Vec<u64>, StoreError>>()?;
    seen.sort_unstable();
    same("the counts of 60 at once", seen, (1..=60).collect())?;
    Ok(Outcome::Kept)
}

async fn together(store: Handles) -> Seen {
    let keys: Vec<Key> = (0..8).map(key).collect();
    let calls = (0..60).map(|number| {
        let (handle, keys) = (Arc::clone(store.by_turns(number)), keys.clone());
        async move {
            if number % 3 == 0 {
                handle.update(keys.clone(), |view| bump_all(view, 8)).await?;
            }
            counts(&handle, keys).await
        }
    });
    for seen in at_once(calls).await? {
        let seen = seen?;
        holds(
            &format!("counters that only change together were seen as {seen:?}"),
            seen.iter().all(|n| *n == seen[0]),
        )?;
    }
    same("the counters in the end", counts(&store.second, keys).await?, vec![20; 8])?;
    Ok(Outcome::Kept)
}

async fn orders(store: Handles) -> Seen {
    let keys: Vec<Key> = (0..6).map(key).collect();
    let calls = (0..60).map(|number| {
        let (handle, mut keys) = (Arc::clone(store.by_turns(number)), keys.clone());
        keys.rotate_left(number % 6);
        if number % 4 < 2 {
            keys.reverse();
        }
        async move { handle.update(keys, |view| bump_all(view, 6)).await }
    });
    at_once(calls).await?.into_iter().collect::<Result<Vec<()>, _>>()?;
    same("six counters after 60 updates of all", counts(&store.first, keys).await?, vec![60; 6])?;
    Ok(Outcome::Kept)
}

/// Adds one to each of the first `keys` counters.
fn bump_all(view: &mut View<'_>, keys: usize) {
    for index in 0..keys {
        let next = count(view.get(index)) + 1;
        view.put(index, next.to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
    }
}

/// A row that is there while somebody holds it comes and goes; a second row counts who holds it.
async fn claims(store: Handles) -> Seen {
    for round in 0..20 {
        let calls = (0..50).map(|number| claim(Arc::clone(store.by_turns(number)), round));
        for holders in at_once(calls).await? {
            if let Some(holders) = holders? {
                same(
                    &format!("who held a claim while it was, and once it was given back, round {round}"),
                    holders,
                    (1, 0),
                )?;
            }
        }
    }
    Ok(Outcome::Kept)
}

/// How many held the claim with this one, and how many after it; none if another one had it.
async fn claim(store: Store, round: usize) -> Result<Option<(u64, u64)>, StoreError> {
    let rows = || vec![key(format!("claim {round}")), key(format!("holders {round}"))];
    let claimed = store.update(rows(), |view| {
        let held = view.get(0).is_some();
        (!held).then(|| {
            view.put(0, b"mine".as_slice(), view.now_ms() + LONG_MS);
            add(view, 1)
        })
    });
    let Some(with) = claimed.await? else { return Ok(None) };
    let given_back = store.update(rows(), |view| {
        view.delete(0);
        add(view, -1)
    });
    Ok(Some((with, given_back.await?)))
}

/// Adds to the counter of the second row, which goes below zero where two give back one claim.
fn add(view: &mut View<'_>, holders: i64) -> u64 {
    let holders = count(view.get(1)).wrapping_add_signed(holders);
    view.put(1, holders.to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
    holders
}

async fn many(store: Handles) -> Seen {
    let calls = (0..512).map(|number| {
        let handle = Arc::clone(store.by_turns(number));
        async move { bump(&handle, key(number % 50), LONG_MS).await }
    });
    at_once(calls).await?.into_iter().collect::<Result<Vec<u64>, _>>()?;
    let seen: u64 = counts(&store.first, (0..50).map(key).collect()).await?.into_iter().sum();
    same("the sum of what 512 callers counted", seen, 512)?;
    Ok(Outcome::Kept)
}
