//! A second process on one data directory.

use tidegate_protocol::Command;

use crate::{
    caller::{Caller, key},
    support::server::{Ended, Setup},
};

#[test]
fn a_second_process_is_refused_and_the_first_one_is_not_harmed() {
    let server = Setup::new().start();
    let mut caller = Caller::to(server.guard);
    let count = || Command::increment(key("counter"), 1, 3_600_000);
    caller.one("first", count());

    let Err(Ended { status, log }) = server.setup().try_start() else { panic!("two processes on one store") };
    assert_eq!(status.code(), Some(78), "{log}");
    let holder = format!("in use by process {}", server.pid());
    for told in ["tidegate-data", &holder] {
        assert!(log.contains(told), "{log}\nlacks {told}");
    }
    for verb in ["verify", "repair"] {
        let output = server.setup().command(&["store", verb]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(&holder), "{verb}: {said}");
    }

    caller.one("first", count());
    let server = server.kill_and_restart();
    assert_eq!(Caller::to(server.guard).record("first", "counter").0.as_deref(), Some("2"));
}
