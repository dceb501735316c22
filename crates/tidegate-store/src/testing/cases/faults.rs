//! What callers see while the store is slow or down.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    Handles, LONG_MS, Outcome, ROOMY, Seen, Store, StoreError, Unavailable, at_once, bump, case, holds, key,
    same, unavailable,
};
use crate::testing::{ContractCase, Disturbance};

pub(super) const CASES: &[ContractCase] = &[
    case("a failing store is no answer", ROOMY, |store| Box::pin(failing(store))),
    case("every call is answered by its deadline", ROOMY, |store| Box::pin(deadline(store))),
    case("a store that hangs is busy at once", ROOMY, |store| Box::pin(busy(store))),
    case("an update is answered once it has settled", ROOMY, |store| Box::pin(settled(store))),
];

const CANT: Outcome = Outcome::NotShown("the harness can't disturb the store");

async fn failing(store: Handles) -> Seen {
    bump(&store.first, key("row"), LONG_MS).await?;
    if !store.harness.disturb(Disturbance::Fail) {
        return Ok(CANT);
    }
    for handle in [&store.first, &store.second] {
        unavailable("an update", bump(handle, key("row"), LONG_MS).await, Unavailable::Backend)?;
        unavailable("a read", handle.read(vec![key("row")]).await, Unavailable::Backend)?;
        unavailable("a sweep", handle.sweep().await, Unavailable::Backend)?;
    }
    store.harness.disturb(Disturbance::None);
    let next = bump(&store.first, key("row"), LONG_MS).await?;
    holds(
        &format!("the next count, with two attempts that may have counted: {next}"),
        (2..=4).contains(&next),
    )?;
    Ok(Outcome::Kept)
}

async fn deadline(store: Handles) -> Seen {
    bump(&store.first, key("row"), LONG_MS).await?;
    if !store.harness.disturb(Disturbance::Hang) {
        return Ok(CANT);
    }
    let began = Instant::now();
    let calls = (0..10).map(|number| {
        let handle = Arc::clone(store.by_turns(number));
        async move { bump(&handle, key("row"), LONG_MS).await }
    });
    for answer in at_once(calls).await? {
        unavailable("an update of a store that hangs", answer, Unavailable::Deadline)?;
    }
    let took = began.elapsed();
    holds(&format!("it took {took:?}"), took < store.deadline + SLACK)?;
    recovers(&store).await
}

async fn busy(store: Handles) -> Seen {
    bump(&store.first, key("row"), LONG_MS).await?;
    bump(&store.second, key("row"), LONG_MS).await?;
    if !store.harness.disturb(Disturbance::Hang) {
        return Ok(CANT);
    }
    let call = |handle: &Store, number: usize| {
        let handle = Arc::clone(handle);
        async move { bump(&handle, key(number), LONG_MS).await }
    };
    for handle in [&store.first, &store.second] {
        // The first ones alone, as a batch of its own; the others wait for it.
        let calls = (0..store.max_calls).map(|number| call(handle, number));
        for answer in at_once(calls).await? {
            let late =
                matches!(answer, Err(StoreError::Unavailable(Unavailable::Deadline | Unavailable::Busy)));
            holds(&format!("a call to a store that hangs was answered {answer:?}"), late)?;
        }
        let began = Instant::now();
        unavailable("one call more", bump(handle, key("row"), LONG_MS).await, Unavailable::Busy)?;
        holds("it had to wait for that", began.elapsed() < store.deadline / 4)?;
    }
    recovers(&store).await
}

async fn settled(store: Handles) -> Seen {
    bump(&store.first, key("row"), LONG_MS).await?;
    if !store.harness.disturb(Disturbance::Unsettled) {
        return Ok(CANT);
    }
    let update = bump(&store.first, key("row"), LONG_MS).await;
    unavailable("an update that does not settle", update, Unavailable::Deadline)?;
    // It may have seen what never will last.
    let read = store.second.read(vec![key("row")]).await;
    unavailable("a read that does not settle", read, Unavailable::Deadline)?;
    recovers(&store).await?;
    let next = bump(&store.second, key("row"), LONG_MS).await?;
    holds(
        &format!("the next count, with one attempt that may have counted: {next}"),
        (2..=3).contains(&next),
    )?;
    Ok(Outcome::Kept)
}

/// The store serves again soon after what was behind it does.
async fn recovers(store: &Handles) -> Seen {
    store.harness.disturb(Disturbance::None);
    for handle in [&store.first, &store.second] {
        let began = Instant::now();
        while let Err(error) = bump(handle, key("after"), LONG_MS).await {
            holds(&format!("long after it hung: {error}"), began.elapsed() < 2 * store.deadline + SLACK)?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let (first, second) =
        (bump(&store.first, key("after"), LONG_MS).await?, bump(&store.second, key("after"), LONG_MS).await?);
    same("two counts in a row", second, first + 1).map(|()| Outcome::Kept)
}

/// For a machine with other things to do.
const SLACK: Duration = Duration::from_millis(500);
