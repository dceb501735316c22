//! Policies through the API of the real binary: what each field does, and what is refused of a document.

use serde_json::{Value, json};

use crate::rig::{HOST, Rig};

/// A server behind the proxy 127.0.0.1, so that each case has clients of its own.
fn start() -> Rig {
    Rig::with(|setup| setup.set("ingress.trusted_proxies", "127.0.0.1"))
}

/// Which requests pass: a letter for each, in order, `.` or what the policy found: `r`ate, `c`idr, `a`gent, `m`issing.
fn outcomes(rig: &Rig, requests: &[(&str, &str, &str, &[&str])]) -> String {
    let mut wire = rig.wire();
    let ask = |(client, method, target, agents): &(&str, &str, &str, &[&str])| {
        let agents: String = agents.iter().map(|agent| format!("User-Agent: {agent}\r\n")).collect();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {HOST}\r\nX-Forwarded-For: {client}\r\nContent-Length: 0\r\n{agents}\r\n"
        );
        if *method == "HEAD" {
            // Its answer tells a length and has no body.
            let mut own = rig.wire();
            own.send(format!("{head}GET /end HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nX-Forwarded-For: 203.0.113.250\r\n\r\n").as_bytes()).unwrap();
            let answer = own.until_closed().unwrap();
            return if answer.starts_with(b"HTTP/1.1 200") { '.' } else { 'r' };
        }
        let reply = wire.exchange(head.as_bytes()).unwrap();
        match reply.status {
            200 => '.',
            429 => 'r',
            403 => last_reason(rig),
            status => panic!("{status}: {}", reply.text()),
        }
    };
    requests.iter().map(ask).collect()
}

/// Why the newest request was refused: who asks is not told.
fn last_reason(rig: &Rig) -> char {
    let log = rig.told("/apps/shop/access-log?limit=1");
    match log["entries"][0]["reason"].as_str() {
        Some("deny_cidr") => 'c',
        Some("deny_user_agent") => 'a',
        Some("missing_user_agent") => 'm',
        other => panic!("{other:?}"),
    }
}

const ANY: &[&str] = &["curl/8"];

