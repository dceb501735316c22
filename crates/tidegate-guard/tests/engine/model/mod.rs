//! Random sequences of requests against a plain model of the guard, every result compared.

mod plain;
mod random;

use std::fmt::Debug;

use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use tidegate_guard::Refusal;
use tidegate_protocol::{CommandResult, Request, Response, name::ReceiptId};

use self::{
    plain::{Model, Outcome},
    random::{Action, Sent, actions},
};
use crate::{harness::Bench, rig::Rig};

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_result_is_the_models(actions in actions()) {
        let difference = on_a_runtime(differs(Rig::Sound, &actions));
        prop_assert!(difference.is_none(), "{}", difference.unwrap_or_default());
    }
}

/// A model that nothing contradicts proves little: each broken store must contradict it.
#[test]
fn broken_stores_differ_from_the_model() {
    let rigs = [Rig::ForgetsOperations, Rig::ForgetsRefunds, Rig::ExpiresLate, Rig::ReadsNothing];
    for rig in rigs {
        let mut runner = TestRunner::deterministic();
        let found = (0..400).any(|_| {
            let tree = actions().new_tree(&mut runner).expect("the strategy rejects nothing");
            on_a_runtime(differs(rig, &tree.current())).is_some()
        });
        assert!(found, "{rig:?} went unnoticed");
    }
}

fn on_a_runtime<T>(task: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime of one thread starts").block_on(task)
}

/// Runs the actions on the guard and on the model; the first difference, if there is one.
async fn differs(rig: Rig, actions: &[Action]) -> Option<String> {
    let bench = Bench::rigged(rig);
    let mut model = Model::default();
    let mut sent = Sent::default();
    for (number, action) in actions.iter().enumerate() {
        let Some(request) = sent.next(action, &bench, model.receipts()) else { continue };
        let actual = bench.run(request.clone()).await;
        let drawn = actual.as_ref().map(receipts_of).unwrap_or_default();
        let expected = model.run(&request, bench.now_ms(), &drawn);
        if !agree(&expected, &actual) {
            return Some(difference(number, &request, &expected, &actual));
        }
    }
    None
}

fn agree(expected: &Outcome, actual: &Result<Response, Refusal>) -> bool {
    match (expected, actual) {
        (Outcome::Conflict { step }, Err(Refusal::Conflict { step: other })) => step == other,
        (Outcome::Answer(expected), Ok(actual)) => expected == actual,
        _ => false,
    }
}

/// The ids that the guard drew, by step and command; the model can't know them.
fn receipts_of(response: &Response) -> Vec<Vec<Option<ReceiptId>>> {
    let receipt_of = |result: &CommandResult| match result {
        CommandResult::Reserved { receipt, .. } => *receipt,
        _ => None,
    };
    response.steps.iter().map(|step| step.results.iter().map(receipt_of).collect()).collect()
}

fn difference(number: usize, request: &Request, expected: &dyn Debug, actual: &dyn Debug) -> String {
    format!("action {number}: {request:#?}\nthe model says {expected:#?}\nthe guard says {actual:#?}")
}
