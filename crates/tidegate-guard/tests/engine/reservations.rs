//! `res.*`: all budgets or none, receipts, refunds.

use tidegate_protocol::{
    Command, CommandResult,
    name::ReceiptId,
    request::Budget,
    response::{RefundReason, Usage},
};

use crate::{
    harness::{Bench, digest, forged, usage},
    rig::Rig,
};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// 3 a minute and 5 an hour.
fn attempt() -> Command {
    Command::reserve([Budget::new(digest("minute"), 3, MINUTE_MS), Budget::new(digest("hour"), 5, HOUR_MS)])
}

fn targeting(target_index: usize) -> Command {
    match attempt() {
        Command::Reserve { budgets, cost, .. } => Command::Reserve { budgets, target: target_index, cost },
        other => other,
    }
}

async fn reserve(bench: &Bench, command: Command) -> (ReceiptId, Vec<Usage>) {
    let CommandResult::Reserved { receipt: Some(receipt), budgets } = bench.command(command).await else {
        unreachable!("there is room");
    };
    (receipt, budgets)
}

async fn refund(bench: &Bench, receipt: ReceiptId) -> CommandResult {
    bench.command(Command::refund(receipt)).await
}

async fn look(bench: &Bench) -> Vec<Usage> {
    match bench.command(attempt().costing(0)).await {
        CommandResult::Reserved { receipt: None, budgets } => budgets,
        other => unreachable!("a look gives no receipt: {other:?}"),
    }
}

fn refused(
    denied_by: impl Into<Vec<usize>>,
    retry_after_ms: impl Into<Option<u64>>,
    budgets: [Usage; 2],
) -> CommandResult {
    let (denied_by, retry_after_ms) = (denied_by.into(), retry_after_ms.into());
    CommandResult::NotReserved { denied_by, retry_after_ms, budgets: budgets.into() }
}

const REFUNDED: CommandResult = CommandResult::Refund { refunded: true, reason: None };
const ALREADY: CommandResult =
    CommandResult::Refund { refunded: false, reason: Some(RefundReason::AlreadyRefunded) };
const UNKNOWN: CommandResult =
    CommandResult::Refund { refunded: false, reason: Some(RefundReason::UnknownOrExpired) };

#[tokio::test]
async fn all_budgets_or_none() {
    let bench = Bench::new();
    assert_eq!(look(&bench).await, [usage(3, 0, 0), usage(5, 0, 0)]);
    assert_eq!(bench.rows().await, 0, "a look leaves nothing");
    let (_, budgets) = reserve(&bench, attempt().costing(3)).await;
    assert_eq!(budgets, [usage(3, 3, MINUTE_MS), usage(5, 3, HOUR_MS)]);

    let writes = bench.writes();
    bench.at(10_000);
    let (minute, hour) = (usage(3, 3, 50_000), usage(5, 3, HOUR_MS - 10_000));
    assert_eq!(bench.command(attempt()).await, refused([0], 50_000, [minute, hour]));
    assert_eq!(bench.command(attempt().costing(3)).await, refused([0, 1], HOUR_MS - 10_000, [minute, hour]));
    assert_eq!(bench.command(attempt().costing(4)).await, refused([0, 1], None, [minute, hour]));
    assert_eq!(bench.writes(), writes, "a denial takes nothing and leaves nothing");

    bench.at(60_000);
    let (_, budgets) = reserve(&bench, attempt().costing(2)).await;
    assert_eq!(budgets, [usage(3, 2, MINUTE_MS), usage(5, 5, HOUR_MS - 60_000)]);
    let (minute, hour) = (usage(3, 2, MINUTE_MS), usage(5, 5, HOUR_MS - 60_000));
    assert_eq!(bench.command(attempt()).await, refused([1], HOUR_MS - 60_000, [minute, hour]));
    bench.at(HOUR_MS);
    assert_eq!(look(&bench).await, [usage(3, 0, 0), usage(5, 0, 0)]);
}

#[tokio::test]
async fn a_window_begins_at_its_first_reservation_wherever_the_clock_is() {
    let bench = Bench::new();
    bench.at(12_345);
    assert_eq!(reserve(&bench, attempt()).await.1, [usage(3, 1, MINUTE_MS), usage(5, 1, HOUR_MS)]);
    bench.at(72_344);
    assert_eq!(look(&bench).await[0], usage(3, 1, 1));
    bench.at(72_345);
    assert_eq!(look(&bench).await[0], usage(3, 0, 0));
    bench.at(80_000);
    assert_eq!(reserve(&bench, attempt()).await.1[0], usage(3, 1, MINUTE_MS));
}

