//! Frames of HTTP/2 as a test writes them.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use crate::{rig::HOST, support::DEADLINE};

pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// A connection.
#[derive(Debug)]
pub(crate) struct Frames(TcpStream);

/// A frame that came.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frames {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
        stream.set_write_timeout(Some(DEADLINE)).expect("a socket");
        stream.set_nodelay(true).expect("a socket");
        let mut frames = Self(stream);
        frames.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("it is open");
        frames.send(SETTINGS, 0, 0, &[]).expect("it is open");
        frames
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    pub(crate) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.raw(&frame(kind, flags, stream, payload))
    }

    /// The next frame; none once the server has closed.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).ok()?;
        Some(Frame {
            kind: head[3],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
            payload,
        })
    }

    /// The error of the GOAWAY with which the server ends the connection; none if it just closes.
    pub(crate) fn farewell(&mut self) -> Option<u32> {
        let mut error = None;
        while let Some(frame) = self.next() {
            if frame.kind == GOAWAY {
                error = frame.payload[4..8].try_into().ok().map(u32::from_be_bytes);
            }
        }
        error
    }
}

/// The bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it fits").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The header block of a GET of `path` of the app.
pub(crate) fn get(path: &str) -> Vec<u8> {
    let text = |bytes: &str| [&[u8::try_from(bytes.len()).expect("short")], bytes.as_bytes()].concat();
    // Indexed :method GET and :scheme http, then :authority and :path as literals that are not indexed.
    [&[0x82, 0x86, 0x01][..], &text(HOST), &[0x04], &text(path)].concat()
}
