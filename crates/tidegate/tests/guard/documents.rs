//! The examples of the protocol's page are answers that the server gives.

use std::{collections::VecDeque, fs, path::Path};

use serde_json::{Value, json};

use crate::support::{
    message::{incr, one_step},
    server::{Server, Setup},
    spending::{budgeted, carrying, looks},
};

#[test]
fn refusals_are_as_shown() {
    let mut shown: VecDeque<_> = examples("errors").into();
    let server = budgeted(20).set("guard.families.proxy.shares_bp", "source=5000").start();
    let from_it = |commands: usize| server.rpc(&carrying(looks("proxy", commands), "source", "it"));
    let mut is_next =
        |answer: Value| assert_eq!(shown.pop_front().map(|shown| shape(&shown)), Some(shape(&answer)));
    is_next(server.rpc(&looks("password", 1)).json());
    is_next(from_it(11).json());
    let insufficient = server.rpc(&looks("proxy", 21)).json();
    server.ok(&looks("proxy", 20));
    is_next(server.rpc(&looks("proxy", 1)).json());
    is_next(insufficient);
    server.order("/control/stop", "");
    is_next(server.rpc(&looks("proxy", 1)).json());
    let faulty = Setup::new().set("guard.secrets", "short").even_if_not_ready().start();
    is_next(faulty.rpc(&one_step("p", json!([incr("k")]))).json());
    assert!(shown.is_empty(), "{shown:?}");
}

#[test]
fn the_state_and_the_audit_are_as_shown() {
    let server = Server::start();
    server.order("/control/stop", r#"{"reason":"a drill"}"#);
    let shown = examples("state").remove(0);
    let state = server.state();
    assert_eq!(shape(&shown["fence"]), shape(&state["fence"]));
    let families = |state: &Value| state["families"].as_object().unwrap().clone();
    for (name, family) in families(&shown) {
        assert_eq!(family["budget"], state["families"][&name]["budget"], "{name}");
        let fields = |family: &Value| family.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(fields(&family), fields(&state["families"][&name]), "{name}");
        let left = ["used", "open_remaining", "reserve_remaining"]
            .iter()
            .map(|field| family[field].as_u64().unwrap());
        assert_eq!(json!(left.sum::<u64>()), family["budget"], "{name}");
    }
    assert_eq!(families(&shown).len(), families(&state).len());

    let shown = examples("audit").remove(0);
    let field = |name: &str| shown["entries"][0][name].clone();
    server.order("/control/fairness/reset", r#"{"family":"password","axis":"source"}"#);
    let forget = json!({"partition": field("identity"), "key": field("key")});
    server.order("/control/forget", &forget.to_string());
    let shown: Vec<_> = shown["entries"].as_array().unwrap().iter().map(shape).collect();
    assert_eq!(shown, server.audit().iter().map(shape).collect::<Vec<_>>());
}

/// The JSON values of the block below this mark.
fn examples(mark: &str) -> Vec<Value> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let block = page.split(&format!("<!-- examples:{mark} -->\n```json\n")).nth(1);
    let block = block.and_then(|rest| rest.split("```").next()).expect("a block below the mark");
    serde_json::Deserializer::from_str(block).into_iter().map(|value| value.expect("JSON")).collect()
}

/// The value without what differs from one server to the next: numbers, and where a call came from.
fn shape(value: &Value) -> Value {
    match value {
        Value::Number(_) => json!(0),
        Value::Array(values) => values.iter().map(shape).collect(),
        Value::Object(fields) => {
            let kept = |name: &String| name != "from";
            fields
                .iter()
                .filter(|(name, _)| kept(name))
                .map(|(name, value)| (name.clone(), shape(value)))
                .collect()
        }
        other => other.clone(),
    }
}
