//! The bound on entries, and what sweeping may remove.

use std::sync::Arc;

use super::{
    Handles, Key, LONG_MS, LimitStoreExt, Outcome, ROOMY, SHORT_MS, Seen, Unavailable, What, at_once, bump,
    case, holds, key, put, same, unavailable, value,
};
use crate::{StoreError, testing::ContractCase};

pub(super) const CASES: &[ContractCase] = &[
    case("a full store keeps what lives", 8, |store| Box::pin(full(store))),
    case("a full store goes on counting", 8, |store| Box::pin(goes_on(store))),
    case("the bound holds for callers at once", 16, |store| Box::pin(at_the_bound(store))),
    case("expired rows make room", 6, |store| Box::pin(make_room(store))),
    case("sweeping removes what has expired", ROOMY, |store| Box::pin(removes(store))),
    case("sweeping keeps what lives", ROOMY, |store| Box::pin(keeps(store))),
];

async fn fill(store: &Handles, rows: u64) -> Result<(), What> {
    for number in 0..rows {
        bump(&store.first, key(number), LONG_MS).await?;
    }
    Ok(())
}

async fn full(store: Handles) -> Seen {
    fill(&store, 8).await?;
    for number in 0..20 {
        let name = format!("new {number}");
        unavailable(
            "a new key in a full store",
            bump(store.by_turns(number), key(&name), LONG_MS).await,
            Unavailable::Full,
        )?;
        same("its row", value(&store.first, key(name)).await?, None)?;
    }
    for number in 0..8 {
        same("the next count of a row it held", bump(&store.second, key(number), LONG_MS).await?, 2)?;
    }
    Ok(Outcome::Kept)
}

async fn goes_on(store: Handles) -> Seen {
    fill(&store, 8).await?;
    let mixed = store.first.update(vec![key(0), key("new")], |view| {
        view.put(0, 7_u64.to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
        view.put(1, b"x".as_slice(), view.now_ms() + LONG_MS);
    });
    unavailable("an update with a new key among others", mixed.await, Unavailable::Full)?;
    same("the row that it would have changed", bump(&store.second, key(0), LONG_MS).await?, 2)?;
    let swap = store.first.update(vec![key(1), key("new")], |view| {
        view.delete(0);
        view.put(1, b"x".as_slice(), view.now_ms() + LONG_MS);
    });
    same("one that deletes as many as it adds", swap.await, Ok(()))?;
    unavailable("and then one more", bump(&store.first, key(1), LONG_MS).await, Unavailable::Full)?;
    store.first.update(vec![key(2)], |view| view.delete(0)).await?;
    same("the first count where one was deleted", bump(&store.second, key(1), LONG_MS).await?, 1)?;
    Ok(Outcome::Kept)
}

async fn at_the_bound(store: Handles) -> Seen {
    let calls = (0..64).map(|number| {
        let handle = Arc::clone(store.by_turns(number));
        async move { bump(&handle, key(number), LONG_MS).await }
    });
    let answers = at_once(calls).await?;
    let admitted = answers.iter().filter(|answer| answer.is_ok()).count();
    for refused in answers.into_iter().filter(Result::is_err) {
        unavailable("a refusal", refused, Unavailable::Full)?;
    }
    // Instances that share a store may each pass the bound by a batch.
    let right = if store.first.shared() { 16.max(admitted) } else { 16 };
    same("new keys admitted of 64 at once", admitted, right)?;
    let rows = store.second.read((0..64).map(key).collect()).await?;
    same("rows in the end", rows.iter().flatten().count(), right)?;
    unavailable("one more", bump(&store.first, key("more"), LONG_MS).await, Unavailable::Full)?;
    Ok(Outcome::Kept)
}

async fn make_room(store: Handles) -> Seen {
    for name in ["long 1", "long 2"] {
        bump(&store.first, key(name), LONG_MS).await?;
    }
    for round in 0..3 {
        let row = |number: usize| key(format!("round {round}, row {number}"));
        let short: Vec<Key> = (0..4).map(row).collect();
        let update = store.first.update(short, |view| {
            (0..4).for_each(|index| view.put(index, b"x".as_slice(), view.now_ms() + SHORT_MS));
        });
        same("four rows where four have expired", update.await, Ok(()))?;
        let more = bump(&store.second, key("more"), LONG_MS).await;
        unavailable("one more while all live", more, Unavailable::Full)?;
        store.pass(SHORT_MS).await;
    }
    for name in ["long 1", "long 2"] {
        same("the next count of a long-lived row", bump(&store.second, key(name), LONG_MS).await?, 2)?;
    }
    Ok(Outcome::Kept)
}

async fn removes(store: Handles) -> Seen {
    let mut removed = 0;
    // A sweep in the background may be the first; not every time.
    for attempt in 0..5 {
        for number in 0..5 {
            put(&store.first, key(format!("{attempt}, {number}")), b"x", SHORT_MS).await?;
        }
        store.pass(SHORT_MS).await;
        removed = store.second.sweep().await?;
        holds(&format!("{removed} of 5 rows were removed"), removed <= 5)?;
        same("removed by a second sweep", store.first.sweep().await?, 0)?;
        if removed == 5 {
            return Ok(Outcome::Kept);
        }
    }
    Err(What(format!("removed of 5 expired rows, time and again: {removed}")))
}

/// Expiry belongs to each row: no age of all rows decides.
async fn keeps(store: Handles) -> Seen {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let lives = [("an hour", LONG_MS), ("30 days", 30 * DAY_MS), ("120 days", crate::LIFE_MS_MAX)];
    for (name, life_ms) in lives {
        bump(&store.first, key(name), life_ms).await?;
    }
    for number in 0..20 {
        put(&store.first, key(number), b"x", SHORT_MS).await?;
    }
    store.pass(SHORT_MS).await;
    let sweeps = [&store.first, &store.second].map(|handle| {
        let handle = Arc::clone(handle);
        async move { handle.sweep().await }
    });
    let removed = at_once(sweeps).await?.into_iter().collect::<Result<Vec<u64>, StoreError>>()?;
    holds(
        &format!("two sweeps at once removed {removed:?} of 20 rows"),
        removed.iter().all(|rows| *rows <= 20),
    )?;
    for (name, life_ms) in lives {
        let seen = bump(&store.second, key(name), life_ms).await?;
        same(&format!("the next count of a row that lives for {name}"), seen, 2)?;
    }
    if store.harness.advance(2 * DAY_MS) {
        store.first.sweep().await?;
        same(
            "of the row for 30 days, two days later",
            bump(&store.first, key("30 days"), LONG_MS).await?,
            3,
        )?;
        same("of the row for an hour, by then", bump(&store.first, key("an hour"), LONG_MS).await?, 1)?;
    }
    Ok(Outcome::Kept)
}
