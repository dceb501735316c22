use std::sync::Arc;

use http::HeaderMap;
use tidegate_core::{address::Address, defense::Reason};
use tidegate_store::{Driver, DriverOptions, MemoryBackend, clock::ManualClock};

use super::*;
use crate::defense::{AppSetup, DefenseOptions};

#[tokio::test]
async fn a_thousand_refusals_are_one_line() {
    let clock = Arc::new(ManualClock::at(1_000_000));
    let store =
        Arc::new(Driver::start(MemoryBackend::new(clock.clone()), DriverOptions::new("memory", 1000)));
    let apps = ["blog", "shop"].map(|name| AppSetup { name: name.to_owned(), routed: true });
    let options =
        DefenseOptions { apps: apps.into(), tracked_clients_max: 1000, ..DefenseOptions::default() };
    let defense = Defense::open(store, clock, options).await;
    let policy = br#"{"mode":"enforce","rps":0.001,"burst":1,"deny_user_agents":["evil"]}"#;
    for app in ["blog", "shop"] {
        defense.put_policy(app, None, policy, "operator").await.unwrap();
    }
    let ask = |app: &str, count: usize, user_agent: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("user-agent", user_agent.parse().unwrap());
        let client = Address::parse("192.0.2.1").unwrap();
        let app = defense.app(app).unwrap();
        for _ in 0..count {
            let _ = defense.judge(&app, &defense.caller(client.ip(), &headers), "GET", "/");
        }
    };
    let mut told = Told::new();
    let mut lines = || {
        let news = defense.news(&mut told).into_iter();
        news.map(|(app, kind, count)| (app.name().to_owned(), kind, count)).collect::<Vec<_>>()
    };
    assert_eq!(lines(), []);
    ask("shop", 1001, "curl");
    ask("shop", 5, "evil");
    ask("blog", 2, "curl");
    let expected = [
        ("blog".to_owned(), Kind::Blocked(Reason::RateLimit), 1),
        ("shop".to_owned(), Kind::Blocked(Reason::RateLimit), 1000),
        ("shop".to_owned(), Kind::Blocked(Reason::DenyUserAgent), 5),
    ];
    assert_eq!(lines(), expected);
    assert_eq!(lines(), [], "nothing new");
    ask("blog", 3, "curl");
    assert_eq!(lines(), [("blog".to_owned(), Kind::Blocked(Reason::RateLimit), 3)]);
}
