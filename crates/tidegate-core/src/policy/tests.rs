use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parse(document: &Value) -> Result<Policy, Vec<PolicyFault>> {
    Policy::parse(document.to_string().as_bytes())
}

fn faults(document: &Value) -> Vec<(String, String)> {
    let faults = parse(document).expect_err("it is faulty");
    faults.into_iter().map(|fault| (fault.field, fault.message)).collect()
}

fn shown(policy: &Policy) -> Value {
    serde_json::to_value(policy.document()).unwrap()
}

#[test]
fn what_is_left_out_has_its_default() {
    let defaults = json!({
        "mode": "log_only", "rps": 0, "burst": 0, "deny_cidrs": [], "deny_user_agents": [],
        "deny_missing_user_agent": false, "allow_cidrs": [], "ipv6_prefix": 64, "routes": [],
    });
    assert_eq!(shown(&parse(&json!({})).unwrap()), defaults);
    assert_eq!(shown(&Policy::default()), defaults);
}

#[test]
fn a_document_is_shown_as_it_was_written() {
    let document = json!({
        "mode": "enforce", "rps": 0.1, "burst": 5,
        "deny_cidrs": ["203.0.113.0/24", {"cidr": "2001:db8::/32", "note": "scanner", "expires_at_ms": 7}],
        "deny_user_agents": ["exabot", "re:\\bnutch\\b"], "deny_missing_user_agent": true,
        "allow_cidrs": [{"cidr": "198.51.100.7", "note": "ours"}], "ipv6_prefix": 56,
        "routes": [
            {"path_prefix": "/login", "methods": ["POST"], "rps": 0.05, "burst": 3},
            {"path_prefix": "/api/", "rps": 2, "burst": 10},
        ],
    });
    let policy = parse(&document).unwrap();
    assert_eq!(shown(&policy), document);
    assert_eq!(shown(&parse(&shown(&policy)).unwrap()), document);
}

