//! The ready-made limits at work on the real server.

use std::time::Duration;

use tidegate_client::{
    BulkRead, BulkReadGuard, BulkReadLimits, DecidedBy, Family, GuardClient, RefusalCode, ReplayFence, Token,
    TokenUse, WindowLimit,
};
use tidegate_core::secret::Secret;
use tidegate_store::clock::wall_ms;

use crate::{
    site::{PEPPER, Site, all, caller},
    support::server::Setup,
};

const HOUR_MS: u64 = 3_600_000;
const LONG: Duration = Duration::from_secs(50 * 86_400);

fn token<'a>(id: &'a str, principal: &'a str) -> Token<'a> {
    Token { id, ends_at_ms: wall_ms() + HOUR_MS, principal }
}

#[tokio::test]
async fn a_token_is_used_once_by_whichever_instance_comes_first() {
    let site = Site::start();
    // Instances share nothing but the server.
    let instances: Vec<_> = (0..10).map(|_| site.limits()).collect();
    let mut first = 0;
    for (number, instance) in instances.iter().enumerate() {
        match instance.fence.claim(token("jti-1", "alice"), caller(number)).await.into_result().unwrap() {
            TokenUse::First => first += 1,
            // Just now, and so within the grace.
            TokenUse::Grace { first_use_ms } => assert!(first_use_ms <= wall_ms()),
        }
        assert_eq!(instance.fence.replays_remembered(), 0, "grace is not remembered");
    }
    assert_eq!(first, 1);
}

#[tokio::test]
async fn fifty_claims_at_once_have_one_winner() {
    let site = Site::start();
    let fence = std::sync::Arc::new(ReplayFence::new(&all(site.client()), "race").unwrap());
    let claims = (0..50).map(|number| {
        let (fence, principal) = (std::sync::Arc::clone(&fence), format!("owner-{number}"));
        tokio::spawn(async move { fence.claim(token("jti", &principal), caller(number)).await.into_result() })
    });
    let mut first = 0;
    for claim in claims.collect::<Vec<_>>() {
        first += usize::from(claim.await.unwrap().unwrap() == TokenUse::First);
    }
    assert_eq!(first, 1);
}

