//! From a row's first write to its end.

use super::{
    Handles, LONG_MS, LimitStoreExt, Outcome, ROOMY, SHORT_MS, Seen, Store, StoreError, bump, case, holds,
    key, put, same, value,
};
use crate::{Entry, testing::ContractCase};

pub(super) const CASES: &[ContractCase] = &[
    case("zero and an empty value are not absence", ROOMY, |store| Box::pin(zero(store))),
    case("a deleted row is absent", ROOMY, |store| Box::pin(delete(store))),
    case("rows are read in the order of their keys", ROOMY, |store| Box::pin(order(store))),
    case("every handle sees one clock, which never goes back", ROOMY, |store| Box::pin(clock(store))),
    case("an expired row is absent", ROOMY, |store| Box::pin(expired(store))),
    case("a row ends exactly at its expiry", ROOMY, |store| Box::pin(instant(store))),
    case("the last write sets the expiry", ROOMY, |store| Box::pin(last_write(store))),
    case("reopening keeps what was acknowledged", ROOMY, |store| Box::pin(reopening(store))),
];

async fn zero(store: Handles) -> Seen {
    same("a row never written", value(&store.first, key("never")).await?, None)?;
    for (name, bytes) in [("empty", &b""[..]), ("zero", &b"0"[..]), ("NUL", &b"\0"[..])] {
        put(&store.first, key(name), bytes, LONG_MS).await?;
        for handle in [&store.first, &store.second] {
            same(name, value(handle, key(name)).await?, Some(bytes.to_vec()))?;
        }
    }
    Ok(Outcome::Kept)
}

async fn delete(store: Handles) -> Seen {
    bump(&store.first, key("row"), LONG_MS).await?;
    for round in ["a row", "an absent row"] {
        store.second.update(vec![key("row")], |view| view.delete(0)).await?;
        for handle in [&store.first, &store.second] {
            same(&format!("after deleting {round}"), value(handle, key("row")).await?, None)?;
        }
    }
    same("the first count after it", bump(&store.first, key("row"), LONG_MS).await?, 1)?;
    let put_and_delete = store.first.update(vec![key("other")], |view| {
        view.put(0, b"x".as_slice(), view.now_ms() + LONG_MS);
        view.delete(0);
    });
    put_and_delete.await?;
    same("written and deleted in one update", value(&store.second, key("other")).await?, None)?;
    Ok(Outcome::Kept)
}

async fn order(store: Handles) -> Seen {
    let names = ["d", "a", "missing", "c", "b"];
    for name in names.into_iter().filter(|name| *name != "missing") {
        put(&store.first, key(name), name.as_bytes(), LONG_MS).await?;
    }
    let right: Vec<_> =
        names.iter().map(|name| (*name != "missing").then(|| name.as_bytes().to_vec())).collect();
    let values = |rows: Vec<Option<Entry>>| -> Vec<_> {
        rows.into_iter().map(|row| row.map(|entry| entry.value.to_vec())).collect()
    };
    let keys: Vec<_> = names.iter().map(key).collect();
    same("read", values(store.second.read(keys.clone()).await?), right.clone())?;
    let update = store.second.update(keys, |view| (0..5).map(|index| view.get(index).cloned()).collect());
    same("seen by an update", values(update.await?), right)?;
    Ok(Outcome::Kept)
}

async fn clock(store: Handles) -> Seen {
    let mut last_ms = 0;
    for turn in 0..6 {
        let now_ms = store.by_turns(turn).update(vec![key("clock")], |view| view.now_ms()).await?;
        holds(&format!("it went from {last_ms} back to {now_ms} ms"), now_ms >= last_ms)?;
        last_ms = now_ms;
    }
    store.pass(50).await;
    let now_ms = store.first.update(vec![key("clock")], |view| view.now_ms()).await?;
    holds(&format!("50 ms after {last_ms} it showed {now_ms} ms"), now_ms >= last_ms + 50)?;
    holds("it is not in ms since the epoch", now_ms > MS_OF_2020 && now_ms < MS_OF_2200)?;
    Ok(Outcome::Kept)
}

