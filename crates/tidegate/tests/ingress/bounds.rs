//! What the configuration bounds, on the real binary: clients that are tracked, the log, streams of a connection.

use serde_json::json;

use crate::{
    frames::{END_HEADERS, END_STREAM, Frames, HEADERS, RST_STREAM},
    rig::{Rig, get},
    support::eventually,
};

const TRACKED_MAX: u64 = 64;
const LOG_ENTRIES: u64 = 160;
const TRACKED: &str = r#"http_abuse_tracked_clients{app="shop"}"#;

#[test]
fn a_flood_of_addresses_grows_nothing_and_frees_nobody() {
    let rig = Rig::with(|setup| {
        setup
            .set("ingress.trusted_proxies", "127.0.0.1")
            .set("ingress.max_tracked_clients", TRACKED_MAX.to_string())
            .set("ingress.access_log_entries", LOG_ENTRIES.to_string())
    });
    rig.put(r#"{"mode":"enforce","rps":0.001,"burst":2}"#);
    let mut wire = rig.wire();
    let mut ask = |client: &str| wire.exchange(&get("/echo", &[("X-Forwarded-For", client)])).unwrap().status;
    assert_eq!([(); 3].map(|()| ask("192.0.2.1")), [200, 200, 429]);
    for stranger in 0..1000 {
        assert_eq!(ask(&format!("2001:db8:{stranger:x}::1")), 200, "a newcomer pays for nobody");
        if stranger % 10 == 0 {
            assert_eq!(ask("192.0.2.1"), 429, "after {stranger} strangers");
        }
    }
    eventually("they are counted", || (rig.server.metric(TRACKED) > TRACKED_MAX / 2).then_some(()));
    let tracked = rig.server.metric(TRACKED);
    assert!(tracked <= TRACKED_MAX, "{tracked} are tracked");
    let list = rig.told("/apps");
    assert!(list["apps"][0]["tracked_clients"].as_u64() <= Some(TRACKED_MAX), "{list}");

    let log = rig.told("/apps/shop/access-log?limit=10000");
    let entries = log["entries"].as_array().unwrap();
    let newest = entries[0]["at_ms"].as_u64();
    assert!((LOG_ENTRIES / 2..=LOG_ENTRIES).contains(&(entries.len() as u64)), "{} entries", entries.len());
    let replay = rig.api("POST", "/apps/shop/abuse/replay", r#"{"rps":0.001,"burst":1}"#).json();
    assert_eq!(replay["requests"], json!(entries.len()), "a replay covers what the log holds");
    let times = (entries.last().unwrap()["at_ms"].as_u64(), newest);
    assert_eq!((replay["from_ms"].as_u64(), replay["to_ms"].as_u64()), times, "and says from when to when");
}

#[test]
fn without_a_log_there_is_nothing_to_replay() {
    let rig = Rig::with(|setup| setup.set("ingress.access_log_entries", "0"));
    assert_eq!(rig.get("/echo", &[]).status, 200);
    assert_eq!(rig.told("/apps/shop/access-log")["entries"], json!([]));
    let replay = rig.api("POST", "/apps/shop/abuse/replay", r#"{"rps":1,"burst":1}"#).json();
    assert_eq!((&replay["requests"], &replay["would_block"]["total"]), (&json!(0), &json!(0)));
    assert_eq!(rig.counted("allowed"), 1, "it is counted all the same");
}

#[test]
fn streams_of_a_connection_are_bounded() {
    /// REFUSED_STREAM of the standard: nothing of it was done.
    const REFUSED: [u8; 4] = [0, 0, 0, 7];
    let rig = Rig::with(|setup| setup.set("ingress.max_streams", "4"));
    let mut frames = Frames::connect(rig.server.apps);
    for stream in [1, 3, 5, 7] {
        frames.send(HEADERS, END_HEADERS | END_STREAM, stream, &crate::frames::get("/silent")).unwrap();
    }
    eventually("four are in work", || (rig.backend.whole().len() == 4).then_some(()));
    frames.send(HEADERS, END_HEADERS | END_STREAM, 9, &crate::frames::get("/echo")).unwrap();
    let refused = loop {
        let frame = frames.next().expect("the fifth is refused, and the connection goes on");
        if frame.kind == RST_STREAM {
            break frame;
        }
    };
    assert_eq!((refused.stream, &refused.payload[..]), (9, &REFUSED[..]));
    assert_eq!(rig.backend.whole().len(), 4, "the app has not seen it");
    assert_eq!(rig.get("/echo", &[]).status, 200, "other connections have their own");
}
