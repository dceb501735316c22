//! What holds for every store that instances share, with a control that shows that the tests can fail.

use std::{sync::Arc, time::Duration};

use tidegate_core::secret::Secret;
use tidegate_store::{
    Backend, Driver, DriverOptions, Group, Key, LASTING_MS, LimitStore, LimitStoreExt, Member, Scope,
    StoreError, Unavailable,
    testing::{Handles, Unlocked, contract_cases},
};

use crate::harness::{LONG_MS, Opener, bump, commit, count, counter, drive, key, put};

/// Counts one key up with `callers` at once, each `turns` times, over two instances; answers how many increments
/// are missing.
pub(crate) async fn hot_key<B: Backend>(first: B, second: B, callers: u64, turns: u64) -> u64 {
    let instances = [first, second].map(|backend| Arc::new(drive(backend, Duration::from_secs(30))));
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let store = Arc::clone(&instances[usize::from(caller % 2 == 0)]);
            tokio::spawn(async move {
                for _ in 0..turns {
                    bump(&*store, key(0)).await.expect("nothing fails");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a caller came to its end");
    }
    let conflicts: u64 = instances.iter().map(|store| store.stats().conflicts).sum();
    let batches: u64 = instances.iter().map(|store| store.stats().batches).sum();
    println!("{} increments in {batches} batches, {conflicts} of them in conflict", callers * turns);
    callers * turns - counter(&*instances[0], key(0)).await
}

/// Moves units between few accounts at random, over two instances, while others look at all of them. An account
/// with nothing in it has no row, so that rows come and go all the time. Answers how many units went wrong.
pub(crate) async fn transfers<B: Backend>(first: B, second: B, seed: u64) -> u64 {
    const ACCOUNTS: u64 = 12;
    const UNITS: u64 = 10;
    let accounts: Vec<Key> = (0..ACCOUNTS).map(key).collect();
    let instances = [first, second].map(|backend| drive(backend, Duration::from_secs(30)));
    for _ in 0..UNITS {
        bump(&instances[0], accounts[0]).await.expect("nothing fails");
    }
    let tasks: Vec<_> = (0..48_u64)
        .map(|caller| {
            let (store, accounts) = (instances[usize::from(caller % 2 == 0)].clone(), accounts.clone());
            tokio::spawn(async move {
                let mut random = Random(seed ^ (caller << 32));
                let mut wrong = 0;
                for _ in 0..25 {
                    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                    if from == to {
                        wrong += UNITS.abs_diff(sum(&store, accounts.clone()).await);
                    } else {
                        transfer(&store, [from, to].map(key)).await;
                    }
                }
                wrong
            })
        })
        .collect();
    let mut wrong = 0;
    for task in tasks {
        wrong += task.await.expect("a caller came to its end");
    }
    println!("{} conflicts", instances.iter().map(|store| store.stats().conflicts).sum::<u64>());
    let rows = instances[1].read(accounts.clone()).await.expect("nothing fails").iter().flatten().count();
    let held = instances[1].backend().count().await.expect("it answers");
    wrong + UNITS.abs_diff(sum(&instances[0], accounts).await) + held.abs_diff(rows as u64)
}

async fn transfer(store: &impl LimitStore, keys: [Key; 2]) {
    let moved = store.update(keys.to_vec(), |view| {
        let [from, to] = [0, 1].map(|index| count(view.get(index)));
        if from > 0 {
            let expires_at_ms = view.now_ms() + LONG_MS;
            match from {
                1 => view.delete(0),
                from => view.put(0, (from - 1).to_le_bytes().as_slice(), expires_at_ms),
            }
            view.put(1, (to + 1).to_le_bytes().as_slice(), expires_at_ms);
        }
    });
    moved.await.expect("nothing fails");
}

async fn sum(store: &impl LimitStore, accounts: Vec<Key>) -> u64 {
    store.read(accounts).await.expect("nothing fails").iter().map(|row| count(row.as_ref())).sum()
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// [`transfers`] keeps every unit, and finds those that a store without locks loses.
pub(crate) async fn transfers_keep_every_unit<B: Backend>(pair: impl AsyncFn() -> (B, B)) {
    for seed in 0..3 {
        let (first, second) = pair().await;
        assert_eq!(transfers(first, second, seed).await, 0, "seed {seed}");
    }
    // That they meet takes luck, of which a busy machine may have little at one time.
    for seed in 0..UNLOCKED_TRIES {
        let (first, second) = pair().await;
        if transfers(Unlocked(first), Unlocked(second), seed).await > 0 {
            return;
        }
    }
    panic!("nothing was lost without locks in {UNLOCKED_TRIES} tries");
}

const UNLOCKED_TRIES: u64 = 20;

/// [`hot_key`] finds the increments that a store without locks loses.
pub(crate) async fn hot_key_without_locks<B: Backend>(first: B, second: B) {
    let lost = hot_key(Unlocked(first), Unlocked(second), 64, 20).await;
    assert!(lost > 0, "no increment was lost, although nothing was locked");
}

/// Two processes that keep out of each other's way in nothing break the contract.
pub(crate) async fn breaks_it(two_processes: impl AsyncFn(u64) -> Handles) {
    let name = "first attempts at once are counted";
    let case = contract_cases().into_iter().find(|case| case.name == name).expect("there is such a case");
    let violation = case.run(two_processes(case.max_entries).await).await;
    println!("{}", violation.expect_err("nothing was broken without locks"));
}

/// An instance on a new secret and one on the old, at the same time.
pub(crate) async fn rotation<B: Backend>(open: impl AsyncFn(Option<u64>) -> B) {
    let driver = async |secret_id: Option<u64>, letter: char| {
        // Random enough to be a secret, and different for each letter.
        let text = format!("{letter}k3Jq9Zr7Xv1Lm5Tn8Wb2Yc6Hd4Fg0Ps{letter}");
        let secret = Some(Secret::new(text).expect("long enough"));
        let backend = open(secret_id).await;
        Driver::start(backend, DriverOptions { secret, ..DriverOptions::new("sql", 3) })
    };
    let (old, new) = (driver(Some(1), 'a').await, driver(Some(u64::MAX), 'b').await);
    for row in 0..3 {
        assert_eq!(bump(&old, key(row)).await, Ok(1));
    }
    for row in 0..3 {
        assert_eq!(bump(&new, key(row)).await, Ok(1), "rows of the old secret do not count");
    }
    assert_eq!(bump(&old, key(0)).await, Ok(2), "an instance on the old secret goes on counting");
    for store in [&old, &new] {
        assert_eq!(bump(store, key(9)).await, Err(StoreError::Unavailable(Unavailable::Full)));
        assert_eq!(store.sweep().await, Ok(0), "what lives stays");
    }
    assert_eq!(bump(&driver(Some(1), 'a').await, key(0)).await, Ok(3));
    assert_eq!(open(None).await.count().await.expect("it answers"), 0, "no secret is one of its own");
}

/// Rows of every secret go once they have expired, and not sooner; every secret's count stays right.
pub(crate) async fn sweeps<B: Backend>(open: impl AsyncFn(Option<u64>) -> B) {
    let (first, second) = (open(Some(1)).await, open(Some(2)).await);
    for backend in [&first, &second] {
        let keys: Vec<Key> = sorted((0..20).map(key));
        let loaded = backend.load(&keys).await.expect("it answers");
        let (soon, late) = (loaded.now_ms + 1, loaded.now_ms + LONG_MS);
        let row = |(place, key): (usize, &Key)| put(*key, b"x", if place < 15 { soon } else { late });
        commit(backend, loaded.batch, keys.iter().enumerate().map(row).collect()).await.expect("it answers");
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(first.sweep(4).await.expect("it answers").removed, 4);
    let both = tokio::join!(first.sweep(100), second.sweep(100));
    assert_eq!(both.0.expect("it answers").removed + both.1.expect("it answers").removed, 26);
    for backend in [&first, &second] {
        assert_eq!(backend.sweep(100).await.expect("it answers").removed, 0);
        assert_eq!(backend.count().await.expect("it answers"), 5);
    }
}

/// The bound is exact on one instance, and two together pass it by a batch at most.
pub(crate) async fn bound<B: Backend>(open: Opener<B>) {
    const ENTRIES: u64 = 40;
    const BATCH: u64 = 8;
    let options = DriverOptions { batch_jobs_max: 8, ..DriverOptions::new("sql", ENTRIES) };
    let start = |backend| Driver::start(backend, options.clone());
    let (first, second) = (start(open().await), start(open().await));
    let fill = async |stores: [&Driver<B>; 2], from: u64| {
        let calls = (0..200).map(|row| {
            let store = stores[usize::from(row % 2 == 0)].clone();
            tokio::spawn(async move { bump(&store, key(from + row)).await.is_ok() })
        });
        let mut admitted = 0;
        for call in calls.collect::<Vec<_>>() {
            admitted += u64::from(call.await.expect("it came to its end"));
        }
        admitted
    };
    assert_eq!(fill([&first, &first], 0).await, ENTRIES);
    let group = Scope { group: key(0).group(), member: None };
    assert_eq!(second.forget(group).await, Ok(ENTRIES));
    let admitted = fill([&first, &second], 1000).await;
    assert!((ENTRIES..=ENTRIES + BATCH).contains(&admitted), "{admitted} admitted");
    assert_eq!(open().await.count().await.expect("it answers"), admitted, "what was admitted is there");
    assert_eq!(fill([&first, &second], 2000).await, 0, "full");
    let rows = first.read((1000..1200).map(key).collect()).await.expect("it answers");
    let counts: Vec<u64> = rows.iter().flatten().map(|row| count(Some(row))).collect();
    assert_eq!(counts, vec![1; counts.len()], "and as it was");
    assert_eq!(counts.len() as u64, admitted);
}

/// A scope's rows are found, and no others.
pub(crate) async fn scopes<B: Backend>(backend: B) {
    let group = Group::of(b"group");
    let (mine, others) = (Member::of(b"mine"), Member::of(b"others"));
    let of = |member: Member, number: u8| group.key_of(member, &[&[number]]);
    let keys =
        sorted((0..5).map(|n| of(mine, n)).chain((5..9).map(|n| of(others, n))).chain((0..3).map(key)));
    let loaded = backend.load(&keys).await.expect("it answers");
    let late = loaded.now_ms + LONG_MS;
    let changes = keys.iter().map(|key| put(*key, b"x", late)).collect();
    commit(&backend, loaded.batch, changes).await.expect("it answers");
    for (member, rows) in [(Some(mine), 5), (Some(others), 4), (None, 9)] {
        let scope = Scope { group, member };
        let mut found = backend.keys_in(scope, 100).await.expect("it answers");
        found.sort_unstable();
        assert_eq!(found, keys.iter().copied().filter(|key| scope.holds(key)).collect::<Vec<_>>());
        assert_eq!(found.len(), rows);
        assert_eq!(backend.keys_in(scope, 2).await.expect("it answers").len(), 2);
    }
}

/// A batch of all sizes of values, with more keys than one statement takes.
pub(crate) async fn large_batches<B: Backend>(backend: B) {
    let keys = sorted((0..1200).map(key));
    let bytes = |place: usize| vec![u8::try_from(place % 251).expect("small"); (place * 7) % 4097];
    for round in 0..2 {
        let loaded = backend.load(&keys).await.expect("it answers");
        assert_eq!(loaded.rows.iter().flatten().count(), round * keys.len());
        let late = loaded.now_ms + LONG_MS;
        let expiry = |place| if place == 0 { LASTING_MS } else { late };
        let changes =
            keys.iter().enumerate().map(|(place, key)| put(*key, &bytes(place + round), expiry(place)));
        commit(&backend, loaded.batch, changes.collect()).await.expect("it answers");
    }
    let loaded = backend.load(&keys).await.expect("it answers");
    for (place, row) in loaded.rows.iter().enumerate() {
        assert_eq!(row.as_ref().map(|entry| entry.value.to_vec()), Some(bytes(place + 1)), "row {place}");
    }
    assert_eq!(loaded.rows[0].as_ref().map(|entry| entry.expires_at_ms), Some(LASTING_MS));
    assert_eq!(loaded.rows_held, Some(1200));
}

/// A batch that is dropped, and one that is answered by nobody, leave no lock and no change behind.
pub(crate) async fn abandoned<B: Backend>(first: B, second: B) {
    let keys = sorted((0..2).map(key));
    let write = async |backend: &B, value: &[u8]| {
        let loaded = backend.load(&keys).await.expect("it answers");
        let late = loaded.now_ms + LONG_MS;
        commit(backend, loaded.batch, vec![put(keys[0], value, late)]).await.expect("it answers");
    };
    write(&first, b"one").await;
    drop(first.load(&keys).await.expect("it answers"));
    write(&second, b"two").await;
    drop(tokio::time::timeout(Duration::from_micros(50), first.load(&keys)).await);
    write(&second, b"three").await;
    let loaded = first.load(&keys).await.expect("it answers");
    assert_eq!(loaded.rows[0].as_ref().map(|entry| entry.value.to_vec()), Some(b"three".to_vec()));
}

fn sorted(keys: impl Iterator<Item = Key>) -> Vec<Key> {
    let mut keys: Vec<Key> = keys.collect();
    keys.sort_unstable();
    keys
}
