//! Every test of this binary again, on PostgreSQL and on Redis.

use crate::support::stores;

/// What makes sense on the embedded store only, and why.
const ONLY_EMBEDDED: &[(&str, &str)] = &[];

#[test]
fn on_postgres() {
    stores::all_on_postgres(ONLY_EMBEDDED);
}

#[test]
fn on_redis() {
    stores::all_on_redis(ONLY_EMBEDDED);
}