#[tokio::test]
async fn a_limit_of_zero_admits_nothing() {
    let bench = Bench::new();
    let none = || Command::reserve([Budget::new(digest("none"), 0, MINUTE_MS)]);
    let expected = CommandResult::NotReserved {
        denied_by: vec![0],
        retry_after_ms: None,
        budgets: vec![usage(0, 0, 0)],
    };
    for cost in [1, 0] {
        assert_eq!(bench.command(none().costing(cost)).await, expected);
    }
}

#[tokio::test]
async fn a_refund_gives_back_its_own_cost_once_and_moves_no_window() {
    let bench = Bench::new();
    let (first, _) = reserve(&bench, attempt().costing(2)).await;
    reserve(&bench, attempt()).await;
    bench.at(20_000);
    assert_eq!(refund(&bench, first).await, REFUNDED);
    assert_eq!(look(&bench).await, [usage(3, 1, 40_000), usage(5, 1, HOUR_MS - 20_000)]);
    let writes = bench.writes();
    for _ in 0..3 {
        assert_eq!(refund(&bench, first).await, ALREADY);
    }
    assert_eq!(bench.writes(), writes);
    assert_eq!(look(&bench).await, [usage(3, 1, 40_000), usage(5, 1, HOUR_MS - 20_000)]);
}

#[tokio::test]
async fn a_refund_to_zero_does_not_move_the_window() {
    let bench = Bench::new();
    let (receipt, _) = reserve(&bench, attempt()).await;
    bench.at(20_000);
    assert_eq!(refund(&bench, receipt).await, REFUNDED);
    assert_eq!(look(&bench).await, [usage(3, 0, 40_000), usage(5, 0, HOUR_MS - 20_000)]);
    bench.at(30_000);
    assert_eq!(reserve(&bench, attempt()).await.1[0], usage(3, 1, 30_000));
}

#[tokio::test]
async fn a_window_that_ended_and_its_successor_are_left_alone() {
    let bench = Bench::new();
    let (receipt, _) = reserve(&bench, attempt().costing(2)).await;
    bench.at(60_000);
    assert_eq!(reserve(&bench, attempt()).await.1, [usage(3, 1, MINUTE_MS), usage(5, 3, HOUR_MS - 60_000)]);
    assert_eq!(refund(&bench, receipt).await, REFUNDED);
    assert_eq!(look(&bench).await, [usage(3, 1, MINUTE_MS), usage(5, 1, HOUR_MS - 60_000)]);

    let bench = Bench::new();
    let (receipt, _) = reserve(&bench, attempt().costing(2)).await;
    bench.at(60_000);
    assert_eq!(refund(&bench, receipt).await, REFUNDED, "one window is still the one that was charged");
    assert_eq!(look(&bench).await, [usage(3, 0, 0), usage(5, 0, HOUR_MS - 60_000)]);
}

#[tokio::test]
async fn the_target_budgets_window_is_the_receipts_life() {
    let table = [
        (attempt(), HOUR_MS - 1, REFUNDED),
        (attempt(), HOUR_MS, UNKNOWN),
        (targeting(1), HOUR_MS - 1, REFUNDED),
        (targeting(0), MINUTE_MS - 1, REFUNDED),
        (targeting(0), MINUTE_MS, UNKNOWN),
    ];
    for (row, (command, refund_at_ms, expected)) in table.into_iter().enumerate() {
        let bench = Bench::new();
        let (receipt, _) = reserve(&bench, command).await;
        bench.at(refund_at_ms);
        assert_eq!(refund(&bench, receipt).await, expected, "row {row}");
        let hour = if refund_at_ms < HOUR_MS {
            usage(5, u64::from(expected != REFUNDED), HOUR_MS - refund_at_ms)
        } else {
            usage(5, 0, 0)
        };
        assert_eq!(look(&bench).await[1], hour, "row {row}");
    }
}

