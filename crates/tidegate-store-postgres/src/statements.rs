//! All the SQL of the store, prepared once on each connection.

use futures_util::future::try_join_all;
use tokio_postgres::{Client, Error, Statement};

/// The statements of a connection.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) lock: Statement,
    pub(crate) watch: Statement,
    pub(crate) look: Statement,
    pub(crate) share_gate: Statement,
    pub(crate) close_gate: Statement,
    pub(crate) absent: Statement,
    pub(crate) update: Statement,
    pub(crate) insert: Statement,
    pub(crate) delete: Statement,
    pub(crate) add_to_count: Statement,
    pub(crate) count: Statement,
    pub(crate) sweep: Statement,
    pub(crate) keys_in: Statement,
}

impl Statements {
    /// Prepares all of them, in one round trip.
    pub(crate) async fn prepare(client: &Client) -> Result<Self, Error> {
        let texts = [
            LOCK,
            WATCH,
            LOOK,
            SHARE_GATE,
            CLOSE_GATE,
            ABSENT,
            UPDATE,
            INSERT,
            DELETE,
            ADD_TO_COUNT,
            COUNT,
            SWEEP,
            KEYS_IN,
        ];
        let prepared = try_join_all(texts.map(|text| client.prepare(text))).await?;
        let [
            lock,
            watch,
            look,
            share_gate,
            close_gate,
            absent,
            update,
            insert,
            delete,
            add_to_count,
            count,
            sweep,
            keys_in,
        ] = prepared.try_into().expect("as many as there are texts");
        Ok(Self {
            lock,
            watch,
            look,
            share_gate,
            close_gate,
            absent,
            update,
            insert,
            delete,
            add_to_count,
            count,
            sweep,
            keys_in,
        })
    }
}

/// What a session of the store is set to, so that every plan goes by an index: one that was made while the table
/// was empty is kept, and would scan the whole of it when it has grown.
pub(crate) const PLANNER: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
     SET plan_cache_mode = force_generic_plan; SET jit = off; \
     SET default_transaction_isolation = 'read committed'";

/// The rows that are there, locked in the order of their keys, so that two instances never deadlock.
const LOCK: &str = "SELECT key, value, expires_at_ms, sweep_at_ms FROM entries \
     WHERE secret_id = $1 AND key = ANY ($2) ORDER BY key FOR UPDATE";

/// The same for rows that are only watched: others may watch them too.
const WATCH: &str = "SELECT key, value, expires_at_ms, sweep_at_ms FROM entries \
     WHERE secret_id = $1 AND key = ANY ($2) ORDER BY key FOR SHARE";

/// The clock, as it is when this statement runs, and how many rows there are. What comes after it may take $2 ms.
const LOOK: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8, \
     (SELECT coalesce(sum(entries), 0)::int8 FROM entry_counts WHERE secret_id = $1), \
     set_config('statement_timeout', $2, true)";

/// Begins a batch that only writes; each statement that locks its rows takes no longer than so many ms. That is
/// no `lock_timeout`, which begins anew with everyone who shares the lock that is waited for.
pub(crate) fn begin_writing(row_patience_ms: u128) -> String {
    format!("BEGIN; SET LOCAL statement_timeout = {row_patience_ms}")
}

/// Begins a batch that watches rows: by the turnstile, beside others that do.
pub(crate) fn begin_watching(row_patience_ms: u128) -> String {
    format!(
        "BEGIN; SELECT pg_advisory_xact_lock_shared('entries'::regclass::oid::int4, 1); \
         SET LOCAL statement_timeout = {row_patience_ms}"
    )
}

/// Begins a batch that waits for its rows to the end: alone behind the turnstile.
pub(crate) const BEGIN_PATIENTLY: &str =
    "BEGIN; SELECT pg_advisory_xact_lock('entries'::regclass::oid::int4, 1)";

/// Passes the gate together with others that only insert. Held to the end of the transaction.
const SHARE_GATE: &str = "SELECT pg_advisory_xact_lock_shared('entries'::regclass::oid::int4, 0)";

/// Passes the gate alone.
const CLOSE_GATE: &str = "SELECT pg_advisory_xact_lock('entries'::regclass::oid::int4, 0)";

/// Fails, by a division by zero, if one of the rows is there: an error is what makes the COMMIT that has been
/// sent behind it roll back.
const ABSENT: &str =
    "SELECT 1 / (NOT EXISTS (SELECT FROM entries WHERE secret_id = $1 AND key = ANY ($2)))::int4";

const UPDATE: &str = "UPDATE entries SET value = new.value, expires_at_ms = new.expires_at_ms, \
         sweep_at_ms = new.sweep_at_ms \
     FROM unnest($2::bytea[], $3::bytea[], $4::int8[], $5::int8[]) \
         AS new (key, value, expires_at_ms, sweep_at_ms) \
     WHERE entries.secret_id = $1 AND entries.key = new.key";

/// Fails, by the primary key, if one of the rows is there.
const INSERT: &str = "INSERT INTO entries (secret_id, key, value, expires_at_ms, sweep_at_ms) \
     SELECT $1, new.* FROM unnest($2::bytea[], $3::bytea[], $4::int8[], $5::int8[]) AS new";

const DELETE: &str = "DELETE FROM entries WHERE secret_id = $1 AND key = ANY ($2)";

/// The last statement of its transaction: it may wait for a session with the same slot, which waits for
/// nobody any more.
const ADD_TO_COUNT: &str = "INSERT INTO entry_counts AS counts (secret_id, slot, entries) \
     VALUES ($1, pg_backend_pid() % 32, $2) \
     ON CONFLICT (secret_id, slot) DO UPDATE SET entries = counts.entries + excluded.entries";

const COUNT: &str = "SELECT coalesce(sum(entries), 0)::int8 FROM entry_counts WHERE secret_id = $1";

/// Rows that others hold are passed over, so that a sweep waits for nobody.
const SWEEP: &str = "WITH due AS MATERIALIZED ( \
         SELECT secret_id, key FROM entries \
         WHERE sweep_at_ms <= floor(extract(epoch FROM statement_timestamp()) * 1000)::int8 \
         ORDER BY sweep_at_ms LIMIT $1 FOR UPDATE SKIP LOCKED \
     ), gone AS ( \
         DELETE FROM entries USING due WHERE entries.secret_id = due.secret_id AND entries.key = due.key \
         RETURNING entries.secret_id \
     ), counted AS ( \
         INSERT INTO entry_counts AS counts (secret_id, slot, entries) \
         SELECT secret_id, pg_backend_pid() % 32, -count(*) FROM gone GROUP BY secret_id ORDER BY secret_id \
         ON CONFLICT (secret_id, slot) DO UPDATE SET entries = counts.entries + excluded.entries \
     ) \
     SELECT count(*) FROM gone";

/// Keys from $2 to $3 that end with $4.
const KEYS_IN: &str = "SELECT key FROM entries WHERE secret_id = $1 AND key BETWEEN $2 AND $3 \
     AND substr(key, length(key) - length($4::bytea) + 1) = $4 \
     AND expires_at_ms > floor(extract(epoch FROM statement_timestamp()) * 1000)::int8 LIMIT $5";
