//! Only digests get in: a caller that forgot to hash is told so at its first request.

use serde_json::{Value, json};

use crate::support::{
    message::{digest, fresh_op},
    server::Server,
};

/// The published digests, whatever they stand for.
const PUBLISHED: [&str; 7] = [
    "IhHMAI2m0tggcz6QiHXcY_3yFwF5CG9u_rxuY3UV7KM",
    "2GEDWG_sj-G1pliEVOrKD-H9Tzx0L93MXousclGKpwY",
    "F4f1twiMao4FqvivfP-Yu4To8zodLnFjPMuixtk42xA",
    "vH8dLotjtfIwe5CDNKPNDPra3uu86rSJslf1t4MKg30",
    "i69CYom4YxxjojT7Fvbng7Ervc9ClKGMD7qpaRuSVXo",
    "Ka817EcMud0W456kMM-D-N9tj2P1ThYurtUSwwAX8_Y",
    "xP5yuVt1i1NMBVykVBianmWivHhnXGivmM61FZ4JWZk",
];

#[test]
fn the_published_digests_are_taken_everywhere() {
    let server = Server::start();
    for text in PUBLISHED {
        for (_, place) in PLACES {
            server.ok(&request_with(place, &json!(text)));
        }
    }
}

#[test]
fn what_is_no_digest_is_refused_at_its_place() {
    let server = Server::start();
    let good = digest("x");
    let table = [
        json!("login:alice@example.com"),
        json!("192.0.2.7/32"),
        json!(""),
        json!(good[..42]),
        json!(format!("{good}A")),
        json!(format!("{good}=")),
        json!(format!("{}+", &good[..42])),
        json!(format!("{}/", &good[..42])),
        json!(format!("{} ", &good[..42])),
        json!(format!("{}é", &good[..41])),
        json!("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"),
        json!(7),
        json!(null),
        json!([good]),
        json!({}),
    ];
    for wrong in &table {
        for (named, place) in PLACES {
            let reply = server.rpc(&request_with(place, wrong));
            assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{place}: {wrong}");
            let message = reply.message();
            assert!(message.starts_with(named), "{place}: {wrong}: {message}");
            let text = wrong.as_str().filter(|text| text.len() > 5);
            assert!(text.is_none_or(|text| !message.contains(text)), "it repeats no name: {message}");
        }
    }
}

/// Where a digest stands, as a message names it and as a JSON pointer.
const PLACES: [(&str, &str); 6] = [
    ("fairness.source", "/fairness/source"),
    ("fairness.networks[0].digest", "/fairness/networks/0/digest"),
    ("fairness.principal", "/fairness/principal"),
    ("steps[0].partition", "/steps/0/partition"),
    ("steps[0].commands[0].key", "/steps/0/commands/0/key"),
    ("steps[0].commands[1].windows[0].key", "/steps/0/commands/1/windows/0/key"),
];

fn request_with(place: &str, value: &Value) -> Value {
    let it = digest("it");
    let mut request = json!({
        "op": fresh_op(),
        "family": "proxy",
        "fairness": {"source": it, "networks": [{"prefix": 48, "digest": it}], "principal": it},
        "steps": [{"partition": it, "commands": [
            {"cmd": "kv.get", "key": it},
            {"cmd": "win.hit", "windows": [{"key": it, "limit": 5, "period_ms": 60000, "algorithm": "sliding"}]},
        ]}],
    });
    *request.pointer_mut(place).expect("the request has it") = value.clone();
    request
}
