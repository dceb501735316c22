//! What the store does on the server, as statements.
//!
//! They are sent as text, many in one round trip; everything in them is a number or hexadecimal digits.

use std::fmt::Write;

use tidegate_store::{Entry, Key, runs};

use crate::{
    changes::Sorted,
    scope::{ENDING_BYTES, KeyRange},
};

/// Keys of one statement: few enough that the server looks each of them up, in their order, whatever it thinks of
/// long lists.
const KEYS_MAX: usize = 500;
/// A statement is ended when it is so long.
const STATEMENT_BYTES: usize = 256 << 10;
/// A round trip carries so much and one statement more: a server takes 4 MiB at least.
const ROUND_TRIP_BYTES: usize = 1 << 20;

/// The server's clock in ms, at the start of the statement.
const NOW_MS: &str = "CAST(FLOOR(UNIX_TIMESTAMP(NOW(6)) * 1000) AS UNSIGNED)";

/// Statements for one round trip after the other.
#[derive(Debug, Default)]
pub(super) struct Script(Vec<String>);

impl Script {
    fn push(&mut self, statement: &str) {
        match self.0.last_mut() {
            Some(last) if last.len() < ROUND_TRIP_BYTES => {
                last.push_str("; ");
                last.push_str(statement);
            }
            _ => self.0.push(statement.to_owned()),
        }
    }

    /// What each round trip carries.
    pub(super) fn round_trips(self) -> impl Iterator<Item = String> {
        self.0.into_iter()
    }
}

/// Opens a transaction, locks the rows of `keys` that are there, and answers them: `id`, `value`, `expires_at_ms`.
/// Others may watch those that are `watched` too; whoever wants to write them gets its turn before those that
/// come to watch after it. The last row is the clock once all are locked, in ms, and how many rows there are of the secret.
pub(super) fn load(secret_id: u64, keys: &[Key], watched: &[bool]) -> String {
    let mut sql = String::from("START TRANSACTION");
    for (run, watched) in runs(keys, watched) {
        // Words that MySQL and MariaDB both know.
        let lock = if watched { "LOCK IN SHARE MODE" } else { "FOR UPDATE" };
        for keys in run.chunks(KEYS_MAX) {
            let which = those(secret_id, keys);
            add(&mut sql, format_args!("; SELECT id, value, expires_at_ms FROM {which} ORDER BY id {lock}"));
        }
    }
    add(&mut sql, format_args!("; SELECT {NOW_MS}, ({})", count(secret_id)));
    sql
}

/// Writes what a batch has decided, and commits. The counter of `slot` is this instance's.
///
/// Where others have inserted a key that was absent the server answers with an error, and does not commit.
pub(super) fn commit(secret_id: u64, slot: u8, sorted: &Sorted<'_>) -> Script {
    let mut script = Script::default();
    let update = " ON DUPLICATE KEY UPDATE value = VALUES(value), expires_at_ms = VALUES(expires_at_ms)";
    put(&mut script, secret_id, &sorted.updates, update);
    delete(&mut script, secret_id, &sorted.deletes);
    put(&mut script, secret_id, &sorted.inserts, "");
    for keys in sorted.left_absent.chunks(KEYS_MAX) {
        let which = those(secret_id, keys.iter().copied());
        script.push(&format!("SELECT CAST(0 AS UNSIGNED) - (SELECT COUNT(*) FROM {which} FOR UPDATE)"));
    }
    add_held(&mut script, secret_id, slot, sorted.growth());
    script.push("COMMIT");
    script
}

/// Opens a transaction, locks up to `rows_max` expired rows that nobody else has locked, and answers them:
/// `secret_id`, `id`.
pub(super) fn expired(rows_max: usize) -> String {
    format!(
        "START TRANSACTION; SELECT secret_id, id FROM tidegate_rows FORCE INDEX (by_expiry) \
         WHERE expires_at_ms <= {NOW_MS} ORDER BY expires_at_ms LIMIT {rows_max} FOR UPDATE SKIP LOCKED"
    )
}

/// Removes rows that [`expired`] has locked, those of each secret, and commits.
pub(super) fn remove<'a>(slot: u8, rows: impl Iterator<Item = (u64, &'a [Key])>) -> Script {
    let mut script = Script::default();
    for (secret_id, keys) in rows {
        delete(&mut script, secret_id, &keys.iter().collect::<Vec<_>>());
        add_held(&mut script, secret_id, slot, crate::changes::difference(0, keys.len()));
    }
    script.push("COMMIT");
    script
}

/// Answers the keys of up to `keys_max` live rows in `range`.
pub(super) fn keys_in(secret_id: u64, range: &KeyRange, keys_max: usize) -> String {
    let (first, last) = (Hex(&range.first), Hex(&range.last));
    let mut sql = format!(
        "SELECT id FROM tidegate_rows FORCE INDEX (PRIMARY) WHERE secret_id = {secret_id} \
         AND id BETWEEN {first} AND {last} AND expires_at_ms > {NOW_MS}"
    );
    if let Some(ending) = &range.ends_with {
        add(&mut sql, format_args!(" AND RIGHT(id, {ENDING_BYTES}) = {}", Hex(ending)));
    }
    add(&mut sql, format_args!(" LIMIT {keys_max}"));
    sql
}

/// Answers how many rows there are of the secret.
pub(super) fn count(secret_id: u64) -> String {
    format!("SELECT CAST(COALESCE(SUM(held), 0) AS SIGNED) FROM tidegate_held WHERE secret_id = {secret_id}")
}

