//! What operators are told and may do: counters, metrics, the log, versions, the audit, and who may.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use crate::{
    backend::Backend,
    rig::{Rig, setup},
    support::wire,
};

const ABILITIES: [&str; 4] = ["read", "read:sensitive", "write", "operator"];

/// A token that may do one thing, for each thing.
fn token_of(ability: &str) -> String {
    format!("e2e-token-that-may-{}-0123456789abcdef", ability.replace(':', "-"))
}

fn bearer(ability: &str) -> String {
    format!("Bearer {}", token_of(ability))
}

fn start() -> Rig {
    let backend = Backend::start();
    let tokens = ABILITIES.map(|ability| {
        format!(r#"{{ name = "may-{ability}", token = "{}", abilities = ["{ability}"] }}"#, token_of(ability))
    });
    let all = r#"{ name = "all", token = "e2e-token-that-may-do-all-0123456789abcdef", abilities = ["read", "read:sensitive", "write", "operator"] }"#;
    let tokens = format!("[{}, {all}]", tokens.join(", "));
    let server = setup(&backend)
        .set("admin.tokens", tokens)
        .set("ingress.trusted_proxies", "127.0.0.1")
        .set("ingress.deny_cidrs", "198.51.100.66")
        .start();
    Rig { server, backend }
}

/// As who may do everything.
fn call(rig: &Rig, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> wire::Reply {
    let headers =
        [&[("authorization", "Bearer e2e-token-that-may-do-all-0123456789abcdef")][..], more].concat();
    rig.api_with(method, path, &headers, body)
}

fn told(rig: &Rig, path: &str) -> Value {
    let reply = call(rig, "GET", path, &[], "");
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

fn put(rig: &Rig, policy: &str) -> Value {
    let reply = call(rig, "PUT", "/apps/shop/abuse", &[], policy);
    assert_eq!(reply.status, 200, "{policy}: {}", reply.text());
    reply.json()
}

#[test]
fn each_call_needs_its_ability_and_says_which() {
    let rig = start();
    let calls: [(&str, &str, &str, &str, &[u16]); 10] = [
        ("GET", "/apps", "", "read", &[200]),
        ("GET", "/apps/shop/abuse", "", "read", &[200]),
        ("GET", "/apps/shop/traffic?window=day", "", "read", &[200]),
        ("GET", "/apps/shop/access-log", "", "read", &[200]),
        ("GET", "/audit", "", "read", &[200]),
        ("GET", "/tokens", "", "read", &[200]),
        ("PUT", "/apps/shop/abuse", "{}", "write", &[200]),
        ("POST", "/apps/shop/abuse/replay", "{}", "read:sensitive", &[200]),
        ("POST", "/tokens", r#"{"name":"x","abilities":["write"]}"#, "write", &[201]),
        ("DELETE", "/tokens/x", "", "write", &[200]),
    ];
    for (method, path, body, needs, good) in calls {
        for (headers, why) in
            [(&[][..], "none"), (&[("authorization", "Bearer nobody-has-this-0123456789abcdef")], "unknown")]
        {
            let reply = rig.api_with(method, path, headers, body);
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (401, "unauthenticated"),
                "{method} {path} {why}"
            );
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{method} {path}");
        }
        for ability in ABILITIES {
            let reply = rig.api_with(method, path, &[("authorization", &bearer(ability))], body);
            if ability == needs {
                assert!(good.contains(&reply.status), "{method} {path}: {}", reply.text());
                continue;
            }
            let error = &reply.json()["error"];
            assert_eq!(
                (reply.status, &error["missing_ability"]),
                (403, &json!(needs)),
                "{method} {path} with {ability}"
            );
            assert!(error["message"].as_str().unwrap().contains(needs), "{error}");
        }
    }
    for (ability, status) in [("read", 200), ("read:sensitive", 403), ("write", 403), ("operator", 403)] {
        let reply =
            wire::get_with(rig.server.admin, "/metrics", &[("authorization", &bearer(ability))]).unwrap();
        assert_eq!(reply.status, status, "{ability}");
        assert!(status == 200 || reply.text().contains("lacks the ability `read`"), "{}", reply.text());
    }
    assert_eq!(wire::get(rig.server.admin, "/metrics").unwrap().status, 401);
    // Nobody makes a token that may do more than its maker's.
    let more = rig.api_with(
        "POST",
        "/tokens",
        &[("authorization", &bearer("write"))],
        r#"{"name":"y","abilities":["operator"]}"#,
    );
    assert_eq!((more.status, &more.json()["error"]["missing_ability"]), (403, &json!("operator")));
    let document = rig.api_with("GET", "/openapi.json", &[], "").json();
    for path in [
        "/apps",
        "/apps/{app}/abuse",
        "/apps/{app}/abuse/replay",
        "/apps/{app}/traffic",
        "/apps/{app}/access-log",
    ] {
        assert!(document["paths"].get(format!("/api/v1{path}")).is_some(), "{path}");
    }
}

#[test]
fn two_operators_do_not_overwrite_each_other() {
    let rig = start();
    let put = |tag: &str, policy: &str| call(&rig, "PUT", "/apps/shop/abuse", &[("if-match", tag)], policy);
    let first = call(&rig, "GET", "/apps/shop/abuse", &[], "");
    assert_eq!((first.header("etag"), &first.json()["version"]), (Some("\"0\""), &json!(0)));
    let saved = put("\"0\"", r#"{"mode":"enforce","rps":5,"burst":10}"#);
    assert_eq!((saved.status, saved.header("etag")), (200, Some("\"1\"")));
    assert_eq!(saved.json()["policy"]["ipv6_prefix"], 64, "what is left out has its default");
    for stale in ["\"0\"", "0", "\"2\""] {
        let stale = put(stale, "{}");
        assert_eq!((stale.status, &stale.json()["error"]["version"]), (412, &json!(1)));
    }
    assert_eq!(put("one", "{}").status, 400);
    assert_eq!(told(&rig, "/apps/shop/abuse")["policy"]["rps"], 5);
    assert_eq!(put("1", r#"{"rps":6,"burst":12}"#).json()["version"], 2);
    assert_eq!(put("*", r#"{"rps":6,"burst":12,"deny_cidrs":["203.0.113.0/24"]}"#).json()["version"], 3);
    assert_eq!(call(&rig, "PUT", "/apps/none/abuse", &[], "{}").status, 404);

    // Every change is in the audit, and refusals are not.
    let audit = told(&rig, "/audit");
    let entries = audit["entries"].as_array().unwrap();
    let changes: Vec<_> = entries.iter().map(|entry| entry["details"].as_str().unwrap()).collect();
    assert_eq!(
        changes,
        [
            "deny_cidrs: +203.0.113.0/24",
            "mode: enforce -> log_only; rps: 5 -> 6; burst: 10 -> 12",
            "mode: log_only -> enforce; rps: 0 -> 5; burst: 0 -> 10"
        ]
    );
    for entry in entries {
        assert_eq!(
            (&entry["actor"], &entry["action"], &entry["subject"]),
            (&json!("all"), &json!("policy_changed"), &json!("app shop"))
        );
    }
    call(&rig, "POST", "/tokens", &[], r#"{"name":"ci","abilities":["read"]}"#);
    call(&rig, "DELETE", "/tokens/ci", &[], "");
    let entries = told(&rig, "/audit?limit=2")["entries"].clone();
    let actions: Vec<_> = entries.as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions, ["token_revoked", "token_created"]);
}

/// One request of each kind, told in each window, in the metrics, and in the log; and never whose they were.
#[test]
fn what_is_counted_adds_up_and_names_nobody() {
    let rig = start();
    let lists =
        r#""deny_cidrs":["203.0.113.0/24"],"deny_user_agents":["evil"],"deny_missing_user_agent":true"#;
    let ask = |client: &str, agent: &str| {
        let headers: &[(&str, &str)] = &[("X-Forwarded-For", client), ("User-Agent", agent)];
        rig.get("/cart?token=secret-query", headers).status
    };
    let mut statuses = Vec::new();
    for (mode, client) in [("log_only", "192.0.2.71"), ("enforce", "192.0.2.72")] {
        put(&rig, &format!(r#"{{"mode":"{mode}","rps":0.001,"burst":2,{lists}}}"#));
        let requests = [
            (client, "SecretBrowser/1"),
            (client, "SecretBrowser/1"),
            (client, "SecretBrowser/1"),
            ("203.0.113.73", "SecretBrowser/1"),
            ("192.0.2.74", "EvilBot-74"),
            ("192.0.2.75", ""),
            ("198.51.100.66", "x"),
        ];
        statuses.push(requests.map(|(client, agent)| ask(client, agent)));
    }
    assert_eq!(statuses, [[200, 200, 200, 200, 200, 200, 403], [200, 200, 429, 403, 403, 403, 403]]);
    let each = json!({"rate_limit": 1, "deny_cidr": 1, "deny_user_agent": 1, "missing_user_agent": 1});
    for window in ["minute", "hour", "day"] {
        let expected =
            json!({"window": window, "allowed": 4, "would_block": each, "blocked": each, "fail_open": 0});
        assert_eq!(told(&rig, &format!("/apps/shop/abuse?window={window}"))["counters"], expected);
        let traffic = told(&rig, &format!("/apps/shop/traffic?window={window}"));
        assert_eq!((&traffic["counters"], &traffic["firewall"]), (&expected, &json!(2)));
        let series = traffic["series"].as_array().unwrap();
        let sum = |field: &str| series.iter().map(|step| step[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!(
            ["allowed", "would_block", "blocked", "fail_open", "firewall"].map(sum),
            [4, 4, 4, 0, 2],
            "{window}"
        );
    }
    let metrics =
        wire::get_with(rig.server.admin, "/metrics", &[("authorization", &bearer("read"))]).unwrap().text();
    let outcomes = ["would_block", "blocked"].into_iter().flat_map(|outcome| {
        ["rate_limit", "deny_cidr", "deny_user_agent", "missing_user_agent"]
            .map(|reason| (outcome, reason, 1))
    });
    for (outcome, reason, count) in outcomes.chain([("allowed", "", 4)]) {
        let line = format!(
            "http_abuse_requests_total{{app=\"shop\",outcome=\"{outcome}\",reason=\"{reason}\"}} {count}\n"
        );
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    for line in
        ["http_abuse_fail_open_total{app=\"shop\"} 0\n", "http_firewall_refused_total{app=\"shop\"} 2\n"]
    {
        assert!(metrics.contains(line), "{line}");
    }
    let labels: BTreeSet<_> =
        metrics.lines().filter(|line| line.starts_with("http_abuse_requests_total{")).collect();
    assert_eq!(labels.len(), 9, "as many series as there are outcomes");

    let log = told(&rig, "/apps/shop/access-log?limit=14");
    let of_log: Vec<_> = log["entries"].as_array().unwrap().iter().rev().collect();
    let statuses: Vec<u64> = of_log.iter().map(|entry| entry["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 403, 200, 200, 429, 403, 403, 403, 403]);
    assert_eq!(
        (&of_log[9]["outcome"], &of_log[9]["reason"], &of_log[9]["path"]),
        (&json!("blocked"), &json!("rate_limit"), &json!("/cart"))
    );
    let replay = call(&rig, "POST", "/apps/shop/abuse/replay", &[], r#"{"rps":0.001,"burst":1}"#).json();
    assert_eq!(
        (&replay["requests"], &replay["would_block"]["total"]),
        (&json!(12), &json!(7)),
        "firewalled ones are none of the policy's"
    );
    assert_eq!(replay["top_clients"][0], json!({"client": "192.0.2.71", "requests": 3, "would_block": 2}));
    assert!(replay["from_ms"].as_u64() <= replay["to_ms"].as_u64());
    let places = ["/apps", "/apps/shop/abuse", "/apps/shop/traffic", "/apps/shop/access-log", "/audit"];
    let texts = places.map(|path| told(&rig, path).to_string());
    for text in texts.iter().chain([&metrics, &rig.server.log()]) {
        for secret in
            ["192.0.2.7", "203.0.113.73", "198.51.100.66", "SecretBrowser", "EvilBot-74", "secret-query"]
        {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    // Nor is any of it on the disk.
    let (data, _kept) = (rig.server.data_directory(), rig.server.setup().clone());
    assert_eq!(rig.server.terminate().status.code(), Some(0));
    let files = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.is_file()).collect();
    assert!(files.iter().any(|path| path.extension().is_some_and(|kind| kind == "log")), "{files:?}");
    for path in files {
        let bytes = fs::read(&path).unwrap();
        for secret in ["192.0.2.71", "203.0.113.73", "SecretBrowser", "secret-query"] {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} in {}", path.display());
        }
    }
}

/// A dashboard of metrics that nobody has shows nothing, and nobody notices.
#[test]
fn the_dashboard_for_grafana_asks_for_what_there_is() {
    let rig = start();
    rig.get("/echo", &[("X-Forwarded-For", "192.0.2.1")]);
    let metrics =
        wire::get_with(rig.server.admin, "/metrics", &[("authorization", &bearer("read"))]).unwrap().text();
    let names: BTreeSet<&str> = metrics.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../../docs/grafana/tidegate.json")).unwrap();
    let mut asked = BTreeSet::new();
    expressions(&dashboard, &mut asked);
    assert!(asked.len() >= 6, "{asked:?}");
    for name in &asked {
        assert!(names.contains(name.as_str()), "{name} is not among {names:?}");
    }
}

/// The metrics that a dashboard's queries name.
fn expressions(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for name in ["expr", "query", "definition"] {
                let words = fields.get(name).and_then(Value::as_str).into_iter();
                let words =
                    words.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
                found.extend(
                    words
                        .filter(|word| word.starts_with("http_") || word.starts_with("tidegate_"))
                        .map(str::to_owned),
                );
            }
            fields.values().for_each(|value| expressions(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}
