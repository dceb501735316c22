//! What opening a store refuses, and what it warns of.

use std::{error::Error, fmt, sync::Arc};

use parking_lot::Mutex;
use tidegate_test_servers::RedisServer;

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::{
    bump, key, open, options,
    proxy::{Fault, Proxy},
    store,
};
use crate::{OpenError, Options, RedisBackend};

/// The whole chain of an error.
fn told(error: &dyn Error) -> String {
    let source = error.source().map(|source| format!(": {}", told(source)));
    format!("{error}{}", source.unwrap_or_default())
}

async fn refused(options: &Options) -> String {
    let error = RedisBackend::connect(options).await.unwrap_err();
    format!("{} {error:?}", told(&error))
}

#[tokio::test]
async fn another_format_is_refused() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    drop(open(&options).await);
    drop(open(&options).await);
    for found in ["0", "1", "new"] {
        server.ask(&format!("SET {{{}}}:format {found}", options.prefix)).unwrap();
        let error = RedisBackend::connect(&options).await.unwrap_err();
        assert!(
            matches!(&error, OpenError::Format { found: told, readable: 2, .. } if told == found),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_old_server_is_refused() {
    let server = RedisServer::start(&[]).unwrap();
    let proxy = Proxy::start(server.port(), Fault::Old).await;
    let error = refused(&options(&proxy.url())).await;
    assert!(error.contains("is Redis 5.") && error.contains("Redis 6.2, Valkey 7.2 or newer"), "{error}");
}

#[tokio::test]
async fn a_prefix_that_would_break_names_is_refused() {
    let options = Options { prefix: "a}b".to_owned(), ..options("redis://127.0.0.1:1") };
    assert!(refused(&options).await.contains("1 to 64 characters"));
}

#[tokio::test]
async fn errors_tell_what_was_wrong_and_no_password() {
    let server = RedisServer::start(&["--requirepass", "correct-horse"]).unwrap();
    let port = server.port();
    let url = |text: &str| options(&text.replace("PORT", &port.to_string()));
    drop(open(&url("redis://:correct-horse@127.0.0.1:PORT")).await);
    let table = [
        ("redis://:wr0ng-password@127.0.0.1:PORT", "authentication failed"),
        ("redis://127.0.0.1:PORT", "Authentication required"),
        ("redis://:wr0ng-password@127.0.0.1:1", "refused"),
        (
            "redis+sentinel://:wr0ng-password@127.0.0.1:1/main?sentinel_password=wr0ng-password",
            "none of the 1",
        ),
    ];
    for (text, why) in table {
        let error = refused(&url(text)).await;
        assert!(!error.contains("wr0ng-password"), "{error}");
        assert!(error.contains(why), "{error}");
    }
}

/// A user who may not run all commands would write half of a batch.
#[tokio::test]
async fn a_user_without_the_needed_commands_is_refused() {
    let server = RedisServer::start(&[]).unwrap();
    for command in ["zadd", "hdel", "hset", "hmget", "hlen", "time", "zrangebylex", "evalsha"] {
        server.ask(&format!("ACL SETUSER limited reset on >pass ~* +@all -{command}")).unwrap();
        let options = options(&format!("redis://limited:pass@127.0.0.1:{}", server.port()));
        let error = refused(&options).await;
        assert!(error.contains("permission") || error.contains("can't run"), "{command}: {error}");
    }
    server.ask("ACL SETUSER limited reset on >pass ~* +@all -info -config").unwrap();
    let options = options(&format!("redis://limited:pass@127.0.0.1:{}", server.port()));
    assert_eq!(bump(&store(&options).await, key("row")).await, Ok(1), "INFO is not needed");
}

/// Keeps warnings, as text.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tidegate_store_redis") && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut Text(&mut text));
        self.0.lock().push(text);
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn a_server_that_may_forget_is_warned_of() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let bounded = ["--maxmemory", "100mb", "--maxmemory-policy"];
    let table = [
        ("noeviction", "yes", vec![]),
        ("allkeys-lru", "yes", vec!["maxmemory-policy allkeys-lru"]),
        ("volatile-lru", "yes", vec![]),
        ("allkeys-random", "no", vec!["maxmemory-policy allkeys-random", "appendonly is off"]),
    ];
    for (policy, appendonly, reasons) in table {
        let arguments = [&bounded[..], &[policy, "--appendonly", appendonly]].concat();
        let server = RedisServer::start(&arguments).unwrap();
        drop(open(&options(&server.url())).await);
        let seen = std::mem::take(&mut *warnings.0.lock());
        assert_eq!(seen.len(), reasons.len(), "{seen:?}");
        for (line, reason) in seen.iter().zip(reasons) {
            assert!(line.contains("limit-store-may-forget") && line.contains(reason), "{line}");
        }
    }
}
