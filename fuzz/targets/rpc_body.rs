//! The body of an RPC: what is accepted is plain JSON within the bounds, and survives being written again.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tidegate_protocol::{Request, Verified, bounds::BODY_BYTES_MAX};

/// Defaults are written out, so a request this much smaller than the bound still fits it when written again.
const ROOM_FOR_DEFAULTS: usize = 8 * 1024;

fuzz_target!(|body: &[u8]| {
    let request = match Request::parse(Verified::trusted(body)) {
        Ok(request) => request,
        Err(fault) => {
            assert!(!fault.message.is_empty(), "a refusal without a reason");
            return;
        }
    };
    assert!(body.len() <= BODY_BYTES_MAX);
    assert!(serde_json::from_slice::<serde_json::Value>(body).is_ok(), "accepted what is not JSON");
    let written = match request.to_json() {
        Ok(written) => written,
        Err(fault) => {
            assert!(body.len() > ROOM_FOR_DEFAULTS, "accepted, but not fit to send: {fault}");
            return;
        }
    };
    let again =
        Request::parse(Verified::trusted(&written)).expect("what was accepted once is accepted again");
    assert_eq!(again, request);
    for (index, (step, same)) in request.steps.iter().zip(&again.steps).enumerate() {
        let [one, two] = [step, same].map(|step| step.fingerprint(&request.family, index));
        assert_eq!(one, two, "the same step has two fingerprints");
    }
});
