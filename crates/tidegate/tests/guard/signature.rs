//! Who is let in, and that nobody else leaves a trace.

use hmac::{Hmac, Mac};
use serde_json::json;
use sha2::Sha256;
use tidegate_store::clock::wall_ms;

use crate::support::{
    message::{SIGNATURE, incr, one_step, post_with, signature, signature_at, signature_over},
    server::{SECRET, Server, Setup},
    state::{KEY, Watched},
    wire::{self, Reply, Wire},
};

/// What everybody is told whose HMAC is not right.
const GENERIC: &str = "a valid Tidegate-Signature header is required, exactly once";

#[test]
fn the_published_vector_is_told_only_that_its_clock_is_off() {
    let server = Setup::new().set("guard.secrets", "secret-for-test-vectors-0123456789abcdef").start();
    let body = br#"{"op":"AAAAAAAAAAAAAAAAAAAAAA","family":"proxy","steps":[]}"#;
    let v1 = "a44094081a10140d24910dec06bc9982c54f737a1281221e8fc09ce33bab372b";
    let header = format!("t=1764460800000,v1={v1}");

    let right = exchange(&server, &post_with(&[(SIGNATURE, &header)], body));
    assert_eq!((right.status, right.code().as_str()), (401, "unauthenticated"));
    assert!(right.message().contains("off by"), "{}", right.message());

    let wrong = exchange(&server, &post_with(&[(SIGNATURE, &header.replace("v1=a", "v1=b"))], body));
    assert_eq!((wrong.status, wrong.message().as_str()), (401, GENERIC));
}

