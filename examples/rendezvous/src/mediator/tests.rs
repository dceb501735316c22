use std::{collections::BTreeSet, sync::LazyLock};

use proptest::prelude::*;
use tidegate_admission::{Profile, Seed, UdpGate};
use tidegate_core::{secret::Secret, tracker::Limit};

use super::*;
use crate::{
    capability::Capability,
    keys::Keyring,
    wire::{self, Message, Operation},
};

const NOW_MS: u64 = 1_800_000_000_000;
const END_MS: u64 = NOW_MS + 30_000;
const ATTEMPT: AttemptId = AttemptId([1; 16]);

fn keys() -> Keyring {
    Keyring::new(vec![(1, Secret::new("mediator-0123456789abcdefghijklmnop").unwrap())]).unwrap()
}

fn endpoint(text: &str) -> Endpoint {
    Endpoint::observed(text.parse().unwrap())
}

fn capability(role: Role) -> Capability {
    Capability::issue(&keys(), ATTEMPT, role, END_MS)
}

fn bind(role: Role, sequence: u64, candidates: &[&str]) -> Verified {
    let capability = capability(role);
    let message = Message {
        operation: Operation::Bind,
        claims: *capability.claims(),
        sequence,
        sent_at_ms: NOW_MS,
        endpoints: candidates.iter().map(|text| endpoint(text)).collect(),
    };
    wire::verify(&message.sign(capability.secret()), &keys(), NOW_MS).unwrap()
}

/// Through the gate and the mediator, as a datagram goes.
fn put(
    mediator: &mut Mediator,
    verified: Verified,
    source: Endpoint,
    now_ms: u64,
) -> Result<Option<[Outgoing; 2]>, Ignored> {
    let address = source.socket_address().ip();
    let checked = mediator.check(&verified, source, now_ms);
    let bytes = GATE.stage_one(0, address, 1, DATAGRAM_BYTES).unwrap().into_allowance();
    let bound = mediator.bind(verified, source, bytes, now_ms);
    assert_eq!(checked.is_ok(), bound.is_ok());
    bound
}

/// With budgets that no test reaches.
static GATE: LazyLock<UdpGate> = LazyLock::new(|| {
    let mut profile = Profile::default();
    let udp = &mut profile.udp;
    (udp.global, udp.source_prefix, udp.wire_operation) =
        (Limit::rate(1_000_000), Limit::rate(1_000_000), Limit::rate(1_000_000));
    UdpGate::new(&profile, Seed::random().unwrap()).unwrap()
});

fn open() -> Mediator {
    let mut mediator = Mediator::new(3);
    mediator.open(ATTEMPT, END_MS, NOW_MS).unwrap();
    mediator
}

fn told(outgoing: &Outgoing, role: Role) -> Vec<Endpoint> {
    wire::read_introduction(&outgoing.datagram, &capability(role)).unwrap().endpoints
}

#[test]
fn both_are_introduced_once_to_what_they_were_seen_at() {
    let (host, joiner) = (endpoint("198.51.100.1:1000"), endpoint("203.0.113.2:2000"));
    for first in [Role::Host, Role::Joiner] {
        let mut mediator = open();
        let source = |role| if role == Role::Host { host } else { joiner };
        assert_eq!(put(&mut mediator, bind(first, 1, &["10.0.0.1:7"]), source(first), NOW_MS), Ok(None));
        let second = first.other();
        let [to_host, to_joiner] =
            put(&mut mediator, bind(second, 1, &["10.0.0.2:7"]), source(second), NOW_MS).unwrap().unwrap();
        assert_eq!((to_host.to, to_joiner.to), (host, joiner));
        assert_eq!(told(&to_host, Role::Host), [joiner]);
        assert_eq!(told(&to_joiner, Role::Joiner), [host]);
        for role in [first, second] {
            assert_eq!(put(&mut mediator, bind(role, 2, &[]), source(role), NOW_MS), Err(Ignored::Over));
        }
    }
}

#[test]
fn candidates_are_told_behind_one_public_address_only() {
    let mut mediator = open();
    let (host, joiner) = (endpoint("198.51.100.1:1000"), endpoint("198.51.100.1:2000"));
    put(&mut mediator, bind(Role::Host, 1, &["10.0.0.1:7", "10.0.0.1:8"]), host, NOW_MS).unwrap();
    let [to_host, to_joiner] =
        put(&mut mediator, bind(Role::Joiner, 1, &["10.0.0.2:7"]), joiner, NOW_MS).unwrap().unwrap();
    assert_eq!(told(&to_host, Role::Host), [joiner, endpoint("10.0.0.2:7")]);
    assert_eq!(told(&to_joiner, Role::Joiner), [host, endpoint("10.0.0.1:7"), endpoint("10.0.0.1:8")]);
}

