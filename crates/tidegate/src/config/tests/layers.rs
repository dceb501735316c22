//! The environment over the file, flags over both, and what a reload would change.

use super::*;

#[test]
fn nothing_at_all_is_a_good_configuration() {
    let configuration = good("", &[]);
    assert_eq!(configuration.store.kind, StoreKind::Embedded);
    assert_eq!(configuration.store.path, Path::new("./tidegate-data"));
    assert_eq!(configuration.store.max_entries, 1_000_000);
    assert_eq!(configuration.listener.listen.to_string(), "127.0.0.1:8787");
    assert_eq!(configuration.listener.max_connections, 10_000);
    assert_eq!(configuration.listener.header_timeout_ms, 10_000);
    assert_eq!(configuration.listener.header_timeout_ms, 10_000);
    assert_eq!(configuration.admin.listen.to_string(), "127.0.0.1:9090");
    assert_eq!(configuration.guard.unwrap().daily_budget, 1_000_000);
    assert_eq!(configuration.log, Log { format: LogFormat::Text, level: "info".into() });
}

#[test]
fn the_environment_wins_over_the_file_and_a_flag_over_both() {
    let toml = format!("[guard]\nsecrets = [\"{SECRET_A}\"]\ndaily_budget = 5\n[log]\nlevel = \"warn\"");
    let both = format!("{SECRET_B},{SECRET_A}");
    let mut sources = sources(&toml, &[("TIDEGATE_GUARD__SECRETS", &both), ("TIDEGATE_LOG__LEVEL", "debug")]);
    sources.flag("log.level", "error".into(), "--log-level");
    let loaded = load(&sources);
    assert_eq!(loaded.settings.place("log.level").to_string(), "flag --log-level");
    assert_eq!(loaded.settings.place("guard.daily_budget").to_string(), "tidegate.toml:3");
    let configuration = loaded.start().unwrap();
    let rules = configuration.guard.unwrap();
    let secrets: Vec<_> = rules.secrets.iter().map(Secret::expose).collect();
    assert_eq!(secrets, [SECRET_B, SECRET_A]);
    assert_eq!(rules.daily_budget, 5);
    assert_eq!(configuration.log.level, "error");
}

#[test]
fn a_fault_that_is_overridden_is_none() {
    good("[store]\ndeadline_ms = \"soon\"", &[("TIDEGATE_STORE__DEADLINE_MS", "50")]);
}

#[test]
fn variables_that_are_none_of_ours() {
    let table = [
        ("TIDEGATE_GUARD__SECRET", Scope::Guard, "the nearest is `TIDEGATE_GUARD__SECRETS`"),
        ("TIDEGATE_GUARD_SECRETS", Scope::Guard, "the nearest is `TIDEGATE_GUARD__SECRETS`"),
        ("TIDEGATE_guard__secrets", Scope::Guard, "is not a variable of Tidegate"),
        ("TIDEGATE_STORE__KINDS", Scope::Fatal, "the nearest is `TIDEGATE_STORE__KIND`"),
        ("TIDEGATE_CLIENT_URLS", Scope::Client, "the nearest is `TIDEGATE_CLIENT_URL`"),
        ("TIDEGATE_", Scope::Fatal, "is not a variable of Tidegate"),
        ("TIDEGATE_GUARD_PORT", Scope::Guard, "is not a variable of Tidegate"),
        ("TIDEGATE_GUARD__FAMILIES__LOGIN__SHARES", Scope::Guard, "is not a variable of Tidegate"),
    ];
    for (name, scope, holds) in table {
        one_fault("", &[(name, "8787")], scope, &format!("environment {name}: "), holds);
    }
}

