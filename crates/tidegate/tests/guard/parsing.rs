//! What is not JSON, or says it in another way than it should: refused with its place, and nothing changes.

use serde_json::json;

use crate::support::{
    message::{digest, fresh_op, incr, one_step},
    server::Server,
    state::{KEY, Watched},
};

/// Each row replaces a part of a good request's text; the message names the place.
#[test]
fn requests_that_are_nearly_right() {
    let server = Server::start();
    let watched = Watched::new(&server, "parsing");
    let by = "\"by\":1";
    let table = [
        (by, "\"by\":1,\"by\":100", "steps[0].commands[0]"),
        (by, "\"by\":1.0", "steps[0].commands[0].by"),
        (by, "\"by\":1e0", "steps[0].commands[0].by"),
        (by, "\"by\":1e18", "steps[0].commands[0].by"),
        (by, "\"by\":1e309", ""),
        (by, "\"by\":0.5", "steps[0].commands[0].by"),
        (by, "\"by\":\"1\"", "steps[0].commands[0].by"),
        (by, "\"by\":null", "steps[0].commands[0].by"),
        (by, "\"by\":true", "steps[0].commands[0].by"),
        (by, "\"by\":[1]", "steps[0].commands[0].by"),
        (by, "\"by\":9223372036854775808", "steps[0].commands[0].by"),
        (by, "\"by\":-9223372036854775808", "steps[0].commands[0].by"),
        (by, "\"by\":123456789012345678901234567890", "steps[0].commands[0].by"),
        (by, "\"by\":0x10", ""),
        (by, "\"by\":01", ""),
        (by, "\"by\":+1", ""),
        (by, "\"by\":NaN", ""),
        (by, "\"by\":-", ""),
        (by, "\"by\":1,\"BY\":1", "steps[0].commands[0]"),
        (by, "\"by\":1,\"more\":1", "steps[0].commands[0]"),
        (by, "\"by\":1,\"value\":\"v\"", "steps[0].commands[0]"),
        (by, "\"by\":1,\"cost\":1", "steps[0].commands[0]"),
        ("\"kv.incr\"", "\"kv.increment\"", "steps[0].commands[0].cmd"),
        ("\"kv.incr\"", "\"KV.INCR\"", "steps[0].commands[0].cmd"),
        ("\"kv.incr\"", "\"\"", "steps[0].commands[0].cmd"),
        ("\"kv.incr\"", "null", "steps[0].commands[0].cmd"),
        ("\"cmd\":\"kv.incr\",", "", "steps[0].commands[0]"),
        ("\"ttl_ms\":600000", "\"ttl_ms\":\"600000\"", "steps[0].commands[0].ttl_ms"),
        (",\"ttl_ms\":600000", "", "steps[0].commands[0]"),
        ("\"family\":\"proxy\"", "\"family\":null", "family"),
        ("\"family\":\"proxy\"", "\"family\":7", "family"),
        ("\"family\":\"proxy\",", "", ""),
        ("\"family\":\"proxy\"", "\"family\":\"proxy\",\"family\":\"proxy\"", ""),
        ("\"family\":\"proxy\"", "\"family\":\"proxy\",\"unknown\":1", ""),
        ("\"family\":\"proxy\"", "\"family\":\"proxy\",\"good\":1", "good"),
        ("\"family\":\"proxy\"", "\"family\":\"proxy\",\"good\":\"true\"", "good"),
        ("\"family\":\"proxy\"", "\"family\":\"proxy\",\"mode\":null", "mode"),
        ("\"family\":\"proxy\"", "\"family\":\"proxy\",\"fairness\":null", "fairness"),
        ("\"family\":\"proxy\"", "\"family\":\"proxy\",\"fairness\":[]", "fairness"),
        ("\"family\":\"proxy\"", "\"family\":\"proxy\",\"fairness\":{\"session\":1}", "fairness"),
        ("\"steps\":[", "\"steps\":[null,", "steps[0]"),
        ("\"steps\":[", "\"steps\":[[],", "steps[0]"),
        ("\"steps\":[", "\"steps\":[{},", "steps[0]"),
        ("\"commands\":[", "\"commands\":[[],", "steps[0].commands[0]"),
        ("\"commands\":[", "\"commands\":[\"kv.get\",", "steps[0].commands[0]"),
        ("\"commands\":[", "\"extra\":1,\"commands\":[", "steps[0]"),
    ];
    for (good, bad, place) in table {
        let text = one_step("parsing", json!([incr(KEY)])).to_string();
        assert_eq!(text.matches(good).count(), 1, "{good} in {text}");
        let reply = server.post(text.replace(good, bad).as_bytes());
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{bad}: {}", reply.text());
        assert!(reply.message().starts_with(place), "{bad}: {}", reply.message());
    }
    watched.assert_unchanged("requests that are nearly right");
}

#[test]
fn bodies_that_are_no_request() {
    let server = Server::start();
    let watched = Watched::new(&server, "no request");
    let good = one_step("no request", json!([incr(KEY)])).to_string();
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("white space", b" \n".to_vec()),
        ("null", b"null".to_vec()),
        ("an array", format!("[{good}]").into_bytes()),
        ("a text", json!(good).to_string().into_bytes()),
        ("two requests", format!("{good}{good}").into_bytes()),
        ("data behind it", format!("{good}x").into_bytes()),
        ("a NUL behind it", format!("{good}\0").into_bytes()),
        ("a byte order mark", format!("\u{feff}{good}").into_bytes()),
        ("cut", good.as_bytes()[..good.len() - 1].to_vec()),
        ("a comment", format!("/* */{good}").into_bytes()),
        ("a comma at the end", format!("{},}}", &good[..good.len() - 1]).into_bytes()),
        ("no UTF-8", [good.as_bytes(), b"\xff"].concat()),
        ("a control character in a text", good.replace("proxy", "pro\u{1}xy").into_bytes()),
        ("half a surrogate", good.replace("proxy", "\\ud800").into_bytes()),
        ("8 000 brackets", "[".repeat(8000).into_bytes()),
        ("8 000 braces", "{\"a\":".repeat(3000).into_bytes()),
        ("deep in a field", good.replace("\"by\":1", &format!("\"by\":{}", "[".repeat(8000))).into_bytes()),
        ("compressed", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec()),
    ];
    for (what, body) in table {
        let reply = server.post(&body);
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{what}: {}", reply.text());
        assert!(reply.message().len() < 300, "{what}: {}", reply.message());
    }
    watched.assert_unchanged("bodies that are no request");
    assert_eq!(server.post(good.as_bytes()).status, 200);
}

/// What serialisers differ in is not refused.
#[test]
fn white_space_order_and_escapes_are_free() {
    let server = Server::start();
    let (partition, key) = (digest("free"), digest("k"));
    let text = format!(
        "\r\n\t{{ \"steps\" : [ {{ \"commands\" : [ {{ \"ttl_ms\" : 60000 , \"key\" : \"{key}\", \
         \"\\u0063md\" : \"kv\\u002eincr\", \"by\" : -0 }} ] , \"partition\" : \"{partition}\" }} ],\
         \"op\":\"{}\",\n\"family\":\"proxy\" }} \n",
        fresh_op()
    );
    let reply = server.post(text.as_bytes());
    // Minus zero is a whole number in JSON; a reader may take it for a fraction and refuse it.
    assert!(matches!(reply.status, 200 | 400), "{}", reply.text());
    let reply = server.post(text.replace("-0", "3").as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(server.counter("free", "k"), json!("3"));
}
