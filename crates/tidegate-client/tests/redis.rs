//! The legacy paths over Redis, on a real server that the test starts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use tidegate_client::{
    AttemptBudget, AttemptLimiter, Caller, ReplayFence, RouteLimiter, Selection, Token, TokenUse,
    WindowLimit, redis::RedisLegacy,
};
use tidegate_core::secret::Secret;
use tidegate_store::clock::wall_ms;
use tidegate_test_servers::RedisServer;

const HOUR: Duration = Duration::from_secs(3600);

fn pepper() -> Secret {
    Secret::new("legacy-pepper-0123456789abcdef-012345678").unwrap()
}

/// No family is assigned.
fn unassigned() -> Selection {
    Selection::from_variables(|_| None)
}

/// One of each, each an instance of its own.
struct Instance {
    route: RouteLimiter,
    fence: ReplayFence,
    attempts: AttemptLimiter,
}

impl Instance {
    fn over(redis: &RedisLegacy) -> Self {
        let windows = || [WindowLimit::fixed(3, HOUR), WindowLimit::fixed(100, 2 * HOUR)];
        let (source, target) = (AttemptBudget::new(10, HOUR), AttemptBudget::new(2, HOUR));
        let route = RouteLimiter::new(&unassigned(), "api", windows()).unwrap();
        let attempts = AttemptLimiter::new(&unassigned(), "login", source, target).unwrap();
        Self {
            route: route.with_legacy(redis.routes(windows()).unwrap()),
            fence: ReplayFence::new(&unassigned(), "refresh").unwrap().with_legacy(redis.fence()),
            attempts: attempts.with_legacy(redis.attempts(source, target).unwrap()),
        }
    }
}

fn token(id: &str) -> Token<'_> {
    Token { id, ends_at_ms: wall_ms() + 3_600_000, principal: "alice" }
}

#[tokio::test]
async fn instances_share_what_redis_keeps() {
    let mut server = RedisServer::start(&[]).unwrap();
    let redis = RedisLegacy::new(&server.url(), &pepper()).unwrap();
    let (one, other) = (Instance::over(&redis), Instance::over(&redis));
    let caller = Caller::at("192.0.2.7");

    for instance in [&one, &other, &one] {
        assert!(instance.route.check(caller).await.is_allowed());
    }
    let refusal = other.route.check(caller).await.into_result().unwrap_err();
    assert_eq!((refusal.windows[0].remaining, refusal.windows[1].remaining), (0, 97), "all or none");
    assert!(refusal.retry_after_ms.is_some_and(|wait_ms| (1..=3_600_000).contains(&wait_ms)));
    assert!(other.route.check(Caller::at("192.0.2.8")).await.is_allowed());

    assert_eq!(one.fence.claim(token("t"), caller).await.into_result(), Ok(TokenUse::First));
    let again = other.fence.claim(token("t"), caller).await.into_result();
    assert!(matches!(again, Ok(TokenUse::Grace { .. })), "{again:?}");

    let first = one.attempts.begin(caller, "alice").await.into_result().unwrap();
    other.attempts.begin(caller, "alice").await.into_result().unwrap().failed();
    assert_eq!(one.attempts.begin(caller, "alice").await.into_result().unwrap_err().code.status(), 429);
    assert_eq!(first.succeeded().await, Ok(true));
    one.attempts.begin(caller, "alice").await.into_result().unwrap().failed();
    assert!(!other.attempts.begin(caller, "alice").await.is_allowed());

    // Away: routes go on, everything else is shut. Back: everything is as it was.
    server.kill();
    assert!(one.route.check(caller).await.is_allowed());
    assert_eq!(one.fence.claim(token("u"), caller).await.into_result().unwrap_err().code.status(), 503);
    assert_eq!(one.attempts.begin(caller, "bob").await.into_result().unwrap_err().code.status(), 503);
    server.restart().unwrap();
    assert_eq!(one.fence.claim(token("u"), caller).await.into_result(), Ok(TokenUse::First));
    assert!(!format!("{redis:?}").contains("127.0.0.1"));
}

#[tokio::test]
async fn a_cut_over_reads_the_keys_that_the_application_wrote() {
    let server = RedisServer::start(&[]).unwrap();
    let client = ::redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let () =
        ::redis::cmd("SET").arg("refresh:used:before").arg(1).query_async(&mut connection).await.unwrap();
    let read = RedisLegacy::new(&server.url(), &pepper()).unwrap().reader(|id| format!("refresh:used:{id}"));
    assert!(read("before".into()).await.unwrap());
    assert!(!read("fresh".into()).await.unwrap());
    drop(server);
    assert!(read("before".into()).await.is_err());
}
