//! The bounds, each at its edge and one beyond.

use alloc::{vec, vec::Vec};

use super::*;
use crate::bounds::*;

/// Whether `command`, with N for a number, is accepted for each.
fn edges(place: &str, command: &str, inside: &[i128], outside: &[i128]) {
    for number in inside {
        let json = with_commands(&command.replace('N', &format!("{number}")));
        assert!(parse(&json).is_ok(), "{place} {number}: {}", parse(&json).unwrap_err());
    }
    for number in outside {
        let json = with_commands(&command.replace('N', &format!("{number}")));
        refused(&json, &format!("steps[0].commands[0].{place}"), "");
    }
}

#[test]
fn numbers() {
    let integer = i128::from(INTEGER_MAX);
    let (least, most, sliding) =
        (i128::from(TTL_MS_MIN), i128::from(TTL_MS_MAX), i128::from(SLIDING_PERIOD_MS_MAX));
    let huge = i128::from(i64::MAX);
    let window = |algorithm: &str| {
        format!(
            r#"{{"cmd":"win.hit","windows":[{{"key":"K1","limit":5,"period_ms":N,"algorithm":"{algorithm}"}}]}}"#
        )
    };
    let ttl = |command: &str| format!(r#"{{"cmd":"{command}","key":"K1","ttl_ms":N}}"#);
    for command in [ttl("kv.expire"), ttl("kv.incr"), ttl("kv.set").replace("\"ttl", "\"value\":\"\",\"ttl")]
    {
        edges("ttl_ms", &command, &[least, most], &[0, least - 1, most + 1, huge]);
    }
    edges("windows[0].period_ms", &window("sliding"), &[least, sliding], &[0, least - 1, sliding + 1, most]);
    edges("windows[0].period_ms", &window("fixed"), &[least, most], &[0, least - 1, most + 1, huge]);
    edges("windows[0].period_ms", &window("bucket"), &[least, most], &[0, least - 1, most + 1, huge]);
    let limit = r#"{"cmd":"win.hit","windows":[{"key":"K1","limit":N,"period_ms":1000}]}"#;
    edges("windows[0].limit", limit, &[0, integer], &[-1, integer + 1, huge]);
    let cost = r#"{"cmd":"win.hit","windows":[{"key":"K1","limit":5,"period_ms":1000}],"cost":N}"#;
    edges("cost", cost, &[0, 1, integer], &[-1, integer + 1, huge]);
    let by = r#"{"cmd":"kv.incr","key":"K1","ttl_ms":1000,"by":N}"#;
    edges("by", by, &[0, -1, integer, -integer], &[integer + 1, -integer - 1, huge, -huge - 1, huge + 1]);
    let period = r#"{"cmd":"res.reserve","budgets":[{"key":"K1","limit":5,"period_ms":N}]}"#;
    edges("budgets[0].period_ms", period, &[least, most], &[0, least - 1, most + 1]);
    let limit = r#"{"cmd":"res.reserve","budgets":[{"key":"K1","limit":N,"period_ms":1000}]}"#;
    edges("budgets[0].limit", limit, &[0, integer], &[-1, integer + 1]);
    let cost = r#"{"cmd":"res.reserve","budgets":[{"key":"K1","limit":5,"period_ms":1000}],"cost":N}"#;
    edges("cost", cost, &[0, integer], &[-1, integer + 1]);
    let target = r#"{"cmd":"res.reserve","budgets":[{"key":"K1","limit":5,"period_ms":1000},{"key":"K2","limit":5,"period_ms":1000}],"target":N}"#;
    edges("target", target, &[0, 1], &[2, -1, huge]);
}

#[test]
fn sizes() {
    let value = |bytes: usize| {
        with_commands(&format!(
            r#"{{"cmd":"kv.set","key":"K1","value":"{}","ttl_ms":1000}}"#,
            "ä".repeat(bytes / 2)
        ))
    };
    assert!(parse(&value(VALUE_BYTES_MAX)).is_ok());
    refused(&value(VALUE_BYTES_MAX + 2), "steps[0].commands[0].value", "2 KiB");

    let get = r#"{"cmd":"kv.get","key":"K1"}"#;
    let padded = |bytes: usize| {
        let json = with_commands(get);
        format!("{json}{}", " ".repeat(bytes - json.len()))
    };
    assert!(parse(&padded(BODY_BYTES_MAX)).is_ok());
    refused(&padded(BODY_BYTES_MAX + 1), "", "16 KiB");
}

#[test]
fn counts() {
    let many = |item: &str, count: usize| vec![item; count].join(",");
    let get = r#"{"cmd":"kv.get","key":"K1"}"#;
    let steps = |steps: usize, commands: usize| {
        let step = format!(r#"{{"partition":"K9","commands":[{}]}}"#, many(get, commands));
        with_fields(&format!(r#""steps":[{}]"#, many(&step, steps)))
    };
    assert!(parse(&steps(16, 2)).is_ok());
    assert!(parse(&steps(4, 8)).is_ok());
    refused(&steps(0, 1), "steps", "1 to 16");
    refused(&steps(17, 1), "steps", "1 to 16");
    refused(&steps(1, 0), "steps[0].commands", "1 to 8");
    refused(&steps(1, 9), "steps[0].commands", "1 to 8");
    refused(&steps(11, 3), "steps", "at most 32 commands");

    for (list, command) in [("windows", "win.hit"), ("budgets", "res.reserve")] {
        let of = |keys: &[usize]| {
            let items: Vec<_> =
                keys.iter().map(|key| format!(r#"{{"key":"K{key}","limit":5,"period_ms":1000}}"#)).collect();
            with_commands(&format!(r#"{{"cmd":"{command}","{list}":[{}]}}"#, items.join(",")))
        };
        assert!(parse(&of(&[1, 2, 3, 4])).is_ok());
        refused(&of(&[]), &format!("steps[0].commands[0].{list}"), "1 to 4");
        refused(&of(&[1, 2, 3, 4, 5]), &format!("steps[0].commands[0].{list}"), "1 to 4");
        refused(&of(&[1, 2, 1]), &format!("steps[0].commands[0].{list}[2].key"), "once");
    }
}

#[test]
fn networks() {
    let of = |prefixes: &[u64]| {
        let networks: Vec<_> =
            prefixes.iter().map(|prefix| format!(r#"{{"prefix":{prefix},"digest":"K1"}}"#)).collect();
        with_fields(&format!(
            r#""fairness":{{"networks":[{}]}},"steps":[{{"partition":"K1","commands":[{{"cmd":"kv.get","key":"K1"}}]}}]"#,
            networks.join(",")
        ))
    };
    assert!(parse(&of(&[])).is_ok());
    assert!(parse(&of(&[24, 56, 48])).is_ok());
    for prefix in [0, 32, 64, 255, 256, 280, u64::MAX] {
        refused(&of(&[24, prefix]), "fairness.networks[1].prefix", "must be 24, 48 or 56");
    }
    refused(&of(&[24, 24]), "fairness.networks[1].prefix", "once");
    refused(&of(&[24, 56, 48, 24]), "fairness.networks", "at most 3");
}

#[test]
fn names() {
    let with = |op: &str, family: &str| {
        with_commands(r#"{"cmd":"kv.get","key":"K1"}"#)
            .replace("9m3V0rG1TqyXo6mZyJmQ0w", op)
            .replace("\"password\"", &format!("\"{family}\""))
    };
    let (shortest, longest) = ("a".repeat(22), "-".repeat(64));
    for op in [&shortest, &longest] {
        assert!(parse(&with(op, "proxy")).is_ok(), "{op}");
    }
    for op in [
        "",
        &shortest[1..],
        &format!("{longest}-"),
        "AAAAAAAAAAAAAAAAAAAAA=",
        "AAAAAAAAAAAAAAAAAAAAA ",
        "ÄÄÄÄÄÄÄÄÄÄÄ",
    ] {
        refused(&with(op, "proxy"), "op", "22 to 64 characters");
    }
    for family in ["a", "bulk_reads-2", &"z".repeat(64)] {
        assert!(parse(&with(&shortest, family)).is_ok(), "{family}");
    }
    for family in ["", "Proxy", "a b", "a.b", "ä", &"z".repeat(65)] {
        refused(&with(&shortest, family), "family", "1 to 64 characters");
    }
}

#[test]
fn every_record_ends() {
    let set = |rest: &str| with_commands(&format!(r#"{{"cmd":"kv.set","key":"K1","value":"v"{rest}}}"#));
    refused(&set(""), "steps[0].commands[0].ttl_ms", "every record ends");
    refused(&set(r#","mode":"xx""#), "steps[0].commands[0].ttl_ms", "every record ends");
    refused(&set(r#","keep_ttl":true"#), "steps[0].commands[0].keep_ttl", "needs mode xx");
    refused(&set(r#","mode":"nx","keep_ttl":true"#), "steps[0].commands[0].keep_ttl", "needs mode xx");
    for rest in [r#","mode":"xx","keep_ttl":true"#, r#","ttl_ms":1000,"mode":"nx","keep_ttl":true"#] {
        assert!(parse(&set(rest)).is_ok(), "{rest}");
    }
}
