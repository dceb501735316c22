//! A log whose end is torn, or that has rotted in the middle: recovered where that can be known, refused with
//! what to do where it can't.

use std::{fs, process::Output};

use tidegate_protocol::{Command, CommandResult};

use crate::{
    caller::{Caller, body_of, fresh_id, key, partition_of, request},
    log_file::LogFile,
    support::server::{Ended, Server, Setup},
};

const RECORDS: usize = 10;
const HOUR_MS: u64 = 3_600_000;

#[test]
fn a_torn_end_is_cut_off_and_what_was_before_it_is_there() {
    type Tear = fn(&mut LogFile, usize);
    let tears: [(&str, Tear); 3] = [
        ("cut short", |log, from| log.bytes.truncate(from)),
        ("zeros", |log, from| log.bytes[from..].fill(0)),
        ("what a recycled file held before", |log, from| log.bytes[from..].fill(0xa5)),
    ];
    for (what, tear) in tears {
        for (part, into_the_frame) in [("in its header", 20), ("in its payload", 60)] {
            let server = Setup::new().start();
            let last = write_records(&server);
            let setup = server.setup().clone();
            let directory = server.data_directory();
            server.kill();
            let mut log = LogFile::in_directory(&directory);
            let newest = *log.batches().last().expect("ten were written");
            tear(&mut log, newest.offset + into_the_frame);
            log.save();

            let server = setup.start();
            let mut caller = Caller::to(server.guard);
            assert_eq!(records(&mut caller), RECORDS - 1, "{what}, {part}: {}", server.log());
            for replayed in [false, true] {
                let response = caller.run(&last).expect("an answer");
                assert_eq!(response.steps[0].replayed, replayed, "{what}, {part}");
            }
            assert_eq!(records(&mut caller), RECORDS, "{what}, {part}: the torn one was sent again");
            let server = server.kill_and_restart();
            assert_eq!(records(&mut Caller::to(server.guard)), RECORDS, "{what}, {part}: started again");
        }
    }
}

#[test]
fn damage_before_the_end_is_refused_until_it_is_repaired() {
    let server = Setup::new().start();
    write_records(&server);
    let (setup, directory) = (server.setup().clone(), server.data_directory());
    assert_eq!(server.terminate().status.code(), Some(0));
    let (code, said) = store(&setup, "verify");
    assert!(code == 0 && said.contains("the log is sound"), "{code}: {said}");

    let mut log = LogFile::in_directory(&directory);
    let batches = log.batches();
    // Others were before the records: `/readyz` writes too.
    let harmed = batches[batches.len() - RECORDS / 2];
    log.bytes[harmed.middle()] ^= 0x10;
    log.save();

    let place = format!("0000000001.log is damaged at byte {}", harmed.offset);
    let Err(Ended { status, log: said }) = setup.try_start() else { panic!("a damaged store was started") };
    assert_eq!(status.code(), Some(78), "{said}");
    for told in [&place, "tidegate store repair", "Nothing was changed", "tidegate-data"] {
        assert!(said.contains(told), "{said}\nlacks {told}");
    }
    let (code, said) = store(&setup, "verify");
    assert!(code == 1 && said.contains(&place) && said.contains("tidegate store repair"), "{code}: {said}");
    assert!(fs::read(&log.path).expect("still there") == log.bytes, "nothing was changed until here");

    let (code, said) = store(&setup, "repair");
    assert!(code == 0 && said.contains(&format!("cut at byte {}", harmed.offset)), "{code}: {said}");
    let copy = log.path.with_extension(format!("log.cut-{}", harmed.offset));
    assert!(
        said.contains(&copy.display().to_string().rsplit('/').next().expect("a name").to_owned()),
        "{said}"
    );
    assert!(fs::read(copy).is_ok_and(|copy| copy == log.bytes[harmed.offset..]), "what was cut is kept");
    let (code, said) = store(&setup, "verify");
    assert!(code == 0, "{code}: {said}");

    let server = setup.start();
    let mut caller = Caller::to(server.guard);
    assert_eq!(records(&mut caller), RECORDS / 2, "those before the damage");
    write_records(&server);
    let server = server.kill_and_restart();
    assert_eq!(records(&mut Caller::to(server.guard)), RECORDS);
}

#[test]
fn a_damaged_header_is_restored_without_a_loss() {
    let server = Setup::new().start();
    write_records(&server);
    let (setup, directory) = (server.setup().clone(), server.data_directory());
    server.terminate();
    let mut log = LogFile::in_directory(&directory);
    log.bytes[20] ^= 1;
    log.save();
    let Err(Ended { status, log: said }) = setup.try_start() else { panic!("a damaged store was started") };
    assert!(status.code() == Some(78) && said.contains("0000000001.log is damaged at byte 0"), "{said}");
    let (code, said) = store(&setup, "repair");
    assert!(code == 0 && said.contains("nothing was lost"), "{code}: {said}");
    assert_eq!(records(&mut Caller::to(setup.start().guard)), RECORDS);
}

/// The records, each by an operation of its own; answers the last one's body.
fn write_records(server: &Server) -> Vec<u8> {
    let mut caller = Caller::to(server.guard);
    let mut body = Vec::new();
    for number in 0..RECORDS {
        let command = Command::claim(key(&number.to_string()), "kept", HOUR_MS);
        body = body_of(&request(fresh_id()).step(partition_of("damage"), [command]));
        caller.run(&body).expect("an answer");
    }
    body
}

/// How many records are there, the first ones without a gap.
fn records(caller: &mut Caller) -> usize {
    let step = caller.step("damage", (0..8).map(|number| Command::get(key(&number.to_string()))));
    let rest = caller.step("damage", (8..RECORDS).map(|number| Command::get(key(&number.to_string()))));
    let results = step.results.into_iter().chain(rest.results);
    let there: Vec<bool> =
        results.map(|result| matches!(result, CommandResult::Get { value: Some(_), .. })).collect();
    let count = there.iter().filter(|there| **there).count();
    assert!(there[..count].iter().all(|there| *there), "{there:?}");
    count
}

/// `tidegate store …`: the exit code and all that it says.
fn store(setup: &Setup, verb: &str) -> (i32, String) {
    let Output { status, stdout, stderr } = setup.command(&["store", verb]).output().expect("it runs");
    let said = [stdout, stderr].concat();
    (status.code().expect("it exits"), String::from_utf8(said).expect("text"))
}
