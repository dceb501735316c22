//! What instances that share a server have in common: hot keys, the bound, secrets, sweeps.

use std::time::Duration;

use tidegate_store::{
    Backend, Driver, Group, Key, LimitStore, LimitStoreExt, Member, Scope, StoreError, Unavailable,
};
use tidegate_store_postgres::{Options, PostgresBackend};
use tokio::time::Instant;

use crate::setup::{Fresh, Store, bump, counted, driver_options, key};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_key_loses_no_update() {
    const CALLERS: usize = 512;
    let fresh = Fresh::new().await;
    let stores = [fresh.driver(1000).await, fresh.driver(1000).await];
    let until = Instant::now() + Duration::from_secs(3);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let store = stores[caller % 2].clone();
            tokio::spawn(async move {
                let mut done = 0;
                while Instant::now() < until {
                    bump(&store, key("hot")).await.unwrap();
                    done += 1;
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for caller in callers {
        let own = caller.await.unwrap();
        assert!(own > 0, "a caller was never served");
        done += own;
    }
    assert_eq!(counted(&stores[0], key("hot")).await, done);
    println!("{done} updates; {:?}", stores.map(|store| store.stats().conflicts));
}

/// Fills the store from both handles; answers how many keys were admitted and how many refused for want of room.
async fn fill(stores: &[Store; 2], keys: usize) -> (usize, usize) {
    let calls: Vec<_> = (0..keys)
        .map(|number| {
            let store = stores[number % 2].clone();
            tokio::spawn(async move { bump(&store, key(number)).await })
        })
        .collect();
    let (mut admitted, mut refused) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => admitted += 1,
            Err(StoreError::Unavailable(Unavailable::Full)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    (admitted, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_is_exact_on_one_instance_and_a_batch_off_on_two() {
    const BOUND: usize = 50;
    let fresh = Fresh::new().await;
    let one = fresh.driver(BOUND as u64).await;
    assert_eq!(fill(&[one.clone(), one.clone()], 200).await, (BOUND, 150));
    let observer = fresh.observer().await;
    let rows = "SELECT count(*) FROM entries";
    assert_eq!(observer.number(rows).await, BOUND as i64);

    let fresh = Fresh::new().await;
    let mut options = driver_options(BOUND as u64);
    options.batch_jobs_max = 10;
    let start = async || Driver::start(fresh.backend().await, options.clone());
    let stores = [start().await, start().await];
    let (admitted, _) = fill(&stores, 400).await;
    assert!((BOUND..=BOUND + 10).contains(&admitted), "{admitted} admitted");
    let rows = fresh.observer().await.number(rows).await;
    assert_eq!(rows, admitted as i64);
    assert_eq!(stores[0].backend().count().await.unwrap(), admitted as u64);
    // Who is held counts on, and room that is made is room for others.
    assert_eq!(bump(&stores[1], key("one more")).await, Err(Unavailable::Full.into()));
    let held: Vec<Key> = (0..400).map(key).collect();
    let seen = stores[0].read(held.clone()).await.unwrap();
    let held: Vec<Key> =
        held.into_iter().zip(seen).filter_map(|(key, row)| row.map(|_| key)).take(20).collect();
    assert_eq!(bump(&stores[1], held[0]).await, Ok(2));
    stores[0].update(held, |view| (0..20).for_each(|index| view.delete(index))).await.unwrap();
    assert_eq!(bump(&stores[1], key("one more")).await, Ok(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_change_of_the_secret() {
    let fresh = Fresh::new().await;
    let store_under = async |secret_id| {
        let options = Options { secret_id, ..fresh.options.clone() };
        let backend = PostgresBackend::connect(&options).await.unwrap();
        Driver::start(backend, driver_options(3))
    };
    let (old, new) = (store_under(Some(u64::MAX)).await, store_under(Some(7)).await);
    for number in 0..3 {
        assert_eq!(bump(&old, key(number)).await, Ok(1));
    }
    // The new one reads nothing of the old, has all the room, and does not disturb it.
    for number in 0..3 {
        assert_eq!(counted(&new, key(number)).await, 0);
        assert_eq!(bump(&new, key(number)).await, Ok(1));
        assert_eq!(bump(&old, key(number)).await, Ok(2));
    }
    assert_eq!(bump(&new, key("more")).await, Err(Unavailable::Full.into()));
    assert_eq!(bump(&old, key("more")).await, Err(Unavailable::Full.into()));
    let put_short = old.update(vec![key(0)], |view| view.put(0, b"x".as_slice(), view.now_ms() + 400));
    put_short.await.unwrap();
    assert_eq!(new.sweep().await, Ok(0), "it lives");
    // Its life was cut short, so it goes a little after its end.
    tokio::time::sleep(Duration::from_millis(460)).await;
    assert_eq!(new.sweep().await, Ok(1), "whoever sweeps removes the rows of any secret");
    assert_eq!((old.backend().count().await.unwrap(), new.backend().count().await.unwrap()), (2, 3));
    assert_eq!(bump(&old, key("more")).await, Ok(1));
    // A store without a secret is another one again.
    let without = store_under(None).await;
    assert_eq!(counted(&without, key(1)).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweeps_at_once_share_the_work_and_wait_for_nobody() {
    let fresh = Fresh::new().await;
    let (first, second) = (fresh.backend().await, fresh.backend().await);
    let observer = fresh.observer().await;
    observer
        .run(
            "INSERT INTO entries (secret_id, expires_at_ms, sweep_at_ms, key, value) \
             SELECT 0, at, at, decode(lpad(to_hex(n), 48, '0'), 'hex'), '' \
             FROM generate_series(1, 3000) AS n, LATERAL (SELECT n + CASE WHEN n <= 2500 THEN 0 \
             ELSE 253402300800000 END AS at) AS expiry; \
             INSERT INTO entry_counts VALUES (0, 0, 3000)",
        )
        .await;
    // One expired row and one that lives are held by a batch.
    let row = |number: u128| {
        let mut bytes = [0; Key::BYTES];
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        Key::from_bytes(bytes)
    };
    let held = first.load(&[row(7), row(2700)]).await.unwrap();
    assert_eq!(held.rows_held, Some(3000));
    let sweep = async |backend: &PostgresBackend| {
        let mut removed = 0;
        loop {
            let step = backend.sweep(100).await.unwrap();
            removed += step.removed;
            if step.complete {
                return removed;
            }
        }
    };
    let (one, other) = tokio::join!(sweep(&first), sweep(&second));
    assert_eq!(one + other, 2499, "{one} and {other}");
    assert_eq!(second.count().await.unwrap(), 501);
    first.commit(held.batch, Vec::new()).await.unwrap().await.unwrap();
    assert_eq!((second.sweep(100).await.unwrap().removed, second.count().await.unwrap()), (1, 500));
    assert_eq!(observer.number("SELECT count(*) FROM entries").await, 500);
}

#[tokio::test]
async fn the_keys_of_a_scope() {
    let fresh = Fresh::new().await;
    let store = fresh.driver(1000).await;
    let (group, alice) = (Group::of(b"group"), Member::of(b"alice"));
    let others = [Group::of(b"other").key_of(alice, &[b"x"]), key("other")];
    let own: Vec<Key> = (0..5_u8).map(|part| group.key_of(alice, &[&[part]])).collect();
    let of_group: Vec<Key> = (0..3_u8).map(|part| group.key(&[b"group", &[part]])).collect();
    let dead = group.key_of(alice, &[b"dead"]);
    for key in own.iter().chain(&of_group).chain(&others) {
        bump(&store, *key).await.unwrap();
    }
    store.update(vec![dead], |view| view.put(0, b"".as_slice(), view.now_ms() + 1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(3)).await;
    let found = async |member, keys_max| {
        let mut keys = store.backend().keys_in(Scope { group, member }, keys_max).await.unwrap();
        keys.sort_unstable();
        keys
    };
    let sorted = |mut keys: Vec<Key>| {
        keys.sort_unstable();
        keys
    };
    assert_eq!(found(Some(alice), 100).await, sorted(own.clone()));
    assert_eq!(found(None, 100).await, sorted([own, of_group].concat()));
    assert_eq!(found(None, 4).await.len(), 4);
    assert_eq!(found(Some(Member::of(b"bob")), 100).await, []);
}
