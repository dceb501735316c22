//! The driver over the memory backend does what the plainest store does.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use tidegate_store::{
    DriverOptions, Entry, LimitStoreExt, MemoryBackend, StoreError, View,
    clock::ManualClock,
    testing::{Fault, Handles, NaiveStore},
};

use crate::scripted::{START_MS, key};

#[derive(Debug, Clone)]
enum Step {
    /// Updates that are asked for at once.
    Updates(Vec<Update>),
    Read(Vec<u8>),
    Pass(u64),
    Sweep,
}

#[derive(Debug, Clone)]
struct Update {
    keys: Vec<u8>,
    writes: Vec<Write>,
}

#[derive(Debug, Clone)]
enum Write {
    /// Puts what the row held, plus this, for so many ms; 0 is out of range.
    Add {
        place: usize,
        life_ms: u64,
    },
    Delete {
        place: usize,
    },
    /// Goes back to the start, or to before the last write.
    Undo {
        all: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let keys = || prop::collection::vec(0..12_u8, 1..5);
    let write = prop_oneof![
        4 => (0..5_usize, prop_oneof![Just(20_u64), Just(100), Just(100_000), Just(0)])
            .prop_map(|(place, life_ms)| Write::Add { place, life_ms }),
        2 => (0..5_usize).prop_map(|place| Write::Delete { place }),
        1 => any::<bool>().prop_map(|all| Write::Undo { all }),
    ];
    let update =
        (keys(), prop::collection::vec(write, 0..5)).prop_map(|(keys, writes)| Update { keys, writes });
    prop_oneof![
        5 => prop::collection::vec(update, 1..6).prop_map(Step::Updates),
        1 => keys().prop_map(Step::Read),
        1 => (1..60_u64).prop_map(Step::Pass),
        1 => Just(Step::Sweep),
    ]
}

impl Update {
    fn apply(&self, view: &mut View<'_>) -> Vec<Option<Entry>> {
        let start = view.mark();
        let mut last = start;
        for write in &self.writes {
            match *write {
                Write::Add { place, life_ms } if place < self.keys.len() => {
                    last = view.mark();
                    let mut value = view.get(place).map(|entry| entry.value.clone()).unwrap_or_default();
                    value.push(1);
                    view.put(place, value, view.now_ms() + life_ms);
                }
                Write::Delete { place } if place < self.keys.len() => {
                    last = view.mark();
                    view.delete(place);
                }
                Write::Undo { all } => view.rollback(if all { start } else { last }),
                _ => {}
            }
            if matches!(write, Write::Undo { .. }) {
                last = start;
            }
        }
        (0..self.keys.len()).map(|place| view.get(place).cloned()).collect()
    }
}

type Answer = Result<Vec<Option<Entry>>, StoreError>;

/// What `store` answers to `step`.
async fn take(store: &Handles, step: &Step) -> Vec<Answer> {
    match step {
        Step::Updates(updates) => {
            let calls: Vec<_> = updates
                .iter()
                .cloned()
                .map(|update| {
                    let store = store.first.clone();
                    let keys = update.keys.iter().map(key).collect();
                    tokio::spawn(async move { store.update(keys, move |view| update.apply(view)).await })
                })
                .collect();
            let mut answers = Vec::new();
            for call in calls {
                answers.push(call.await.unwrap());
            }
            answers
        }
        Step::Read(keys) => vec![store.second.read(keys.iter().map(key).collect()).await],
        Step::Pass(ms) => {
            store.pass(*ms).await;
            Vec::new()
        }
        Step::Sweep => {
            store.first.sweep().await.unwrap();
            Vec::new()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn driver_and_naive_store_answer_alike(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            // Twelve keys, and room for all of them: who finds the last place depends on who is retried.
            let options = DriverOptions { deadline: Duration::from_secs(1), ..DriverOptions::new("model", 12) };
            let clock = Arc::new(ManualClock::at(START_MS));
            let driver = Handles::in_process(MemoryBackend::new(clock.clone()), &options, Some(clock));
            let naive = NaiveStore::handles(options, Fault::None);
            for step in &steps {
                assert_eq!(take(&driver, step).await, take(&naive, step).await, "{step:?}");
            }
        });
    }
}
