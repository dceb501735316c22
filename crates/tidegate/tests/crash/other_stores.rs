//! What holds over kill -9 and lost answers, again on PostgreSQL and on Redis.

use crate::support::stores;

/// What makes sense on the embedded store only, and why.
const ONLY_EMBEDDED: &[(&str, &str)] = &[
    ("budget_model::nobody_gets_more_than_their_allowance_whatever_happens", "its disk is simulated"),
    ("budget_model::a_disk_that_lies_is_found_out", "its disk is simulated"),
    ("budgets::the_checks_notice_a_store_that_forgets", "the control keeps its rows in memory"),
    ("damage::a_damaged_header_is_restored_without_a_loss", "it harms the store's file"),
    ("damage::a_torn_end_is_cut_off_and_what_was_before_it_is_there", "it harms the store's file"),
    ("damage::damage_before_the_end_is_refused_until_it_is_repaired", "it harms the store's file"),
    ("full_disk::a_full_disk_refuses_and_goes_on_once_there_is_room", "it fills the store's disk"),
    ("kills::the_ledger_notices_a_store_that_loses_everything", "the control keeps its rows in memory"),
    ("kills::twenty_kills_lose_nothing_that_the_system_has", "a database has one way to be durable"),
    ("nothing_kept::a_store_that_keeps_nothing_says_so_at_its_start", "the store is another one"),
    ("two_processes::a_second_process_is_refused_and_the_first_one_is_not_harmed", "here it is welcome"),
];

#[test]
fn on_postgres() {
    stores::all_on_postgres(ONLY_EMBEDDED);
}

#[test]
fn on_redis() {
    stores::all_on_redis(ONLY_EMBEDDED);
}
