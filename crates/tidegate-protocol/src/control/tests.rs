use alloc::{format, string::String};

use super::*;

type Read = fn(&[u8]) -> Result<(), crate::BadRequest>;

const DIGEST: &str = "IhHMAI2m0tggcz6QiHXcY_3yFwF5CG9u_rxuY3UV7KM";

#[test]
fn calls_are_read_strictly() {
    let long = "x".repeat(257);
    let table: [(Read, String, Option<&str>); 19] = [
        (|body| Stop::from_json(body).map(drop), String::new(), None),
        (|body| Stop::from_json(body).map(drop), "{}".into(), None),
        (|body| Stop::from_json(body).map(drop), r#"{"reason":"drill"}"#.into(), None),
        (|body| Stop::from_json(body).map(drop), r#"{"reason":null}"#.into(), Some("reason")),
        (|body| Stop::from_json(body).map(drop), r#"{"reason":""}"#.into(), Some("reason")),
        (|body| Stop::from_json(body).map(drop), "{\"reason\":\"a\\nb\"}".into(), Some("reason")),
        (|body| Stop::from_json(body).map(drop), format!(r#"{{"reason":"{long}"}}"#), Some("reason")),
        (|body| Stop::from_json(body).map(drop), r#"{"why":"drill"}"#.into(), Some("why")),
        (|body| Stop::from_json(body).map(drop), "[]".into(), Some("")),
        (|body| Resume::from_json(body).map(drop), String::new(), None),
        (|body| Resume::from_json(body).map(drop), r#"{"families":["proxy"]}"#.into(), None),
        (|body| Resume::from_json(body).map(drop), r#"{"families":["Proxy"]}"#.into(), Some("families[0]")),
        (|body| Resume::from_json(body).map(drop), r#"{"families":[]}"#.into(), None),
        (|body| Resume::from_json(body).map(drop), r#"{"families":null}"#.into(), Some("families")),
        (
            |body| FairnessReset::from_json(body).map(drop),
            r#"{"family":"proxy","axis":"source"}"#.into(),
            None,
        ),
        (|body| FairnessReset::from_json(body).map(drop), "{}".into(), Some("")),
        (
            |body| FairnessReset::from_json(body).map(drop),
            r#"{"family":"proxy","axis":"src"}"#.into(),
            Some("axis"),
        ),
        (
            |body| Forget::from_json(body).map(drop),
            format!(r#"{{"partition":"{DIGEST}","key":"{DIGEST}"}}"#),
            None,
        ),
        (|body| Forget::from_json(body).map(drop), r#"{"partition":"alice"}"#.into(), Some("partition")),
    ];
    for (read, body, place) in table {
        let found = read(body.as_bytes()).err().map(|fault| fault.place);
        assert_eq!(found.as_deref(), place, "{body}");
    }
}

#[test]
fn a_state_says_what_the_protocol_says() {
    let family = FamilyState {
        budget: 100,
        used: 85,
        open_remaining: 0,
        reserve_remaining: 15,
        state: Phase::Reserve,
        warned: true,
    };
    let state = State {
        now_ms: 5,
        next_reset_ms: 7,
        fence: Fence { stopped: false, reason: None, since_ms: None },
        families: [(crate::name::Family::parse("proxy").unwrap(), family)].into(),
    };
    let json = r#"{"now_ms":5,"next_reset_ms":7,"fence":{"stopped":false,"reason":null,"since_ms":null},"families":{"proxy":{"budget":100,"used":85,"open_remaining":0,"reserve_remaining":15,"state":"reserve","warned":true}}}"#;
    assert_eq!(String::from_utf8(state.to_json()).unwrap(), json);
    assert_eq!(State::from_json(json.as_bytes()).unwrap(), state);
}
