//! What makes two bodies the same operation: what they say, not how it is written.

use tidegate_guard::Refusal;
use tidegate_protocol::{Request, Verified};

use crate::harness::{Bench, digest};

fn parse(body: &str) -> Request {
    Request::parse(Verified::trusted(body.as_bytes())).expect("the body is a request")
}

fn body(step: &str) -> String {
    let commands = step.replace("KEY", digest("a").as_str());
    format!(
        r#"{{"op":"AAAAAAAAAAAAAAAAAAAAAA","family":"proxy","steps":[{{"partition":"{}","commands":[{commands}]}}]}}"#,
        digest("alice").as_str(),
    )
}

#[tokio::test]
async fn white_space_order_and_written_defaults_are_the_same_operation() {
    let first = body(
        r#"{"cmd":"kv.incr","key":"KEY","by":1,"ttl_ms":60000},
           {"cmd":"win.hit","windows":[{"key":"KEY","limit":5,"period_ms":60000}]}"#,
    );
    let same = [
        first.replace([' ', '\n'], ""),
        first.replace(':', " :\t").replace(',', "\n,  "),
        body(
            r#"{"ttl_ms":60000,"by":1,"key":"KEY","cmd":"kv.incr"},
               {"windows":[{"period_ms":60000,"limit":5,"key":"KEY"}],"cmd":"win.hit"}"#,
        ),
        body(
            r#"{"cmd":"kv.incr","key":"KEY","ttl_ms":60000},
               {"cmd":"win.hit","cost":1,"windows":[{"key":"KEY","limit":5,"period_ms":60000,"algorithm":"sliding"}]}"#,
        ),
        first.replace(r#""family":"proxy","#, r#""mode":"sequential","good":false,"family":"proxy","#),
        first.replace(r#""family":"proxy","#, r#""mode":"independent","family":"proxy","#),
        first.replace("kv.incr", r"\u006bv.incr"),
    ];
    let bench = Bench::new();
    let expected = bench.respond(parse(&first)).await.steps.remove(0);
    let writes = bench.writes();
    for body in same {
        let step = bench.respond(parse(&body)).await.steps.remove(0);
        assert!(step.replayed, "{body}");
        assert_eq!((step.status, step.results), (expected.status, expected.results.clone()), "{body}");
    }
    assert_eq!(bench.writes(), writes);
}

#[tokio::test]
async fn what_says_something_else_is_another_operation() {
    let incr = r#"{"cmd":"kv.incr","key":"KEY","by":1,"ttl_ms":60000}"#;
    let hit = r#"{"cmd":"win.hit","windows":[{"key":"KEY","limit":5,"period_ms":60000}]}"#;
    let first = body(&format!("{incr},{hit}"));
    let others = [
        body(&format!("{hit},{incr}")),
        first.replace("win.hit\"", "win.hit\",\"cost\":2"),
        first.replace("60000}]", "60000,\"algorithm\":\"fixed\"}]"),
        first.replace("\"limit\":5", "\"limit\":6"),
        first.replace("\"family\":\"proxy\"", "\"family\":\"password\""),
    ];
    let bench = Bench::new();
    bench.respond(parse(&first)).await;
    let writes = bench.writes();
    for body in others {
        assert_ne!(body, first);
        assert_eq!(bench.run(parse(&body)).await, Err(Refusal::Conflict { step: 0 }), "{body}");
    }
    assert_eq!(bench.writes(), writes);
}