#[test]
fn variables_of_others_are_passed_over() {
    let environment = [
        ("PATH", "/bin"),
        ("tidegate_guard__secrets", "short"),
        ("TIDEGATE_CONFIG", "x.toml"),
        ("TIDEGATE_SERVICE_HOST", "10.0.0.1"),
        ("TIDEGATE_SERVICE_PORT", "8787"),
        ("TIDEGATE_SERVICE_PORT_RPC", "8787"),
        ("TIDEGATE_PORT", "tcp://10.0.0.1:8787"),
        ("TIDEGATE_PORT_8787_TCP", "tcp://10.0.0.1:8787"),
        ("TIDEGATE_PORT_8787_TCP_ADDR", "10.0.0.1"),
        ("TIDEGATE_GUARD_PORT_8787_TCP_PORT", "8787"),
        ("TIDEGATE_GUARD_SERVICE_HOST", "10.0.0.1"),
    ];
    good("", &environment);
}

#[test]
fn values_of_variables_are_as_strict_as_those_of_the_file() {
    let table = [
        ("TIDEGATE_STORE__MAX_CALLS", "+5", Scope::Fatal, "it is \"+5\""),
        ("TIDEGATE_STORE__MAX_CALLS", "", Scope::Fatal, "it is \"\""),
        ("TIDEGATE_STORE__MAX_CALLS", "5 ", Scope::Fatal, "it is \"5 \""),
        ("TIDEGATE_STORE__MAX_CALLS", "99999999999999999999", Scope::Fatal, "from 1 to 10000"),
        ("TIDEGATE_STORE__KIND", "", Scope::Fatal, "is blank"),
        ("TIDEGATE_GUARD__ALLOW_CLEARTEXT", "1", Scope::Fatal, "`true` or `false`"),
        ("TIDEGATE_GUARD__LISTEN", "localhost:8787", Scope::Fatal, "it is \"localhost:8787\""),
        ("TIDEGATE_ADMIN__TOKENS", "[{", Scope::Fatal, "a list of { name"),
    ];
    for (name, value, scope, holds) in table {
        one_fault("", &[(name, value)], scope, &format!("environment {name}: "), holds);
    }
}

#[test]
fn the_clients_variables_keep_their_shorter_form() {
    let environment = [
        ("TIDEGATE_CLIENT_URL", "https://guard.example"),
        ("TIDEGATE_CLIENT_SECRET", SECRET_A),
        ("TIDEGATE_CLIENT_KEY_PEPPER", SECRET_B),
        ("TIDEGATE_CLIENT_FAMILIES", "offline,replay,Unknown"),
        ("TIDEGATE_CLIENT_TIMEOUT_MS", "5"),
        ("TIDEGATE_CLIENT_BACKEND", "legacy"),
    ];
    let loaded = loaded("", &environment);
    assert_eq!(texts(&loaded), Vec::<String>::new());
    assert_eq!(loaded.client.timeout_ms, 100, "held within its bounds");
    assert_eq!(loaded.client.secret.unwrap().expose(), SECRET_A);
    good("", &[("TIDEGATE_CLIENT__URL", "https://guard.example")]);
    let twice = [("TIDEGATE_CLIENT_URL", "https://a.example"), ("TIDEGATE_CLIENT__URL", "https://b.example")];
    one_fault(
        "",
        &twice,
        Scope::Client,
        "environment TIDEGATE_CLIENT__URL: client.url: ",
        "another variable",
    );
}

#[test]
fn a_reload_says_what_it_applies_and_what_waits() {
    let before = loaded("[guard]\ndaily_budget = 5\n[log]\nlevel = \"info\"", &[]);
    let changed =
        "[guard]\ndaily_budget = 6\nlisten = \"127.0.0.1:1\"\n[guard.families.proxy]\nreserve_bp = 1";
    let reload = compare(&before, &loaded(changed, &[])).unwrap();
    assert_eq!(reload.applied, ["guard.daily_budget", "guard.families.proxy.reserve_bp"]);
    assert_eq!(reload.waiting, ["guard.listen"]);
    assert_eq!(compare(&before, &before).unwrap(), Reload::default());
    let secret = loaded(&format!("[guard]\ndaily_budget = 5\nsecrets = [\"{SECRET_A}\"]"), &[]);
    assert_eq!(compare(&before, &secret).unwrap().applied, ["guard.secrets"]);
    let faulty = loaded("[guard]\ndaily_budget = 0", &[]);
    assert_eq!(compare(&before, &faulty).unwrap_err().len(), 1);
}
