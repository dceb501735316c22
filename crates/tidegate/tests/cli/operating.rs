//! What the page on operating tells people to type.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::shell::{bash, start, unconfigured};

#[test]
fn the_operators_calls_do_what_the_page_says() {
    let server = start(&unconfigured());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let blocks = page.split("```bash\n").skip(1).filter_map(|rest| rest.split("```").next());
    let is_call = |block: &&str| block.contains("/control/") || block.contains("tidegate control");
    let blocks: Vec<&str> = blocks.filter(is_call).collect();
    assert!(blocks.len() >= 4, "{blocks:?}");
    // Word for word but for the port, since other servers may run here. Each call is answered by JSON on a line.
    let script = blocks.concat().replace("127.0.0.1:8787", &server.guard.to_string());
    let script = script
        .replace("curl -sS", "curl -sS -w '\\n'")
        .replace("tidegate control", "tidegate control --json");
    let ran = bash(server.setup(), &format!("set -e\n{script}"));
    ran.assert(0, &[]);
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect();
    assert!(answers.iter().all(|answer| answer.get("error").is_none()), "{ran:?}");

    let stopped: Vec<_> = answers.iter().filter_map(|answer| answer["fence"]["stopped"].as_bool()).collect();
    assert_eq!(stopped, [false, true, false, false], "the state, a stop, two resumes: {ran:?}");
    let entries = server.audit();
    let done: Vec<_> = entries.iter().rev().map(|entry| (&entry["action"], &entry["family"])).collect();
    let (stop, resume, reset, forget) =
        (json!("stop"), json!("resume"), json!("fairness_reset"), json!("forget"));
    let (none, password) = (Value::Null, json!("password"));
    let expected = [
        (&stop, &none),
        (&resume, &none),
        (&resume, &password),
        (&reset, &password),
        (&reset, &password),
        (&forget, &none),
    ];
    assert_eq!(done, expected, "{entries:?}");
    assert_eq!(answers.last(), Some(&json!({"forgotten": 0})));
}
