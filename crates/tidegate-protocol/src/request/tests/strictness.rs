//! JSON that says more, less or other than a request may.

use alloc::vec;

use super::*;

const GET: &str = r#"{"cmd":"kv.get","key":"K1"}"#;

#[test]
fn the_documented_request() {
    let json = with_fields(
        r#""mode":"independent","good":true,"fairness":{"source":"K1","networks":[{"prefix":48,"digest":"K2"},
        {"prefix":56,"digest":"K3"}],"principal":"K4"},"steps":[{"partition":"K5","commands":[
        {"cmd":"win.hit","windows":[{"key":"K6","limit":5,"period_ms":60000,"algorithm":"sliding"}]}]}]"#,
    );
    let expected = Request::new(
        OperationId::parse("9m3V0rG1TqyXo6mZyJmQ0w").unwrap(),
        Family::parse("password").unwrap(),
    )
    .independent()
    .good()
    .fairness(
        Fairness::default().source(key("1")).network(48, key("2")).network(56, key("3")).principal(key("4")),
    )
    .step(key("5"), [Command::hit([Window::sliding(key("6"), 5, 60_000)])]);
    assert_eq!(parse(&json), Ok(expected));
}

#[test]
fn every_command_and_its_defaults() {
    let (k1, k2) = (key("1"), key("2"));
    let budgets = vec![Budget::new(k1, 10, 900_000), Budget::new(k2, 20, 3_600_000)];
    let budgets_json = r#""budgets":[{"key":"K1","limit":10,"period_ms":900000},{"key":"K2","limit":20,"period_ms":3600000}]"#;
    let reserve = |target, cost| Command::Reserve { budgets: budgets.clone(), target, cost };
    let set = |ttl_ms, mode, keep_ttl| Command::Set { key: k1, value: "v\n".into(), ttl_ms, mode, keep_ttl };
    let receipt = ReceiptId::parse("AAAAAAAAAAAAAAAAAAAAAA").unwrap();
    let table = [
        (r#"{"cmd":"win.hit","windows":[{"key":"K1","limit":0,"period_ms":1000}]}"#.into(), Command::hit([Window::sliding(k1, 0, 1000)])),
        (
            r#"{"windows":[{"key":"K1","limit":1,"period_ms":1000,"algorithm":"fixed"},{"algorithm":"bucket","key":"K2","limit":1,"period_ms":1000}],"cost":0,"cmd":"win.hit"}"#.into(),
            Command::hit([Window::fixed(k1, 1, 1000), Window::bucket(k2, 1, 1000)]).costing(0),
        ),
        (GET.into(), Command::get(k1)),
        (r#"{"cmd":"kv.set","key":"K1","value":"v\n","ttl_ms":1000}"#.into(), set(Some(1000), SetMode::Always, false)),
        (r#"{"cmd":"kv.set","key":"K1","value":"v\u000a","ttl_ms":1000,"mode":"nx","keep_ttl":false}"#.into(), set(Some(1000), SetMode::Nx, false)),
        (r#"{"cmd":"kv.set","key":"K1","value":"v\n","mode":"xx","keep_ttl":true}"#.into(), set(None, SetMode::Xx, true)),
        (r#"{"cmd":"kv.set","key":"K1","value":"v\n","ttl_ms":1000,"keep_ttl":true}"#.into(), set(Some(1000), SetMode::Always, true)),
        (r#"{"cmd":"kv.del","key":"K1"}"#.into(), Command::delete(k1)),
        (r#"{"cmd":"kv.ttl","key":"K1"}"#.into(), Command::ttl(k1)),
        (r#"{"cmd":"kv.expire","key":"K1","ttl_ms":1000}"#.into(), Command::expire(k1, 1000)),
        (r#"{"cmd":"kv.incr","key":"K1","ttl_ms":1000}"#.into(), Command::increment(k1, 1, 1000)),
        (r#"{"cmd":"kv.incr","key":"K1","by":-5,"ttl_ms":1000}"#.into(), Command::increment(k1, -5, 1000)),
        (format!(r#"{{"cmd":"res.reserve",{budgets_json}}}"#), reserve(1, 1)),
        (format!(r#"{{"cmd":"res.reserve",{budgets_json},"target":0,"cost":3}}"#), reserve(0, 3)),
        (format!(r#"{{"cmd":"res.reserve","target":"K1",{budgets_json}}}"#), reserve(0, 1)),
        (r#"{"cmd":"res.refund","receipt":"AAAAAAAAAAAAAAAAAAAAAA"}"#.into(), Command::refund(receipt)),
    ];
    for (json, expected) in table {
        let json: String = json;
        assert_eq!(parse_command(&json), Ok(expected), "{json}");
    }
}

#[test]
fn places_of_commands() {
    let window = |rest: &str| {
        format!(
            r#"{{"cmd":"win.hit","windows":[{{"key":"K1","limit":5,"period_ms":1000}},{{"key":"K2",{rest}}}]}}"#
        )
    };
    let command = "steps[0].commands[0]";
    let table = [
        // Unknown, missing and stray.
        (r#"{"cmd":"kv.get","key":"K1","k":1}"#.into(), "steps[0].commands[0].k", "unknown field `k`"),
        (r#"{"cmd":"kv.get"}"#.into(), command, "missing field `key`"),
        (r#"{"key":"K1"}"#.into(), command, "missing field `cmd`"),
        (r#"{"cmd":"kv.get","key":"K1","ttl_ms":1000}"#.into(), command, "`ttl_ms` is not a field of kv.get"),
        (r#"{"cmd":"kv.get","key":"K1","target":0}"#.into(), command, "`target` is not a field of kv.get"),
        (
            r#"{"cmd":"win.hit","key":"K1","windows":[{"key":"K1","limit":1,"period_ms":1000}]}"#.into(),
            command,
            "`key` is not a field of win.hit",
        ),
        (
            r#"{"cmd":"kv.set","key":"K1","value":"v","ttl_ms":1000,"by":1}"#.into(),
            command,
            "`by` is not a field of kv.set",
        ),
        (
            r#"{"cmd":"kv.incr","key":"K1","ttl_ms":1000,"mode":"nx"}"#.into(),
            command,
            "`mode` is not a field of kv.incr",
        ),
        (
            r#"{"cmd":"res.refund","receipt":"AAAAAAAAAAAAAAAAAAAAAA","cost":1}"#.into(),
            command,
            "`cost` is not a field of res.refund",
        ),
        (
            r#"{"cmd":"kv.GET","key":"K1"}"#.into(),
            "steps[0].commands[0].cmd",
            "must be a command (win.hit, kv.get,",
        ),
        (r#"{"cmd":"flushall"}"#.into(), "steps[0].commands[0].cmd", "must be a command"),
        (r#"{"cmd":{"kv.get":null},"key":"K1"}"#.into(), "steps[0].commands[0].cmd", "expected a command"),
        // Twice.
        (
            r#"{"cmd":"kv.incr","key":"K1","by":1,"by":100,"ttl_ms":1000}"#.into(),
            command,
            "duplicate field `by`",
        ),
        (r#"{"cmd":"kv.get","key":"K1","\u006bey":"K1"}"#.into(), command, "duplicate field `key`"),
        // No null, no other types.
        (r#"{"cmd":"kv.get","key":null}"#.into(), "steps[0].commands[0].key", "null"),
        (
            r#"{"cmd":"kv.set","key":"K1","value":"v","ttl_ms":null}"#.into(),
            "steps[0].commands[0].ttl_ms",
            "null",
        ),
        (
            r#"{"cmd":"kv.set","key":"K1","value":"v","ttl_ms":1000,"mode":null}"#.into(),
            "steps[0].commands[0].mode",
            "null",
        ),
        (
            r#"{"cmd":"kv.set","key":"K1","value":"v","ttl_ms":1000,"keep_ttl":null}"#.into(),
            "steps[0].commands[0].keep_ttl",
            "null",
        ),
        (
            r#"{"cmd":"kv.set","key":"K1","value":"v","ttl_ms":1000,"keep_ttl":0}"#.into(),
            "steps[0].commands[0].keep_ttl",
            "expected a boolean",
        ),
        (
            r#"{"cmd":"kv.set","key":"K1","value":5,"ttl_ms":1000}"#.into(),
            "steps[0].commands[0].value",
            "expected a string",
        ),
        (r#"{"cmd":"kv.incr","key":"K1","by":null,"ttl_ms":1000}"#.into(), "steps[0].commands[0].by", "null"),
        (r#"{"cmd":"win.hit","windows":null}"#.into(), "steps[0].commands[0].windows", "null"),
        (r#"{"cmd":"win.hit","windows":{}}"#.into(), "steps[0].commands[0].windows", "expected a sequence"),
        (r#"["kv.get","K1"]"#.into(), command, "expected an object"),
        (
            r#"{"cmd":"win.hit","windows":[["K1",5,1000]]}"#.into(),
            "steps[0].commands[0].windows[0]",
            "expected an object",
        ),
        (
            r#"{"cmd":"res.reserve","budgets":[["K1",5,1000]]}"#.into(),
            "steps[0].commands[0].budgets[0]",
            "expected an object",
        ),
        (
            r#"{"cmd":"res.reserve","budgets":[{"key":"K1","limit":5,"period_ms":1000}],"target":null}"#
                .into(),
            "steps[0].commands[0].target",
            "null",
        ),
        (
            r#"{"cmd":"res.reserve","budgets":[{"key":"K1","limit":5,"period_ms":1000}],"target":"K2"}"#
                .into(),
            "steps[0].commands[0].target",
            "must be the index or the key of one of the budgets",
        ),
        (
            r#"{"cmd":"res.reserve","budgets":[{"key":"K1","limit":5,"period_ms":1000}],"target":true}"#
                .into(),
            "steps[0].commands[0].target",
            "expected the index or the key",
        ),
        (
            r#"{"cmd":"res.reserve","budgets":[{"key":"K1","limit":5,"period_ms":1000}],"target":-1}"#.into(),
            "steps[0].commands[0].target",
            "-1",
        ),
        (window(r#""period_ms":1000"#), "steps[0].commands[0].windows[1]", "missing field `limit`"),
        (window(r#""limit":5"#), "steps[0].commands[0].windows[1]", "missing field `period_ms`"),
        (
            window(r#""limit":5,"period_ms":1000,"algorithm":"Sliding""#),
            "steps[0].commands[0].windows[1].algorithm",
            "must be an algorithm (sliding, fixed, bucket)",
        ),
        (
            window(r#""limit":5,"period_ms":1000,"algorithm":null"#),
            "steps[0].commands[0].windows[1].algorithm",
            "null",
        ),
        (
            window(r#""limit":5,"period_ms":1000,"algorithm":{"sliding":null}"#),
            "steps[0].commands[0].windows[1].algorithm",
            "expected an algorithm",
        ),
        (window(r#""limit":null,"period_ms":1000"#), "steps[0].commands[0].windows[1].limit", "null"),
        (
            window(r#""limit":5,"period_ms":"1000""#),
            "steps[0].commands[0].windows[1].period_ms",
            "expected a whole number",
        ),
        // A forgotten hash.
        (
            r#"{"cmd":"kv.get","key":"alice@example.com"}"#.into(),
            "steps[0].commands[0].key",
            "43 base64url characters",
        ),
        (
            r#"{"cmd":"res.refund","receipt":"short"}"#.into(),
            "steps[0].commands[0].receipt",
            "22 base64url characters",
        ),
    ];
    for (command, place, message) in table {
        let command: String = command;
        refused(&with_commands(&command), place, message);
    }
    let three = format!("{GET},{GET},{}", r#"{"cmd":"kv.get","key":"K1","k":1}"#);
    refused(&with_commands(&three), "steps[0].commands[2].k", "unknown field");
}

#[test]
fn numbers_that_are_not_whole_or_fit() {
    for number in [
        "0.5",
        "1.0",
        "-0",
        "-0.0",
        "1e0",
        "1E3",
        "1e309",
        "9223372036854775808000000",
        "-1",
        "\"5\"",
        "null",
        "true",
        "[1]",
    ] {
        for (field, command) in [
            ("cost", r#"{"cmd":"win.hit","windows":[{"key":"K1","limit":9,"period_ms":1000}],"cost":N}"#),
            ("windows[0].limit", r#"{"cmd":"win.hit","windows":[{"key":"K1","limit":N,"period_ms":1000}]}"#),
            (
                "budgets[0].period_ms",
                r#"{"cmd":"res.reserve","budgets":[{"key":"K1","limit":9,"period_ms":N}]}"#,
            ),
            ("ttl_ms", r#"{"cmd":"kv.expire","key":"K1","ttl_ms":N}"#),
            ("by", r#"{"cmd":"kv.incr","key":"K1","ttl_ms":1000,"by":N}"#),
        ] {
            if number == "-1" && field == "by" {
                continue;
            }
            refused(
                &with_commands(&command.replace('N', number)),
                &format!("steps[0].commands[0].{field}"),
                "",
            );
        }
    }
    // What isn't JSON at all.
    for number in ["+5", "05", "0x10", "NaN", "Infinity", ".5", "5.", "1_000", "--1", "'5'"] {
        let json = with_commands(&format!(r#"{{"cmd":"kv.expire","key":"K1","ttl_ms":{number}}}"#));
        assert!(parse(&json).is_err(), "{number}");
    }
}

#[test]
fn places_of_the_whole() {
    let steps = &format!(r#""steps":[{{"partition":"K9","commands":[{GET}]}}]"#);
    let table = [
        (format!(r#"{steps},"extra":1"#), "extra", "unknown field `extra`"),
        (format!("{steps},{steps}"), "", "duplicate field `steps`"),
        (format!(r#"{steps},"mode":"parallel""#), "mode", "must be a mode (sequential, independent)"),
        (format!(r#"{steps},"mode":null"#), "mode", "null"),
        (format!(r#"{steps},"mode":{{"sequential":null}}"#), "mode", "expected a mode"),
        (format!(r#"{steps},"good":null"#), "good", "null"),
        (format!(r#"{steps},"good":"true""#), "good", "expected a boolean"),
        (format!(r#"{steps},"fairness":null"#), "fairness", "null"),
        (format!(r#"{steps},"fairness":["K1"]"#), "fairness", "expected an object"),
        (format!(r#"{steps},"fairness":{{"source":null}}"#), "fairness.source", "null"),
        (
            format!(r#"{steps},"fairness":{{"source":"192.0.2.7"}}"#),
            "fairness.source",
            "43 base64url characters",
        ),
        (format!(r#"{steps},"fairness":{{"ip":"K1"}}"#), "fairness.ip", "unknown field `ip`"),
        (
            format!(r#"{steps},"fairness":{{"networks":[{{"prefix":24}}]}}"#),
            "fairness.networks[0]",
            "missing field `digest`",
        ),
        (
            format!(r#"{steps},"fairness":{{"networks":[{{"prefix":"24","digest":"K1"}}]}}"#),
            "fairness.networks[0].prefix",
            "expected",
        ),
        (r#""steps":null"#.into(), "steps", "null"),
        (r#""steps":[[]]"#.into(), "steps[0]", "expected an object"),
        (r#""steps":[{"commands":[]}]"#.into(), "steps[0]", "missing field `partition`"),
        (r#""steps":[{"partition":"K1"}]"#.into(), "steps[0]", "missing field `commands`"),
        (
            r#""steps":[{"partition":"login:alice","commands":[]}]"#.into(),
            "steps[0].partition",
            "43 base64url characters",
        ),
        (r#""good":false"#.into(), "", "missing field `steps`"),
    ];
    for (fields, place, message) in table {
        refused(&with_fields(&fields), place, message);
    }
}

#[test]
fn bodies_that_are_no_request() {
    let good = with_commands(GET);
    assert!(parse(&good).is_ok());
    assert!(parse(&format!(" \r\n\t{good}\n")).is_ok());
    for json in [
        String::new(),
        " ".into(),
        "null".into(),
        "[]".into(),
        "\"\"".into(),
        "{}".into(),
        format!("\u{feff}{good}"),
        format!("{good}{good}"),
        format!("{good},"),
        format!("{good}\0"),
        format!("{good}//"),
        good[..good.len() - 1].into(),
        good.replace('"', "'"),
        good.replace("\"family\"", "family"),
        good.replace("]}]}", "],}]}"),
        "[".repeat(10_000),
        "{\"steps\":".repeat(1000),
    ] {
        assert!(parse(&json).is_err(), "{json}");
    }
    let at = good.find("password").unwrap();
    let mut bytes = good.into_bytes();
    bytes[at] = 0xff;
    let fault = Request::parse(Verified::trusted(&bytes)).unwrap_err();
    assert_eq!(fault.message, "must be UTF-8");
    let surrogate = with_commands(r#"{"cmd":"kv.set","key":"K1","value":"\ud800","ttl_ms":1000}"#);
    assert!(parse(&surrogate).is_err());
}

/// Where JSON breaks off the place is told as far as it is known, and the line and column always.
#[test]
fn places_of_broken_json() {
    let window = r#"{"op":"AAAAAAAAAAAAAAAAAAAAAA","family":"password","steps":[{"partition":"K9","commands":[{"cmd":"win.hit","windows":["#;
    let table: [(String, &str); 9] = [
        ("{".into(), ""),
        (r#"{"op":"#.into(), "op"),
        (r#"{"op" 5"#.into(), ""),
        ("{5".into(), ""),
        (format!("{window}{{"), "steps[0].commands[0].windows[0]"),
        (format!("{window}{{5:1}}"), "steps[0].commands[0].windows[0]"),
        (format!("{window}{{\"key\" 1}}"), "steps[0].commands[0].windows[0]"),
        (format!("{window}{{\"limit\":1,}}"), "steps[0].commands[0].windows[0]"),
        (format!("{window}{{\"limit\":x"), "steps[0].commands[0].windows[0].limit"),
    ];
    for (json, place) in table {
        let fault =
            Request::parse(Verified::trusted(json.replace("K9", &digest("9")).as_bytes())).unwrap_err();
        assert_eq!(fault.place, place, "{json}: {fault}");
        assert!(!format!("{fault}").contains('?') && fault.message.contains(" at line 1 column "), "{fault}");
    }
}

#[test]
fn a_refusal_repeats_no_value() {
    let json = with_commands(r#"{"cmd":"kv.get","key":"alice@example.com"}"#);
    let text = format!("{}", parse(&json).unwrap_err());
    assert!(text.starts_with("steps[0].commands[0].key: must be") && !text.contains("alice"), "{text}");
    for json in [
        with_fields(r#""steps":"alice""#),
        with_commands(r#"{"cmd":"alice"}"#),
        with_commands(r#"{"cmd":"kv.expire","key":"K1","ttl_ms":"alice\", expected nothing"}"#),
    ] {
        let text = format!("{}", parse(&json).unwrap_err());
        assert!(!text.contains("alice"), "{text}");
    }
}
