//! What the store does in a SQLite file, as statements.

use std::collections::BTreeMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use tidegate_store::{Change, Entry, Key, Value};

use super::database::{Database, Failure};
use crate::{
    changes::{Sorted, difference},
    scope::{ENDING_BYTES, KeyRange},
};

/// What a batch loads.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) now_ms: u64,
    pub(super) rows: Vec<Option<Entry>>,
    pub(super) held: u64,
}

const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const SELECT: &str = "SELECT value, expires_at_ms FROM tidegate_rows WHERE secret_id = ?1 AND id = ?2";
const PUT: &str = "
    INSERT INTO tidegate_rows (secret_id, id, value, expires_at_ms) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET value = excluded.value, expires_at_ms = excluded.expires_at_ms";
const DELETE: &str = "DELETE FROM tidegate_rows WHERE secret_id = ?1 AND id = ?2";
const HELD: &str = "SELECT held FROM tidegate_held WHERE secret_id = ?1";
const ADD_HELD: &str = "
    INSERT INTO tidegate_held VALUES (?1, ?2) ON CONFLICT DO UPDATE SET held = held + excluded.held";
const CLOCK: &str = "SELECT now_ms FROM tidegate_clock";
/// Writes nothing, and so flushes nothing, within the same millisecond.
const SET_CLOCK: &str = "UPDATE tidegate_clock SET now_ms = ?1 WHERE now_ms < ?1";
const KEYS_IN: &str = "
    SELECT id FROM tidegate_rows
    WHERE secret_id = ?1 AND id BETWEEN ?2 AND ?3 AND expires_at_ms > ?4
        AND (?5 IS NULL OR substr(id, -?6) = ?5)
    LIMIT ?7";
const SWEEP: &str = "
    DELETE FROM tidegate_rows WHERE (secret_id, id) IN (
        SELECT secret_id, id FROM tidegate_rows INDEXED BY tidegate_rows_by_expiry
        WHERE expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2
    ) RETURNING secret_id";

impl Database {
    /// Takes the write lock and reads the rows of `keys`. The transaction stays open.
    pub(super) fn load(&mut self, keys: &[Key]) -> Result<Rows, Failure> {
        let (now_ms, secret_id) = (self.begin()?, self.secret_id());
        let connection = self.open()?;
        let mut select = connection.prepare_cached(SELECT)?;
        let row = |key: &Key| select.query_row(params![secret_id, key.as_bytes()], entry).optional();
        let rows = keys.iter().map(row).collect::<Result<_, _>>()?;
        Ok(Rows { now_ms, rows, held: held(connection, secret_id)? })
    }

    /// Writes what the batch that is open has decided, and ends it. The rows of `absent` were not there.
    pub(super) fn commit(&mut self, now_ms: u64, absent: &[Key], changes: &[Change]) -> Result<(), Failure> {
        let secret_id = self.secret_id();
        let connection = self.in_transaction().ok_or_else(|| Failure::Other("the batch has ended".into()))?;
        let sorted = Sorted::new(absent, changes);
        let mut put = connection.prepare_cached(PUT)?;
        for (key, entry) in sorted.inserts.iter().chain(&sorted.updates) {
            let expires_at_ms = entry.expires_at_ms.cast_signed();
            put.execute(params![secret_id, key.as_bytes(), entry.value.as_slice(), expires_at_ms])?;
        }
        let mut delete = connection.prepare_cached(DELETE)?;
        for key in &sorted.deletes {
            delete.execute(params![secret_id, key.as_bytes()])?;
        }
        add_held(connection, secret_id, sorted.growth())?;
        end(connection, now_ms)
    }

    /// Removes up to `rows_max` rows that have expired, whatever their secret.
    pub(super) fn sweep(&mut self, rows_max: usize) -> Result<usize, Failure> {
        let now_ms = self.begin()?;
        let connection = self.open()?;
        let mut sweep = connection.prepare_cached(SWEEP)?;
        let mut removed: BTreeMap<i64, usize> = BTreeMap::new();
        let mut rows = sweep.query(params![now_ms.cast_signed(), count(rows_max)])?;
        while let Some(row) = rows.next()? {
            *removed.entry(row.get(0)?).or_default() += 1;
        }
        for (secret_id, rows) in &removed {
            add_held(connection, *secret_id, difference(0, *rows))?;
        }
        end(connection, now_ms)?;
        Ok(removed.values().sum())
    }