async fn expired(store: Handles) -> Seen {
    put(&store.first, key("short"), b"x", SHORT_MS).await?;
    put(&store.first, key("long"), b"x", LONG_MS).await?;
    same("the short-lived row at first", value(&store.second, key("short")).await?, Some(b"x".to_vec()))?;
    store.pass(SHORT_MS).await;
    for handle in [&store.first, &store.second] {
        same("the short-lived row", value(handle, key("short")).await?, None)?;
        same("the long-lived row", value(handle, key("long")).await?, Some(b"x".to_vec()))?;
    }
    same("the first count after it", bump(&store.second, key("short"), LONG_MS).await?, 1)?;
    Ok(Outcome::Kept)
}

/// A row lives while the clock is before its expiry, and not at it, in reads as in updates.
async fn instant(store: Handles) -> Seen {
    const LIFE_MS: u64 = 20;
    let ends_at_ms = store.first.update(vec![key("row")], |view| {
        let ends_at_ms = view.now_ms() + LIFE_MS;
        view.put(0, b"x".as_slice(), ends_at_ms);
        ends_at_ms
    });
    let ends_at_ms = ends_at_ms.await?;
    for turn in 0.. {
        let seen =
            store.by_turns(turn).update(vec![key("row")], |view| (view.now_ms(), view.get(0).is_some()));
        let (now_ms, lives) = seen.await?;
        let at = i128::from(now_ms) - i128::from(ends_at_ms);
        same(&format!("whether it lives {at} ms after its expiry"), lives, at < 0)?;
        if at > 2 {
            break;
        }
        store.pass(1).await;
    }
    once_a_second(store).await
}

/// One a second, asked for exactly at the end of each second: every one is the first of its window.
async fn once_a_second(store: Handles) -> Seen {
    for second in 0..3 {
        same(&format!("admitted after {second} s"), hit(&store.first).await?, true)?;
        if !store.harness.advance(999) {
            break;
        }
        same(&format!("admitted 1 ms before {} s", second + 1), hit(&store.first).await?, false)?;
        store.harness.advance(1);
    }
    Ok(Outcome::Kept)
}

async fn hit(store: &Store) -> Result<bool, StoreError> {
    let update = store.update(vec![key("hit")], |view| {
        let admitted = view.get(0).is_none();
        if admitted {
            view.put(0, b"1".as_slice(), view.now_ms() + 1000);
        }
        admitted
    });
    update.await
}

async fn last_write(store: Handles) -> Seen {
    let lives = [("cut short", LONG_MS, SHORT_MS), ("extended", SHORT_MS, LONG_MS)];
    for (name, first_ms, then_ms) in lives {
        bump(&store.first, key(name), first_ms).await?;
        bump(&store.second, key(name), then_ms).await?;
    }
    store.pass(SHORT_MS).await;
    // Sweeping must go by the last expiry, too.
    store.first.sweep().await?;
    same("the count whose life was cut short", bump(&store.first, key("cut short"), LONG_MS).await?, 1)?;
    same("the count whose life was extended", bump(&store.first, key("extended"), LONG_MS).await?, 3)?;
    Ok(Outcome::Kept)
}

async fn reopening(store: Handles) -> Seen {
    for number in 0..20 {
        bump(store.by_turns(number), key(number), LONG_MS).await?;
    }
    store.first.update(vec![key(0), key(1)], |view| view.delete(0)).await?;
    bump(&store.second, key(1), LONG_MS).await?;
    let Some(store) = store.reopen().await else {
        return Ok(Outcome::NotShown("the store can't be reopened"));
    };
    for number in 0..20 {
        let right = [1, 3].get(number).copied().unwrap_or(2);
        let seen = bump(store.by_turns(number), key(number), LONG_MS).await?;
        same(&format!("the next count of row {number}"), seen, right)?;
    }
    Ok(Outcome::Kept)
}

const MS_OF_2020: u64 = 1_577_836_800_000;
const MS_OF_2200: u64 = 7_258_118_400_000;
