//! MySQL and MariaDB, on a server that the tests start.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tidegate_store::{
    Backend, Change, DriverOptions, Key, NewState,
    testing::{Handles, Unlocked, check_all, place_of_child, take_part},
};
use tidegate_store_sql::{MySqlBackend, MySqlOptions, OpenError};
use tidegate_test_servers::MariaDb;

use crate::{
    faults::survives,
    harness::{LONG_MS, Opener, bump, chain, commit, drive, key, put, two_instances},
    shared, watching,
};

const UNLOCKED: &str = "unlocked";
const DEADLINE: Duration = Duration::from_secs(2);

/// The server of all tests that do it no harm; it ends with the last of them.
static SERVER: Mutex<Weak<MariaDb>> = Mutex::new(Weak::new());

fn server() -> Arc<MariaDb> {
    let mut shared = SERVER.lock();
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(MariaDb::start().expect("MariaDB can be started"));
        *shared = Arc::downgrade(&server);
        server
    })
}

/// A fresh database with the store's tables.
struct Database {
    options: MySqlOptions,
    server: Arc<MariaDb>,
}

impl Database {
    async fn migrated() -> Self {
        let server = server();
        let options = migrated(&server).await;
        Self { options, server }
    }

    async fn open(&self, secret_id: Option<u64>) -> MySqlBackend {
        open(MySqlOptions { secret_id, ..self.options.clone() }).await
    }

    async fn two(&self) -> (MySqlBackend, MySqlBackend) {
        (self.open(None).await, self.open(None).await)
    }

    fn opener(&self) -> Opener<MySqlBackend> {
        let options = self.options.clone();
        Box::new(move || Box::pin(open(options.clone())))
    }
}

async fn migrated(server: &MariaDb) -> MySqlOptions {
    let url = server.fresh_database().expect("a database can be made");
    let options = MySqlOptions { deadline: DEADLINE, ..MySqlOptions::at(url) };
    MySqlBackend::migrate(&options).await.expect("the tables can be made");
    options
}

async fn open(options: MySqlOptions) -> MySqlBackend {
    MySqlBackend::connect(&options).await.expect("it can be opened")
}