    /// The keys of up to `keys_max` live rows in `range`.
    pub(super) fn keys_in(&mut self, range: &KeyRange, keys_max: usize) -> Result<Vec<Key>, Failure> {
        let (secret_id, now_ms) = (self.secret_id(), self.now_ms()?);
        let mut select = self.open()?.prepare_cached(KEYS_IN)?;
        let found = select.query_map(
            params![
                secret_id,
                range.first,
                range.last,
                now_ms.cast_signed(),
                range.ends_with,
                count(ENDING_BYTES),
                count(keys_max)
            ],
            |row| row.get(0).map(Key::from_bytes),
        )?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// How many rows there are of the current secret.
    pub(super) fn count(&mut self) -> Result<u64, Failure> {
        let secret_id = self.secret_id();
        held(self.open()?, secret_id)
    }

    /// Takes the write lock; answers the store's clock.
    fn begin(&mut self) -> Result<u64, Failure> {
        // Whoever left one open has gone.
        self.abandon();
        execute(&mut self.open()?.prepare_cached(BEGIN)?)?;
        self.now_ms()
    }

    /// The process's clock, moved on to what others have seen.
    fn now_ms(&mut self) -> Result<u64, Failure> {
        let seen_ms: i64 = self.open()?.prepare_cached(CLOCK)?.query_row([], |row| row.get(0))?;
        let clock = &self.options.clock;
        clock.advance_to(u64::try_from(seen_ms).map_err(|_| Failure::Other("the clock is negative".into()))?);
        Ok(clock.now_ms())
    }

    /// SQLite knows no unsigned numbers; the bits are the same.
    fn secret_id(&self) -> i64 {
        self.options.secret_id.unwrap_or(0).cast_signed()
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let (value, expires_at_ms) = (Value::from_slice(row.get_ref(0)?.as_blob()?), row.get::<_, i64>(1)?);
    let negative = |_| rusqlite::Error::IntegralValueOutOfRange(1, expires_at_ms);
    Ok(Entry { value, expires_at_ms: u64::try_from(expires_at_ms).map_err(negative)? })
}

fn held(connection: &Connection, secret_id: i64) -> Result<u64, Failure> {
    let held = connection.prepare_cached(HELD)?.query_row([secret_id], |row| row.get::<_, i64>(0));
    Ok(held.optional()?.map_or(0, |held| held.max(0).cast_unsigned()))
}

fn add_held(connection: &Connection, secret_id: i64, growth: i64) -> Result<(), Failure> {
    if growth != 0 {
        connection.prepare_cached(ADD_HELD)?.execute([secret_id, growth])?;
    }
    Ok(())
}

/// Writes down the instant that was shown, and commits.
fn end(connection: &Connection, now_ms: u64) -> Result<(), Failure> {
    connection.prepare_cached(SET_CLOCK)?.execute([now_ms.cast_signed()])?;
    execute(&mut connection.prepare_cached(COMMIT)?)
}

fn execute(statement: &mut CachedStatement<'_>) -> Result<(), Failure> {
    statement.execute([])?;
    Ok(())
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::database::migrate;

    #[test]
    fn statements_go_by_an_index() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("store.db");
        migrate(&path).expect("the tables can be made");
        let connection = Connection::open(&path).expect("it can be opened");
        let table = [
            ("a row", SELECT, "SEARCH tidegate_rows USING PRIMARY KEY (secret_id=? AND id=?)"),
            ("a scope", KEYS_IN, "SEARCH tidegate_rows USING PRIMARY KEY (secret_id=? AND id>? AND id<?)"),
            ("a sweep's rows", SWEEP, "COVERING INDEX tidegate_rows_by_expiry (expires_at_ms<?)"),
            ("what a sweep removes", SWEEP, "SEARCH tidegate_rows USING PRIMARY KEY (secret_id=? AND id=?)"),
        ];
        for (what, statement, step) in table {
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).expect(what);
            let plan =
                explain.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<Result<Vec<_>, _>>();
            let plan = plan.expect(what);
            assert!(plan.iter().any(|line| line.contains(step)), "{what}: {plan:?}");
            assert!(
                !plan.iter().any(|line| line.contains("SCAN") || line.contains("TEMP")),
                "{what}: {plan:?}"
            );
        }
    }
}
