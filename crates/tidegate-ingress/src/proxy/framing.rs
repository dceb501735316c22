//! Heads that frame their body in two ways.
//!
//! The HTTP library reads `Transfer-Encoding` beside `Content-Length`, and a repeated `Content-Length`, as the
//! standard allows: it takes one and drops the other. Two servers that choose differently see two different
//! requests, so here such a head is refused, for which its bytes have to be seen.

use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memchr;

/// What the heads of a connection were found to be, by their number from 0.
#[derive(Debug)]
pub(super) struct Found {
    ambiguous: AtomicU64,
    chunked: AtomicU64,
}

/// Follows the bytes of an HTTP/1.1 connection from head to head.
#[derive(Debug)]
pub(super) struct Scanner {
    state: State,
    /// The heads that have ended.
    heads: u64,
    head: Head,
    /// The beginning of a line whose end has not come yet.
    line: [u8; LINE_BYTES],
    line_len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not one byte of a head.
    Before,
    /// Amid a head.
    Head,
    /// Amid a body with so many bytes to come.
    Body(u64),
    /// Behind a chunked body's head: the connection ends with this request, so that no later head is missed.
    Done,
}

#[derive(Debug, Default, Clone, Copy)]
struct Head {
    lengths: u32,
    encodings: u32,
    length: Option<u64>,
}

/// Enough for `Content-Length: 18446744073709551615` with blanks around it; a longer one is none.
const LINE_BYTES: usize = 64;

impl Found {
    pub(super) const fn new() -> Self {
        Self { ambiguous: AtomicU64::new(u64::MAX), chunked: AtomicU64::new(u64::MAX) }
    }

    /// Whether head number `head` frames its body in two ways.
    pub(super) fn is_ambiguous(&self, head: u64) -> bool {
        self.ambiguous.load(Ordering::Relaxed) == head
    }

    /// Whether the connection has to end with the request of head number `head`.
    pub(super) fn is_last(&self, head: u64) -> bool {
        self.chunked.load(Ordering::Relaxed) <= head
    }
}

impl Scanner {
    pub(super) const fn new() -> Self {
        Self {
            state: State::Before,
            heads: 0,
            head: Head { lengths: 0, encodings: 0, length: None },
            line: [0; LINE_BYTES],
            line_len: 0,
        }
    }

    /// Whether the next byte begins a head.
    pub(super) fn is_before_a_head(&self) -> bool {
        self.state == State::Before
    }

    /// How many heads have come whole.
    pub(super) fn heads(&self) -> u64 {
        self.heads
    }

    /// Takes the next bytes of the connection.
    pub(super) fn scan(&mut self, mut bytes: &[u8], found: &Found) {
        while !bytes.is_empty() {
            bytes = match self.state {
                State::Done => return,
                State::Body(left) => {
                    let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    let left = left - taken as u64;
                    self.state = if left == 0 { State::Before } else { State::Body(left) };
                    &bytes[taken..]
                }
                State::Before | State::Head => self.scan_line(bytes, found),
            };
        }
    }

    fn scan_line<'a>(&mut self, bytes: &'a [u8], found: &Found) -> &'a [u8] {
        let Some(end) = memchr(b'\n', bytes) else {
            self.keep(bytes);
            return &[];
        };
        let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
        if self.line_len == 0 {
            self.take_line(line, found);
        } else {
            self.keep(line);
            let (whole, length) = (self.line, self.line_len);
            self.take_line(&whole[..length], found);
        }
        self.line_len = 0;
        rest
    }

    fn keep(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(LINE_BYTES - self.line_len);
        self.line[self.line_len..self.line_len + taken].copy_from_slice(&bytes[..taken]);
        self.line_len += taken;
        if self.state == State::Before && self.line[..self.line_len].iter().any(|byte| *byte != b'\r') {
            self.state = State::Head;
            self.head = Head::default();
        }
    }

    fn take_line(&mut self, line: &[u8], found: &Found) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match (self.state, line.is_empty()) {
            // Empty lines before a request are passed over, as the HTTP library does.
            (State::Before, true) => {}
            (State::Before, false) => {
                self.state = State::Head;
                self.head = Head::default();
            }
            (_, false) => self.head.take(line),
            (_, true) => self.end_head(found),
        }
    }

    fn end_head(&mut self, found: &Found) {
        let head = self.head;
        if head.lengths > 1 || head.encodings > 1 || (head.lengths > 0 && head.encodings > 0) {
            found.ambiguous.fetch_min(self.heads, Ordering::Relaxed);
        }
        self.state = match head.length {
            _ if head.encodings > 0 => {
                found.chunked.fetch_min(self.heads, Ordering::Relaxed);
                State::Done
            }
            Some(length) if length > 0 => State::Body(length),
            _ => State::Before,
        };
        self.heads += 1;
    }
}

impl Head {
    fn take(&mut self, line: &[u8]) {
        // Both names are longer than most; looking at the colon's place is enough for nearly every line.
        if line.get(14) == Some(&b':') && line[..14].eq_ignore_ascii_case(b"content-length") {
            self.lengths += 1;
            let digits = line[15..].trim_ascii();
            self.length = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        } else if line.get(17) == Some(&b':') && line[..17].eq_ignore_ascii_case(b"transfer-encoding") {
            self.encodings += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The number of the first ambiguous head and of the first chunked one, with the bytes cut into pieces.
    fn found(bytes: &[u8], piece: usize) -> (Option<u64>, Option<u64>) {
        let (mut scanner, found) = (Scanner::new(), Found::new());
        for piece in bytes.chunks(piece) {
            scanner.scan(piece, &found);
        }
        let number =
            |value: &AtomicU64| Some(value.load(Ordering::Relaxed)).filter(|value| *value != u64::MAX);
        (number(&found.ambiguous), number(&found.chunked))
    }

    #[track_caller]
    fn check(text: &str, expected: (Option<u64>, Option<u64>)) {
        for piece in 1..=text.len() {
            assert_eq!(found(text.as_bytes(), piece), expected, "in pieces of {piece}: {text:?}");
        }
    }

    #[test]
    fn heads_that_frame_twice_are_found() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        check(get, (None, None));
        check("\r\n\r\nGET / HTTP/1.1\nHost: a\n\n", (None, None));
        check("P / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde", (None, None));
        check("P / HTTP/1.1\r\nContent-Length: 5\r\nCONTENT-LENGTH: 5\r\n\r\nabcde", (Some(0), None));
        check(
            &format!("{get}P / HTTP/1.1\r\nContent-Length:5\r\nTransfer-Encoding: chunked\r\n\r\n"),
            (Some(1), Some(1)),
        );
        check(
            &format!("{get}P / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
            (Some(1), Some(1)),
        );
        check(
            "P / HTTP/1.1\r\nTransfer-Encoding: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            (Some(0), Some(0)),
        );
        check("P / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (None, Some(0)));
    }

    #[test]
    fn what_stands_in_a_body_is_no_head() {
        let inner = "P / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n";
        let length = inner.len();
        check(&format!("P / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{inner}"), (None, None));
        let after = format!("P / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{inner}{inner}");
        check(&after, (Some(1), None));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_are_read_alike(bytes in "[A-Za-z:\r\n0-9 -]{0,200}", piece in 1_usize..50) {
            prop_assert_eq!(found(bytes.as_bytes(), piece), found(bytes.as_bytes(), 1000));
        }
    }
}