#[test]
fn what_each_field_does() {
    let rig = start();
    let of = |client: &'static str, count: usize| vec![(client, "GET", "/echo", ANY); count];
    let asks = |methods: &[(&'static str, &'static str)], client: &'static str| {
        methods.iter().map(|(method, target)| (client, *method, *target, ANY)).collect::<Vec<_>>()
    };
    let enforce = |more: Value| {
        let mut policy = json!({"mode": "enforce"});
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        policy.to_string()
    };
    let check = |what: &str, policy: Value, requests: Vec<(&str, &str, &str, &[&str])>, expected: &str| {
        rig.put(&enforce(policy));
        assert_eq!(outcomes(&rig, &requests), expected, "{what}");
    };
    check("no limit", json!({}), of("192.0.2.1", 30), &".".repeat(30));
    let slow = json!({"rps": 0.001, "burst": 2});
    check("burst, then the rate", slow.clone(), of("192.0.2.2", 4), "..rr");
    check("each client its own", slow, of("192.0.2.3", 3), "..r");
    check(
        "rps 0 leaves the lists",
        json!({"rps": 0, "burst": 0, "deny_cidrs": ["192.0.2.4"]}),
        [of("192.0.2.4", 1), of("192.0.2.5", 9)].concat(),
        "c.........",
    );
    let listed = json!({"rps": 0.001, "burst": 1, "deny_cidrs": ["192.0.2.0/28",
        {"cidr": "192.0.2.32/28", "note": "gone", "expires_at_ms": 1},
        {"cidr": "192.0.2.48/28", "note": "here", "expires_at_ms": 9_000_000_000_000_u64}, "2001:db8:bad::/48"],
        "allow_cidrs": ["192.0.2.6"]});
    check(
        "lists, and entries that have ended",
        listed.clone(),
        [
            of("192.0.2.7", 2),
            of("192.0.2.33", 1),
            of("192.0.2.49", 1),
            of("2001:db8:bad:1::1", 1),
            of("2001:db8::1", 1),
        ]
        .concat(),
        "cc.cc.",
    );
    check("allowed before all else", listed, of("192.0.2.6", 5), ".....");
    check(
        "allowed even without a User-Agent",
        json!({"deny_missing_user_agent": true, "allow_cidrs": ["192.0.2.8"]}),
        vec![("192.0.2.8", "GET", "/", &[][..]), ("192.0.2.9", "GET", "/", &[])],
        ".m",
    );
    // Denied requests spend nothing: the bucket is full when the list has changed.
    check(
        "denied",
        json!({"rps": 0.001, "burst": 2, "deny_cidrs": ["192.0.2.10"]}),
        of("192.0.2.10", 5),
        "ccccc",
    );
    check("a denied client has spent nothing", json!({"rps": 0.001, "burst": 2}), of("192.0.2.10", 3), "..r");
    check(
        "/64 is one client",
        json!({"rps": 0.001, "burst": 2}),
        [of("2001:db8:1:1::1", 2), of("2001:db8:1:1:ffff::2", 1), of("2001:db8:1:2::1", 1)].concat(),
        "..r.",
    );
    check(
        "/56 is one client",
        json!({"rps": 0.001, "burst": 1, "ipv6_prefix": 56}),
        [of("2001:db8:aa:bb00::1", 1), of("2001:db8:aa:bbff::1", 1), of("2001:db8:aa:bc00::1", 1)].concat(),
        ".r.",
    );
    check(
        "/128 is one client",
        json!({"rps": 0.001, "burst": 1, "ipv6_prefix": 128}),
        [of("2001:db8:2:1::1", 2), of("2001:db8:2:1::2", 1)].concat(),
        ".r.",
    );
    let routes = json!({"rps": 0.001, "burst": 9, "routes": [
        {"path_prefix": "/login", "methods": ["POST"], "rps": 0.001, "burst": 3},
        {"path_prefix": "/data", "rps": 0.001, "burst": 2}]});
    check(
        "a route has every spelling of its path",
        routes.clone(),
        asks(
            &[
                ("POST", "/login"),
                ("POST", "//login"),
                ("POST", "/./login"),
                ("POST", "/x/../login"),
                ("POST", "/LOGIN/"),
                ("POST", "/%6Cogin"),
                ("POST", "/login;v=1"),
                ("POST", "/login?x=1"),
                ("pOsT", "/login"),
                ("GET", "/login"),
                ("POST", "/logout"),
            ],
            "192.0.2.11",
        ),
        "...rrrrrr..",
    );
    check(
        "HEAD is GET, and a preflight spends of the client alone",
        routes.clone(),
        asks(
            &[
                ("HEAD", "/data"),
                ("GET", "/data"),
                ("GET", "/data"),
                ("HEAD", "/data"),
                ("OPTIONS", "/data"),
                ("POST", "/data/x"),
            ],
            "192.0.2.12",
        ),
        "..rr.r",
    );
    check(
        "what a route refuses spends nothing of the client",
        routes,
        [asks(&[("POST", "/data"); 8], "192.0.2.13"), asks(&[("GET", "/"); 8], "192.0.2.13")].concat(),
        &format!("..rrrrrr{}r", ".".repeat(7)),
    );
}