/// The table, and which of its rows.
fn those<'a>(secret_id: u64, keys: impl IntoIterator<Item = &'a Key>) -> String {
    let mut sql = format!("tidegate_rows FORCE INDEX (PRIMARY) WHERE secret_id = {secret_id} AND id IN (");
    for (place, key) in keys.into_iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        add(&mut sql, format_args!("{comma}{}", Hex(key.as_bytes())));
    }
    sql.push(')');
    sql
}

fn put(script: &mut Script, secret_id: u64, rows: &[(&Key, &Entry)], end: &str) {
    let mut rows = rows.iter().peekable();
    while rows.peek().is_some() {
        let mut sql = String::from("INSERT INTO tidegate_rows (secret_id, id, value, expires_at_ms) VALUES ");
        let mut comma = "";
        while sql.len() < STATEMENT_BYTES {
            let Some((key, entry)) = rows.next() else { break };
            let (id, value, expires_at_ms) = (Hex(key.as_bytes()), Hex(&entry.value), entry.expires_at_ms);
            add(&mut sql, format_args!("{comma}({secret_id},{id},{value},{expires_at_ms})"));
            comma = ",";
        }
        sql.push_str(end);
        script.push(&sql);
    }
}

fn delete(script: &mut Script, secret_id: u64, keys: &[&Key]) {
    for keys in keys.chunks(KEYS_MAX) {
        // The form for several tables, since the other one takes no hint.
        script.push(&format!("DELETE tidegate_rows FROM {}", those(secret_id, keys.iter().copied())));
    }
}

/// Every instance has a counter of its own, so that none waits for another's commit; their sum is what counts.
fn add_held(script: &mut Script, secret_id: u64, slot: u8, growth: i64) {
    if growth != 0 {
        script.push(&format!(
            "INSERT INTO tidegate_held (secret_id, slot, held) VALUES ({secret_id}, {slot}, {growth}) \
             ON DUPLICATE KEY UPDATE held = held + ({growth})"
        ));
    }
}

/// Bytes as a literal of SQL.
struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("x'")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
        f.write_str("'")
    }
}

fn add(sql: &mut String, text: std::fmt::Arguments<'_>) {
    sql.write_fmt(text).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use tidegate_store::Value;
    use tidegate_test_servers::MariaDb;

    use super::*;
    use crate::{MySqlBackend, MySqlOptions};

    fn keys(number: u8) -> Vec<Key> {
        (0..number).map(|byte| Key::from_bytes([byte; Key::BYTES])).collect()
    }

    #[test]
    fn a_large_batch_is_cut_into_round_trips() {
        let (keys, value) = (keys(250), Value::from_slice(&[0xAB; 4096]));
        let entry = Entry { value, expires_at_ms: 5 };
        let inserts = keys.iter().map(|key| (key, &entry)).collect();
        let script = commit(7, 3, &Sorted { inserts, ..Sorted::default() });
        let trips: Vec<String> = script.round_trips().collect();
        assert!(trips.len() > 1);
        assert!(trips.iter().all(|trip| trip.len() < ROUND_TRIP_BYTES + STATEMENT_BYTES + 10_000));
        assert!(trips.last().is_some_and(|last| last.ends_with("; COMMIT")));
        assert_eq!(trips.iter().map(|trip| trip.matches("ABAB',5)").count()).sum::<usize>(), 250);
        assert_eq!(trips.iter().filter(|trip| trip.contains("COMMIT")).count(), 1);
    }

    /// Locks are taken in the order of the keys, and nothing looks at rows that it does not need.
    #[tokio::test]
    async fn statements_go_by_an_index() {
        let server = MariaDb::start().expect("MariaDB can be started");
        let url = server.fresh_database().expect("a database can be made");
        let database = url.rsplit('/').next().expect("it has a path").to_owned();
        MySqlBackend::migrate(&MySqlOptions::at(url)).await.expect("the tables can be made");
        let fill = "INSERT INTO tidegate_rows SELECT seq % 3, RPAD(seq, 24, 'x'), 'x', seq * 1000000000 FROM seq_1_to_5000";
        server.sql(&format!("USE {database}; {fill}")).expect("it can be filled");
        let (few, many) = (keys(3), keys(250));
        let sorted =
            Sorted { deletes: many.iter().collect(), left_absent: few.iter().collect(), ..Sorted::default() };
        let range =
            KeyRange { first: [0; Key::BYTES], last: [9; Key::BYTES], ends_with: Some([1; ENDING_BYTES]) };
        let table = [
            ("few rows", load(1, &few, &[false; 3]), "PRIMARY"),
            ("many rows", load(1, &many, &[false; 250]), "PRIMARY"),
            ("rows that are watched", load(1, &many, &[true; 250]), "PRIMARY"),
            ("a commit", commit(1, 3, &sorted).round_trips().collect(), "PRIMARY"),
            ("a scope", keys_in(1, &range, 10), "PRIMARY"),
            ("a sweep", expired(1000), "by_expiry"),
        ];
        for (what, statements, index) in table {
            let statements = statements.split("; ").filter(|one| one.contains("tidegate_rows"));
            for statement in statements {
                let plan = server.sql(&format!("USE {database}; EXPLAIN {statement}")).expect(what);
                let on_table: Vec<&str> =
                    plan.lines().filter(|line| line.contains("tidegate_rows")).collect();
                let goes = |line: &&str| line.contains("\trange\t") && line.contains(&format!("\t{index}\t"));
                assert!(!on_table.is_empty() && on_table.iter().all(goes), "{what}: {plan}");
                assert!(!plan.contains("filesort") && !plan.contains("temporary"), "{what}: {plan}");
            }
        }
    }
}
