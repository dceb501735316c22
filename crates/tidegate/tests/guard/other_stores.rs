//! Every test of this binary again, on PostgreSQL and on Redis.

use crate::support::stores;

#[test]
fn on_postgres() {
    stores::all_on_postgres(&[]);
}

#[test]
fn on_redis() {
    stores::all_on_redis(&[]);
}
