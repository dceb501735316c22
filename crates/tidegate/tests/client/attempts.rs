//! Attempts at a password: as many as are allowed are checked, however many come at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tidegate_client::{AttemptBudget, AttemptLimiter, RefusalCode};
use tokio::sync::Barrier;

use crate::site::{Site, all, caller};

const HOUR: Duration = Duration::from_secs(3600);

fn limiter(site: &Site, scope: &str, source: u64, target: u64) -> Arc<AttemptLimiter> {
    let budget = |limit| AttemptBudget::new(limit, HOUR);
    Arc::new(AttemptLimiter::new(&all(site.client()), scope, budget(source), budget(target)).unwrap())
}

#[tokio::test]
async fn fifty_wrong_passwords_at_once_are_ten_checks() {
    let site = Site::start();
    let limiter = limiter(&site, "guess", 1000, 10);
    let checks = Arc::new(AtomicUsize::new(0));
    let guesses = (0..50).map(|number| {
        let (limiter, checks) = (Arc::clone(&limiter), Arc::clone(&checks));
        tokio::spawn(async move {
            // Each from a source of its own: the target is what is protected.
            match limiter.begin(caller(number), "alice").await.into_result() {
                Ok(attempt) => {
                    checks.fetch_add(1, Ordering::SeqCst);
                    attempt.failed();
                }
                Err(refusal) => assert_eq!(refusal.code, RefusalCode::AttemptsSpent),
            }
        })
    });
    for guess in guesses.collect::<Vec<_>>() {
        guess.await.unwrap();
    }
    assert_eq!(checks.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn right_passwords_give_back_what_they_took_and_throttling_is_no_wrong_password() {
    let site = Site::start();
    let limiter = limiter(&site, "login", 1000, 10);
    // All hold their reservation until all have asked.
    let all_asked = Arc::new(Barrier::new(12));
    let logins = (0..12).map(|number| {
        let (limiter, all_asked) = (Arc::clone(&limiter), Arc::clone(&all_asked));
        tokio::spawn(async move {
            let verdict = limiter.begin(caller(number), "alice").await.into_result();
            all_asked.wait().await;
            match verdict {
                Ok(attempt) => assert!(attempt.succeeded().await.unwrap()),
                Err(refusal) => {
                    let response = refusal.to_response::<String>();
                    assert_eq!(response.status(), 429);
                    assert!(response.headers().contains_key("retry-after"));
                    return false;
                }
            }
            true
        })
    });
    let mut admitted = 0;
    for login in logins.collect::<Vec<_>>() {
        admitted += usize::from(login.await.unwrap());
    }
    assert_eq!(admitted, 10);
    // All ten came back: ten more from here, one after the other and none given back.
    for number in 20..30 {
        limiter.begin(caller(number), "alice").await.into_result().expect("room for ten").failed();
    }
    assert!(!limiter.begin(caller(30), "alice").await.is_allowed());
}

/// An attacker with an account of their own does not buy guesses with it.
#[tokio::test]
async fn a_success_gives_back_its_own_reservation_only() {
    let site = Site::start();
    let limiter = limiter(&site, "bought", 10, 100);
    let mut guesses = 0;
    for _ in 0..20 {
        for _ in 0..9 {
            if let Ok(attempt) = limiter.begin(caller(1), "alice").await.into_result() {
                guesses += 1;
                attempt.failed();
            }
        }
        if let Ok(attempt) = limiter.begin(caller(1), "mallory").await.into_result() {
            assert!(attempt.succeeded().await.unwrap());
        }
    }
    assert!(guesses <= 10, "{guesses} guesses");
}
