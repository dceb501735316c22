use proptest::prelude::*;
use reading::Read;

use super::*;

#[path = "reading.rs"]
mod reading;

const LIMITS: HeadLimits = HeadLimits { bytes_max: 1024, headers_max: 8 };

/// Reads an answer that comes in pieces of so many bytes.
fn read(bytes: &[u8], piece: usize, is_for_head: bool) -> Result<Option<Read>, Unreadable> {
    reading::read(bytes, piece, is_for_head, LIMITS)
}

#[track_caller]
fn check(answer: &str, rest: Rest, body: &str, left: &str) {
    for piece in 1..=answer.len() {
        let read = read(answer.as_bytes(), piece, false).expect("readable").expect("whole");
        assert_eq!(
            (read.rest, &*read.body, read.is_whole, &*read.left),
            (rest, body.as_bytes(), true, left.as_bytes()),
            "{answer:?} in pieces of {piece}"
        );
    }
}

#[test]
fn answers_are_framed_as_the_standard_says() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Rest::Bytes(5), "hello", "");
    check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello more", Rest::Bytes(5), "hello", " more");
    check("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", Rest::NOTHING, "", "");
    check("HTTP/1.1 200 OK\r\n\r\nhello", Rest::UntilClose, "hello", "");
    check("HTTP/1.0 200 OK\r\n\r\nhello", Rest::UntilClose, "hello", "");
    check("\r\nHTTP/1.1 204 No Content\r\n\r\nmore", Rest::NOTHING, "", "more");
    check("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", Rest::NOTHING, "", "");
    check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", Rest::NOTHING, "", "HTTP/1.1 200 OK\r\n");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
    for (chunks, body, left) in [
        ("0\r\n\r\n", "", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello", ""),
        ("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\nmore", "hello", "more"),
        ("0B; a=\"b\"\r\nhello world\r\n000\r\n\r\n", "hello world", ""),
        ("1 \r\nx\r\n0\r\nx-end: 1\r\nx-more: 2\r\n\r\n", "x", ""),
    ] {
        check(&format!("{chunked}{chunks}"), Rest::ChunkSize, body, left);
    }
}

#[test]
fn an_answer_to_head_has_no_body() {
    for framing in ["Content-Length: 5", "Transfer-Encoding: chunked", "X: y"] {
        let answer = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\nmore");
        let read = read(answer.as_bytes(), 7, true).unwrap().unwrap();
        assert_eq!((read.rest, &*read.left), (Rest::NOTHING, &b"more"[..]), "{framing}");
    }
}

#[test]
fn trailers_are_kept() {
    let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\na: 1\r\na: 2\r\n\r\n";
    assert_eq!(read(answer, 3, false).unwrap().unwrap().trailers, 2);
}

#[test]
fn what_can_be_read_in_two_ways_is_not_read() {
    for lines in [
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: -1",
        "Content-Length: 0x5",
        "Content-Length: ",
        "Content-Length: 99999999999999999999",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: \x0bchunked",
        "Content-Length : 5",
        " Content-Length: 5",
        "X: a\r\n b",
        "X\r\n",
        "X: a\0b",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        for piece in [1, 16, answer.len()] {
            assert_eq!(read(answer.as_bytes(), piece, false), Err(Unreadable), "{lines:?}");
        }
    }
    for line in
        ["HTTP/2.0 200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 099 OK", "HTTP/1.1 2000 OK", "200 OK", "ICY 200"]
    {
        let answer = format!("{line}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(read(answer.as_bytes(), 3, false), Err(Unreadable), "{line:?}");
    }
    let old = b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(read(old, 3, false), Err(Unreadable), "chunks are of HTTP/1.1");
}

#[test]
fn chunks_are_read_strictly() {
    for chunks in [
        "\r\n\r\n",
        ";a\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "x\r\n",
        "-1\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello world\r\n0\r\n\r\n",
        "10000000000000000\r\nhello",
        "0\r\nContent-Length: 5\r\n\r\n",
        "0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "0\r\nno trailer\r\n\r\n",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        for piece in [1, 5, answer.len()] {
            assert_eq!(read(answer.as_bytes(), piece, false), Err(Unreadable), "{chunks:?}");
        }
    }
}

