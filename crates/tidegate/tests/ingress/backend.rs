//! An app's server, which says what it has seen.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// A server on a free port. By its path a request chooses what is done with it:
///
/// * `/echo…`: the whole head is answered as the body;
/// * `/length`: the number of the body's bytes is answered;
/// * `/unread`: answers 200 without reading the body;
/// * `/silent`: no answer, ever;
/// * `/cut`: half of an answer;
/// * `/big`: 8 MiB;
/// * `/odd`: headers that belong to one hop;
/// * an `Upgrade`: 101, and an echo of all bytes, unless the path is `/refuse`.
#[derive(Debug, Clone)]
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The heads of requests that were read to their end.
    whole: Mutex<Vec<String>>,
    connections: AtomicUsize,
    closed: AtomicUsize,
    body_bytes: AtomicUsize,
}

impl Backend {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let backend = Self { address: listener.local_addr().expect("bound"), seen: Arc::default() };
        let seen = Arc::clone(&backend.seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&seen);
                seen.connections.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    // An error is the end of a connection.
                    drop(serve(stream, &seen));
                    seen.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        backend
    }

    /// The heads of the requests that came whole.
    pub(crate) fn whole(&self) -> Vec<String> {
        self.seen.whole.lock().expect("nobody panics with it").clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Waits until so many connections have been closed from here.
    pub(crate) fn await_closed(&self, count: usize) {
        while self.seen.closed.load(Ordering::SeqCst) < count {
            thread::yield_now();
        }
    }

    /// The bytes of bodies that came, whole or not.
    pub(crate) fn body_bytes(&self) -> usize {
        self.seen.body_bytes.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, seen: &Seen) -> io::Result<()> {
    let mut read = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            more(&mut stream, &mut read)?;
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        read.drain(..end);
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        match path.as_str() {
            "/silent" => {
                note(seen, &head);
                loop {
                    more(&mut stream, &mut read)?;
                }
            }
            "/unread" => {
                answer(&mut stream, "200 OK", "", b"unread")?;
                return Ok(());
            }
            _ => {}
        }
        let body = body(&mut stream, &mut read, &head, seen)?;
        note(seen, &head);
        let upgrade = value(&head, "upgrade").is_some();
        match path.as_str() {
            _ if upgrade && path != "/refuse" => {
                stream.write_all(
                    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
                )?;
                stream.write_all(&read)?;
                let mut scratch = [0; 1024];
                loop {
                    match stream.read(&mut scratch)? {
                        0 => return Ok(()),
                        length => stream.write_all(&scratch[..length])?,
                    }
                }
            }
            "/cut" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")?;
                return Ok(());
            }
            "/big" => answer(&mut stream, "200 OK", "", &vec![b'x'; 8 << 20])?,
            "/length" => answer(&mut stream, "200 OK", "", body.to_string().as_bytes())?,
            "/refuse" => answer(&mut stream, "403 Forbidden", "", b"no")?,
            "/odd" => answer(
                &mut stream,
                "200 OK",
                "keep-alive: timeout=5\r\nconnection: x-hop\r\nx-hop: 1\r\nx-end: 1\r\n",
                b"",
            )?,
            _ => answer(&mut stream, "200 OK", "", head.as_bytes())?,
        }
    }
}

fn note(seen: &Seen, head: &str) {
    seen.whole.lock().expect("nobody panics with it").push(head.to_owned());
}

fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    // In one piece: the second of two would wait for the first one's acknowledgement, 40 ms each time.
    stream.write_all(&[head.as_bytes(), body].concat())
}

/// Reads the body and answers its length.
fn body(stream: &mut TcpStream, read: &mut Vec<u8>, head: &str, seen: &Seen) -> io::Result<usize> {
    let mut take = |read: &mut Vec<u8>, length: usize| -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if read.is_empty() {
                more(stream, read)?;
            }
            let taken = left.min(read.len());
            read.drain(..taken);
            seen.body_bytes.fetch_add(taken, Ordering::SeqCst);
            left -= taken;
        }
        Ok(())
    };
    if value(head, "transfer-encoding").is_none() {
        let length = value(head, "content-length").map_or(0, |length| length.parse().expect("a number"));
        take(read, length)?;
        return Ok(length);
    }
    let mut whole = 0;
    loop {
        let end = loop {
            if let Some(at) = read.windows(2).position(|two| two == b"\r\n") {
                break at;
            }
            more(stream, read)?;
        };
        let size = String::from_utf8_lossy(&read[..end]).into_owned();
        let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        read.drain(..end + 2);
        let mut left = size + 2;
        while left > 0 {
            if read.is_empty() {
                more(stream, read)?;
            }
            let taken = left.min(read.len());
            read.drain(..taken);
            left -= taken;
        }
        seen.body_bytes.fetch_add(size, Ordering::SeqCst);
        whole += size;
        if size == 0 {
            return Ok(whole);
        }
    }
}

fn more(stream: &mut TcpStream, read: &mut Vec<u8>) -> io::Result<()> {
    let mut scratch = [0; 16 * 1024];
    match stream.read(&mut scratch)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => {
            read.extend_from_slice(&scratch[..length]);
            Ok(())
        }
    }
}

/// The value of a header in a head.
pub(crate) fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
