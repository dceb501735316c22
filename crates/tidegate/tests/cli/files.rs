//! `check` and `config`: faulty files, the environment, and what is never printed.

use crate::{
    shell::{tidegate, unconfigured, write},
    support::server::Setup,
};

const SECRET: &str = "a-secret-that-nobody-may-print-0123456789";

const FAULTY: &str = "\
[store]
kind = \"postgress\"
max_entires = 5
deadline_ms = \"2s\"

[guard]
secrets = [\"short\"]
listen = \"0.0.0.0:8787\"
daily_budget = 0
lissten = 1

[gaurd]
";

#[test]
fn every_fault_of_a_file_is_named_with_key_and_line() {
    let setup = unconfigured().unset("guard.listen");
    write(&setup, "tidegate.toml", FAULTY);
    let faults = [
        "tidegate.toml:2: store.kind: must be",
        "tidegate.toml:3: store.max_entires: is not a key; the nearest is `store.max_entries`",
        "tidegate.toml:4: store.deadline_ms: must be",
        "tidegate.toml:7: guard.secrets[0]: ",
        "tidegate.toml:8: guard.listen: ",
        "tidegate.toml:9: guard.daily_budget: must be",
        "tidegate.toml:10: guard.lissten: is not a key; the nearest is `guard.listen`",
        "tidegate.toml:12: gaurd: is not a section; the nearest is `guard`",
        "8 faults",
    ];
    tidegate(&setup, "check").assert(78, &faults);
    let served = tidegate(&setup, "serve");
    served.assert(78, &faults[..8]);
    assert!(!served.said().contains("POST /v1/rpc"), "it does not say that it serves: {served:?}");
    assert!(!setup.folder().join("tidegate-data").exists(), "nothing was made");
}

#[test]
fn a_good_file_is_good() {
    let setup = unconfigured();
    tidegate(&setup, "check").assert(0, &["configuration is good"]);
    write(&setup, "other.toml", "[guard]\ndaily_budget = 5\n");
    tidegate(&setup, "check --config other.toml").assert(0, &["configuration is good"]);
    tidegate(&setup, "check --config missing.toml").assert(78, &["missing.toml", "can't be read"]);
    write(&setup, "broken.toml", "[guard\n");
    tidegate(&setup, "check --config broken.toml").assert(78, &["broken.toml:1", "is not valid TOML"]);
}

#[test]
fn an_unknown_variable_is_a_fault_and_the_nearest_is_named() {
    let setup = unconfigured().variable("TIDEGATE_GUARD__LISSTEN", "127.0.0.1:1");
    let said = ["environment TIDEGATE_GUARD__LISSTEN: ", "the nearest is `TIDEGATE_GUARD__LISTEN`"];
    tidegate(&setup, "check").assert(78, &said);
    tidegate(&setup.variable("TIDEGATE_STORRE__KIND", "memory"), "serve").assert(78, &said);
}

#[test]
fn the_effective_configuration_names_where_values_come_from_and_no_secret() {
    let setup = unconfigured().set("guard.operator_token", format!("{SECRET}-operator"));
    let file = format!(
        "[guard]\nsecrets = [\"{SECRET}-one\", \"{SECRET}-two\"]\ndaily_budget = 7\n[admin]\n\
         tokens = [{{ name = \"ops\", token = \"{SECRET}-admin\", abilities = [\"read\"] }}]\nwebhook_secret = \"{SECRET}-webhook\"\n\
         [client]\nkey_pepper = \"{SECRET}-pepper\"\n[store]\nsecret = \"{SECRET}-store\"\n"
    );
    write(&setup, "tidegate.toml", &file);
    for line in ["config", "config --log-level debug", "check", "config --reference"] {
        let ran = tidegate(&setup, line);
        assert!(!ran.said().contains(SECRET), "{line} prints a secret");
    }
    let effective = tidegate(&setup, "config --log-level debug");
    effective.assert(
        0,
        &[
            "daily_budget = 7  # ./tidegate.toml:3",
            "# secrets = [\"[redacted]\", \"[redacted]\"]  # ./tidegate.toml:2",
            "# operator_token = \"[redacted]\"  # environment TIDEGATE_GUARD__OPERATOR_TOKEN",
            "level = \"debug\"  # flag --log-level",
            "deadline_ms = 2000  # default",
        ],
    );
    // What is printed can be read back.
    let elsewhere = Setup::new();
    write(&elsewhere, "tidegate.toml", &effective.out);
    tidegate(&elsewhere, "check").assert(0, &["configuration is good"]);
    tidegate(&elsewhere, "config --reference").assert(0, &["TIDEGATE_GUARD__DAILY_BUDGET"]);
}
