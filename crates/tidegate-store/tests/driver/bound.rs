//! Live entries never pass the bound, and what has expired makes room.

use proptest::prelude::*;
use tidegate_store::{Driver, LimitStore, LimitStoreExt, StoreError, Unavailable, View, clock::Clock};

use crate::scripted::{Call, LONG_MS, Says, Script, Scripted, bump, key, options, settle, start};

const FULL: StoreError = StoreError::Unavailable(Unavailable::Full);

/// Writes the rows called `names` in one update, to live for `life_ms`.
async fn write(
    driver: &Driver<Scripted>,
    names: std::ops::Range<u32>,
    life_ms: u64,
) -> Result<(), StoreError> {
    let count = names.len();
    let update = driver.update(names.map(key).collect(), move |view| {
        (0..count).for_each(|index| view.put(index, b"x".as_slice(), view.now_ms() + life_ms));
    });
    update.await
}

#[tokio::test(start_paused = true)]
async fn in_one_batch_only_what_fits_is_admitted() {
    let (driver, script) = start(options(5));
    settle().await;
    let answers = tokio::join!(
        write(&driver, 0..3, LONG_MS),
        write(&driver, 3..6, LONG_MS),
        write(&driver, 0..3, LONG_MS),
        write(&driver, 3..5, LONG_MS),
        write(&driver, 5..6, LONG_MS),
    );
    assert_eq!(answers, (Ok(()), Err(FULL), Ok(()), Ok(()), Err(FULL)));
    assert_eq!(driver.read((0..6).map(key).collect()).await.unwrap().iter().flatten().count(), 5);
    assert_eq!(driver.stats().full, 2);
    assert_eq!(driver.stats().entries, 5);
    assert!(script.count(Call::Load) <= 4, "one batch, one retry of what found no room, one read");
}

