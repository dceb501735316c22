//! Another instance changed the same rows first: the batch is decided again.

use tidegate_store::Unavailable;

use crate::scripted::{Call, Says, bump, options, start};

#[tokio::test(start_paused = true)]
async fn a_batch_in_conflict_is_loaded_and_decided_again() {
    let (driver, script) = start(options(1000));
    assert_eq!(bump(&driver, "k").await, Ok(1));
    let before = (script.count(Call::Load), script.count(Call::Commit));
    script.says(Says { commits_in_conflict: 3, ..Says::default() });
    assert_eq!(bump(&driver, "k").await, Ok(2), "counted once, however often it was decided");
    let after = (script.count(Call::Load), script.count(Call::Commit));
    assert_eq!((after.0 - before.0, after.1 - before.1), (4, 4));
    assert_eq!((driver.stats().conflicts, driver.stats().backend_failures), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn conflicts_without_end_are_given_up_with_the_deadline() {
    let (driver, script) = start(options(1000));
    script.says(Says { commits_in_conflict: usize::MAX, ..Says::default() });
    assert_eq!(bump(&driver, "k").await, Err(Unavailable::Deadline.into()));
    script.says(Says::default());
    assert_eq!(bump(&driver, "k").await, Ok(1));
}
