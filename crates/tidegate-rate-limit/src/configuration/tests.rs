use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing_subscriber::fmt::MakeWriter;

use super::*;

fn from(variables: &[(&str, &str)]) -> Result<Configuration, ConfigurationError> {
    let name = |key: &str| format!("{PREFIX}{}", key.to_uppercase());
    let given = variables.iter().map(|(key, value)| (name(key).into(), OsString::from(value)));
    let others = [("PATH", "/bin"), ("TIDEGATE_STORE__KIND", "nonsense")]
        .map(|(name, value)| (name.into(), value.into()));
    Configuration::from_variables(given.chain(others))
}

#[test]
fn stores_and_their_urls() {
    let (postgres, mysql, redis) =
        ("postgres://u:hidden@h/db", "mysql://u:hidden@h/db", "redis+sentinel://h/m");
    let table: [(&str, Option<&str>, Result<StoreKind, &str>); 14] = [
        ("memory", None, Ok(StoreKind::Memory)),
        ("embedded", None, Ok(StoreKind::Embedded)),
        ("sqlite", None, Ok(StoreKind::Sqlite)),
        ("postgres", Some(postgres), Ok(StoreKind::Postgres)),
        ("mysql", Some(mysql), Ok(StoreKind::MySql)),
        ("redis", Some(redis), Ok(StoreKind::Redis)),
        ("database", Some(postgres), Ok(StoreKind::Postgres)),
        ("database", Some(mysql), Ok(StoreKind::MySql)),
        ("database", Some(redis), Err("must begin with postgres:// or mysql://")),
        ("database", None, Err("must begin with postgres:// or mysql://")),
        ("postgres", None, Err("must begin with postgres:// or postgresql://")),
        ("postgres", Some(mysql), Err("must begin with postgres:// or postgresql://")),
        ("memory", Some(redis), Err("has no meaning with this store")),
        ("sqlite", Some(redis), Err("has no meaning with this store")),
    ];
    for (store, url, right) in table {
        let mut variables = vec![("store", store)];
        variables.extend(url.map(|url| ("url", url)));
        let configuration = from(&variables).unwrap();
        let made = configuration.store_options();
        assert!(!format!("{configuration:?} {made:?}").contains("hidden"), "{made:?}");
        let made = made.map(|options| options.kind).map_err(|error| error.to_string());
        assert_eq!(made, right.map_err(|problem| format!("rate_limit.url {problem}")), "{store}, {url:?}");
    }
}

#[test]
fn faults_name_the_key_and_not_the_value() {
    let table = [
        (("stor", "memory"), "rate_limit.stor is not known; there are store, single_instance"),
        (("store", "hidden"), "rate_limit.store must be memory, embedded"),
        (("single_instance", "hidden"), "rate_limit.single_instance must be true or false"),
        (("max_entries", "hidden"), "rate_limit.max_entries must be a whole number"),
        (("max_entries", "999"), "rate_limit.max_entries must be from 1000 to"),
        (("deadline_ms", "9"), "rate_limit.deadline_ms must be from 10 to"),
        (("durability", "hidden"), "rate_limit.durability must be"),
        (("secret", "hidden"), "rate_limit.secret has 6 characters"),
    ];
    for (variable, problem) in table {
        let error = from(&[variable]).and_then(|given| given.store_options()).unwrap_err().to_string();
        assert!(error.starts_with(problem) && !error.contains("hidden"), "{variable:?}: {error}");
    }
}

#[test]
fn any_format_of_serde_will_do() {
    let text =
        r#"{"store": "database", "url": "mysql://h/db", "max_entries": 200000, "durability": "process"}"#;
    let configuration: Configuration = serde_json::from_str(text).unwrap();
    let options = configuration.store_options().unwrap();
    assert_eq!(
        (options.kind, options.max_entries, options.durability),
        (StoreKind::MySql, 200_000, Durability::Process)
    );
    for refused in [r#"{"max_entry": 1}"#, r#"{"secret": "short"}"#, r#"{"store": "disk"}"#] {
        assert!(serde_json::from_str::<Configuration>(refused).is_err(), "{refused}");
    }
    for (store, max_entries) in [("memory", 100_000), ("embedded", 1_000_000)] {
        assert_eq!(from(&[("store", store)]).unwrap().store_options().unwrap().max_entries, max_entries);
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn memory_says_once_what_several_instances_lose() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let table: [(&[(&str, &str)], usize); 3] =
        [(&[], 1), (&[("single_instance", "true")], 0), (&[("store", "embedded"), ("path", path)], 0)];
    for (variables, warnings) in table {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
        let guard = tracing::subscriber::set_default(subscriber);
        from(variables).unwrap().open().await.unwrap().shutdown().await;
        drop(guard);
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.matches("limit-store-single-instance").count(), warnings, "{variables:?}: {log}");
        assert_eq!(log.matches("each counts for itself").count(), warnings, "{variables:?}: {log}");
    }
}

#[cfg(not(feature = "redis"))]
#[tokio::test]
async fn a_store_that_was_not_built_in_is_named() {
    let error = from(&[("store", "redis"), ("url", "redis://h")]).unwrap().open().await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("without the Redis store"), "{source}");
}
