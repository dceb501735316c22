//! SQLite: with two instances in this process, and with a second process.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::Connection;
use tempfile::TempDir;
use tidegate_store::{
    Backend, DriverOptions, LimitStore, StoreError,
    clock::ManualClock,
    testing::{Handles, Unlocked, check_all, place_of_child, take_part},
};
use tidegate_store_sql::{Durability, OpenError, SqliteBackend, SqliteOptions};

use crate::{
    faults::survives,
    harness::{Opener, bump, chain, commit, counter, drive, key, two_instances},
    shared,
};

const DEADLINE: Duration = Duration::from_secs(2);
const UNLOCKED: &str = "unlocked";
const START_MS: u64 = 1_800_000_000_000;

struct File(TempDir);

impl File {
    async fn migrated() -> Self {
        let file = Self(TempDir::with_prefix("tidegate-sqlite-").expect("a folder can be made"));
        SqliteBackend::migrate(&file.options()).await.expect("the tables can be made");
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store.db")
    }

    fn options(&self) -> SqliteOptions {
        SqliteOptions { deadline: DEADLINE, ..SqliteOptions::at(self.path()) }
    }

    fn foreign(&self) -> Connection {
        Connection::open(self.path()).expect("it can be opened")
    }

    async fn open(&self, secret_id: Option<u64>) -> SqliteBackend {
        open(SqliteOptions { secret_id, ..self.options() }).await
    }

    async fn two(&self) -> (SqliteBackend, SqliteBackend) {
        (self.open(None).await, self.open(None).await)
    }

    fn opener(&self) -> Opener<SqliteBackend> {
        let options = self.options();
        Box::new(move || Box::pin(open(options.clone())))
    }
}