#[test]
fn every_fault_is_named() {
    let document = json!({
        "mode": "on", "rps": -1, "burst": 1.5, "surprise": true,
        "deny_cidrs": ["198.51.100.0/33", {"note": "x", "until": 1}, 7, "192.0.2.0/24"],
        "deny_user_agents": ["", "re:(?=x)", "re:(\\w+)\\1", "re:(", 3],
        "deny_missing_user_agent": "yes", "allow_cidrs": {}, "ipv6_prefix": 129,
        "routes": [
            {"path_prefix": "login", "rps": 1, "burst": 1},
            {"path_prefix": "/a/../b", "rps": 1},
            {"rps": 1, "burst": 0, "methods": ["GET POST"]},
            "x",
        ],
    });
    let fields: Vec<_> = faults(&document).into_iter().map(|(field, _)| field).collect();
    let expected = [
        "rps",
        "burst",
        "mode",
        "deny_cidrs[0]",
        "deny_cidrs[1].cidr",
        "deny_cidrs[1].until",
        "deny_cidrs[2]",
        "deny_user_agents[0]",
        "deny_user_agents[1]",
        "deny_user_agents[2]",
        "deny_user_agents[3]",
        "deny_user_agents[4]",
        "deny_missing_user_agent",
        "allow_cidrs",
        "ipv6_prefix",
        "routes[0].path_prefix",
        "routes[1].path_prefix",
        "routes[1].burst",
        "routes[2].path_prefix",
        "routes[2].methods[0]",
        "routes[2].burst",
        "routes[3]",
        "surprise",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_route_says_what_it_limits_to_how_much() {
    let table: [(Value, &[&str]); 7] = [
        (json!({"path_prefix": "/m", "rps": 1, "burst": 1}), &[]),
        (json!({"path_prefix": "/m", "rps": 0, "burst": 0, "methods": ["GET"]}), &[]),
        (json!({"path_prefix": "/m"}), &["routes[0].rps", "routes[0].burst"]),
        (json!({"path_prefix": "/m", "rps": 1}), &["routes[0].burst"]),
        (json!({"path_prefix": "/m", "burst": 1}), &["routes[0].rps"]),
        (json!({"path_prefix": "/m", "rps": 1, "burst": 1, "methods": []}), &["routes[0].methods"]),
        (json!({}), &["routes[0].path_prefix", "routes[0].rps", "routes[0].burst"]),
    ];
    for (route, expected) in table {
        let document = json!({ "routes": [route] });
        let told = parse(&document).err().unwrap_or_default();
        let fields: Vec<_> = told.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, expected, "{document}");
    }
}

/// A version that asked for less has saved such routes. They limit nothing, as they did.
#[test]
fn a_saved_route_that_limits_nothing_does_not_end_the_policy() {
    let saved = json!({"mode": "enforce", "rps": 1, "burst": 2, "routes": [
        {"path_prefix": "/a"},
        {"path_prefix": "/b", "methods": [], "rps": 1, "burst": 1},
        {"path_prefix": "/c", "methods": ["GET"], "rps": 1, "burst": 1},
    ]})
    .to_string();
    let policy = Policy::parse_stored(saved.as_bytes()).unwrap();
    for (path, limits) in [("/a", 1), ("/b", 1), ("/c", 2)] {
        assert_eq!(policy.limits("GET", Normal::recorded(path.as_bytes())).count(), limits, "{path}");
    }
    assert!(Policy::parse(saved.as_bytes()).is_err());
    assert_eq!(shown(&parse(&shown(&policy)).unwrap()), shown(&policy), "what is shown can be saved again");
    assert!(Policy::parse_stored(br#"{"routes":[{"rps":1,"burst":1}]}"#).is_err());
}

#[test]
fn a_field_stands_once() {
    let table: [(&str, &[&str]); 4] = [
        (r#"{"rps":1,"burst":1,"rps":2}"#, &["rps"]),
        (r#"{"mode":"off","m\u006fde":"enforce","burst":1,"burst":1}"#, &["mode", "burst"]),
        (
            r#"{"routes":[{"path_prefix":"/x","rps":1,"rps":2,"burst":1}],"deny_cidrs":[{"cidr":"::1","cidr":"::2"}]}"#,
            &["routes[0].rps", "deny_cidrs[0].cidr"],
        ),
        (r#"{"rps":-1,"rps":1}"#, &["rps", "rps"]),
    ];
    for (text, expected) in table {
        let told = Policy::parse(text.as_bytes()).expect_err(text);
        let fields: Vec<_> = told.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, expected, "{text}");
    }
}

#[test]
fn numbers_and_their_bounds() {
    let good = [
        (json!({"rps": 1_000_000, "burst": 1_000_000_000}), json!(1_000_000)),
        (json!({"rps": 0.000_001, "burst": 1}), json!(0.000_001)),
        (json!({"rps": 2.5, "burst": 1}), json!(2.5)),
        (json!({"rps": 2.0, "burst": 1}), json!(2)),
        (json!({"rps": 0, "burst": 0}), json!(0)),
        (json!({"rps": 0, "burst": 7}), json!(0)),
    ];
    for (document, rps) in good {
        assert_eq!(shown(&parse(&document).unwrap())["rps"], rps, "{document}");
    }
    let bad = [
        (json!({"rps": 1_000_000.1, "burst": 1}), "rps", "must be a number from 0 to 1000000"),
        (json!({"rps": -0.1, "burst": 1}), "rps", "must be a number from 0 to 1000000"),
        (json!({"rps": "5", "burst": 1}), "rps", "must be a number from 0 to 1000000"),
        (json!({"rps": 1e-9, "burst": 1}), "rps", "is under one millionth, the smallest rate"),
        (json!({"rps": 1, "burst": 0}), "burst", "must be 1 or more where rps is over 0"),
        (json!({"rps": 1}), "burst", "must be 1 or more where rps is over 0"),
        (json!({"burst": -1}), "burst", "must be a whole number from 0 to 1000000000"),
        (json!({"burst": 1_000_000_001}), "burst", "must be a whole number from 0 to 1000000000"),
        (json!({"ipv6_prefix": 15}), "ipv6_prefix", "must be a whole number from 16 to 128"),
        (json!({"rps": null}), "rps", "must be a number from 0 to 1000000"),
    ];
    for (document, field, message) in bad {
        assert_eq!(faults(&document), [(field.to_string(), message.to_string())], "{document}");
    }
}

#[test]
fn what_is_no_document_is_refused() {
    for text in ["", "[]", "null", "{", "{\"mode\":\"off\"} x", "\u{feff}{}"] {
        let faults = Policy::parse(text.as_bytes()).expect_err(text);
        assert_eq!(faults[0].field, "", "{text}");
    }
    assert!(Policy::parse(&[0xff]).is_err());
    let deep = "[".repeat(60_000);
    assert!(Policy::parse(deep.as_bytes()).is_err());
    let padded = |bytes: usize| format!("{{}}{}", " ".repeat(bytes - 2));
    assert!(Policy::parse(padded(DOCUMENT_BYTES_MAX).as_bytes()).is_ok());
    assert!(Policy::parse(padded(DOCUMENT_BYTES_MAX + 1).as_bytes()).is_err());
    // A document that fits, but not with its defaults.
    let networks = |bytes: usize| {
        // 120 bytes each, so that nearly all bytes are used.
        let entry = format!(r#"{{"cidr":"10.0.0.0/8","note":"{}"}}"#, "n".repeat(86));
        format!(r#"{{"deny_cidrs":[{}]}}"#, vec![entry.as_str(); bytes / (entry.len() + 1)].join(","))
    };
    let (most, fewer) = (networks(DOCUMENT_BYTES_MAX), networks(DOCUMENT_BYTES_MAX - 2_000));
    assert!(most.len() <= DOCUMENT_BYTES_MAX && most.len() + 140 > DOCUMENT_BYTES_MAX, "{}", most.len());
    assert!(Policy::parse(most.as_bytes()).is_err());
    assert_eq!(Policy::parse(fewer.as_bytes()).err(), None);
}

#[test]
fn lists_are_bounded_by_name() {
    let entries =
        |count: usize| (0..count).map(|n| json!(format!("10.0.{}.{}", n / 256, n % 256))).collect::<Vec<_>>();
    assert!(parse(&json!({"deny_cidrs": entries(LIST_ENTRIES_MAX)})).is_ok());
    let over = faults(&json!({"deny_cidrs": entries(LIST_ENTRIES_MAX + 1)}));
    assert_eq!(over, [("deny_cidrs".to_string(), "has 1001 entries; 1000 are allowed".to_string())]);
    let many = faults(&json!({"deny_cidrs": (0..500).map(|_| json!("x")).collect::<Vec<_>>()}));
    assert_eq!(many.len(), 100, "faults are bounded too");
    let note =
        faults(&json!({"deny_cidrs": [{"cidr": "10.0.0.0/8", "note": "n".repeat(NOTE_BYTES_MAX + 1)}]}));
    assert_eq!(note[0].0, "deny_cidrs[0].note");
}

/// Plain patterns are parts of a User-Agent; whole words are asked for with `re:`.
#[test]
fn user_agents_and_patterns() {
    let patterns =
        json!({"deny_user_agents": ["exabot", "^spbot", "re:\\bnutch\\b", "re:^evil/[0-9]+$", "a.b"]});
    let policy = parse(&patterns).unwrap();
    let table = [
        ("Mozilla/5.0 (compatible; ExaBot/3.0)", true),
        ("Alexabot/1.0", true),
        ("Mozilla/5.0 (compatible; spbot/5.0)", false),
        ("^SPBOT", true),
        ("Googlebot/Nutch-1.7", true),
        ("NutchGooglebot", false),
        ("evil/12", true),
        ("evil/12x", false),
        ("one\nevil/12\nthree", true),
        ("axb", false),
        ("A.B", true),
        ("", false),
    ];
    for (agent, denied) in table {
        assert_eq!(policy.denies_agent(agent.as_bytes()), denied, "{agent}");
    }
    let word = parse(&json!({"deny_user_agents": ["re:\\bexabot\\b"]})).unwrap();
    assert!(word.denies_agent(b"ExaBot/3.0") && !word.denies_agent(b"Alexabot/1.0"));
    assert!(!policy.denies_agent(b"\xff\xfe"), "any bytes can be looked at");
    assert!(!Policy::default().denies_agent(b"exabot"));
}

#[test]
fn costly_patterns_are_refused_and_the_others_are_quick() {
    assert!(!faults(&json!({"deny_user_agents": ["re:(a{1,1000}){1,1000}"]})).is_empty());
    let many: Vec<_> = (0..600).map(|n| format!("re:^(.*?)(\\bx{n}\\b)(.*)$")).collect();
    for patterns in [json!(["re:(a+)+$"]), json!(many)] {
        let policy = parse(&json!({ "deny_user_agents": patterns }));
        let policy = policy.unwrap_or_else(|faults| panic!("{:?}", faults[0]));
        let agent = format!("{}!", "a".repeat(USER_AGENT_BYTES_MAX - 1));
        assert!(!policy.denies_agent(agent.as_bytes()));
    }
}

#[test]
fn routes_and_methods() {
    let policy = parse(&json!({"routes": [
        {"path_prefix": "/data", "methods": ["get"], "rps": 1, "burst": 1},
        {"path_prefix": "/login", "methods": ["POST"], "rps": 1, "burst": 1},
        {"path_prefix": "/any", "rps": 1, "burst": 1},
        {"path_prefix": "/cors", "methods": ["OPTIONS"], "rps": 1, "burst": 1},
        {"path_prefix": "/off", "rps": 0, "burst": 0},
    ]}))
    .unwrap();
    let table = [
        ("GET", "/data", 1),
        ("HEAD", "/data", 1),
        ("OPTIONS", "/data", 0),
        ("POST", "/data", 0),
        ("GET", "/login", 0),
        ("POST", "/login", 1),
        ("pOsT", "/login", 1),
        ("TRACE", "/any", 1),
        ("BREW", "/any", 1),
        ("OPTIONS", "/any", 0),
        ("OPTIONS", "/cors", 1),
        ("GET", "/off", 0),
    ];
    for (method, path, limits) in table {
        assert_eq!(
            policy.limits(method, Normal::recorded(path.as_bytes())).count(),
            limits,
            "{method} {path}"
        );
    }
}

proptest! {
    #[test]
    fn any_json_is_read_or_refused(text in "[{}\\[\\]:,\"a-z0-9_.-]{0,80}") {
        let _ = Policy::parse(text.as_bytes());
    }

    #[test]
    fn a_rate_is_shown_as_it_is_kept(millionths in 0_u64..=RPS_MAX * Rate::ONE) {
        let shown = serde_json::to_value(Rate(millionths)).unwrap();
        let again = parse(&json!({"rps": shown, "burst": 1})).unwrap();
        prop_assert_eq!(again.document().rps, Rate(millionths));
    }

    #[test]
    fn rows_are_read_back(document in "[ -~]{0,200}", version in any::<u32>(), flip in any::<usize>()) {
        let head = PolicyHead::of(document.as_bytes(), version.into(), 7);
        let mut row = Vec::new();
        head.encode(&mut row);
        prop_assert_eq!(PolicyHead::decode(&row), Ok(head));
        prop_assert!(head.fits(document.as_bytes()));
        let mut other = document.into_bytes();
        if let Some(byte) = other.get_mut(flip % 200) {
            *byte ^= 1;
            prop_assert!(!head.fits(&other));
        }
    }
}

#[test]
fn notes_are_cut_to_a_row() {
    let note = ChangeNote {
        number: u64::MAX,
        at_ms: u64::MAX,
        actor: "\u{fc}".repeat(100),
        action: "a".repeat(100),
        app: Some("p".repeat(100)),
        changes: (0..50).map(|_| "\u{fc}".repeat(200)).collect(),
    };
    let mut row = Vec::new();
    note.encode(&mut row);
    assert!(row.len() <= 4096, "{} bytes", row.len());
    let read = ChangeNote::decode(&row).unwrap();
    assert_eq!((read.actor.len(), read.changes.len(), read.changes[0].len()), (64, 20, 160));
    assert!(ChangeNote::decode(&row[..row.len() - 1]).is_err());
}
