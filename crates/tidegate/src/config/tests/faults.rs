//! Each fault, with its key and its line.

use super::*;
use Scope::{Client, Fatal, Guard, Warning};

#[test]
fn every_fault_of_a_file_has_its_key_and_line() {
    let table: &[(&str, Scope, &str, &str)] = &[
        // Syntax.
        ("[store]\nkind = embedded", Fatal, "tidegate.toml:2: ", "is not valid TOML"),
        ("[store\n", Fatal, "tidegate.toml:1: ", "is not valid TOML"),
        ("[log]\nlevel = \"info\"\nlevel = \"warn\"", Fatal, "tidegate.toml:3: ", "is not valid TOML"),
        // Names.
        ("[gaurd]\nlisten = 1", Fatal, "tidegate.toml:1: gaurd: is not a section", "the nearest is `guard`"),
        ("[guard]\n\nlissten = 1", Guard, "tidegate.toml:3: guard.lissten: is not a key", "`guard.listen`"),
        ("[store]\nmax_entires = 9", Fatal, "tidegate.toml:2: store.max_entires: ", "`store.max_entries`"),
        ("store = 4", Fatal, "tidegate.toml:1: store: ", "must be a table"),
        ("[[store]]\nkind = \"memory\"", Fatal, "tidegate.toml:1: store: ", "must be a table"),
        ("\"guard.listen\" = 1", Fatal, "tidegate.toml:1: guard.listen: ", "one name in quotes"),
        (
            "[egress]\nlisten = \"127.0.0.1:8080\"",
            Fatal,
            "tidegate.toml:1: egress: is not a section",
            "`ingress`",
        ),
        // Types.
        ("[store]\ndeadline_ms = \"2000\"", Fatal, "tidegate.toml:2: store.deadline_ms: ", "it is a string"),
        (
            "[store]\ndeadline_ms = 2.5",
            Fatal,
            "tidegate.toml:2: store.deadline_ms: ",
            "a number with a fraction",
        ),
        ("[store]\nkind = true", Fatal, "tidegate.toml:2: store.kind: ", "it is a boolean"),
        ("[guard]\nlisten = 8787", Fatal, "tidegate.toml:2: guard.listen: ", "it is a number"),
        (
            "[guard]\nallow_cleartext = \"yes\"",
            Fatal,
            "tidegate.toml:2: guard.allow_cleartext: ",
            "`true` or `false`",
        ),
        ("[guard]\nsecrets = \"one\"", Guard, "tidegate.toml:2: guard.secrets: ", "it is a string"),
        ("[guard]\nsecrets = [1]", Guard, "tidegate.toml:2: guard.secrets[0]: ", "it is a number"),
        ("[admin]\ntokens = \"one\"", Fatal, "tidegate.toml:2: admin.tokens: ", "it is a string"),
        // Numbers that are zero or absurd.
        ("[store]\nmax_calls = 0", Fatal, "tidegate.toml:2: store.max_calls: ", "from 1 to 10000; it is 0"),
        ("[store]\nmax_calls = -1", Fatal, "tidegate.toml:2: store.max_calls: ", "it is -1"),
        (
            "[store]\ndeadline_ms = 86400000",
            Fatal,
            "tidegate.toml:2: store.deadline_ms: ",
            "from 10 to 60000",
        ),
        ("[store]\nmax_entries = 0", Fatal, "tidegate.toml:2: store.max_entries: ", "from 1000 to"),
        (
            "[guard]\nmax_connections = 0",
            Guard,
            "tidegate.toml:2: guard.max_connections: ",
            "from 1 to 1000000",
        ),
        ("[guard]\nbody_timeout_ms = 0", Guard, "tidegate.toml:2: guard.body_timeout_ms: ", "from 10 to"),
        (
            "[guard]\ndaily_budget = 0",
            Guard,
            "tidegate.toml:2: guard.daily_budget: ",
            "from 1 to 9007199254740991",
        ),
        (
            "[guard]\ndaily_budget = 9007199254740992",
            Guard,
            "tidegate.toml:2: guard.daily_budget: ",
            "it is 9007199254740992",
        ),
        // Words.
        ("[store]\nkind = \"embeded\"", Fatal, "tidegate.toml:2: store.kind: ", "the nearest is `embedded`"),
        ("[store]\nkind = \"\"", Fatal, "tidegate.toml:2: store.kind: ", "is blank"),
        ("[store]\nkind = \"postgres\"", Fatal, "tidegate.toml:2: store.url: ", "begins with postgres://"),
        ("[store]\nkind = \"redis\"", Fatal, "tidegate.toml:2: store.url: ", "begins with redis://"),
        ("[store]\nkind = \"mysql\"", Fatal, "tidegate.toml:2: store.url: ", "begins with mysql://"),
        (
            "[store]\nkind = \"mysql\"\nurl = \"redis://h\"",
            Fatal,
            "tidegate.toml:3: store.url: ",
            "mysql:// or mariadb://",
        ),
        ("[store]\nurl = \"redis://h\"", Fatal, "tidegate.toml:2: store.url: ", "has no meaning with"),
        (
            "[store]\nkind = \"sqlite\"\nurl = \"sqlite://f\"",
            Fatal,
            "tidegate.toml:3: store.url: ",
            "has no meaning with",
        ),
        (
            "[store]\ndurability = \"always\"",
            Fatal,
            "tidegate.toml:2: store.durability: ",
            "`fsync`, `process` or `none`",
        ),
        ("[log]\nlevel = \"inof\"", Fatal, "tidegate.toml:2: log.level: ", "it is \"inof\""),
        (
            "[log]\nlevel = \"info,tidegate\"",
            Fatal,
            "tidegate.toml:2: log.level: ",
            "it is \"info,tidegate\"",
        ),
        ("[log]\nformat = \"yaml\"", Fatal, "tidegate.toml:2: log.format: ", "`text` or `json`"),
        (
            "[log]\notlp_endpoint = \"http://otel:4317\"",
            Warning,
            "tidegate.toml:2: log.otlp_endpoint: ",
            "not sent",
        ),
        // URLs.
        ("[store]\nurl = \"database\"", Fatal, "tidegate.toml:2: store.url: ", "must be a URL"),
        (
            "[client]\nurl = \"http://guard.example\"",
            Client,
            "tidegate.toml:2: client.url: ",
            "must be https",
        ),
        (
            "[client]\nurl = \"htps://guard.example\"",
            Client,
            "tidegate.toml:2: client.url: ",
            "nearest is `https`",
        ),
        (
            "[admin]\nwebhook_url = \"https://alerts.example/x\"",
            Fatal,
            "tidegate.toml:2: admin.webhook_url: ",
            "needs admin.webhook_secret",
        ),
        (
            "[admin]\nwebhook_secret = \"a-webhook-secret-0123456789abcdef-0123\"\n\
             webhook_url = \"https://user:password@alerts.example/x\"",
            Fatal,
            "tidegate.toml:3: admin.webhook_url: ",
            "have no place in it",
        ),
        (
            "[admin]\nwebhook_secret = \"a-webhook-secret-0123456789abcdef-0123\"\n\
             webhook_url = \"https://:443/x\"",
            Fatal,
            "tidegate.toml:3: admin.webhook_url: ",
            "must be a host",
        ),
    ];
    for (toml, scope, begins, holds) in table {
        one_fault(toml, &[], *scope, begins, holds);
    }
}