async fn open(options: SqliteOptions) -> SqliteBackend {
    SqliteBackend::connect(&options).await.expect("it can be opened")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_of_a_limit_store_is_kept() {
    for durability in [Durability::Full, Durability::Normal] {
        let report = check_all(async |max_entries| {
            let file = File::migrated().await;
            let clock = Arc::new(ManualClock::at(START_MS));
            let deadline = Duration::from_secs(1);
            let options = SqliteOptions { deadline, durability, clock: clock.clone() as _, ..file.options() };
            let open: Opener<SqliteBackend> = Box::new(move || {
                let _kept = &file;
                Box::pin(open(options.clone()))
            });
            let options = DriverOptions { deadline, ..DriverOptions::new("sqlite", max_entries) };
            two_instances(open, options, Some(clock)).await
        })
        .await
        .unwrap_or_else(|violations| panic!("{durability:?}: {violations}"));
        assert_eq!(report.not_shown, [], "{durability:?}");
    }
}

/// Two processes on one file, as far as `locks` are there to keep them apart.
async fn two_processes(locks: &str, file: &File, max_entries: u64) -> Handles {
    let place = format!("{locks} {}", file.path().display());
    let options = DriverOptions { deadline: DEADLINE, ..DriverOptions::new("sqlite", max_entries) };
    let started = Handles::two_processes("sqlite::one_of_two_processes", &place, &options).await;
    started.expect("processes can be started")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_keep_the_contract() {
    let files = Mutex::new(Vec::new());
    let report = check_all(async |max_entries| {
        let file = File::migrated().await;
        let handles = two_processes("locked", &file, max_entries).await;
        files.lock().push(file);
        handles
    });
    let report = report.await.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.not_shown, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_without_locks_break_it() {
    let file = File::migrated().await;
    shared::breaks_it(async |max_entries| two_processes(UNLOCKED, &file, max_entries).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_processes() {
    let Some((place, driver)) = place_of_child("sqlite") else { return };
    let (locks, path) = place.split_once(' ').expect("it was made of both");
    let backend = open(SqliteOptions { deadline: driver.deadline, ..SqliteOptions::at(path) }).await;
    let instance = match locks {
        UNLOCKED => Handles::in_process(Unlocked(backend), &driver, None),
        _ => Handles::in_process(backend, &driver, None),
    };
    take_part(instance).await.expect("it was started with a socket");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_key_loses_no_update() {
    let file = File::migrated().await;
    let (first, second) = file.two().await;
    assert_eq!(shared::hot_key(first, second, 512, 20).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_locks_updates_are_lost() {
    let file = File::migrated().await;
    let (first, second) = file.two().await;
    shared::hot_key_without_locks(first, second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_keep_every_unit() {
    let files = Mutex::new(Vec::new());
    shared::transfers_keep_every_unit(async || {
        let file = File::migrated().await;
        let two = file.two().await;
        files.lock().push(file);
        two
    })
    .await;
}

#[tokio::test]
async fn secrets_are_kept_apart() {
    let file = File::migrated().await;
    shared::rotation(async |secret_id| file.open(secret_id).await).await;
}

#[tokio::test]
async fn sweeping_goes_by_each_rows_expiry() {
    let file = File::migrated().await;
    shared::sweeps(async |secret_id| file.open(secret_id).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_holds() {
    let file = File::migrated().await;
    shared::bound(file.opener()).await;
}

#[tokio::test]
async fn rows_of_all_kinds() {
    let file = File::migrated().await;
    shared::scopes(file.open(None).await).await;
    shared::large_batches(file.open(Some(1)).await).await;
    let (first, second) = file.two().await;
    shared::abandoned(first, second).await;
}

/// 50 callers, a second process and a sweep: nothing is locked out and every count is exact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_told_that_it_is_locked() {
    let file = File::migrated().await;
    let (first, second) = file.two().await;
    let instances = [drive(first, DEADLINE), drive(second, DEADLINE)];
    let child = child(&file.path(), "count");
    let callers: Vec<_> = (0..50_usize)
        .map(|caller| {
            let store = instances[caller % 2].clone();
            tokio::spawn(async move { count_up(&store, 200).await })
        })
        .collect();
    let sweeping = tokio::spawn({
        let store = instances[0].clone();
        async move {
            while store.sweep().await == Ok(0) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    for caller in callers {
        assert_eq!(caller.await.expect("it came to its end"), Ok(()));
    }
    sweeping.abort();
    let ended = child.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    let mut all = 0;
    for row in 0..KEYS {
        all += counter(&instances[0], key(row)).await;
    }
    assert_eq!(all, 50 * 200 + CHILD_TURNS);
}

/// A process that holds the lock for longer than the deadline, and one that holds it for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_another_process_is_waited_for_and_no_longer() {
    let file = File::migrated().await;
    let (first, second) = file.two().await;
    let foreign = file.foreign();
    survives([drive(first, DEADLINE), drive(second, DEADLINE)], DEADLINE, async || {
        foreign.execute_batch("BEGIN IMMEDIATE").expect("it can be locked");
        tokio::time::sleep(DEADLINE * 2).await;
        foreign.execute_batch("COMMIT").expect("it is ours");
    })
    .await;
    let store = drive(file.open(None).await, DEADLINE);
    foreign.execute_batch("BEGIN IMMEDIATE").expect("it can be locked");
    let waiting = tokio::spawn(async move { bump(&store, key(77)).await });
    tokio::time::sleep(DEADLINE / 4).await;
    foreign.execute_batch("COMMIT").expect("it is ours");
    assert_eq!(waiting.await.expect("it came to its end"), Ok(1));
}

#[tokio::test]
async fn the_clock_never_goes_back_within_a_file() {
    let file = File::migrated().await;
    let at = async |now_ms| {
        let clock = Arc::new(ManualClock::at(now_ms));
        open(SqliteOptions { clock: clock as _, ..file.options() }).await
    };
    let (first, second) = (at(START_MS).await, at(START_MS - 60_000).await);
    let show = async |backend: &SqliteBackend| {
        let loaded = backend.load(&[key(0)]).await.expect("it answers");
        commit(backend, loaded.batch, Vec::new()).await.expect("it answers");
        loaded.now_ms
    };
    assert_eq!(show(&first).await, START_MS);
    assert_eq!(show(&second).await, START_MS, "even though nothing was written");
    drop((first, second));
    assert_eq!(show(&at(5).await).await, START_MS, "after a restart");
}

#[tokio::test]
async fn a_row_that_makes_no_sense_is_no_answer() {
    let file = File::migrated().await;
    let store = drive(file.open(None).await, DEADLINE);
    for nonsense in ["value = 'text'", "value = NULL", "expires_at_ms = -5", "expires_at_ms = 'soon'"] {
        assert_eq!(bump(&store, key(0)).await, Ok(1));
        // NULL is refused by the table itself.
        let broken = file.foreign().execute(&format!("UPDATE tidegate_rows SET {nonsense}"), []);
        if broken.is_ok() {
            assert!(matches!(bump(&store, key(0)).await, Err(StoreError::Unavailable(_))), "{nonsense}");
            assert_eq!(bump(&store, key(1)).await, Ok(1), "others are served");
        }
        file.foreign().execute_batch("DELETE FROM tidegate_rows").expect("it can be emptied");
    }
}

#[tokio::test]
async fn tables_of_other_versions_are_refused() {
    let file = File(TempDir::new().expect("a folder can be made"));
    let refused =
        async || chain(SqliteBackend::connect(&file.options()).await.expect_err("it must be refused"));
    assert!(refused().await.contains("version 1 is needed: run `tidegate migrate`"));
    assert!(!file.path().exists(), "nothing was made");
    file.foreign().execute_batch("CREATE TABLE application (x)").expect("it is new");
    assert!(refused().await.contains("version 1 is needed: run `tidegate migrate`"));
    let options = file.options();
    let migrations = (0..4).map(|_| {
        tokio::spawn({
            let options = options.clone();
            async move { SqliteBackend::migrate(&options).await }
        })
    });
    for migration in migrations.collect::<Vec<_>>() {
        migration.await.expect("it came to its end").expect("migrating at once does no harm");
    }
    assert_eq!(bump(&drive(file.open(None).await, DEADLINE), key(0)).await, Ok(1));
    SqliteBackend::migrate(&options).await.expect("migrating again does no harm");
    assert_eq!(bump(&drive(file.open(None).await, DEADLINE), key(0)).await, Ok(2));
    file.foreign().execute_batch("UPDATE tidegate_schema SET version = 7").expect("it can be changed");
    assert!(refused().await.contains("version 7, and this program knows versions up to 1"));
    let newer = SqliteBackend::migrate(&options).await;
    assert!(matches!(newer, Err(OpenError::SchemaNew { found: 7, known: 1 })));
}

/// What was acknowledged before a process was killed is there, and nothing else is.
#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let file = File::migrated().await;
    for round in 1..=3 {
        let mut child = child(&file.path(), "print");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let counts =
            lines.map_while(Result::ok).filter_map(|line| line.strip_prefix(ACKNOWLEDGED)?.parse().ok());
        let mut counts = counts.peekable();
        let seen: u64 = counts.by_ref().nth(50 * round).expect("it counts");
        child.kill().expect("it runs");
        let last = counts.last().unwrap_or(seen);
        child.wait().expect("it was killed");
        let there = counter(&drive(file.open(None).await, DEADLINE), key(0)).await;
        assert!(there == last || there == last + 1, "{there} after {last} was acknowledged");
    }
}

const KEYS: u64 = 10;
const CHILD_TURNS: u64 = 500;
const ACKNOWLEDGED: &str = "acknowledged ";
const CHILD_FILE: &str = "TIDEGATE_TEST_SQLITE_FILE";
const CHILD_DOES: &str = "TIDEGATE_TEST_SQLITE_DOES";

async fn count_up(store: &impl LimitStore, turns: u64) -> Result<(), StoreError> {
    for turn in 0..turns {
        bump(store, key(turn % KEYS)).await?;
    }
    Ok(())
}

/// This program once more, as another process with the same file.
fn child(file: &Path, does: &str) -> Child {
    let mut command = Command::new(env::current_exe().expect("it runs"));
    command.args(["--exact", "sqlite::the_other_process", "--ignored", "--nocapture"]);
    command.env(CHILD_FILE, file).env(CHILD_DOES, does).stdout(Stdio::piped());
    command.spawn().expect("it can be started")
}

#[tokio::test]
#[ignore = "the other tests start it, as a process of its own"]
async fn the_other_process() {
    let (Some(file), Some(does)) = (env::var_os(CHILD_FILE), env::var_os(CHILD_DOES)) else { return };
    let store = drive(open(SqliteOptions { deadline: DEADLINE, ..SqliteOptions::at(file) }).await, DEADLINE);
    if does == "count" {
        assert_eq!(count_up(&store, CHILD_TURNS).await, Ok(()));
        return;
    }
    // Until it is killed.
    for _ in 0..100_000 {
        let count = bump(&store, key(0)).await.expect("nobody else has it");
        writeln!(std::io::stdout(), "{ACKNOWLEDGED}{count}").expect("somebody reads it");
    }
}
