//! HTTP/1.1 as bytes: what a test writes is what goes out.

use std::{
    fmt::Write as _,
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt::set_socket_recv_buffer_size};
use serde_json::Value;

use super::DEADLINE;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// With names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The value of a header that stands at most once.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert_eq!(values.next(), None, "{name} stands once");
        value
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The code of a refusal.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The message of a refusal.
    #[track_caller]
    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }
}

/// A connection to the server.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    stream: S,
    read: Vec<u8>,
}

impl Wire<TcpStream> {
    pub(crate) fn tcp(address: SocketAddr) -> io::Result<Self> {
        Self::with_timeouts(TcpStream::connect_timeout(&address, DEADLINE)?)
    }

    /// From another address of this machine, such as 127.0.0.2.
    pub(crate) fn tcp_from(source: IpAddr, address: SocketAddr) -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::new(source, 0))?;
        connect(&socket, &address)?;
        Self::with_timeouts(TcpStream::from(socket))
    }

    /// With the smallest buffer for what comes, so that a server soon notices that nobody reads.
    pub(crate) fn tcp_with_little_room(address: SocketAddr) -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        set_socket_recv_buffer_size(&socket, 1024)?;
        connect(&socket, &address)?;
        Self::with_timeouts(TcpStream::from(socket))
    }

    fn with_timeouts(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish_sending(&self) -> io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Write)
    }
}

impl Wire<UnixStream> {
    pub(crate) fn unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Self::over(stream))
    }
}

impl<S: Read + Write> Wire<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Sends a whole request and reads its answer.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> io::Result<Reply> {
        // A server may answer and close before it has read everything.
        let sent = self.send(request);
        self.reply().map_err(|error| sent.err().unwrap_or(error))
    }

    /// Reads one answer to a request that was not a HEAD.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more()?;
        };
        let (status, headers) = head(&self.read[..end]).ok_or(io::ErrorKind::InvalidData)?;
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(Ok(0), |(_, value)| value.parse().map_err(io::Error::other));
        let whole = end + length?;
        while self.read.len() < whole {
            self.read_more()?;
        }
        let body = self.read[end..whole].to_vec();
        self.read.drain(..whole);
        Ok(Reply { status, headers, body })
    }

    /// Reads so many bytes, those first that came with an answer.
    pub(crate) fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.read.len() < length {
            self.read_more()?;
        }
        Ok(self.read.drain(..length).collect())
    }

    /// Reads until the server closes, and answers what came.
    ///
    /// # Errors
    /// The server did not close in time. A reset counts as closed.
    pub(crate) fn until_closed(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.read_more() {
                Ok(()) => {}
                Err(error) if is_close(error.kind()) => return Ok(std::mem::take(&mut self.read)),
                Err(error) => return Err(error),
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut scratch = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    self.read.extend_from_slice(&scratch[..length]);
                    return Ok(());
                }
                // A process that was stopped and goes on, with a timeout on its socket.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_close(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(kind, UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe | NotConnected)
}

fn head(bytes: &[u8]) -> Option<(u16, Vec<(String, String)>)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Some((status, lines.map_while(header).collect()))
}

/// The bytes of a request with a Content-Length.
pub(crate) fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {target} HTTP/1.1\r\nhost: guard\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        // Writing to a String does not fail.
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// One GET on a connection of its own.
pub(crate) fn get(address: SocketAddr, target: &str) -> io::Result<Reply> {
    get_with(address, target, &[])
}

/// One GET with headers.
pub(crate) fn get_with(address: SocketAddr, target: &str, headers: &[(&str, &str)]) -> io::Result<Reply> {
    Wire::tcp(address)?.exchange(&request("GET", target, headers, b""))
}