/// One table for all three modes and the replay: patterns, blank User-Agents, several lines.
#[test]
fn user_agents_in_every_mode() {
    let rig = start();
    let table: [(&[&str], char); 14] = [
        (&["Mozilla/5.0 (compatible; ExaBot/3.0)"], 'a'),
        (&["Alexabot/1.0"], 'a'),
        (&["Mozilla/5.0 (compatible; spbot/5.0)"], '.'),
        (&["SPBOT/5.0"], 'a'),
        (&["Googlebot/Nutch-1.7"], 'a'),
        (&["NutchGooglebot"], '.'),
        (&[], 'm'),
        (&[""], 'm'),
        (&["    "], 'm'),
        (&["-"], '.'),
        (&["curl/8", ""], 'm'),
        (&["curl/8", "exabot"], 'a'),
        (&["curl/8"], '.'),
        (&["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"], '.'),
    ];
    let document = |mode: &str| {
        json!({"mode": mode, "deny_missing_user_agent": true, "allow_cidrs": ["198.51.100.0/24"],
            "deny_user_agents": ["exabot", "re:^spbot", "re:\\bnutch\\b", "re:(a+)+$x"]})
        .to_string()
    };
    let requests: Vec<_> = table.iter().map(|(agents, _)| ("192.0.2.1", "GET", "/", *agents)).collect();
    let found: String = table.iter().map(|(_, found)| *found).collect();
    let passes = ".".repeat(found.len());
    for (mode, expected) in [("off", &passes), ("log_only", &passes), ("enforce", &found)] {
        rig.put(&document(mode));
        assert_eq!(&outcomes(&rig, &requests), expected, "{mode}");
    }
    let counts = json!({"deny_user_agent": 5, "missing_user_agent": 4});
    assert_eq!((rig.counted("would_block"), rig.counted("blocked")), (counts.clone(), counts));
    let replay = rig.api("POST", "/apps/shop/abuse/replay", &document("enforce")).json();
    let thrice = json!({"rate_limit": 0, "deny_cidr": 0, "deny_user_agent": 15, "missing_user_agent": 12});
    assert_eq!(replay["would_block"]["by_reason"], thrice);
    // A huge one is looked at as far as its first KiB.
    let huge = format!("{}exabot", "a".repeat(20_000));
    assert_eq!(
        outcomes(&rig, &[("192.0.2.1", "GET", "/", &[&huge]), ("198.51.100.5", "GET", "/", &[])]),
        ".."
    );
}