#[test]
fn all_faults_are_named_and_not_only_the_first() {
    let toml = "[store]\nkind = \"postgres\"\nmax_calls = 0\n[guard]\nlisten = \"localhost\"\ndaily_budget = 0\n\
                secrets = [\"short\", \"\"]\n[log]\nlevel = \"loud\"\n";
    let loaded = loaded(toml, &[("TIDEGATE_GUARD__SOCKETS", "x")]);
    let keys: Vec<_> = loaded.faults.iter().map(|fault| fault.key.as_str()).collect();
    let expected = [
        "store.url",
        "store.max_calls",
        "guard.listen",
        "log.level",
        "guard.daily_budget",
        "guard.secrets[0]",
        "guard.secrets[1]",
        "",
    ];
    assert_eq!(keys, expected, "{:#?}", texts(&loaded));
    assert_eq!(loaded.start().unwrap_err().len(), 4);
}

#[test]
fn a_fault_of_the_guard_alone_leaves_the_process_up() {
    let configuration = loaded("[guard]\nsecrets = [\"short\"]", &[]).start().unwrap();
    let faults = configuration.guard.unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(configuration.listener.listen.to_string(), "127.0.0.1:8787");
}

#[test]
fn a_file_that_cannot_be_read_ends_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml");
    let loaded = load(&Sources::gather(Some(&missing), Vec::new()));
    assert_eq!(loaded.faults.len(), 1);
    assert!(loaded.faults[0].to_string().contains("can't be read"), "{}", loaded.faults[0]);
    assert!(loaded.start().is_err());
}

#[test]
fn what_is_typed_is_shown_on_one_short_line() {
    let toml = format!("[log]\nlevel = \"{}\\u001b[31m\\n\"", "x".repeat(500));
    let loaded = loaded(&toml, &[]);
    let text = loaded.faults[0].to_string();
    assert!(text.len() < 300 && !text.contains(['\n', '\u{1b}']), "{text}");
}
