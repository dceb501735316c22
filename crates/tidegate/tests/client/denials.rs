//! Denials are remembered: ten thousand of them, the oldest dropped first, and they cost the store nothing.

use std::{sync::Arc, time::Duration};

use tidegate_client::{DecidedBy, ENTRIES_MAX, RouteLimiter, WindowLimit};

use crate::site::{Limits, Site, all, caller};

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_and_one_keep_ten_thousand() {
    let site = Site::start();
    let selection = all(crate::site::client_of(&format!("http://{}", site.server.guard)));
    let told = Limits::over(&selection).told;
    // A limit of 0 denies everybody.
    let window = WindowLimit::sliding(0, Duration::from_secs(60 * 86_400));
    let limiter =
        RouteLimiter::new(&selection, "flood", [window]).unwrap().with_observer(Arc::clone(&told) as _);
    let limiter = Arc::new(limiter);

    limiter.check(caller(0)).await.into_result().unwrap_err();
    let askers = (0..20_usize).map(|asker| {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move {
            for number in (1..=ENTRIES_MAX).filter(|number| number % 20 == asker) {
                limiter.check(caller(number)).await.into_result().unwrap_err();
            }
        })
    });
    for asker in askers.collect::<Vec<_>>() {
        asker.await.unwrap();
    }
    assert_eq!(limiter.denials_remembered(), ENTRIES_MAX);
    assert!(told.take().iter().all(|row| row.2 == DecidedBy::Store));

    // Whoever is remembered costs nothing; the first, who is not, is asked for again.
    let spent = site.server.used("proxy");
    for number in [2 * ENTRIES_MAX / 3, ENTRIES_MAX - 1, ENTRIES_MAX] {
        limiter.check(caller(number)).await.into_result().unwrap_err();
    }
    assert!(told.take().iter().all(|row| row.2 == DecidedBy::Memory));
    assert_eq!(site.server.used("proxy"), spent);
    limiter.check(caller(0)).await.into_result().unwrap_err();
    assert_eq!(told.take()[0].2, DecidedBy::Store);
    assert_eq!((site.server.used("proxy"), limiter.denials_remembered()), (spent + 1, ENTRIES_MAX));
}
