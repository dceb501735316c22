//! What the driver logs: one line where it matters, without keys or values.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::Mutex;
use tidegate_store::LimitStoreExt;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::scripted::{LONG_MS, Says, bump, key, options, settle, start};

/// Keeps what is logged, as text.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    /// The lines of `kind` since the last look.
    fn take(&self, kind: &str) -> Vec<String> {
        let kind = format!("kind={kind:?}");
        self.0.lock().extract_if(.., |line| line.contains(&kind)).collect()
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tidegate_store") && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        span::Id::from_u64(NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                self.0.push_str(&format!(" {}={value:?}", field.name()));
            }
        }
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().push(text.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_backend_is_logged_once_a_minute_with_its_causes() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (driver, script) = start(options(1000));
    script.says(Says { commit_fails: true, ..Says::default() });
    for _ in 0..100 {
        bump(&driver, "a secret name").await.unwrap_err();
    }
    let seen = lines.take("limit-store-failing");
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].starts_with("ERROR") && seen[0].contains("doing it: the script says so"), "{seen:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    bump(&driver, "a secret name").await.unwrap_err();
    assert_eq!(lines.take("limit-store-failing").len(), 1);
    assert_eq!(*lines.0.lock(), Vec::<String>::new(), "and nothing else");
}

#[tokio::test(start_paused = true)]
async fn filling_and_full_are_logged() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (driver, script) = start(options(10));
    let fill = |names: std::ops::Range<u32>| {
        let driver = driver.clone();
        async move {
            for name in names {
                bump(&driver, name).await.unwrap();
                settle().await;
            }
        }
    };
    fill(0..7).await;
    assert_eq!(lines.take("limit-store-filling").len(), 0);
    fill(7..10).await;
    assert_eq!(lines.take("limit-store-filling").len(), 1, "once per filling");
    for name in 10..20 {
        bump(&driver, name).await.unwrap_err();
    }
    let full = lines.take("limit-store-full");
    assert!(full.len() == 1 && full[0].starts_with("ERROR"), "{full:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    bump(&driver, 10).await.unwrap_err();
    assert_eq!(lines.take("limit-store-full").len(), 1);
    script.clock.advance(LONG_MS);
    fill(20..29).await;
    assert_eq!(lines.take("limit-store-filling").len(), 1, "it had emptied");
}

/// Rows that have expired are no reason to warn: they go first.
#[tokio::test(start_paused = true)]
async fn expired_rows_do_not_fill_a_store() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (driver, script) = start(options(10));
    for name in 0..30 {
        let update = driver.update(vec![key(name)], |view| view.put(0, b"x".as_slice(), view.now_ms() + 50));
        update.await.unwrap();
        script.clock.advance(10);
        settle().await;
    }
    assert_eq!(lines.take("limit-store-filling").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_keeps_failing_is_an_alert() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (_driver, script) = start(options(10));
    script.says(Says { sweep_fails: true, ..Says::default() });
    tokio::time::sleep(Duration::from_secs(10 * 60)).await;
    assert_eq!(lines.take("sweep-failing").len(), 0);
    tokio::time::sleep(Duration::from_secs(10 * 60)).await;
    assert_eq!(lines.take("sweep-failing").len(), 1);
    assert_eq!(lines.take("sweep-retried").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_logged_without_what_it_said() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (driver, _script) = start(options(10));
    let update =
        driver.update(vec![key("a")], |view| assert!(view.get(0).is_some(), "a secret of this test"));
    update.await.unwrap_err();
    let seen = lines.take("limit-store-panic");
    assert!(seen.len() == 1 && !seen[0].contains("secret of"), "{seen:?}");
}