#[tokio::test(start_paused = true)]
async fn what_has_expired_makes_room_even_when_it_is_much() {
    let (driver, script) = start(options(3000));
    for from in (0..3000).step_by(500) {
        write(&driver, from..from + 500, 1000).await.unwrap();
    }
    assert_eq!(write(&driver, 3000..3001, LONG_MS).await, Err(FULL));
    script.clock.advance(1000);
    let answers = tokio::join!(
        write(&driver, 3000..3500, LONG_MS),
        write(&driver, 3500..4000, LONG_MS),
        write(&driver, 4000..4500, LONG_MS),
        write(&driver, 4500..5000, LONG_MS),
        write(&driver, 5000..5500, LONG_MS),
    );
    assert_eq!(answers, (Ok(()), Ok(()), Ok(()), Ok(()), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_full_store_takes_rows_beside_others_up_to_as_many_again_and_its_own_always() {
    let (driver, _script) = start(options(5));
    write(&driver, 0..5, LONG_MS).await.unwrap();
    let beside = |name: u32| {
        driver.update(vec![key(name)], |view| view.put_beside(0, b"x".as_slice(), view.now_ms() + LONG_MS))
    };
    for name in 5..10 {
        assert_eq!(beside(name).await, Ok(()), "{name}");
    }
    assert_eq!(beside(10).await, Err(FULL));
    assert_eq!(write(&driver, 10..11, LONG_MS).await, Err(FULL));
    let kept = |view: &mut View<'_>| {
        view.put_lasting(0, b"x".as_slice());
        view.put_kept(1, b"x".as_slice(), view.now_ms() + LONG_MS);
    };
    assert_eq!(driver.update(vec![key(11), key(12)], kept).await, Ok(()));
    assert_eq!(beside(0).await, Ok(()), "what is held can be changed");
    assert_eq!(driver.stats().entries, 12);
}

/// Room is looked for once in each ms of the store's clock: a flood of new keys must not become one of sweeps.
#[tokio::test(start_paused = true)]
async fn a_full_store_is_not_swept_for_every_new_key() {
    let (driver, script) = start(options(10));
    write(&driver, 0..10, LONG_MS).await.unwrap();
    settle().await;
    let sweeps = script.count(Call::Sweep);
    for number in 10..200 {
        assert_eq!(write(&driver, number..number + 1, LONG_MS).await, Err(FULL));
    }
    assert!(script.count(Call::Sweep) <= sweeps + 1, "{} sweeps", script.count(Call::Sweep) - sweeps);
    script.clock.advance(1);
    assert_eq!(write(&driver, 10..11, LONG_MS).await, Err(FULL));
    assert!(script.count(Call::Sweep) <= sweeps + 2);
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_makes_no_room() {
    let (driver, script) = start(options(10));
    write(&driver, 0..10, 1000).await.unwrap();
    settle().await;
    script.clock.advance(1000);
    script.says(Says { sweep_fails: true, ..Says::default() });
    assert_eq!(write(&driver, 10..11, LONG_MS).await, Err(FULL));
    script.says(Says::default());
    assert_eq!(write(&driver, 10..11, LONG_MS).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_must_be_asked_is_asked_seldom_and_in_time() {
    let (driver, script) = start(options(10_000));
    script.says(Says { keeps_count: true, ..Says::default() });
    for name in 0..100 {
        bump(&driver, name).await.unwrap();
    }
    assert_eq!(script.count(Call::Count), 1, "far from the bound");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    bump(&driver, 100).await.unwrap();
    assert_eq!(script.count(Call::Count), 2, "but not for ever on one answer");
    assert_eq!(driver.stats().entries, 101);
}

#[derive(Debug, Clone)]
enum Step {
    Write { from: u32, rows: u32, life_ms: u64 },
    Delete { from: u32, rows: u32 },
    Pass { ms: u64 },
    Sweep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..40_u32, 1..8_u32, prop_oneof![Just(50), Just(LONG_MS)])
            .prop_map(|(from, rows, life_ms)| Step::Write { from, rows, life_ms }),
        2 => (0..40_u32, 1..8_u32).prop_map(|(from, rows)| Step::Delete { from, rows }),
        1 => (1..60_u64).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Sweep),
    ];
    prop::collection::vec(step, 1..60)
}

/// What a store with room for `room` must answer to `steps`, one batch for each: whether each write fits.
async fn run(driver: &Driver<Scripted>, script: &Script, room: usize, steps: Vec<Step>) {
    let mut live: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
    for step in steps {
        let now_ms = script.clock.now_ms();
        live.retain(|_, expires_at_ms| *expires_at_ms > now_ms);
        match step {
            Step::Write { from, rows, life_ms } => {
                let added = (from..from + rows).filter(|row| !live.contains_key(row)).count();
                let fits = added == 0 || live.len() + added <= room;
                assert_eq!(
                    write(driver, from..from + rows, life_ms).await,
                    if fits { Ok(()) } else { Err(FULL) }
                );
                if fits {
                    live.extend((from..from + rows).map(|row| (row, now_ms + life_ms)));
                }
            }
            Step::Delete { from, rows } => {
                let update = driver.update((from..from + rows).map(key).collect(), move |view| {
                    (0..rows as usize).for_each(|index| view.delete(index));
                });
                update.await.unwrap();
                live.retain(|row, _| !(from..from + rows).contains(row));
            }
            Step::Pass { ms } => script.clock.advance(ms),
            Step::Sweep => drop(driver.sweep().await.unwrap()),
        }
        let now_ms = script.clock.now_ms();
        let rows = driver.read((0..48).map(key).collect()).await.unwrap();
        let seen: Vec<u32> = (0..).zip(rows).filter_map(|(row, entry)| entry.map(|_| row)).collect();
        assert_eq!(
            seen,
            live.iter().filter(|(_, at)| **at > now_ms).map(|(row, _)| *row).collect::<Vec<_>>()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_is_exact(steps in steps(), room in 1..20_usize, keeps_count: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (driver, script) = start(options(room as u64));
            script.says(Says { keeps_count, ..Says::default() });
            run(&driver, &script, room, steps).await;
        });
    }
}
