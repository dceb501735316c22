//! Each row of the table of fail modes, on the real server.

use tidegate_client::{DecidedBy, Family, Outcome, Reason, RefusalCode, Selection};

use crate::{
    proxy::Way,
    site::{Limits, PEPPER, ROUTE_LIMIT, Row, Site, all, caller},
    support::server::{SECRET, Setup},
};

const SHUT: Outcome = Outcome::Refused(RefusalCode::Unavailable);

#[tokio::test]
async fn healthy() {
    let site = Site::start();
    let limits = site.limits();
    assert_eq!(limits.ask_each(0).await, [None, None, None, None]);
    let by_store = |limit| (limit, Outcome::Allowed, DecidedBy::Store, None);
    assert_eq!(limits.told.take(), ["route", "bulk_read", "replay", "attempt"].map(by_store));
}

#[tokio::test]
async fn stopped_by_an_operator_and_resumed() {
    let site = Site::start();
    let limits = site.limits();
    site.server.order("/control/stop", "{}");
    assert_fails(&limits, Reason::Stopped).await;
    site.server.order("/control/resume", "{}");
    assert_is_well(&limits, 5).await;
}

#[tokio::test]
async fn stopped_for_want_of_a_budget() {
    let setup = Setup::new().set("guard.family_budgets", "offline=0,proxy=0,replay=0,password=0");
    assert_fails(&Site::of(&setup).limits(), Reason::Stopped).await;
}

#[tokio::test]
async fn limited() {
    // Four commands a day for each source, in a family of 40 000: the fifth is one too many.
    let mut setup = Setup::new()
        .set("guard.daily_budget", "160000")
        .set("guard.family_budgets", "offline=40000,proxy=40000,replay=40000,password=40000");
    for family in Family::ALL {
        setup = setup.set(&format!("guard.families.{}.shares_bp", family.as_str()), "source=1");
    }
    let site = Site::of(&setup);
    let limits = site.limits();
    for number in 0..8 {
        // Another principal, target and token each time, and the same source.
        let principal = format!("somebody-{number}");
        spend(&limits, &principal).await;
    }
    limits.told.take();
    assert_fails_for(&limits, Reason::Limited, 0).await;
    // Nobody else is.
    assert_eq!(limits.ask_each(1).await, [None, None, None, None]);
}

#[tokio::test]
async fn slow() {
    let site = Site::start();
    site.proxy.set(Way::Hold);
    let limits = Limits::over(&all(site.impatient()));
    assert_fails(&limits, Reason::Timeout).await;
    site.proxy.set(Way::Through);
    // The late answers changed nothing for these callers, and what comes now is decided in the store again.
    assert_is_well(&site.limits(), 5).await;
}

#[tokio::test]
async fn cut_off() {
    let site = Site::start();
    let ways = [Way::CutAtOnce, Way::CutBefore, Way::CutAfter, Way::Answer("HTTP/1.1 200 -\r\n\r\nhello")];
    for (round, way) in ways.into_iter().enumerate() {
        site.proxy.set(way);
        let limits = site.limits();
        assert_fails(&limits, Reason::Transport).await;
        site.proxy.set(Way::Through);
        assert_is_well(&limits, 10 + round).await;
    }
}

#[tokio::test]
async fn the_server_is_gone() {
    let site = Site::start();
    let limits = Limits::over(&all(crate::site::client_of(&format!("http://{}", site.server.guard))));
    assert_eq!(limits.ask_each(0).await, [None, None, None, None]);
    limits.told.take();
    drop(site.server.kill());
    assert_fails(&limits, Reason::Transport).await;
}

#[tokio::test]
async fn another_secret() {
    let site = Site::start();
    let url = format!("http://{}", site.proxy.address);
    let limits =
        Limits::over(&selected(&[("URL", &url), ("SECRET", "another-secret-0123456789abcdef-01234")]));
    assert_fails(&limits, Reason::Authentication).await;
}

#[tokio::test]
async fn misconfigured_or_off() {
    let site = Site::start();
    let url = format!("http://{}", site.proxy.address);
    let table: [(&[(&str, &str)], Reason); 7] = [
        (&[("URL", "")], Reason::Configuration),
        (&[("URL", "http://guard.example")], Reason::Configuration),
        (&[("SECRET", "short")], Reason::Configuration),
        (&[("KEY_PEPPER", "")], Reason::Configuration),
        (&[("TIMEOUT_MS", "soon")], Reason::Configuration),
        (&[("BACKEND", "redis")], Reason::Configuration),
        (&[("BACKEND", "off")], Reason::Off),
    ];
    for (changes, reason) in table {
        let changes = [changes, &[("URL", &url)]].concat();
        assert_fails(&Limits::over(&selected(&changes)), reason).await;
    }
    assert_eq!(site.proxy.seen(), (0, 0), "nothing was sent");
    // The same, complete, works.
    assert_is_well(&Limits::over(&selected(&[("URL", &url)])), 5).await;
}