#[test]
fn what_does_nothing() {
    let source = endpoint("198.51.100.1:1000");
    let cases = [
        (bind(Role::Host, 7, &[]), source, Err(Ignored::Replayed)),
        (bind(Role::Host, 7, &[]), endpoint("203.0.113.9:1000"), Err(Ignored::Replayed)),
        (bind(Role::Host, 5, &[]), source, Ok(None)),
        (bind(Role::Host, 5, &[]), source, Err(Ignored::Replayed)),
        (bind(Role::Host, 1007, &[]), source, Ok(None)),
        (bind(Role::Host, 1007 - 64, &[]), source, Err(Ignored::Replayed)),
        (bind(Role::Host, 1007 - 63, &[]), source, Ok(None)),
        (bind(Role::Host, 1008, &[]), endpoint("198.51.100.1:1001"), Err(Ignored::Moved)),
        (bind(Role::Host, 1009, &["203.0.113.5:53"]), source, Err(Ignored::Candidate)),
        (bind(Role::Host, 1009, &[]), source, Ok(None)),
    ];
    let mut mediator = open();
    put(&mut mediator, bind(Role::Host, 7, &[]), source, NOW_MS).unwrap();
    for (number, (verified, source, expected)) in cases.into_iter().enumerate() {
        assert_eq!(put(&mut mediator, verified, source, NOW_MS), expected, "step {number}");
    }
    assert_eq!(put(&mut Mediator::new(3), bind(Role::Host, 1, &[]), source, NOW_MS), Err(Ignored::Unknown));
}

#[test]
fn attempts_are_bounded_and_end() {
    let mut mediator = open();
    for number in 2..=3 {
        mediator.open(AttemptId([number; 16]), END_MS, NOW_MS).unwrap();
    }
    assert_eq!(mediator.open(AttemptId([4; 16]), END_MS, NOW_MS), Err(Full));
    mediator.close(AttemptId([2; 16]));
    mediator.open(AttemptId([4; 16]), END_MS + 5, NOW_MS).unwrap();
    assert_eq!(mediator.open_count(END_MS - 1), 3);
    let source = endpoint("198.51.100.1:1000");
    assert_eq!(put(&mut mediator, bind(Role::Host, 1, &[]), source, END_MS), Err(Ignored::Unknown));
    assert_eq!((mediator.open_count(END_MS), mediator.open_count(END_MS + 5)), (1, 0));
    assert!(mediator.ends.is_empty());
}

proptest! {
    /// Each sequence has an effect at most once, and each of the newest 64 has one.
    #[test]
    fn sequences(sequences in proptest::collection::vec(prop_oneof![0..200_u64, any::<u64>()], 1..300)) {
        let (mut seen, mut taken) = (None, BTreeSet::new());
        for sequence in sequences {
            let in_reach = taken.last().is_none_or(|highest| sequence > *highest || highest - sequence < 64);
            let expected = in_reach && !taken.contains(&sequence);
            let with = Seen::with(seen, sequence);
            prop_assert_eq!(with.is_ok(), expected, "{} after {:?}", sequence, taken);
            if let Ok(with) = with {
                seen = Some(with);
                taken.insert(sequence);
            }
        }
    }

    /// However binds come in, a source is sent no more bytes than it has sent.
    #[test]
    fn nothing_is_amplified(steps in proptest::collection::vec((any::<bool>(), 0..5_u64, 0..3_u8), 1..60)) {
        let mut mediator = open();
        let mut balance = [0_i64; 3];
        for (host, sequence, from) in steps {
            let source = |from: u8| endpoint(&format!("198.51.100.{from}:1000"));
            let role = if host { Role::Host } else { Role::Joiner };
            balance[usize::from(from)] += 256;
            let Ok(Some(outgoing)) = put(&mut mediator, bind(role, sequence, &[]), source(from), NOW_MS) else { continue };
            for outgoing in outgoing {
                let to = (0..3).find(|from| source(*from) == outgoing.to).unwrap();
                balance[usize::from(to)] -= 256;
            }
            prop_assert!(balance.iter().all(|bytes| *bytes >= 0), "{:?}", balance);
        }
    }
}
