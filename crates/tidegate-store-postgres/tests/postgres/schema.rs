//! Migrations, and what is said when they are missing.

use tidegate_store::Backend;
use tidegate_store_postgres::{Migrated, OpenError, Options, PostgresBackend, SCHEMA_VERSION, migrate};
use tidegate_test_servers::PostgresServer;

use crate::setup::{Fresh, Observer, bump, key, options_on};

async fn refusal(options: &Options) -> OpenError {
    PostgresBackend::connect(options).await.err().expect("it must be refused")
}

#[tokio::test]
async fn a_schema_that_does_not_fit_is_refused_with_the_remedy() {
    let fresh = Fresh::new().await;
    let observer = fresh.observer().await;
    let missing = refusal(&options_on(&fresh.server)).await.to_string();
    assert!(missing.contains("no tables in the schema") && missing.contains("tidegate migrate"), "{missing}");
    observer.run("INSERT INTO schema_versions VALUES (1000)").await;
    for error in [refusal(&fresh.options).await, migrate(&fresh.options).await.unwrap_err()] {
        let text = error.to_string();
        assert!(text.contains("version 1000") && text.contains("newer program"), "{text}");
    }
    observer.run("DELETE FROM schema_versions").await;
    let none = refusal(&fresh.options).await;
    assert!(matches!(none, OpenError::SchemaMissing { .. }), "{none}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrating_is_harmless_at_any_time() {
    let server = PostgresServer::shared().unwrap();
    let options = options_on(&server);
    let runs: Vec<_> = (0..6)
        .map(|_| {
            let options = options.clone();
            tokio::spawn(async move { migrate(&options).await.unwrap() })
        })
        .collect();
    let mut from = Vec::new();
    for run in runs {
        let Migrated { from: found, to } = run.await.unwrap();
        assert_eq!(to, SCHEMA_VERSION);
        from.push(found);
    }
    from.sort_unstable();
    assert_eq!(from, [0, 1, 1, 1, 1, 1], "one did it, the others found it done");
    let fresh = Fresh { server, options };
    let store = fresh.driver(1000).await;
    bump(&store, key(1)).await.unwrap();
    migrate(&fresh.options).await.unwrap();
    assert_eq!(bump(&store, key(1)).await, Ok(2));
    let superuser =
        "SELECT count(*) FROM pg_roles WHERE rolname = 'tidegate' AND (rolsuper OR rolcreaterole)";
    assert_eq!(fresh.observer().await.number(superuser).await, 0, "none of this takes a privileged role");
}

#[tokio::test]
async fn a_role_that_may_not_create_schemas_uses_one_that_is_there() {
    let server = PostgresServer::shared().unwrap();
    let options = options_on(&server);
    let observer = Observer::on(&server, "public").await;
    observer
        .run(&format!(
            "CREATE ROLE plain LOGIN PASSWORD 'plain'; CREATE SCHEMA {0}; GRANT ALL ON SCHEMA {0} TO plain",
            options.schema
        ))
        .await;
    let url = server.url().replace("tidegate:", "plain:").replace("sesame%2B%2F%20%25", "plain");
    let options = Options { url: url.into(), ..options };
    migrate(&options).await.unwrap();
    PostgresBackend::connect(&options).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrating_counts_the_rows_anew() {
    let fresh = Fresh::new().await;
    let store = fresh.driver(1000).await;
    for number in 0..10 {
        bump(&store, key(number)).await.unwrap();
    }
    let observer = fresh.observer().await;
    observer.run("DELETE FROM entries WHERE ctid IN (SELECT ctid FROM entries LIMIT 4)").await;
    assert_eq!(store.backend().count().await.unwrap(), 10, "nobody has told the store");
    for _ in 0..2 {
        migrate(&fresh.options).await.unwrap();
        assert_eq!(store.backend().count().await.unwrap(), 6);
    }
    observer.run("TRUNCATE entries").await;
    migrate(&fresh.options).await.unwrap();
    assert_eq!(store.backend().count().await.unwrap(), 0);
}

/// Counts stay right whatever instances do while somebody counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counting_anew_under_load_changes_nothing() {
    let fresh = Fresh::new().await;
    let stores = [fresh.driver(10_000).await, fresh.driver(10_000).await];
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let store = stores[caller % 2].clone();
            tokio::spawn(async move {
                for number in 0..100 {
                    bump(&store, key(format!("{caller}, {number}"))).await.unwrap();
                }
            })
        })
        .collect();
    for _ in 0..5 {
        migrate(&fresh.options).await.unwrap();
    }
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(stores[0].backend().count().await.unwrap(), 800);
    let corrections = "SELECT count(*) FROM entry_counts WHERE slot = -1";
    assert_eq!(fresh.observer().await.number(corrections).await, 0);
}

#[tokio::test]
async fn no_error_tells_the_password() {
    let server = PostgresServer::shared().unwrap();
    let (url, port) = (server.url(), tidegate_test_servers::free_port().unwrap());
    let nobody = format!("postgres://tidegate:hidden-word@127.0.0.1:{port}/tidegate");
    let table = [
        ("wrong password", url.replace("sesame", "hidden-word")),
        ("wrong database", url.replace("/tidegate", "/nowhere")),
        ("nobody there", nobody.clone()),
        ("an unknown parameter", format!("{nobody}?hidden-word=1")),
        ("a port that is none", nobody.replace(&port.to_string(), "hidden-word")),
        ("an unfinished escape", nobody.replace("hidden-word", "hidden-word%")),
    ];
    for (what, url) in table {
        let options = Options::at(url);
        let error = refusal(&options).await;
        let mut text = format!("{options:?} {error:?} {error}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text = format!("{text} {cause}");
            source = cause.source();
        }
        assert!(!text.contains("hidden-word") && !text.contains(server.password()), "{what}: {text}");
        println!("{what}: {text}");
    }
}
