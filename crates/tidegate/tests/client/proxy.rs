//! Between a client and the server: counts what comes, and does to the answer what a test says.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
};

use crate::support::{DEADLINE, wire::Wire};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The server's answer comes back; the connection is kept.
    Through,
    /// The same, and the connection is closed after it.
    ThroughAndClose,
    /// The server executes it, and its answer waits until the test lets go.
    Hold,
    /// The server executes it, and the connection is closed without an answer.
    CutAfter,
    /// The connection is closed once the request was read; the server never sees it.
    CutBefore,
    /// The connection is closed as soon as it is there.
    CutAtOnce,
    /// Something else answers: this, whole.
    Answer(&'static str),
}

/// A proxy on a port of its own. It ends with the test's process.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    server: SocketAddr,
}

#[derive(Debug)]
struct State {
    way: Way,
    requests: usize,
    connections: usize,
    /// Answers that came from the server while it was held.
    held: usize,
}

impl Proxy {
    pub(crate) fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = State { way: Way::Through, requests: 0, connections: 0, held: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), server });
        let proxy = Self { address, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(&stream));
            }
        });
        proxy
    }

    /// From now on. What was held is let go.
    pub(crate) fn set(&self, way: Way) {
        self.shared.state.lock().unwrap().way = way;
        self.shared.changed.notify_all();
    }

    /// Requests that have come since the last time, and connections.
    pub(crate) fn seen(&self) -> (usize, usize) {
        let mut state = self.shared.state.lock().unwrap();
        let seen = (state.requests, state.connections);
        (state.requests, state.connections) = (0, 0);
        seen
    }

    /// Waits until so many answers are held.
    pub(crate) fn wait_until_held(&self, answers: usize) {
        let state = self.shared.state.lock().unwrap();
        let few = |state: &mut State| state.held < answers;
        let (_state, late) = self.shared.changed.wait_timeout_while(state, DEADLINE, few).unwrap();
        assert!(!late.timed_out(), "the server did not answer");
    }
}

impl Shared {
    /// One connection, until either side has had enough.
    fn serve(&self, stream: &TcpStream) {
        self.state.lock().unwrap().connections += 1;
        if self.way() == Way::CutAtOnce {
            return;
        }
        // Whoever hangs up ends it.
        let _ = stream.set_nodelay(true).and_then(|()| self.requests(stream));
    }

    fn requests(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader)? {
            self.state.lock().unwrap().requests += 1;
            match self.way() {
                Way::CutAtOnce | Way::CutBefore => return Ok(()),
                Way::Answer(text) => {
                    // Said, so that the next call does not meet a connection that is just being closed.
                    let text = text.replacen("\r\n", "\r\nconnection: close\r\n", 1);
                    return stream.write_all(text.as_bytes());
                }
                way => {
                    let answer = self.ask(&request)?;
                    if way == Way::Hold {
                        self.wait_for_another_way();
                    }
                    if way == Way::CutAfter {
                        return Ok(());
                    }
                    stream.write_all(&answer)?;
                    if way == Way::ThroughAndClose {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn ask(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let reply = Wire::tcp(self.server)?.exchange(request)?;
        let headers = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!("HTTP/1.1 {} -\r\n{}\r\n", reply.status, headers.collect::<String>());
        Ok([head.as_bytes(), &reply.body].concat())
    }

    fn wait_for_another_way(&self) {
        let mut state = self.state.lock().unwrap();
        state.held += 1;
        self.changed.notify_all();
        let held = |state: &mut State| state.way == Way::Hold;
        drop(self.changed.wait_timeout_while(state, DEADLINE, held).unwrap());
    }

    fn way(&self) -> Way {
        self.state.lock().unwrap().way
    }
}

/// The bytes of one request; `None` at the end of the connection.
fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        head.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some([head.as_bytes(), &body].concat()))
}