#[tokio::test]
async fn a_receipt_of_a_running_window_lives_with_that_window() {
    let bench = Bench::new();
    reserve(&bench, targeting(0)).await;
    bench.at(50_000);
    let (late, _) = reserve(&bench, targeting(0)).await;
    bench.at(60_000);
    assert_eq!(refund(&bench, late).await, UNKNOWN);
}

#[tokio::test]
async fn foreign_forged_and_altered_receipts_change_nothing() {
    let bench = Bench::new();
    let (receipt, budgets) = reserve(&bench, attempt()).await;
    let text = receipt.as_str();
    let other_end = if text.ends_with('A') { "Q" } else { "A" };
    let altered = ReceiptId::parse(&format!("{}{other_end}", &text[..21])).expect("22 characters");
    let writes = bench.writes();
    assert_eq!(bench.command_in("bob", Command::refund(receipt)).await, UNKNOWN);
    assert_eq!(refund(&bench, forged(7)).await, UNKNOWN);
    assert_eq!(refund(&bench, altered).await, UNKNOWN);
    assert_eq!(bench.writes(), writes);
    assert_eq!(look(&bench).await, budgets);
    assert_eq!(refund(&bench, receipt).await, REFUNDED);
}

#[tokio::test]
async fn several_refunds_in_one_request() {
    let bench = Bench::new();
    let (first, _) = reserve(&bench, attempt()).await;
    let (second, _) = reserve(&bench, attempt()).await;
    let request = bench
        .fresh()
        .step(digest("alice"), [Command::refund(first), Command::refund(first), Command::refund(second)])
        .step(digest("bob"), [Command::refund(second)])
        .step(digest("alice"), [Command::refund(second), attempt().costing(0)]);
    let response = bench.respond(request).await;
    assert_eq!(response.steps[0].results, [REFUNDED, ALREADY, REFUNDED]);
    assert_eq!(response.steps[1].results, [UNKNOWN]);
    assert_eq!(response.steps[2].results[0], ALREADY);
    assert_eq!(look(&bench).await, [usage(3, 0, MINUTE_MS), usage(5, 0, HOUR_MS)]);
}

#[tokio::test]
async fn several_reservations_in_one_step_have_receipts_of_their_own() {
    let bench = Bench::new();
    let step =
        bench.step([attempt().costing(0), attempt().costing(2), attempt().costing(2), attempt()]).await;
    let receipts: Vec<Option<ReceiptId>> = step
        .results
        .iter()
        .map(|result| match result {
            CommandResult::Reserved { receipt, .. } => *receipt,
            _ => None,
        })
        .collect();
    let [None, Some(first), None, Some(last)] = receipts[..] else {
        unreachable!("a look, two, too many, one: {:?}", step.results);
    };
    assert_ne!(first, last);
    assert_eq!(refund(&bench, last).await, REFUNDED);
    assert_eq!(look(&bench).await[0].used, 2);
    assert_eq!(refund(&bench, first).await, REFUNDED);
    assert_eq!(look(&bench).await[0].used, 0);
}

#[tokio::test]
async fn a_success_does_not_clear_the_failures_of_others() {
    let bench = Bench::new();
    let address = || Command::reserve([Budget::new(digest("address"), 10, 300_000)]);
    let mut wrong_guesses = 0;
    for _ in 0..20 {
        for _ in 0..9 {
            wrong_guesses += u32::from(!bench.command(address()).await.is_denial());
        }
        if let CommandResult::Reserved { receipt: Some(receipt), .. } = bench.command(address()).await {
            assert_eq!(refund(&bench, receipt).await, REFUNDED);
        }
    }
    assert_eq!(wrong_guesses, 10);
}

/// How often one receipt can be refunded.
async fn refunds_of_one_receipt(bench: &Bench) -> usize {
    let (receipt, _) = reserve(bench, attempt()).await;
    let mut refunds = 0;
    for _ in 0..3 {
        refunds += usize::from(refund(bench, receipt).await == REFUNDED);
    }
    refunds
}

#[tokio::test]
async fn a_refund_rests_on_the_receipt_that_is_kept() {
    assert_eq!(refunds_of_one_receipt(&Bench::new()).await, 1);
    // A store that lost the mark on the receipt would be noticed.
    assert_eq!(refunds_of_one_receipt(&Bench::rigged(Rig::ForgetsRefunds)).await, 3);
}