#[test]
fn what_grows_is_bounded() {
    let endless = |begin: &str, part: &str, parts: usize| {
        read(format!("{begin}{}", part.repeat(parts)).as_bytes(), 100, false)
    };
    let fits = |parts: usize| endless("HTTP/1.1 200 OK\r\n", "a: b\r\n", parts);
    assert_eq!([fits(8), fits(9)], [Ok(None), Err(Unreadable)], "headers");
    let long = |bytes: usize| endless("HTTP/1.1 200 OK\r\na: ", "b", bytes);
    assert_eq!([long(900), long(1100)], [Ok(None), Err(Unreadable)], "bytes of a head");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let is_read = |read: Result<Option<Read>, Unreadable>| read.is_ok();
    let extension = |bytes: usize| is_read(endless(&format!("{chunked}1;"), "b", bytes));
    assert_eq!([extension(4000), extension(4200)], [true, false], "bytes of a chunk's line");
    let trailers = |parts: usize| is_read(endless(&format!("{chunked}0\r\n"), "a: b\r\n", parts));
    assert_eq!([trailers(TRAILERS_MAX), trailers(TRAILERS_MAX + 1)], [true, false], "trailers");
    let trailer = |bytes: usize| is_read(endless(&format!("{chunked}0\r\na: "), "b", bytes));
    assert_eq!([trailer(16_000), trailer(17_000)], [true, false], "bytes of trailers");
}

#[test]
fn many_headers_may_be_allowed() {
    let limits = HeadLimits { bytes_max: 64 * 1024, headers_max: 500 };
    for (headers, expected) in [(500, true), (501, false)] {
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(headers));
        let taken = take_head(&mut BytesMut::from(&*head), &mut HeaderMap::new(), false, limits);
        assert_eq!(taken.is_ok_and(|head| head.is_some_and(|head| head.headers.len() == headers)), expected);
    }
}

#[track_caller]
fn written(target: &str, lines: &[(&'static str, &'static str)], sent: Sent) -> String {
    let headers = lines
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    let mut out = Vec::new();
    write_head(&mut out, &Method::GET, &target.parse().expect("a target"), &headers, sent);
    String::from_utf8(out).expect("text")
}

#[test]
fn a_head_frames_its_body_once() {
    let lines = &[("host", "a"), ("content-length", "7"), ("transfer-encoding", "chunked")];
    for (sent, expected) in [
        (Sent::Nothing, "content-length: 0\r\n"),
        (Sent::Bytes(5), "content-length: 5\r\n"),
        (Sent::Chunks, "transfer-encoding: chunked\r\n"),
    ] {
        assert_eq!(written("/a?b", lines, sent), format!("GET /a?b HTTP/1.1\r\nhost: a\r\n{expected}\r\n"));
    }
    assert_eq!(written("/", &[("host", "a")], Sent::Nothing), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
}

#[test]
fn targets_are_those_of_a_server() {
    for (target, expected) in
        [("/", "/"), ("*", "*"), ("/a//b?c=d", "/a//b?c=d"), ("http://a?b", "/?b"), ("http://a", "/")]
    {
        assert_eq!(written(target, &[], Sent::Nothing), format!("GET {expected} HTTP/1.1\r\n\r\n"));
    }
}

proptest! {
    #[test]
    fn what_is_written_in_chunks_is_read_as_it_was(
        body in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8),
        piece in 1_usize..50,
    ) {
        let mut answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        body.iter().for_each(|piece| write_chunk(&mut answer, piece));
        write_last_chunk(&mut answer);
        let read = read(&answer, piece, false).unwrap().unwrap();
        prop_assert!(read.is_whole && read.left.is_empty());
        prop_assert_eq!(read.body, body.concat());
    }

    #[test]
    fn any_answer_in_any_pieces_is_read_alike(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("Content-Length: 5"), Just("Content-Length: 0"), Just("Transfer-Encoding: chunked"),
                Just("X: y"), Just(""), Just("5"), Just("hello"), Just("0"), Just("1;x"), Just("\r"),
            ],
            0..9,
        ),
        status in prop_oneof![Just(200), Just(204), Just(100)],
        piece in 1_usize..20,
        is_for_head: bool,
    ) {
        let answer = format!("HTTP/1.1 {status} OK\r\n{}\r\n", lines.join("\r\n"));
        let whole = read(answer.as_bytes(), answer.len(), is_for_head);
        prop_assert_eq!(read(answer.as_bytes(), piece, is_for_head), whole);
    }
}