#[test]
fn another_hand_makes_the_same_signature() {
    let server = Server::start();
    let body = one_step("by hand", json!([incr("k")])).to_string();
    let header = signed_over(&wall_ms().to_string(), body.as_bytes());
    let reply = exchange(&server, &post_with(&[(SIGNATURE, &header)], body.as_bytes()));
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[test]
fn headers_that_are_not_one_valid_signature() {
    let server = Server::start();
    let watched = Watched::new(&server, "malformed");
    let body = one_step("malformed", json!([incr(KEY)])).to_string();
    let body = body.as_bytes();
    let now_ms = wall_ms();
    let good = signature_at(SECRET, now_ms, body);
    let (t, v1) = good.split_once(",v1=").unwrap();
    let bad = signature_at(SECRET, now_ms, b"another body");

    let one = |value: String| vec![value];
    let table = [
        ("none", vec![]),
        ("good and good", vec![good.clone(), good.clone()]),
        ("good and bad", vec![good.clone(), bad.clone()]),
        ("bad and good", vec![bad, good.clone()]),
        ("comma-joined", one(format!("{good}, {good}"))),
        ("comma-joined without a space", one(format!("{good},{good}"))),
        ("two v1", one(format!("{good},v1={v1}"))),
        ("another field", one(format!("{good},v2=0"))),
        ("a comma at the end", one(format!("{good},"))),
        ("the other order", one(format!("v1={v1},{t}"))),
        ("a space between", one(format!("{t}, v1={v1}"))),
        ("names in upper case", one(good.to_uppercase())),
        ("digits in upper case", one(format!("{t},v1={}", v1.to_uppercase()))),
        ("cut by one", one(format!("{t},v1={}", &v1[..63]))),
        ("cut by two", one(format!("{t},v1={}", &v1[..62]))),
        ("one more", one(format!("{good}0"))),
        ("two more", one(format!("{good}00"))),
        ("twice as long", one(format!("{good}{v1}"))),
        ("no digits", one(format!("{t},v1="))),
        ("not hexadecimal", one(format!("{t},v1={}g", &v1[..63]))),
        ("base64", one(format!("{t},v1=pECUCBoQFA0kkQ3sBryZgsVPc3oSgSIeCPwJzjO6tys="))),
        ("the first half right", one(format!("{t},v1={}{}", &v1[..32], "0".repeat(32)))),
        ("no time", one(format!("v1={v1}"))),
        ("another version", one(format!("{t},v0={v1}"))),
        ("empty", one(String::new())),
        ("a key of no bytes", one(hmac_header("", &now_ms.to_string(), body))),
        ("10 000 characters", one(format!("{t},v1={}", "a".repeat(10_000)))),
        ("bytes that are no text", one(format!("{t},v1={}é", &v1[..62]))),
    ];
    for (what, values) in table {
        let headers: Vec<_> = values.iter().map(|value| (SIGNATURE, value.as_str())).collect();
        assert_generic(what, &exchange(&server, &post_with(&headers, body)));
    }
    watched.assert_unchanged("signatures that are not valid");
}

/// HTTP itself has no NUL in a header, so that this one does not even reach the check.
#[test]
fn a_nul_in_the_header() {
    let server = Server::start();
    let watched = Watched::new(&server, "nul");
    let body = one_step("nul", json!([incr(KEY)])).to_string();
    let header = format!("{}\0", signature(SECRET, body.as_bytes()));
    let reply = exchange(&server, &post_with(&[(SIGNATURE, &header)], body.as_bytes()));
    assert!(matches!(reply.status, 400 | 401), "{reply:?}");
    watched.assert_unchanged("a NUL");
}

#[test]
fn times_that_are_not_unix_milliseconds() {
    let server = Server::start();
    let watched = Watched::new(&server, "times");
    let body = one_step("times", json!([incr(KEY)])).to_string();
    let now_ms = wall_ms();
    // Each with a right HMAC over just these characters.
    let malformed = [
        "",
        "-1",
        "NaN",
        "1e9",
        "1.5",
        "0x10",
        "00",
        "18000000000000000000",
        "99999999999999999",
        "2025-11-30T00:00:00Z",
        &format!("+{now_ms}"),
        &format!("0{now_ms}"),
        &format!("{now_ms} "),
        &format!(" {now_ms}"),
    ];
    for t in malformed {
        let header = signed_over(t, body.as_bytes());
        assert_generic(t, &exchange(&server, &post_with(&[(SIGNATURE, &header)], body.as_bytes())));
    }
    let off = [
        "0".to_owned(),
        (now_ms / 1000).to_string(),
        (now_ms * 1000).to_string(),
        (now_ms - 70_000).to_string(),
        (now_ms + 70_000).to_string(),
    ];
    for t in off {
        let header = signed_over(&t, body.as_bytes());
        let reply = exchange(&server, &post_with(&[(SIGNATURE, &header)], body.as_bytes()));
        assert_eq!((reply.status, reply.code().as_str()), (401, "unauthenticated"), "{t}");
        assert!(reply.message().contains("unix time in milliseconds"), "{t}: {}", reply.message());
    }
    watched.assert_unchanged("times that are off");
    for t_ms in [now_ms - 40_000, now_ms + 40_000] {
        let body = one_step("skew", json!([incr("k")])).to_string();
        let header = signed_over(&t_ms.to_string(), body.as_bytes());
        let reply = exchange(&server, &post_with(&[(SIGNATURE, &header)], body.as_bytes()));
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[test]
fn a_signature_is_good_for_its_bytes_method_and_target_only() {
    let server = Server::start();
    let watched = Watched::new(&server, "moved");
    let body = one_step("moved", json!([incr(KEY)])).to_string();
    let good = signature(SECRET, body.as_bytes());
    let now_ms = wall_ms();

    let other = body.replace("\"by\":1", "\"by\":2");
    assert_ne!(other, body);
    let spaced = body.replace(':', ": ");
    for (what, body) in
        [("another amount", other), ("other white space", spaced), ("one byte more", format!("{body} "))]
    {
        assert_generic(what, &exchange(&server, &post_with(&[(SIGNATURE, &good)], body.as_bytes())));
    }
    for (method, target) in
        [("GET", "/v1/rpc"), ("PUT", "/v1/rpc"), ("POST", "/v1/rpc?"), ("POST", "/v1/"), ("POST", "/v1/rpc/")]
    {
        let header = signature_over(SECRET, now_ms, method, target, body.as_bytes());
        let reply = exchange(&server, &post_with(&[(SIGNATURE, &header)], body.as_bytes()));
        assert_generic(&format!("signed for {method} {target}"), &reply);
    }
    for (method, target, status) in [
        ("POST", "/v1/rpc?family=offline", 401),
        ("PUT", "/v1/rpc", 405),
        ("post", "/v1/rpc", 405),
        ("POST", "/v1/rpc/", 404),
        ("POST", "/v1/other", 404),
        ("POST", "/V1/RPC", 404),
        ("POST", "/v1/%72pc", 404),
        ("POST", "//v1/rpc", 404),
    ] {
        let request = wire::request(method, target, &[(SIGNATURE, &good)], body.as_bytes());
        assert_eq!(exchange(&server, &request).status, status, "{method} {target}");
    }
    watched.assert_unchanged("signatures for something else");
}

#[test]
fn each_spelling_of_the_same_json_has_its_own_signature() {
    let server = Server::start();
    let op = crate::support::message::fresh_op();
    let partition = crate::support::message::digest("spelling");
    let key = crate::support::message::digest("k");
    let command = |value: &str| {
        format!(r#"{{"cmd":"kv.set","key":"{key}","value":"{value}","ttl_ms":60000,"mode":"always"}}"#)
    };
    let body = |command: String| {
        format!(
            r#"{{"op":"{op}","family":"proxy","steps":[{{"partition":"{partition}","commands":[{command}]}}]}}"#
        )
    };
    let escaped = body(command("\\u00e9")).replace(',', ",  ");
    let plain = body(command("é"));
    for (one, other) in [(&escaped, &plain), (&plain, &escaped)] {
        let crossed = post_with(&[(SIGNATURE, &signature(SECRET, one.as_bytes()))], other.as_bytes());
        assert_generic("crossed", &exchange(&server, &crossed));
        let reply = server.post(one.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(server.counter("spelling", "k"), json!("é"));
}

#[test]
fn a_refused_signature_costs_the_store_nothing() {
    let server = Server::start();
    let watched = Watched::new(&server, "costs nothing");
    let numbers = ["tidegate_guard_commands_total", "tidegate_store_entries", "tidegate_store_jobs_total"];
    let before = numbers.map(|name| server.metric(name));
    let refused_name = r#"tidegate_guard_rpcs_total{ending="unauthenticated"}"#;
    let refused = server.metric(refused_name);
    for _ in 0..20 {
        let body = one_step("costs nothing", json!([incr(KEY)])).to_string();
        let header = signature("another-secret-0123456789abcdef-0123456", body.as_bytes());
        assert_generic("", &exchange(&server, &post_with(&[(SIGNATURE, &header)], body.as_bytes())));
    }
    assert_eq!(numbers.map(|name| server.metric(name)), before);
    assert_eq!(server.metric(refused_name), refused + 20);
    watched.assert_unchanged("twenty refusals");
}

#[track_caller]
fn exchange(server: &Server, request: &[u8]) -> Reply {
    let exchanged = Wire::tcp(server.guard).and_then(|mut wire| wire.exchange(request));
    exchanged.unwrap_or_else(|error| panic!("no answer: {error}"))
}

/// One and the same answer, whatever was wrong.
#[track_caller]
fn assert_generic(what: &str, reply: &Reply) {
    assert_eq!(reply.status, 401, "{what}: {}", reply.text());
    assert_eq!(reply.json(), json!({"error": {"code": "unauthenticated", "message": GENERIC}}), "{what}");
}

/// The header's value as a client in another language makes it, over whatever stands for t.
fn signed_over(t: &str, body: &[u8]) -> String {
    hmac_header(SECRET, t, body)
}

fn hmac_header(secret: &str, t: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("v1\n{t}\nPOST\n/v1/rpc\n").as_bytes());
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={t},v1={hex}")
}