#[test]
fn every_fault_is_named_and_the_policy_in_force_stays() {
    let rig = start();
    rig.put(r#"{"mode":"enforce","rps":7,"burst":7}"#);
    let long = "x".repeat(257);
    let table: Vec<(Value, Vec<&str>)> = vec![
        (json!([]), vec![""]),
        (json!({"mode": "on"}), vec!["mode"]),
        (json!({"mode": null}), vec!["mode"]),
        (json!({"rps": -1}), vec!["rps"]),
        (json!({"rps": "5", "burst": 5}), vec!["rps"]),
        (json!({"rps": 1_000_001, "burst": 1}), vec!["rps"]),
        (json!({"rps": 0.000_000_1, "burst": 1}), vec!["rps"]),
        (json!({"rps": 5}), vec!["burst"]),
        (json!({"rps": 5, "burst": 0}), vec!["burst"]),
        (json!({"rps": 5, "burst": 1.5}), vec!["burst"]),
        (json!({"rps": 5, "burst": -5}), vec!["burst"]),
        (json!({"burst": 1_000_000_001}), vec!["burst"]),
        (json!({"deny_cidrs": "192.0.2.0/24"}), vec!["deny_cidrs"]),
        (
            json!({"deny_cidrs": ["192.0.2.0/33", "192.0.2.1/24", "x", 5, "192.0.2.0/24"]}),
            vec!["deny_cidrs[0]", "deny_cidrs[1]", "deny_cidrs[2]", "deny_cidrs[3]"],
        ),
        (
            json!({"allow_cidrs": [{"note": "x"}, {"cidr": "x"}, {"cidr": "192.0.2.1", "note": long}, {"cidr": "192.0.2.1", "until": 1},
            {"cidr": "192.0.2.1", "expires_at_ms": -1}]}),
            vec![
                "allow_cidrs[0].cidr",
                "allow_cidrs[1].cidr",
                "allow_cidrs[2].note",
                "allow_cidrs[3].until",
                "allow_cidrs[4].expires_at_ms",
            ],
        ),
        (json!({"deny_cidrs": vec!["192.0.2.1"; 1001]}), vec!["deny_cidrs"]),
        (
            json!({"deny_user_agents": ["", " ", "re:", "re:(", 5, long, "re:(?=x)", "re:(\\w+)\\1", "good"]}),
            vec![
                "deny_user_agents[0]",
                "deny_user_agents[1]",
                "deny_user_agents[2]",
                "deny_user_agents[3]",
                "deny_user_agents[4]",
                "deny_user_agents[5]",
                "deny_user_agents[6]",
                "deny_user_agents[7]",
            ],
        ),
        (json!({"deny_user_agents": ["re:\\w{500}{500}"]}), vec!["deny_user_agents[0]"]),
        (json!({"deny_missing_user_agent": "yes"}), vec!["deny_missing_user_agent"]),
        (json!({"ipv6_prefix": 15}), vec!["ipv6_prefix"]),
        (json!({"ipv6_prefix": 129}), vec!["ipv6_prefix"]),
        (json!({"routes": {}}), vec!["routes"]),
        (
            json!({"routes": [5, {}, {"path_prefix": "x"}, {"path_prefix": "/a//b"}, {"path_prefix": "/x", "rps": 1},
            {"path_prefix": "/x", "methods": ["", "GE T"], "colour": 1}]}),
            vec![
                "routes[0]",
                "routes[1].path_prefix",
                "routes[1].rps",
                "routes[1].burst",
                "routes[2].path_prefix",
                "routes[2].rps",
                "routes[2].burst",
                "routes[3].path_prefix",
                "routes[3].rps",
                "routes[3].burst",
                "routes[4].burst",
                "routes[5].methods[0]",
                "routes[5].methods[1]",
                "routes[5].rps",
                "routes[5].burst",
                "routes[5].colour",
            ],
        ),
        (
            json!({"routes": [{"path_prefix": "/x", "rps": 1, "burst": 1, "methods": []}]}),
            vec!["routes[0].methods"],
        ),
        (json!({"routes": vec![json!({"path_prefix": "/x"}); 33]}), vec!["routes"]),
        (json!({"rsp": 5, "colour": "blue"}), vec!["colour", "rsp"]),
        // All at once.
        (
            json!({"mode": "on", "rps": -1, "burst": -1, "deny_cidrs": ["x"], "deny_user_agents": ["re:("], "ipv6_prefix": 0,
            "deny_missing_user_agent": 1, "allow_cidrs": [1], "routes": [1], "x": 1}),
            vec![
                "rps",
                "burst",
                "mode",
                "deny_cidrs[0]",
                "deny_user_agents[0]",
                "deny_missing_user_agent",
                "allow_cidrs[0]",
                "ipv6_prefix",
                "routes[0]",
                "x",
            ],
        ),
    ];
    for (policy, fields) in table {
        for (method, path) in [("PUT", "/apps/shop/abuse"), ("POST", "/apps/shop/abuse/replay")] {
            let reply = rig.api(method, path, &policy.to_string());
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (422, "invalid_policy"),
                "{policy}: {}",
                reply.text()
            );
            let faults = reply.json()["error"]["faults"].as_array().unwrap().clone();
            let named: Vec<_> =
                faults.iter().map(|fault| fault["field"].as_str().unwrap().to_owned()).collect();
            assert_eq!(named, fields, "{policy}: {faults:?}");
            assert!(faults.iter().all(|fault| !fault["message"].as_str().unwrap().is_empty()), "{faults:?}");
        }
    }
    let no_json = rig.api("PUT", "/apps/shop/abuse", r#"{"mode":"#);
    assert_eq!((no_json.status, no_json.code().as_str()), (422, "invalid_policy"));
    let view = rig.view();
    assert_eq!(
        (&view["version"], &view["policy"]["rps"], &view["policy"]["burst"]),
        (&json!(1), &json!(7), &json!(7))
    );
    assert_eq!(view["status"]["condition"], "Enforcing");
}
