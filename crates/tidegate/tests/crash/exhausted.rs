//! A limit that is spent stays spent when the server dies right after its last answer.

use tidegate_protocol::{
    Command, CommandResult,
    request::{Budget, Window},
    response::RefundReason,
};

use crate::{
    caller::{Caller, body_of, fresh_id, key, partition_of, request},
    support::server::Setup,
};

const DAY_MS: u64 = 24 * 3_600_000;

#[test]
fn spent_limits_and_open_reservations_outlive_the_process() {
    for durability in ["fsync", "process"] {
        let server = Setup::new().set("store.durability", durability).start();
        let mut caller = Caller::to(server.guard);
        let hit = || Command::hit([Window::sliding(key("day"), 5, 50 * DAY_MS)]);
        let reserve = || Command::reserve([Budget::new(key("source"), 2, DAY_MS)]);
        for _ in 0..4 {
            caller.one("spent", hit());
        }
        let (one, two) = (caller.one("spent", reserve()), caller.one("spent", reserve()));
        let fifth = body_of(&request(fresh_id()).step(partition_of("spent"), [hit()]));
        let answered = caller.run(&fifth).expect("an answer");

        let server = server.kill_and_restart();
        let mut caller = Caller::to(server.guard);
        let again = caller.run(&fifth).expect("an answer");
        assert_eq!(again.steps[0].results, answered.steps[0].results);
        assert!(again.steps[0].replayed && !answered.steps[0].replayed);
        assert!(
            matches!(caller.one("spent", hit()), CommandResult::Hit { allowed: false, .. }),
            "the 6th of 5"
        );
        let denied = caller.one("spent", reserve());
        let (before, after) = (usage_of(&two), usage_of(&denied));
        assert!(matches!(denied, CommandResult::NotReserved { .. }), "the third of 2: {denied:?}");
        assert!(after.0 == 2 && after.1 <= before.1, "the window's end has not moved: {before:?}, {after:?}");

        let CommandResult::Reserved { receipt: Some(receipt), .. } = one else { panic!("{one:?}") };
        let refunds =
            [caller.one("spent", Command::refund(receipt)), caller.one("spent", Command::refund(receipt))];
        let already = Some(RefundReason::AlreadyRefunded);
        assert_eq!(
            refunds,
            [
                CommandResult::Refund { refunded: true, reason: None },
                CommandResult::Refund { refunded: false, reason: already },
            ]
        );
    }
}

/// Used, and the ms until its end.
fn usage_of(result: &CommandResult) -> (u64, u64) {
    match result {
        CommandResult::Reserved { budgets, .. } | CommandResult::NotReserved { budgets, .. } => {
            (budgets[0].used, budgets[0].reset_ms)
        }
        other => panic!("{other:?}"),
    }
}