#[tokio::test]
async fn not_assigned() {
    let site = Site::start();
    let url = format!("http://{}", site.proxy.address);
    for changes in [[("FAMILIES", ""), ("URL", &url)], [("BACKEND", "legacy"), ("URL", &url)]] {
        let limits = Limits::over(&selected(&changes));
        assert_eq!(limits.ask_each(0).await, [None, None, None, None]);
        let by_nobody = |limit| (limit, Outcome::Allowed, DecidedBy::Nobody, None);
        assert_eq!(limits.told.take(), ["route", "bulk_read", "replay", "attempt"].map(by_nobody));
    }
    assert_eq!(site.proxy.seen(), (0, 0));
}

#[tokio::test]
async fn observing_refuses_nothing_and_tells_all() {
    let site = Site::start();
    site.proxy.set(Way::CutBefore);
    let limits = Limits::observing(&all(site.client()));
    for _ in 0..=ROUTE_LIMIT {
        assert_eq!(limits.ask_each(0).await, [None, None, None, None]);
    }
    let told = limits.told.take();
    let refused = Outcome::Refused(RefusalCode::RateLimited);
    let [route, bulk, fence, attempt] = last_four(&told);
    assert_eq!((route.1, route.2), (refused, DecidedBy::Instance));
    assert_eq!([bulk.1, fence.1, attempt.1], [SHUT; 3]);
}

/// Nobody is let through but by the route limiter, which counts alone, from zero.
async fn assert_fails(limits: &Limits, reason: Reason) {
    assert_fails_for(limits, reason, 0).await;
    // Another caller is not refused for the first one's calls.
    assert_eq!(limits.route.check(caller(9)).await.into_result().err(), None);
    limits.told.take();
}

async fn assert_fails_for(limits: &Limits, reason: Reason, number: usize) {
    for call in 1..=ROUTE_LIMIT + 1 {
        let [route, bulk, fence, attempt] = limits.ask_each(number).await;
        let told = limits.told.take();
        let because = Some(reason);
        let allowed = call <= ROUTE_LIMIT;
        let outcome = if allowed { Outcome::Allowed } else { Outcome::Refused(RefusalCode::RateLimited) };
        assert_eq!(told[0], ("route", outcome, DecidedBy::Instance, because), "call {call}");
        assert_eq!(route.is_none(), allowed);
        if let Some(route) = route {
            let headers = route.headers();
            assert_eq!(route.code.status(), 429);
            for name in ["retry-after", "ratelimit", "ratelimit-policy"] {
                assert!(headers.contains_key(name), "{headers:?}");
            }
        }
        let shut = |limit| (limit, SHUT, DecidedBy::Instance, because);
        assert_eq!(told[1..], ["bulk_read", "replay", "attempt"].map(shut));
        for refusal in [bulk, fence, attempt] {
            let refusal = refusal.expect("it is shut");
            assert_eq!(
                (refusal.code.status().as_u16(), &refusal.headers()["retry-after"]),
                (503, &"30".parse().unwrap())
            );
        }
    }
}

/// The store decides again, and the healthy calls did not count while it was away.
async fn assert_is_well(limits: &Limits, number: usize) {
    limits.told.take();
    assert_eq!(limits.ask_each(number).await, [None, None, None, None]);
    assert!(limits.told.take().iter().all(|row| row.2 == DecidedBy::Store && row.3.is_none()));
}

/// One command or more of each family, by the first caller.
async fn spend(limits: &Limits, principal: &str) {
    use tidegate_client::{BulkRead, Token};
    use tidegate_store::clock::wall_ms;
    let token = Token { id: principal, ends_at_ms: wall_ms() + 60_000, principal };
    let _ = limits.bulk.check(BulkRead::by(caller(0), principal).proven()).await;
    let _ = limits.fence.claim(token, caller(0)).await;
    let _ = limits.attempts.begin(caller(0), principal).await.into_result();
    let _ = limits.route.check(caller(0).principal(principal)).await;
}

fn last_four(told: &[Row]) -> [Row; 4] {
    told[told.len() - 4..].try_into().expect("four of them")
}

/// A complete configuration, changed.
fn selected(changes: &[(&str, &str)]) -> Selection {
    let complete =
        [("FAMILIES", "offline,replay,proxy,password"), ("SECRET", SECRET), ("KEY_PEPPER", PEPPER)];
    Selection::from_variables(|name| {
        let name = name.strip_prefix("TIDEGATE_CLIENT_")?;
        let found = changes.iter().chain(&complete).find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned())
    })
}
