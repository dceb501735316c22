//! A receiver of alerts that answers what a test says.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

use serde_json::Value;
use tidegate_core::secret::Secret;
use tidegate_protocol::signature::{self, Keyring};
use tidegate_store::clock::wall_ms;

use crate::support::{DEADLINE, server::Setup};

pub(crate) const SECRET: &str = "webhook-signing-secret-0123456789abcdef";
/// With a part that nobody else shall see, as webhooks of chat systems have it.
pub(crate) const TARGET: &str = "/hooks/Zq7-only-for-us?team=ops";

/// Its thread lives as long as the test's process.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    posts: mpsc::Receiver<Post>,
}

/// One request, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Post {
    /// `POST /path HTTP/1.1`.
    pub(crate) line: String,
    /// With names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Receiver {
    /// Answers each request with the next of these status lines (and headers), the last one again and again;
    /// an empty one is no answer at all.
    pub(crate) fn answering(answers: &'static [&'static str]) -> Self {
        Self::over(|stream| stream, answers)
    }

    /// The same over what `wrap` makes of a connection.
    pub(crate) fn over<S: Read + Write + Send + 'static>(
        wrap: impl Fn(TcpStream) -> S + Send + 'static,
        answers: &'static [&'static str],
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (came, posts) = mpsc::channel();
        thread::spawn(move || {
            let mut answers = answers.iter();
            let (mut answer, mut unanswered) = (answers.next().unwrap(), Vec::new());
            for stream in listener.incoming().map_while(Result::ok) {
                let mut stream = wrap(stream);
                let Some(post) = read(&mut stream) else { continue };
                if answer.is_empty() {
                    unanswered.push(stream);
                } else {
                    let head =
                        format!("HTTP/1.1 {answer}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
                    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.flush());
                }
                answer = answers.next().unwrap_or(answer);
                let _ = came.send(post);
            }
        });
        Self { address, posts }
    }

    /// A server that posts its alerts here, with so small a store that it can be filled.
    pub(crate) fn of_alerts(&self) -> Setup {
        setup()
            .set("admin.webhook_url", format!("http://{}{TARGET}", self.address))
            .set("admin.webhook_secret", SECRET)
    }

    /// The next request.
    #[track_caller]
    pub(crate) fn next(&self) -> Post {
        self.posts.recv_timeout(DEADLINE).expect("an alert in time")
    }

    /// Whether no request has come but those that were taken.
    pub(crate) fn has_no_more(&self) -> bool {
        self.posts.try_recv().is_err()
    }
}

/// A server with so small a store that it can be filled.
pub(crate) fn setup() -> Setup {
    Setup::new().set("store.max_entries", "1000")
}

impl Post {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is signed with this secret, for this target.
    pub(crate) fn is_signed(&self, secret: &str, target: &str) -> bool {
        let keyring = Keyring::new(&[Secret::new(secret).unwrap()]).unwrap();
        let values = self.headers.iter().filter(|(name, _)| name == signature::HEADER);
        let values = values.map(|(_, value)| value.as_bytes());
        signature::verify(&keyring, values, "POST", target, &self.body, wall_ms()).is_ok()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn kind(&self) -> String {
        self.json()["kind"].as_str().unwrap().to_owned()
    }
}

fn read(stream: &mut impl Read) -> Option<Post> {
    let mut bytes = Vec::new();
    let mut until = |length: &dyn Fn(&[u8]) -> Option<usize>| loop {
        if let Some(length) = length(&bytes) {
            return Some(bytes.drain(..length).collect::<Vec<_>>());
        }
        let mut scratch = [0; 4096];
        match stream.read(&mut scratch).ok()? {
            0 => return None,
            length => bytes.extend_from_slice(&scratch[..length]),
        }
    };
    let head = until(&|bytes| Some(bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4))?;
    let head = String::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let header =
        |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: Vec<_> = lines.map_while(header).collect();
    let length: usize = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let body = until(&|bytes| (bytes.len() >= length).then_some(length))?;
    Some(Post { line, headers, body })
}
