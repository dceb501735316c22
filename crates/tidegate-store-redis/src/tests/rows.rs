//! Rows that are not as they should be, rows that have expired, and a server without memory.

use tidegate_store::{LASTING_MS, LimitStore, LimitStoreExt, StoreError, Unavailable};
use tidegate_test_servers::RedisServer;

use super::{LONG_MS, bump, count, key, options, store};
use crate::names::Names;

/// A row's name, quoted for a command in one line.
fn quoted(prefix: &str, name: &str) -> String {
    let escaped =
        Names::new(prefix, 0).row(key(name).as_bytes()).iter().fold(String::new(), |mut text, byte| {
            text += &format!("\\x{byte:02x}");
            text
        });
    format!("\"{escaped}\"")
}

#[tokio::test]
async fn a_broken_row_is_an_error_and_no_count() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    let store = store(&options).await;
    let row = quoted(&options.prefix, "row");
    let breakages = [format!("SET {row} abc"), format!("RPUSH {row} abc")];
    for breakage in breakages {
        server.ask(&breakage).unwrap();
        for _ in 0..2 {
            let answer = bump(&store, key("row")).await;
            assert_eq!(answer, Err(StoreError::Unavailable(Unavailable::Backend)), "{breakage}");
        }
        assert_eq!(bump(&store, key("another")).await.map(|count| count > 0), Ok(true));
        server.ask(&format!("DEL {row}")).unwrap();
    }
    assert_eq!(bump(&store, key("row")).await, Ok(1));
}

#[tokio::test]
async fn the_server_forgets_a_row_when_it_expires() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    let store = store(&options).await;
    let names = ["short", "long", "lasting"];
    let write = store.update(names.map(key).into(), |view| {
        view.put(0, b"x".as_slice(), view.now_ms() + 60_000);
        view.put(1, b"x".as_slice(), view.now_ms() + LONG_MS);
        view.put_lasting(2, b"x".as_slice());
    });
    write.await.unwrap();
    let left_ms = |name: &str| -> u64 {
        let answer = server.ask(&format!("PTTL {}", quoted(&options.prefix, name))).unwrap();
        answer.trim_start_matches(':').trim().parse().unwrap()
    };
    assert!((1..=60_000).contains(&left_ms("short")));
    let change = store.update(names.map(key).into(), |view| {
        let ends = [0, 1, 2].map(|index| view.get(index).unwrap().expires_at_ms);
        assert_eq!(ends[2], LASTING_MS);
        view.put(0, b"yy".as_slice(), ends[0]);
        view.put(1, b"yy".as_slice(), view.now_ms() + 30_000);
        view.put(2, b"yy".as_slice(), ends[2]);
    });
    change.await.unwrap();
    assert!((1..=60_000).contains(&left_ms("short")), "its end is as it was");
    assert!((1..=30_000).contains(&left_ms("long")), "its life was cut short");
    assert!(left_ms("lasting") > 1_000_000_000);
    let rows = store.read(names.map(key).into()).await.unwrap();
    assert!(rows.iter().all(|row| row.as_ref().unwrap().value.as_slice() == b"yy"));
}

#[tokio::test]
async fn without_memory_new_rows_are_refused_and_counts_still_read() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    let first = store(&options).await;
    assert_eq!(bump(&first, key("row")).await, Ok(1));
    server.ask("CONFIG SET maxmemory 1").unwrap();
    assert_eq!(bump(&first, key("row")).await, Err(StoreError::Unavailable(Unavailable::Backend)));
    assert_eq!(count(&first, key("row")).await, Ok(1));
    let second = store(&options).await;
    assert_eq!(count(&second, key("row")).await, Ok(1), "another instance starts all the same");
    server.ask("CONFIG SET maxmemory 0").unwrap();
    assert_eq!(bump(&second, key("row")).await, Ok(2));
}
