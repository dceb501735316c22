use super::*;
use crate::WindowLimit;

#[tokio::test]
async fn a_clearance_ends_and_a_denial_keeps_it_from_being_granted() {
    let bench = Bench::new();
    let limits = BulkReadLimits {
        source: Vec::new(),
        actor: vec![WindowLimit::fixed(3, 120 * MINUTE)],
        clearance: Some(60 * MINUTE),
    };
    let guard = BulkReadGuard::new(&bench.selection(), "export", limits).unwrap().with_clock(bench.clock());
    let code = async |read| guard.check(read).await.into_result().err().map(|refusal| refusal.code);
    let (read, from) = (BulkRead::by(caller(1), "alice"), caller(1));
    assert_eq!(code(read.proven()).await, None);
    bench.at(3_599_999);
    assert_eq!(code(read).await, None);
    bench.at(3_600_000);
    assert_eq!(code(read).await, Some(RefusalCode::ChallengeRequired));
    // The window is spent: the proof is not taken.
    assert_eq!(code(read.proven()).await, Some(RefusalCode::RateLimited));
    bench.at(7_200_000);
    assert_eq!(code(read).await, Some(RefusalCode::ChallengeRequired));
    assert_eq!(code(BulkRead::unverified(from)).await, Some(RefusalCode::Unauthenticated));
}

#[tokio::test]
async fn a_day_ends_at_fifty_thousand_whatever_is_configured() {
    let bench = Bench::new();
    let limits = BulkReadLimits { source: Vec::new(), actor: Vec::new(), clearance: None };
    let guard = BulkReadGuard::new(&bench.selection(), "export", limits).unwrap().with_clock(bench.clock());
    let client = bench.client();
    let partition = guard.core.partition(&client, &["actor", "alice"]);
    let day =
        tidegate_protocol::request::Window::fixed(client.digest(Purpose::Key, "1d"), 50_000, 86_400_000);
    let hit = tidegate_protocol::Command::hit([day]).costing(BULK_READS_A_DAY - 1);
    client
        .run(&Request::new(operation_id().unwrap(), Family::Offline.name()).step(partition, [hit]))
        .await
        .unwrap();
    assert!(guard.check(BulkRead::by(caller(1), "alice")).await.is_allowed());
    let refusal = guard.check(BulkRead::by(caller(1), "alice")).await.into_result().unwrap_err();
    assert_eq!(refusal.headers()["ratelimit-policy"], "\"1d\";q=50000;w=86400");
    assert_eq!(refusal.retry_after_ms, Some(86_400_000));
}

#[test]
fn three_windows_beside_the_daily_one() {
    let limits = |periods: u64| BulkReadLimits {
        actor: (1..=periods)
            .map(|minutes| WindowLimit::fixed(1, MINUTE * u32::try_from(minutes).unwrap()))
            .collect(),
        ..BulkReadLimits::default()
    };
    assert!(BulkReadGuard::new(&unassigned(), "export", limits(3)).is_ok());
    let made = |limits| BulkReadGuard::new(&unassigned(), "export", limits).err();
    assert_eq!(made(limits(4)), Some(InvalidLimit::Windows));
    let daily = vec![WindowLimit::sliding(1, Duration::from_secs(86_400))];
    assert_eq!(made(BulkReadLimits { source: daily, ..limits(1) }), Some(InvalidLimit::PeriodTwice));
    let life = Some(Duration::from_millis(10));
    assert_eq!(made(BulkReadLimits { clearance: life, ..limits(1) }), Some(InvalidLimit::Period));
}
