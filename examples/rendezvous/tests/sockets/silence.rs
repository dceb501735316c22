//! What gets no answer, as seen on the wire: after it a good datagram is sent, whose introduction must be the
//! first that comes back.

use std::{collections::BTreeMap, sync::Arc};

use rendezvous::{
    capability::{AttemptId, Capability, Claims, Role},
    edge::{Edge as _, System},
    keys::Keyring,
    registry::{ListingId, Metadata},
    udp::Mediation,
    wire::{self, DATAGRAM_BYTES, Message, Operation},
};
use tidegate_admission::{Clock, Profile, Seed, UdpGate};
use tidegate_core::{secret::Secret, tracker::Limit};

use crate::{
    rig::{Rig, good, introduction},
    support::{ANN, BOB, KEY, LIMITS, NOW_MS, Still, bind, endpoint, service},
};

/// The datagrams that nobody answers, by what is wrong with them.
fn bad(host: &Capability, joiner: &Capability) -> Vec<(&'static str, Vec<u8>)> {
    let (now_ms, valid) = (System.now_ms(), good(joiner, 90));
    let changed = |place: usize| {
        let mut datagram = valid;
        datagram[place] ^= 1;
        datagram.to_vec()
    };
    let resized = |bytes: usize| {
        let mut datagram = valid.to_vec();
        datagram.resize(bytes, 0);
        datagram
    };
    let claims = *joiner.claims();
    let signed_by = |capability: &Capability, claims| {
        let (operation, endpoints) = (Operation::Bind, Vec::new());
        Message { operation, claims, sequence: 90, sent_at_ms: now_ms, endpoints }
            .sign(capability.secret())
            .to_vec()
    };
    let other_keys =
        Keyring::new(vec![(1, Secret::new("another-service-0123456789abcdefg").unwrap())]).unwrap();
    let own_keys = Keyring::new(vec![(1, Secret::new(KEY).unwrap())]).unwrap();
    let forged = Capability::issue(&other_keys, claims.attempt, Role::Joiner, claims.expires_at_ms);
    let unknown = Capability::issue(&own_keys, AttemptId([9; 16]), Role::Joiner, claims.expires_at_ms);
    let expired = Capability::issue(&own_keys, claims.attempt, Role::Joiner, now_ms - 1);
    let introduces = Message {
        operation: Operation::Introduction,
        claims,
        sequence: 90,
        sent_at_ms: now_ms,
        endpoints: vec![endpoint("203.0.113.1:53")],
    };
    vec![
        ("empty", Vec::new()),
        ("one byte", vec![b'T']),
        ("text", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("a byte short", resized(DATAGRAM_BYTES - 1)),
        ("a byte over", resized(DATAGRAM_BYTES + 1)),
        ("oversized", resized(9_000)),
        ("another version", changed(3)),
        ("another operation", changed(4)),
        ("a bad signature", changed(DATAGRAM_BYTES - 1)),
        ("a changed sequence", changed(39)),
        ("a forged capability", good(&forged, 90).to_vec()),
        ("an attempt that is not open", good(&unknown, 90).to_vec()),
        ("an expired capability", good(&expired, 90).to_vec()),
        ("the joiner's capability as the host", signed_by(joiner, Claims { role: Role::Host, ..claims })),
        ("the host's capability as the joiner", signed_by(host, claims)),
        ("a longer life than was given", signed_by(joiner, Claims { expires_at_ms: u64::MAX, ..claims })),
        ("stale", bind(joiner, 90, now_ms - 31_000, &[]).to_vec()),
        ("from the future", bind(joiner, 90, now_ms + 60_000, &[]).to_vec()),
        ("a public candidate", bind(joiner, 90, now_ms, &["203.0.113.1:53"]).to_vec()),
        ("a candidate of another family", bind(joiner, 90, now_ms, &["[fd00::1]:53"]).to_vec()),
        ("a candidate without a port", bind(joiner, 90, now_ms, &["10.0.0.1:0"]).to_vec()),
        ("an introduction", introduces.sign(joiner.secret()).to_vec()),
    ]
}

#[tokio::test]
async fn bad_datagrams_get_no_answer() {
    let rig = Rig::start(&Profile::default()).await;
    let (host, joiner) = rig.attempt().await;
    let (hosting, joining) = (rig.socket().await, rig.socket().await);
    hosting.send(&good(&host, 1)).await.unwrap();
    for (what, datagram) in bad(&host, &joiner) {
        joining.send(&datagram).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    joining.send(&good(&joiner, 1)).await.unwrap();
    let told = introduction(&joining, &joiner).await;
    assert_eq!(told.sequence, 1, "the first answer is to the good one");
    assert_eq!(told.endpoints[0].socket_address(), hosting.local_addr().unwrap());
    let told = introduction(&hosting, &host).await;
    assert_eq!(told.endpoints[0].socket_address(), joining.local_addr().unwrap());

    // Introduced once: binds go on, and the next that comes is of another attempt.
    let (host, joiner) = {
        for sequence in 2..9 {
            joining.send(&good(&joiner, sequence)).await.unwrap();
            hosting.send(&good(&host, sequence)).await.unwrap();
        }
        rig.attempt().await
    };
    hosting.send(&good(&host, 1)).await.unwrap();
    joining.send(&good(&joiner, 1)).await.unwrap();
    introduction(&joining, &joiner).await;
    introduction(&hosting, &host).await;
}

#[tokio::test]
async fn a_replay_from_elsewhere_moves_nothing() {
    let rig = Rig::start(&Profile::default()).await;
    let (host, joiner) = rig.attempt().await;
    let (hosting, joining, stranger) = (rig.socket().await, rig.socket().await, rig.socket().await);
    let first = good(&host, 7);
    hosting.send(&first).await.unwrap();
    hosting.send(&first).await.unwrap();
    hosting.send(&good(&host, 5)).await.unwrap();
    stranger.send(&first).await.unwrap();
    stranger.send(&good(&host, 8)).await.unwrap();
    joining.send(&good(&joiner, 1)).await.unwrap();
    let told = introduction(&joining, &joiner).await;
    assert_eq!(told.endpoints[0].socket_address(), hosting.local_addr().unwrap());
    introduction(&hosting, &host).await;
    // The stranger, who never had an answer, has one in an attempt of its own.
    let (host, joiner) = rig.attempt().await;
    stranger.send(&good(&host, 1)).await.unwrap();
    joining.send(&good(&joiner, 1)).await.unwrap();
    introduction(&stranger, &host).await;
}

/// Replays and forgeries don't spend what belongs to the capability: its own budget is a few datagrams.
#[tokio::test]
async fn a_victim_still_gets_through() {
    let mut profile = Profile::default();
    profile.udp.capability = Limit::rate(3);
    let rig = Rig::start(&profile).await;
    let (host, joiner) = rig.attempt().await;
    let (hosting, joining, stranger) = (rig.socket().await, rig.socket().await, rig.socket().await);
    let first = good(&host, 1);
    hosting.send(&first).await.unwrap();
    for _ in 0..20 {
        stranger.send(&first).await.unwrap();
        stranger.send(&good(&host, 2)).await.unwrap();
    }
    hosting.send(&good(&host, 2)).await.unwrap();
    joining.send(&good(&joiner, 1)).await.unwrap();
    introduction(&joining, &joiner).await;
    assert_eq!(introduction(&hosting, &host).await.sequence, 2);
}

/// Over the budget of its capability or role: the next answer is to another's datagram, or to an earlier one.
#[tokio::test]
async fn over_a_budget_is_silence() {
    type Tighten = fn(&mut Profile);
    let cases: [(&str, Tighten); 2] = [
        ("capability", |profile| profile.udp.capability = Limit::rate(1)),
        ("role", |profile| profile.udp.role = Limit::rate(1)),
    ];
    for (what, tighten) in cases {
        let mut profile = Profile::default();
        tighten(&mut profile);
        // Long enough that the test lies within one window.
        profile.udp.bounds.window_seconds = 3_600;
        let rig = Rig::start(&profile).await;
        let (host, joiner) = rig.attempt().await;
        let (hosting, joining) = (rig.socket().await, rig.socket().await);
        for sequence in 1..5 {
            hosting.send(&good(&host, sequence)).await.unwrap();
        }
        joining.send(&good(&joiner, 1)).await.unwrap();
        introduction(&joining, &joiner).await;
        assert_eq!(introduction(&hosting, &host).await.sequence, 1, "{what}: the others were dropped");
    }
}

/// Each budget, without a socket in between: what is over it does nothing, and in the next window it does.
#[test]
fn each_budget_alone() {
    type Tighten = fn(&mut Profile);
    let cases: [(&str, Tighten); 6] = [
        ("global", |profile| profile.udp.global = Limit::rate(1)),
        ("source prefix", |profile| profile.udp.source_prefix = Limit::rate(1)),
        ("wire operation", |profile| profile.udp.wire_operation = Limit::rate(1)),
        ("mediation handle", |profile| profile.udp.mediation_handle = Limit::rate(1)),
        ("capability", |profile| profile.udp.capability = Limit::rate(1)),
        ("role", |profile| profile.udp.role = Limit::rate(1)),
    ];
    for (what, tighten) in cases {
        let mut profile = Profile::default();
        tighten(&mut profile);
        let mediation = mediation(&profile);
        let (host, joiner) = attempt(&mediation);
        let taken = |capability: &Capability, sequence| {
            let datagram = bind(capability, sequence, NOW_MS, &[]);
            mediation.answer(&datagram, "192.0.2.1:4000".parse().unwrap(), mediation.moment())
        };
        assert_eq!(taken(&host, 1), None);
        // The joiner's own capability and role have room; whatever both share has none.
        let shared = !matches!(what, "capability" | "role");
        if shared {
            assert_eq!(taken(&joiner, 1), None, "{what}");
            mediation.clock.advance(1_000);
            assert!(taken(&joiner, 1).is_some(), "{what}: the next window");
        } else {
            assert_eq!(taken(&host, 2), None);
            let [to_host, _] = taken(&joiner, 1).unwrap();
            let told = wire::read_introduction(&to_host.datagram, &host).unwrap();
            assert_eq!(told.sequence, 1, "{what}: the second did nothing");
        }
    }
}

fn mediation(profile: &Profile) -> Mediation {
    Mediation {
        service: service(LIMITS),
        gate: Arc::new(UdpGate::new(profile, Seed::random().unwrap()).unwrap()),
        clock: Clock::manual(),
        edge: Arc::new(Still::new()),
    }
}

/// The capabilities of host and joiner in a new attempt.
fn attempt(mediation: &Mediation) -> (Capability, Capability) {
    let service = &mediation.service;
    let [ann, bob] = [ANN, BOB].map(|token| service.principal(token.as_bytes()).unwrap());
    let (game, metadata) = (ListingId([1; 16]), Metadata::new("a game".to_owned(), BTreeMap::new()).unwrap());
    service.create(game, &ann, metadata, NOW_MS).unwrap();
    let joiner = service.start_attempt(game, AttemptId([2; 16]), &bob, NOW_MS).unwrap();
    let host = service.attempts(game, &ann, NOW_MS).unwrap().remove(0);
    (host, joiner)
}
