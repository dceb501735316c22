//! 1 000 mutated state transitions, with every bound small enough to be reached.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use rendezvous::{
    capability::{AttemptId, Capability},
    registry::{ListingId, Metadata, Refused},
    service::NotStarted,
    udp::Mediation,
    wire::DATAGRAM_BYTES,
};
use tidegate_admission::{Clock, Profile, Seed, UdpGate};

use crate::support::{ANN, BOB, EVE, KEY, LIMITS, NOW_MS, Random, Still, bind, credentials, service};

const SEED: u64 = 0x0155_7a7e;
const TRANSITIONS: usize = 1_000;

#[test]
fn every_bound_holds_and_every_source_gets_back_no_more_than_it_sent() {
    let (mut random, service, edge) = (Random::new(SEED), service(LIMITS), Arc::new(Still::new()));
    let gate = Arc::new(UdpGate::new(&Profile::default(), Seed::random().unwrap()).unwrap());
    let mediation =
        Mediation { service: Arc::clone(&service), gate, clock: Clock::manual(), edge: edge.clone() };
    let mut now_ms = NOW_MS;
    let mut capabilities: Vec<Capability> = Vec::new();
    let mut sent: Vec<[u8; DATAGRAM_BYTES]> = Vec::new();
    let mut balance: BTreeMap<String, i64> = BTreeMap::new();
    let (mut introductions, mut full, mut busy) = (0, 0, 0);
    for number in 0..TRANSITIONS {
        let passed_ms = u64::try_from(random.below(900)).unwrap();
        now_ms += passed_ms;
        mediation.clock.advance(passed_ms);
        let asker = service.principal(random.of(&[ANN, BOB, EVE]).as_bytes()).unwrap();
        let id = ListingId([u8::try_from(random.below(12)).unwrap(); 16]);
        let game = || Metadata::new("a game".to_owned(), BTreeMap::new()).unwrap();
        let context = format!("transition {number} of seed {SEED:#x}");
        match random.below(10) {
            0 | 1 => full += usize::from(service.create(id, &asker, game(), now_ms).is_err()),
            2 => drop(service.renew(id, &asker, now_ms)),
            3 if random.below(6) == 0 => drop(service.delete(id, &asker, now_ms)),
            3 => drop(service.update(id, &asker, game(), now_ms)),
            4 | 5 => {
                let attempt = AttemptId(u128::from(random.next()).to_be_bytes());
                match service.start_attempt(id, attempt, &asker, now_ms) {
                    Ok(capability) => capabilities.push(capability),
                    Err(NotStarted::Busy) => busy += 1,
                    Err(NotStarted::Listing(refused)) => assert_eq!(refused, Refused::NotFound, "{context}"),
                }
                capabilities.extend(service.attempts(id, &asker, now_ms).unwrap_or_default());
            }
            // A rotation in the middle of everything: what the old key signed goes on.
            6 if random.below(20) == 0 => {
                service.replace_credentials(credentials(&[(2, OTHER_KEY), (1, KEY)]));
            }
            _ if capabilities.is_empty() => {}
            _ => {
                let datagram = arbitrary_datagram(&mut random, &capabilities, &sent, now_ms);
                sent.push(datagram);
                let source = format!("198.51.100.{}:4000", random.below(4));
                *balance.entry(source.clone()).or_default() += 256;
                edge.now_ms.store(now_ms, Ordering::Relaxed);
                let answer = mediation.answer(&datagram, source.parse().unwrap(), mediation.moment());
                let Some(outgoing) = answer else { continue };
                introductions += 1;
                for outgoing in outgoing {
                    *balance.entry(outgoing.to.socket_address().to_string()).or_default() -= 256;
                }
            }
        }
        assert!(balance.values().all(|bytes| *bytes >= 0), "{context}: {balance:?}");
        assert_bounds(&service, now_ms, &context);
    }
    assert!(
        introductions > 0 && full > 0 && busy > 0,
        "{introductions} {full} {busy}: something never happened"
    );
}

const OTHER_KEY: &str = "key-after-rotation-0123456789abcd";

/// A new one, one that was sent before, or one with something changed.
fn arbitrary_datagram(
    random: &mut Random,
    capabilities: &[Capability],
    sent: &[[u8; DATAGRAM_BYTES]],
    now_ms: u64,
) -> [u8; DATAGRAM_BYTES] {
    if !sent.is_empty() && random.below(4) == 0 {
        return *random.of(sent);
    }
    // The newest few: the older ones have ended.
    let newest = &capabilities[capabilities.len().saturating_sub(6)..];
    let sequence = u64::try_from(random.below(100)).unwrap();
    let choices: [&[&str]; 3] = [&[], &["10.0.0.1:1"], &["203.0.113.1:53"]];
    let candidates = random.of(&choices);
    let mut datagram = bind(random.of(newest), sequence, now_ms, candidates);
    if random.below(5) == 0 {
        datagram[random.below(DATAGRAM_BYTES)] ^= 1;
    }
    datagram
}

fn assert_bounds(service: &rendezvous::service::Service, now_ms: u64, context: &str) {
    let (mut listings, mut attempts) = (0, 0);
    for (token, tenant_first) in [(ANN, true), (BOB, false), (EVE, true)] {
        let asker = service.principal(token.as_bytes()).unwrap();
        let own = service.list(&asker, usize::MAX, now_ms);
        assert!(own.len() <= LIMITS.registry.tenant_listings_max, "{context}");
        listings += if tenant_first { own.len() } else { 0 };
        for listing in own {
            let open = service.attempts(listing.id, &asker, now_ms).unwrap_or_default().len();
            assert!(open <= LIMITS.listing_attempts_max, "{context}");
            attempts += open;
        }
    }
    assert!(listings <= LIMITS.registry.listings_max && attempts <= LIMITS.attempts_max, "{context}");
}
