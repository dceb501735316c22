//! What the README tells people to type.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::shell::{bash, start, tidegate, unconfigured};

#[test]
fn the_example_with_curl_and_openssl_does_what_the_readme_says() {
    let server = start(&unconfigured());
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).expect("the README is there");
    let example = readme.split("```bash\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("one block is for bash").trim_end();
    // Word for word but for the port, since other servers may run here.
    assert!(example.contains("http://127.0.0.1:8787/"), "{example}");
    let example = example.replace("127.0.0.1:8787", &server.guard.to_string());
    let last = example.lines().next_back().expect("it has lines");

    let ran = bash(server.setup(), &format!("set -e\n{example}\necho\n{last}"));
    ran.assert(0, &[]);
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect();
    let used = |answer: &Value| answer["steps"][0]["results"][0]["windows"][0]["used"].clone();
    let replayed = |answer: &Value| answer["steps"][0]["replayed"].clone();
    assert_eq!(answers.iter().map(used).collect::<Vec<_>>(), [json!(1), json!(1)], "{ran:?}");
    assert_eq!(answers.iter().map(replayed).collect::<Vec<_>>(), [json!(false), json!(true)], "{ran:?}");

    // It counts on the same row as the command line; but a new minute weighs the last one's hit less than 1.
    let look = tidegate(server.setup(), "call win.hit login:alice 5/1m --cost 0 --json").json();
    let minute = |answer: &Value| answer["now_ms"].as_u64().expect("the server's clock") / 60_000;
    assert!(used(&look) == 1 || minute(&look) > minute(&answers[0]), "{look} after {answers:?}");
}
