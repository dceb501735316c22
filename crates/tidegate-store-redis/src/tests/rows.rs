//! Rows that are not as they should be, rows that have expired, and a server without memory.

use tidegate_store::{LASTING_MS, LimitStore, LimitStoreExt, StoreError, Unavailable};
use tidegate_test_servers::RedisServer;

use super::{LONG_MS, bump, count, key, options, store};
/// A row's key, quoted for a command in one line.
fn quoted(name: &str) -> String {
    let escaped = key(name).as_bytes().iter().fold(String::new(), |mut text, byte| {
        text += &format!("\\x{byte:02x}");
        text
    });
    format!("\"{escaped}\"")
}

const BROKEN: StoreError = StoreError::Unavailable(Unavailable::Backend);

#[tokio::test]
async fn a_broken_row_is_an_error_and_no_count() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    let store = store(&options).await;
    let (rows, row) = (format!("{{{}}}:0:rows", options.prefix), quoted("row"));
    server.ask(&format!("HSET {rows} {row} abc")).unwrap();
    for _ in 0..2 {
        assert_eq!(bump(&store, key("row")).await, Err(BROKEN));
    }
    assert_eq!(bump(&store, key("another")).await, Ok(1));
    server.ask(&format!("HDEL {rows} {row}")).unwrap();
    assert_eq!(bump(&store, key("row")).await, Ok(1));
    server.ask(&format!("SET {rows} abc")).unwrap();
    for name in ["row", "another"] {
        assert_eq!(bump(&store, key(name)).await, Err(BROKEN), "the rows are something else");
    }
    server.ask(&format!("DEL {rows}")).unwrap();
    assert_eq!(bump(&store, key("row")).await, Ok(1));
}

#[tokio::test]
async fn the_index_knows_when_each_row_ends() {
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
    let check = async || {
        let rows = store.read(names.map(key).into()).await.unwrap();
        let ends = rows.into_iter().map(|row| row.unwrap().expires_at_ms);
        for (name, ends_at_ms) in names.iter().zip(ends) {
            let command = format!("ZSCORE {{{}}}:0:index {}", options.prefix, quoted(name));
            let indexed = server.ask(&command).unwrap();
            assert!(indexed.contains(&format!("\n{ends_at_ms}\r\n")), "{name}: {indexed}, not {ends_at_ms}");
        }
    };
    check().await;
    let change = store.update(names.map(key).into(), |view| {
        let ends = [0, 1, 2].map(|index| view.get(index).unwrap().expires_at_ms);
        assert_eq!(ends[2], LASTING_MS);
        view.put(0, b"yy".as_slice(), ends[0]);
        view.put(1, b"yy".as_slice(), view.now_ms() + 30_000);
        view.put(2, b"yy".as_slice(), ends[2]);
    });
    change.await.unwrap();
    check().await;
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
