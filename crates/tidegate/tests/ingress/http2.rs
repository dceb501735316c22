//! HTTP/2: served, and its floods ended.

use crate::{
    frames::{
        CONTINUATION, END_HEADERS, END_STREAM, Frames, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE,
        frame, get,
    },
    rig::Rig,
    support::eventually,
};

/// ENHANCE_YOUR_CALM of the standard.
const CALM: u32 = 11;

#[test]
fn streams_are_answered() {
    let rig = Rig::start();
    let mut frames = Frames::connect(rig.server.apps);
    for stream in [1, 3, 5] {
        frames.send(HEADERS, END_HEADERS | END_STREAM, stream, &get("/echo")).unwrap();
    }
    let (mut ended, mut body) = (Vec::new(), Vec::new());
    while ended.len() < 3 {
        let frame = frames.next().expect("all three are answered");
        if frame.kind == 0 {
            ended.push(frame.stream);
            body.extend(frame.payload);
        }
    }
    let text = String::from_utf8(body).unwrap();
    assert_eq!(text.matches("GET /echo HTTP/1.1\r\n").count(), 3, "{text}");
    assert_eq!(text.matches("x-forwarded-for: 127.0.0.1\r\n").count(), 3, "{text}");
    assert_eq!(text.matches("host: shop.example\r\n").count(), 3, "{text}");
}

#[test]
fn rapid_resets_end_the_connection() {
    let rig = Rig::start();
    let mut honest = rig.wire();
    for at_once in [1, 50] {
        let mut frames = Frames::connect(rig.server.apps);
        let calm = u32::to_be_bytes(8);
        let pairs = (0..5_000_u32).map(|index| {
            let stream = index * 2 + 1;
            [
                frame(HEADERS, END_HEADERS | END_STREAM, stream, &get("/silent")),
                frame(RST_STREAM, 0, stream, &calm),
            ]
            .concat()
        });
        let pairs: Vec<_> = pairs.collect();
        let sent = pairs.chunks(at_once).take_while(|pairs| frames.raw(&pairs.concat()).is_ok()).count();
        let farewell = frames.farewell();
        assert!(sent < 5_000 / at_once || farewell.is_some(), "{at_once} at once: all were taken");
        assert_eq!(honest.exchange(&crate::rig::get("/echo", &[])).unwrap().status, 200);
    }
    let asked = rig.backend.whole().iter().filter(|head| head.starts_with("GET /silent")).count();
    assert!(asked < 600, "the app saw {asked} of 10000");
}

#[test]
fn streams_that_make_the_server_reset_end_the_connection() {
    let rig = Rig::start();
    let mut frames = Frames::connect(rig.server.apps);
    let sent = (0..5_000_u32)
        .take_while(|index| {
            let stream = index * 2 + 1;
            let begin = frame(HEADERS, END_HEADERS | END_STREAM, stream, &get("/silent"));
            // An update of a window by nothing is the stream's error.
            frames.raw(&[begin, frame(WINDOW_UPDATE, 0, stream, &[0; 4])].concat()).is_ok()
        })
        .count();
    assert!(frames.farewell().is_some() || sent < 5_000);
    assert_eq!(rig.get("/echo", &[]).status, 200);
}

#[test]
fn floods_of_continuations_end_the_connection() {
    let rig = Rig::start();
    let mut frames = Frames::connect(rig.server.apps);
    frames.send(HEADERS, END_STREAM, 1, &get("/echo")).unwrap();
    let filler = [&[0x00, 0x01, b'x', 0x7f, 0x81, 0x01][..], &[b'y'; 256]].concat();
    let sent = (0..10_000).take_while(|_| frames.send(CONTINUATION, 0, 1, &filler).is_ok()).count();
    let farewell = frames.farewell();
    assert!(sent < 10_000 || farewell == Some(CALM), "{sent} were taken, {farewell:?}");
    assert_eq!(rig.backend.whole().len(), 0);
    assert_eq!(rig.get("/echo", &[]).status, 200);
}

#[test]
fn pings_and_settings_in_floods_cost_nothing_that_grows() {
    let rig = Rig::start();
    let mut frames = Frames::connect(rig.server.apps);
    let flood = [frame(PING, 0, 0, &[0; 8]), frame(SETTINGS, 0, 0, &[])].concat();
    let _ = (0..5_000).take_while(|_| frames.raw(&flood).is_ok()).count();
    assert_eq!(rig.get("/echo", &[]).status, 200);
}

#[test]
fn an_inflated_head_is_refused() {
    let rig = Rig::start();
    let mut frames = Frames::connect(rig.server.apps);
    // One entry of 4000 bytes goes into the table; then it is named 2500 times: ten megabytes.
    let entry = [&[0x40, 0x01, b'x', 0x7f, 0xa1, 0x1e][..], &[b'y'; 4000]].concat();
    let block = [get("/echo"), entry, vec![0xbe; 2_500]].concat();
    frames.send(HEADERS, END_HEADERS | END_STREAM, 1, &block).unwrap();
    let answered = eventually("an answer or the end", || match frames.next() {
        Some(frame) if frame.stream == 1 || frame.kind == crate::frames::GOAWAY => Some(Some(frame)),
        Some(_) => None,
        None => Some(None),
    });
    drop(answered);
    assert_eq!(rig.backend.whole().len(), 0);
    assert_eq!(rig.get("/echo", &[]).status, 200);
}
