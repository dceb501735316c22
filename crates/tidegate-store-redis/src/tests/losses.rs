//! Answers and commands that are lost on the way, and scripts that the server has forgotten: nothing is ever
//! done twice.

use tidegate_store::{Backend, Change, Entry, LimitStore, LimitStoreExt, NewState, StoreError, Unavailable};
use tidegate_test_servers::RedisServer;

use super::{
    bump, count, key, open, options,
    proxy::{Fault, Proxy},
    store,
};
use crate::script::Scripts;

/// The name by which the server knows the script that commits.
fn commit_script() -> String {
    let command = Scripts::default().commit.by_hash(&[], (4, 64));
    let packed = String::from_utf8(command.get_packed_command()).unwrap();
    packed.lines().find(|line| line.len() == 40).unwrap().to_owned()
}

async fn count_after(fault: impl Fn(String) -> Fault) -> u64 {
    let server = RedisServer::start(&[]).unwrap();
    let proxy = Proxy::start(server.port(), fault(commit_script())).await;
    let store = store(&options(&proxy.url())).await;
    assert_eq!(bump(&store, key("row")).await, Ok(1));
    proxy.arm();
    assert_eq!(bump(&store, key("row")).await, Err(StoreError::Unavailable(Unavailable::Backend)));
    assert!(proxy.has_struck());
    assert_eq!(store.stats().conflicts, 0, "it was tried again, though it may have been done");
    count(&store, key("row")).await.unwrap()
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_not_repeated() {
    assert_eq!(count_after(Fault::LoseAnswer).await, 2);
}

#[tokio::test]
async fn a_commit_that_is_lost_is_not_repeated_either() {
    assert_eq!(count_after(Fault::LoseCommand).await, 1);
}

#[tokio::test]
async fn forgotten_scripts_are_told_again_and_run_once() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    let backend = open(&options).await;
    for round in 1..=5_u64 {
        server.ask("SCRIPT FLUSH").unwrap();
        let loaded = backend.load(&[key("row")]).await.unwrap();
        let seen =
            loaded.rows[0].as_ref().map_or(0, |row| u64::from_le_bytes(row.value[..].try_into().unwrap()));
        assert_eq!(seen, round - 1);
        let value = (seen + 1).to_le_bytes().as_slice().into();
        let entry = Entry { value, expires_at_ms: loaded.now_ms + 60_000 };
        server.ask("SCRIPT FLUSH").unwrap();
        let change = Change { key: key("row"), state: NewState::Put(entry) };
        backend.commit(loaded.batch, vec![change]).await.unwrap().await.unwrap();
    }
    let calls = server.ask("INFO commandstats").unwrap();
    assert!(calls.contains("cmdstat_hset:calls=6,"), "five counts and the rehearsal: {calls}");
}

#[tokio::test]
async fn a_connection_that_was_cut_while_nothing_ran_costs_no_call() {
    let server = RedisServer::start(&[]).unwrap();
    let store = store(&options(&server.url())).await;
    for round in 1..=20 {
        server.ask("CLIENT KILL TYPE normal SKIPME yes").unwrap();
        assert_eq!(bump(&store, key("row")).await, Ok(round));
    }
}

/// Any change between load and commit is a conflict, even one that changes nothing, and nothing is written.
#[tokio::test]
async fn rows_that_changed_after_they_were_read_are_in_conflict() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    let (backend, other) = (open(&options).await, store(&options).await);
    let write = async |value: &'static [u8]| {
        let update = other.update(vec![key("row")], move |view| {
            if value.is_empty() { view.delete(0) } else { view.put(0, value, view.now_ms() + 60_000) }
        });
        update.await.unwrap();
    };
    let table: [(&[u8], &[u8], bool); 6] = [
        (b"", b"x", true),
        (b"x", b"y", true),
        (b"x", b"x", true),
        (b"x", b"", true),
        (b"", b"", false),
        (b"x", b"x", true),
    ];
    for (before, meanwhile, conflicts) in table {
        write(before).await;
        let mut keys = vec![key("row"), key("beside")];
        keys.sort_unstable();
        let loaded = backend.load(&keys).await.unwrap();
        write(meanwhile).await;
        let entry = Entry { value: b"z".as_slice().into(), expires_at_ms: loaded.now_ms + 60_000 };
        let changes = vec![Change { key: key("beside"), state: NewState::Put(entry) }];
        let done = backend.commit(loaded.batch, changes).await;
        assert_eq!(done.is_err_and(|error| error.is_conflict()), conflicts, "{before:?}, {meanwhile:?}");
        let beside = other.read(vec![key("beside")]).await.unwrap();
        assert_eq!(beside[0].is_none(), conflicts);
        other.update(vec![key("beside")], |view| view.delete(0)).await.unwrap();
    }
}
