//! Stores that keep nothing say so.

use std::fs;

use tidegate_protocol::Command;

use crate::{
    caller::{Caller, key},
    support::server::Setup,
};

#[test]
fn a_store_that_keeps_nothing_says_so_at_its_start() {
    let table = [("store.kind", "memory"), ("store.durability", "none")];
    for (name, value) in table {
        let server = Setup::new().set(name, value).start();
        let banner = server.banner();
        assert!(banner.contains("nothing survives a restart"), "{name} = {value}: {banner}");
        let mut caller = Caller::to(server.guard);
        caller.one("gone", Command::increment(key("counter"), 1, 3_600_000));
        assert_eq!(caller.record("gone", "counter").0.as_deref(), Some("1"));
        let directory = server.data_directory();
        let server = server.restart();
        assert_eq!(Caller::to(server.guard).record("gone", "counter").0, None, "{name} = {value}");
        let names =
            fs::read_dir(directory).expect("the secrets are there").map(|entry| entry.expect("readable"));
        let logs: Vec<_> =
            names.filter(|entry| entry.path().extension().is_some_and(|e| e == "log")).collect();
        assert!(logs.is_empty(), "{name} = {value}: {logs:?}");
    }
}
