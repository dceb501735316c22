//! Policies: a document is refused by name or can be decided with, whatever is asked; and what is kept of it reads back
//! as the same policy.
#![cfg_attr(fuzzing, no_main)]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use tidegate_core::{
    address::Address,
    defense::{Bucket, BucketId, Buckets, Facts, Outcome, decide},
    path::PathBuffer,
    policy::{Mode, Policy},
};

/// Of each document, the requests in its last bytes are asked.
const REQUEST_BYTES: usize = 64;

#[derive(Default)]
struct Kept(HashMap<BucketId, Bucket>);

impl Buckets for Kept {
    fn bucket(&mut self, id: BucketId, _: u64) -> &mut Bucket {
        self.0.entry(id).or_default()
    }
}

// The document, a zero byte, and requests: 4 or 16 bytes of a client, ms that pass, a method, a path, a User-Agent.
fuzz_target!(|input: &[u8]| {
    let split = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let (json, requests) = input.split_at(split);
    let policy = match Policy::parse(json) {
        Ok(policy) => policy,
        Err(faults) => {
            assert!(!faults.is_empty() && faults.len() <= 100, "refused without a reason");
            assert!(faults.iter().all(|fault| !fault.message.is_empty()));
            return;
        }
    };
    let kept = serde_json::to_vec(policy.document()).expect("texts and numbers");
    let again = Policy::parse(&kept).expect("what is shown is a policy");
    assert_eq!(again.document(), policy.document());

    let (mut buckets, mut buckets_again, mut at_ms) = (Kept::default(), Kept::default(), 0);
    for request in requests.get(1..).unwrap_or_default().chunks(REQUEST_BYTES) {
        let (client, rest) = client(request);
        at_ms += u64::from(rest.first().copied().unwrap_or_default()) << (rest.len() % 24);
        let text = rest.get(1..).unwrap_or_default();
        let (path, user_agent) = text.split_at(text.len() / 2);
        let mut buffer = PathBuffer::default();
        let facts = Facts {
            client,
            method: ["GET", "HEAD", "POST", "OPTIONS", ""][rest.len() % 5],
            path: buffer.normalise(path),
            user_agent,
            at_ms,
        };
        assert!(facts.path.as_bytes().starts_with(b"/") && facts.path.as_bytes().len() <= 256);
        let verdict = decide(&policy, &facts, &mut buckets);
        assert_eq!(decide(&again, &facts, &mut buckets_again), verdict);
        assert_eq!(verdict.outcome == Outcome::Allowed, verdict.reason.is_none());
        assert!(verdict.wait.is_none_or(|wait| wait.retry_after_ms > 0 && wait.burst > 0));
        assert!(policy.mode() == Mode::Enforce || verdict.outcome != Outcome::Blocked);
    }
});

fn client(request: &[u8]) -> (Address, &[u8]) {
    match (request.split_first_chunk::<16>(), request.split_first_chunk::<4>()) {
        (Some((v6, rest)), _) if rest.len() % 2 == 1 => (Address::from(std::net::IpAddr::from(*v6)), rest),
        (_, Some((v4, rest))) => (Address::from(std::net::IpAddr::from(*v4)), rest),
        _ => (Address::from(std::net::IpAddr::from([127, 0, 0, 1])), request),
    }
}