#[tokio::test]
async fn a_replay_outside_the_grace_is_remembered_and_costs_nothing() {
    let site = Site::start();
    let limits = site.limits();
    let fence = ReplayFence::new(&all(site.client()), "refresh").unwrap();
    let fence = fence.with_grace(Duration::ZERO).with_observer(std::sync::Arc::clone(&limits.told) as _);
    let token = token("jti-1", "alice");
    assert_eq!(fence.claim(token, caller(1)).await.into_result(), Ok(TokenUse::First));
    // With no grace at all the next millisecond is too late.
    let replayed = loop {
        match fence.claim(token, caller(1)).await.into_result() {
            Ok(use_again) => assert!(matches!(use_again, TokenUse::Grace { .. })),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(replayed.code, RefusalCode::TokenReplayed);
    limits.told.take();
    let spent = site.server.used("replay");
    for _ in 0..100 {
        let refusal = fence.claim(token, caller(1)).await.into_result().unwrap_err();
        assert_eq!(refusal.code, RefusalCode::TokenReplayed);
    }
    assert!(limits.told.take().iter().all(|row| row.2 == DecidedBy::Memory));
    assert_eq!((site.server.used("replay"), fence.replays_remembered()), (spent, 1));
}

#[tokio::test]
async fn a_fence_survives_a_killed_server() {
    let server = Setup::new().set("store.durability", "fsync").start();
    let fence = |server: &crate::support::server::Server| {
        let client = crate::site::client_of(&format!("http://{}", server.guard));
        ReplayFence::new(&all(client), "refresh").unwrap()
    };
    assert_eq!(
        fence(&server).claim(token("jti", "alice"), caller(1)).await.into_result(),
        Ok(TokenUse::First)
    );
    let server = server.kill_and_restart();
    let again = fence(&server).claim(token("jti", "alice"), caller(1)).await.into_result();
    assert!(matches!(again, Ok(TokenUse::Grace { .. })), "{again:?}");
}

#[tokio::test]
async fn a_bulk_read_needs_an_actor_and_a_clearance() {
    let site = Site::start();
    let guard = BulkReadGuard::new(&all(site.client()), "export", BulkReadLimits::default()).unwrap();
    let code = async |read| guard.check(read).await.into_result().err().map(|refusal| refusal.code);
    let table = [
        ("nobody", BulkRead::unverified(caller(1)), Some(RefusalCode::Unauthenticated), 1),
        ("no clearance", BulkRead::by(caller(1), "alice"), Some(RefusalCode::ChallengeRequired), 3),
        ("a proof", BulkRead::by(caller(1), "alice").proven(), None, 3),
        ("a clearance", BulkRead::by(caller(2), "alice"), None, 3),
        ("another's clearance", BulkRead::by(caller(1), "bob"), Some(RefusalCode::ChallengeRequired), 3),
        (
            "a proof without an actor",
            BulkRead::unverified(caller(1)).proven(),
            Some(RefusalCode::Unauthenticated),
            1,
        ),
    ];
    for (what, read, expected, commands) in table {
        let spent = site.server.used("offline");
        assert_eq!(code(read).await, expected, "{what}");
        assert_eq!(site.server.used("offline") - spent, commands, "{what}");
    }
}

#[tokio::test]
async fn bulk_reads_have_windows_of_the_source_and_of_the_actor() {
    let site = Site::start();
    let limits = BulkReadLimits {
        source: vec![WindowLimit::fixed(4, LONG)],
        actor: vec![WindowLimit::fixed(2, LONG)],
        clearance: None,
    };
    let guard = BulkReadGuard::new(&all(site.client()), "export", limits).unwrap();
    let reads = [
        ("alice", caller(1), None),
        ("alice", caller(1), None),
        // The actor is spent wherever it comes from, and the source only counts what it was asked for.
        ("alice", caller(2), Some("\"50d\";r=0")),
        ("bob", caller(1), None),
        ("carol", caller(1), None),
        ("dave", caller(1), Some("\"50d\";r=0")),
        ("dave", caller(2), None),
    ];
    for (actor, caller, expected) in reads {
        let refusal = guard.check(BulkRead::by(caller, actor)).await.into_result().err();
        let told = refusal.map(|refusal| refusal.headers()["ratelimit"].to_str().unwrap().to_owned());
        assert_eq!(told.is_some(), expected.is_some(), "{actor}: {told:?}");
        assert!(told.unwrap_or_default().starts_with(expected.unwrap_or_default()));
    }
    assert_eq!(guard.denials_remembered(), 2);
    // Rotating bearers cost one command each until the source is spent, and none after it.
    let spent = site.server.used("offline");
    for _ in 0..10 {
        assert!(!guard.check(BulkRead::unverified(caller(9))).await.is_allowed());
    }
    assert_eq!(site.server.used("offline") - spent, 5, "four of 401 and the denial");
}

#[tokio::test]
async fn every_transport_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("guard.socket");
    let server = Setup::new().set("guard.socket", &socket).start();
    let pepper = Secret::new(PEPPER).unwrap();
    let over_http = crate::site::client_of(&format!("http://{}", server.guard));
    let over_socket = GuardClient::over_socket(&socket, &pepper);
    let fence = |client| ReplayFence::new(&all(client), "transport").unwrap();
    let (http, socket) = (fence(over_http), fence(over_socket));
    assert_eq!(http.claim(token("jti", "alice"), caller(1)).await.into_result(), Ok(TokenUse::First));
    let again = socket.claim(token("jti", "alice"), caller(1)).await.into_result();
    assert!(matches!(again, Ok(TokenUse::Grace { .. })), "one row, whichever way: {again:?}");
    assert_eq!(Family::Replay.as_str(), "replay");
}
