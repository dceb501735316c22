//! `tidegate config`: what is printed can be read back, and the reference knows every key.

use super::*;

const EXAMPLE: &str = "[store]\nkind = \"memory\"\npath = \"/var/lib/a \\\"b\\\"'\"\n[guard]\nsocket = \"./x\"\n\
    family_budgets = { proxy = 5, offline = 6 }\n[guard.families.proxy]\nrequires = [\"source\"]\n\
    shares_bp = { \"network/24\" = 7 }\n[client]\nfamilies = [\"proxy\"]\nbackend = \"off\\ttab\"";

#[test]
fn what_is_printed_reads_back_as_the_same() {
    for toml in ["", EXAMPLE.replace("\\ttab", "").as_str()] {
        let first = loaded(toml, &[("TIDEGATE_LOG__LEVEL", "debug")]);
        assert_eq!(texts(&first), Vec::<String>::new());
        let second = loaded(&effective(&first.settings), &[]);
        assert_eq!(texts(&second), Vec::<String>::new(), "{}", effective(&first.settings));
        assert_eq!(compare(&first, &second).unwrap(), Reload::default());
    }
}

#[test]
fn each_value_has_its_origin() {
    let toml = format!("[guard]\nsecrets = [\"{SECRET_A}\"]\ndaily_budget = 7");
    let text = effective(&loaded(&toml, &[("TIDEGATE_LOG__LEVEL", "debug")]).settings);
    for line in [
        "daily_budget = 7  # tidegate.toml:3",
        "level = \"debug\"  # environment TIDEGATE_LOG__LEVEL",
        "deadline_ms = 2000  # default",
        "# secrets = [\"[redacted]\"]  # tidegate.toml:2",
        "# operator_token is not set",
    ] {
        assert!(text.lines().any(|found| found == line), "no line {line}\n{text}");
    }
}

#[test]
fn the_reference_has_every_key_and_reads_as_the_defaults() {
    let reference = reference();
    for key in KEYS {
        let line = format!("# {} = {}", key.name(), key.default.unwrap_or("…"));
        assert!(reference.lines().any(|found| found == line), "no line {line}");
        assert!(reference.contains(&key.environment()), "{}", key.path);
        assert!(reference.contains(key.doc), "{}", key.path);
    }
    let uncommented: Vec<_> = reference
        .lines()
        .map(|line| {
            let is_default = KEYS.iter().any(|key| {
                key.default.is_some_and(|default| line == format!("# {} = {default}", key.name()))
            });
            if is_default { &line[2..] } else { line }
        })
        .collect();
    let read = loaded(&uncommented.join("\n"), &[]);
    assert_eq!(texts(&read), Vec::<String>::new());
    assert_eq!(compare(&loaded("", &[]), &read).unwrap(), Reload::default());
    assert_eq!(texts(&loaded(&reference, &[])), Vec::<String>::new());
}

#[test]
fn the_table_is_sound() {
    let mut paths: Vec<_> = KEYS.iter().map(|key| key.path).collect();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), KEYS.len(), "a key stands twice");
    let defaults = loaded("", &[]);
    for key in KEYS {
        assert!(key.doc.ends_with('.'), "{}", key.path);
        if key.default.is_some() {
            assert!(defaults.settings.value(key.path).is_some(), "the default of {} is none", key.path);
        }
    }
}