/// Deadlines that the contract's cases can wait for.
fn brisk(max_entries: u64) -> DriverOptions {
    DriverOptions { deadline: Duration::from_secs(1), ..DriverOptions::new("mysql", max_entries) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_of_a_limit_store_is_kept() {
    let report = check_all(async |max_entries| {
        let database = Database::migrated().await;
        two_instances(database.opener(), brisk(max_entries), None).await
    });
    let _kept = server();
    let report = report.await.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.not_shown, []);
}

/// Two processes on one store, as far as `locks` are there to keep them apart.
async fn two_processes(locks: &str, max_entries: u64) -> Handles {
    let url = server().fresh_database().expect("a database can be made");
    MySqlBackend::migrate(&MySqlOptions::at(url.as_str())).await.expect("the tables can be made");
    let place = format!("{locks} {url}");
    let started = Handles::two_processes("mysql::one_of_two_processes", &place, &brisk(max_entries)).await;
    started.expect("processes can be started")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_keep_the_contract() {
    let _kept = server();
    let report = check_all(async |max_entries| two_processes("locked", max_entries).await).await;
    let report = report.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.not_shown, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_without_locks_break_it() {
    let _kept = server();
    shared::breaks_it(async |max_entries| two_processes(UNLOCKED, max_entries).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_processes() {
    let Some((place, driver)) = place_of_child("mysql") else { return };
    let (locks, url) = place.split_once(' ').expect("it was made of both");
    let backend = open(MySqlOptions { deadline: driver.deadline, ..MySqlOptions::at(url) }).await;
    let instance = match locks {
        UNLOCKED => Handles::in_process(Unlocked(backend), &driver, None),
        _ => Handles::in_process(backend, &driver, None),
    };
    take_part(instance).await.expect("it was started with a socket");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_key_loses_no_update() {
    let database = Database::migrated().await;
    let (first, second) = database.two().await;
    assert_eq!(shared::hot_key(first, second, 512, 20).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_locks_updates_are_lost() {
    let database = Database::migrated().await;
    let (first, second) = database.two().await;
    shared::hot_key_without_locks(first, second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_keep_every_unit() {
    let _kept = server();
    shared::transfers_keep_every_unit(async || Database::migrated().await.two().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_watches_waits_for_nobody_and_is_waited_for() {
    let database = Database::migrated().await;
    let waiting = async || {
        let waits = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
        database.server.sql(waits).expect("it answers").trim() != "0"
    };
    let three = [database.open(None).await, database.open(None).await, database.open(None).await];
    watching::side_by_side(three, waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watching_and_writing_crosswise_is_no_deadlock() {
    let database = Database::migrated().await;
    watching::crosswise(async || database.open(None).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_gets_its_turn_however_many_watch() {
    let database = Database::migrated().await;
    watching::in_turn(async || database.open(None).await).await;
}

#[tokio::test]
async fn secrets_are_kept_apart() {
    let database = Database::migrated().await;
    shared::rotation(async |secret_id| database.open(secret_id).await).await;
}

#[tokio::test]
async fn sweeping_goes_by_each_rows_expiry() {
    let database = Database::migrated().await;
    shared::sweeps(async |secret_id| database.open(secret_id).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_holds() {
    let database = Database::migrated().await;
    shared::bound(database.opener()).await;
}

#[tokio::test]
async fn rows_of_all_kinds() {
    let database = Database::migrated().await;
    shared::scopes(database.open(None).await).await;
    shared::large_batches(database.open(Some(1)).await).await;
    let (first, second) = database.two().await;
    shared::abandoned(first, second).await;
}

/// Two batches that read the same absent rows: whatever the second one relies on has changed.
#[tokio::test]
async fn absence_that_was_relied_on_is_a_conflict() {
    let (one, other) = (key(1).min(key(2)), key(1).max(key(2)));
    let delete = |key| Change { key, state: NewState::Deleted };
    type Writes = fn(Key, u64) -> Vec<Change>;
    let table: [(&str, Key, Key, Writes); 3] = [
        ("both insert it", one, one, |key, late| vec![put(key, b"x", late)]),
        ("each inserts what the other saw absent", one, other, |key, late| vec![put(key, b"x", late)]),
        ("one inserts what the other saw absent", other, one, |_, _| Vec::new()),
    ];
    let database = Database::migrated().await;
    let (first, second) = database.two().await;
    let keys = [one, other];
    for (what, of_first, of_second, second_writes) in table {
        let loaded = first.load(&keys).await.expect("it answers");
        let late = loaded.now_ms + LONG_MS;
        let loaded_too = second.load(&keys).await.expect("nothing is locked yet");
        commit(&first, loaded.batch, vec![put(of_first, b"x", late)]).await.expect("the first one may");
        let error = commit(&second, loaded_too.batch, second_writes(of_second, late)).await;
        let error = error.expect_err(what);
        assert!(error.is_conflict(), "{what}: {}", chain(error));
        let again = second.load(&keys).await.expect("it answers");
        assert_eq!(again.rows.iter().flatten().count(), 1, "{what}: nothing of the second one was written");
        assert_eq!(again.rows_held, Some(1), "{what}");
        let changes = keys.iter().map(|key| delete(*key)).collect();
        commit(&second, again.batch, changes).await.expect("and this time it may");
    }
}

/// Others hold a row's lock for longer than the deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_another_instance_is_waited_for_and_no_longer() {
    let database = Database::migrated().await;
    let (first, second) = database.two().await;
    let foreign = database.open(None).await;
    bump(&drive(database.open(None).await, DEADLINE), key(0)).await.expect("it answers");
    survives([drive(first, DEADLINE), drive(second, DEADLINE)], DEADLINE, async || {
        let held = foreign.load(&[key(0)]).await.expect("it answers");
        tokio::time::sleep(DEADLINE * 2).await;
        drop(held);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_are_made_anew() {
    let server = MariaDb::start().expect("MariaDB can be started");
    let options = migrated(&server).await;
    let instances =
        [open(options.clone()).await, open(options).await].map(|backend| drive(backend, DEADLINE));
    survives(instances, DEADLINE, async || {
        for _ in 0..5 {
            server.cut_connections().expect("it answers");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

/// A server closes connections that say nothing for long.
#[tokio::test]
async fn connections_that_were_cut_while_nobody_used_them_cost_no_answer() {
    let server = MariaDb::start().expect("MariaDB can be started");
    let store = drive(open(migrated(&server).await).await, DEADLINE);
    for count in 1..=3 {
        assert_eq!(bump(&store, key(0)).await, Ok(count));
        server.cut_connections().expect("it answers");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_and_comes_back() {
    let mut server = MariaDb::start().expect("MariaDB can be started");
    let options = migrated(&server).await;
    let instances =
        [open(options.clone()).await, open(options).await].map(|backend| drive(backend, DEADLINE));
    survives(instances, DEADLINE, async || {
        server.kill();
        tokio::time::sleep(DEADLINE / 2).await;
        server.restart().expect("it comes back");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_pauses() {
    let server = MariaDb::start().expect("MariaDB can be started");
    let options = migrated(&server).await;
    let instances =
        [open(options.clone()).await, open(options).await].map(|backend| drive(backend, DEADLINE));
    survives(instances, DEADLINE, async || {
        server.pause().expect("it runs");
        tokio::time::sleep(DEADLINE * 2).await;
        server.resume().expect("it runs");
    })
    .await;
}

#[tokio::test]
async fn tables_of_other_versions_are_refused() {
    let server = server();
    let url = server.fresh_database().expect("a database can be made");
    let database = url.rsplit('/').next().expect("it has a path").to_owned();
    let options = MySqlOptions::at(url);
    let refused = async || chain(MySqlBackend::connect(&options).await.expect_err("it must be refused"));
    assert!(refused().await.contains("version 1 is needed: run `tidegate migrate`"));
    let migrations = (0..4).map(|_| {
        let options = options.clone();
        tokio::spawn(async move { MySqlBackend::migrate(&options).await })
    });
    for migration in migrations.collect::<Vec<_>>() {
        migration.await.expect("it came to its end").expect("migrating at once does no harm");
    }
    assert_eq!(bump(&drive(open(options.clone()).await, DEADLINE), key(0)).await, Ok(1));
    MySqlBackend::migrate(&options).await.expect("migrating again does no harm");
    assert_eq!(bump(&drive(open(options.clone()).await, DEADLINE), key(0)).await, Ok(2));
    server.sql(&format!("UPDATE {database}.tidegate_schema SET version = 7")).expect("it answers");
    assert!(refused().await.contains("version 7, and this program knows versions up to 1"));
    let newer = MySqlBackend::migrate(&options).await;
    assert!(matches!(newer, Err(OpenError::SchemaNew { found: 7, known: 1 })));
    server.sql(&format!("DELETE FROM {database}.tidegate_schema")).expect("it answers");
    assert!(refused().await.contains("version 1 is needed: run `tidegate migrate`"));
    MySqlBackend::migrate(&options).await.expect("a migration that was cut off is done again");
    assert_eq!(bump(&drive(open(options.clone()).await, DEADLINE), key(0)).await, Ok(3));
}

#[tokio::test]
async fn errors_say_what_is_wrong_and_not_the_password() {
    let server = server();
    let backend = open(migrated(&server).await).await;
    assert!(!format!("{backend:?}").contains("quite-open"));
    let url = server.fresh_database().expect("a database can be made");
    let table = [
        (url.replace("quite-open", "wrong-passw0rd"), "Access denied"),
        (url.replace(url.rsplit('/').next().expect("it has a path"), "another"), "Access denied"),
        ("mysql://tidegate:wrong-passw0rd@127.0.0.1:1/tidegate".to_owned(), "refused"),
    ];
    for (url, words) in table {
        let options = MySqlOptions::at(url);
        let connected = MySqlBackend::connect(&options).await.map(|_| ());
        for error in [connected, MySqlBackend::migrate(&options).await] {
            let said = chain(error.expect_err("it can't be reached"));
            assert!(said.contains("connecting to the server") && said.contains(words), "{said}");
            assert!(!said.contains("passw0rd") && !said.contains("quite-open"), "{said}");
        }
    }
}
