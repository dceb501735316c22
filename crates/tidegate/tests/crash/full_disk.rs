//! A disk without room: nothing is acknowledged that is not stored, and once there is room everything goes on.

use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Command as Process,
};

use tidegate_protocol::{Command, CommandResult, Request};

use crate::{
    caller::{Caller, body_of, executed, fresh_id, is_unavailable, key, partition_of, request},
    support::{
        eventually,
        server::{Server, Setup},
        wire,
    },
};

/// Room for the first file of the log (16 MiB) and a part of the next.
const DISK_MIB: usize = 44;
const BALLAST_MIB: usize = 18;
const VALUE_BYTES: usize = 2048;
/// As many values as a request's 16 KiB have room for.
const AT_ONCE: usize = 7;
const HOUR_MS: u64 = 3_600_000;

#[test]
fn a_full_disk_refuses_and_goes_on_once_there_is_room() {
    let setup = Setup::new();
    let Some(disk) = SmallDisk::mount(&setup.folder().join("tidegate-data")) else { return };
    let ballast = disk.fill("ballast", BALLAST_MIB);
    let server = setup.set("store.durability", "fsync").start();
    let mut caller = Caller::to(server.guard);
    let count = |by| body_of(&one("counter", Command::increment(key("counter"), by, HOUR_MS)));
    caller.run(&count(1)).expect("there is room");

    let stored = fill(&mut caller);
    // Smaller ones, until not even those have room.
    let mut counted = 1;
    let refused = loop {
        let body = count(1);
        let reply = caller.post(&body).expect("an answer");
        if reply.status != 200 {
            assert!(is_unavailable(&reply), "{reply:?}");
            break body;
        }
        counted += 1;
    };
    server.wait_for_log("limit-store-failing");
    assert!(server.log().contains("No space left on device"), "{}", server.log());
    // The row that it writes is small, and may be the last one that has room.
    eventually("not ready", || {
        (wire::get(server.guard, "/readyz").expect("an answer").status == 503).then_some(())
    });
    assert_eq!(wire::get(server.guard, "/healthz").expect("an answer").status, 200);
    // To be admitted is to be charged, and a charge is a write.
    let look = body_of(&one("counter", Command::get(key("counter"))));
    assert!(is_unavailable(&caller.post(&look).expect("an answer")));

    fs::remove_file(ballast).expect("it is there");
    let response = eventually("room", || {
        let reply = caller.post(&refused).expect("an answer");
        (reply.status == 200).then(|| executed(&reply).expect("a response"))
    });
    assert!(!response.steps[0].replayed, "the refused one was not executed: {response:?}");
    assert_counter(&mut caller, counted + 1);
    assert_stored(&mut caller, stored.saturating_sub(2)..stored);
    assert_eq!(caller.record(&partition(stored), "0").0, None, "what was refused is not there");
    caller.run(&body_of(&large(stored))).expect("there is room");
    assert_eq!(wire::get(server.guard, "/readyz").expect("an answer").status, 200);
    assert!(!server.log().contains("the store has stopped"), "{}", server.log());

    let server: Server = server.kill_and_restart();
    let mut caller = Caller::to(server.guard);
    assert_counter(&mut caller, counted + 1);
    assert_stored(&mut caller, 0..stored + 1);
}

/// Writes large records until there is no room; answers how many requests were acknowledged.
fn fill(caller: &mut Caller) -> usize {
    for number in 0.. {
        let reply = caller.post(&body_of(&large(number))).expect("an answer");
        if reply.status != 200 {
            assert!(is_unavailable(&reply), "{reply:?}");
            return number;
        }
        assert!(number * AT_ONCE * VALUE_BYTES < DISK_MIB << 20, "more than the disk holds was acknowledged");
    }
    unreachable!("a disk is full some time")
}

fn large(number: usize) -> Request {
    let sets = (0..AT_ONCE).map(|name| Command::set(key(&name.to_string()), value(number, name), HOUR_MS));
    request(fresh_id()).step(partition_of(&partition(number)), sets)
}

fn one(name: &str, command: Command) -> Request {
    request(fresh_id()).step(partition_of(name), [command])
}

fn partition(number: usize) -> String {
    format!("large {number}")
}

/// Different in every record.
fn value(number: usize, name: usize) -> String {
    let text = format!("{number}.{name} ");
    text.repeat(VALUE_BYTES / text.len())
}

#[track_caller]
fn assert_counter(caller: &mut Caller, expected: u64) {
    assert_eq!(caller.record("counter", "counter").0, Some(expected.to_string()));
}

#[track_caller]
fn assert_stored(caller: &mut Caller, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let gets = (0..AT_ONCE).map(|name| Command::get(key(&name.to_string())));
        for (name, result) in caller.step(&partition(number), gets).results.into_iter().enumerate() {
            let CommandResult::Get { value: found, .. } = result else { panic!("{result:?}") };
            assert!(found == Some(value(number, name)), "{number}.{name} was acknowledged: {found:?}");
        }
    }
}

/// A file system of its own, taken away when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None where this process may not mount one, but in CI, which may.
    fn mount(path: &Path) -> Option<Self> {
        fs::DirBuilder::new().mode(0o700).create(path).expect("the folder is fresh");
        let size = format!("size={DISK_MIB}m,mode=0700");
        let mounted =
            Process::new("mount").args(["-t", "tmpfs", "-o", &size, "tidegate-test"]).arg(path).output();
        if mounted.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Self(path.to_owned()));
        }
        assert!(std::env::var_os("CI").is_none(), "CI mounts a small disk: {mounted:?}");
        eprintln!("not run: a small disk can't be mounted here (root can): {mounted:?}");
        None
    }

    /// A file of this size.
    fn fill(&self, name: &str, mib: usize) -> PathBuf {
        let path = self.0.join(name);
        let mut file = File::create(&path).expect("the disk is fresh");
        for _ in 0..mib {
            file.write_all(&vec![0xa5; 1 << 20]).expect("there is room");
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Process::new("umount").arg("--lazy").arg(&self.0).output();
    }
}
