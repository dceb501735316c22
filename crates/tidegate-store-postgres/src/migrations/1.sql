-- The rows. A page keeps a fifth of its room for new versions of its rows, and no index is over what an
-- ordinary update changes, so that such an update touches no index at all (a heap-only tuple).
CREATE TABLE entries (
    secret_id bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    sweep_at_ms bigint NOT NULL CHECK (sweep_at_ms >= expires_at_ms),
    key bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (secret_id, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- What a sweep looks through. Not over the expiry, which moves with almost every update of some rows.
CREATE INDEX entries_by_sweep ON entries (sweep_at_ms);

-- How many rows there are of each secret: the sum over its slots. Each session adds to one slot, so that
-- instances do not wait for each other.
CREATE TABLE entry_counts (
    secret_id bigint NOT NULL,
    slot integer NOT NULL,
    entries bigint NOT NULL,
    PRIMARY KEY (secret_id, slot)
) WITH (fillfactor = 20);
