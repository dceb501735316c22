//! The same tests on another store: the test binary runs itself once more, and each of its servers gets a part of
//! one database, under a store secret of its own. Rows of different secrets know nothing of each other.

use std::{collections::BTreeSet, env, process::Command};

use tidegate_test_servers::{PostgresServer, RedisServer};

use super::{message::fresh_op, server::Setup};

/// Which store this process tests: `postgres://…` or `redis://…`; the embedded one where it is not set.
const STORE: &str = "TIDEGATE_TEST_STORE";

/// `setup` on an empty store of the kind that this process tests.
#[expect(clippy::disallowed_methods, reason = "a child of a test, which is told so")]
pub(crate) fn on_tested_store(setup: Setup) -> Setup {
    match env::var(STORE) {
        Ok(url) => on_part_of(setup, &url),
        Err(_) => setup,
    }
}

fn on_part_of(setup: Setup, url: &str) -> Setup {
    let kind = url.split(':').next().expect("a URL");
    setup.set("store.kind", kind).set("store.url", url).set("store.secret", fresh_op())
}

/// All tests of this binary but those called `only_embedded`, on PostgreSQL.
#[track_caller]
pub(crate) fn all_on_postgres(only_embedded: &[(&str, &str)]) {
    let server = PostgresServer::start().expect("PostgreSQL starts");
    let migrated = on_part_of(Setup::new(), &server.url()).command(&["migrate"]).output();
    let migrated = migrated.expect("cargo has built the binary");
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
    all_on(&server.url(), only_embedded);
}

/// All tests of this binary but those called `only_embedded`, on Redis.
#[track_caller]
pub(crate) fn all_on_redis(only_embedded: &[(&str, &str)]) {
    let server = RedisServer::start(&[]).expect("Redis starts");
    all_on(&server.url(), only_embedded);
}

/// Runs this binary's tests in a process of their own.
#[track_caller]
fn all_on(url: &str, only_embedded: &[(&str, &str)]) {
    let this = env::current_exe().expect("a running program has a path");
    let output = |command: &mut Command| {
        let output = command.output().expect("this program can be started again");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), text)
    };
    let (_, list) = output(Command::new(&this).args(["--list", "--format=terse"]));
    let names: BTreeSet<&str> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let again = names.iter().copied().filter(|name| name.starts_with(THIS));
    let left_out: BTreeSet<&str> = only_embedded.iter().map(|(name, _)| *name).chain(again).collect();
    let unknown: Vec<&&str> = left_out.difference(&names).collect();
    assert!(unknown.is_empty(), "left out, and no test: {unknown:?}");
    let mut run = Command::new(&this);
    run.env(STORE, url).args(["--exact", "--test-threads=2"]);
    left_out.iter().for_each(|name| {
        run.args(["--skip", name]);
    });
    let (succeeded, said) = output(&mut run);
    let all_passed = format!("test result: ok. {} passed", names.len() - left_out.len());
    assert!(succeeded && said.contains(&all_passed), "not all passed on this store:\n{said}");
}

/// The module of the tests that run all others.
const THIS: &str = "other_stores::";
