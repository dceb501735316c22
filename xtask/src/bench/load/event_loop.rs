//! One thread, one `epoll`, many connections. It shares the machine with the server that it measures, so a
//! request costs it two system calls and next to nothing of its own.

use std::{
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use mio::{Events, Interest, Poll, Token, net::TcpStream};

use super::{Order, Outcome, Plan};
use crate::{
    bench::{histogram::Histogram, random::Random},
    clock,
};

/// A protocol of requests and answers, one at a time on a connection.
pub(crate) trait Wire {
    /// Makes the next request in the place of the last one.
    fn request(&mut self, key: usize, request: &mut Vec<u8>);

    /// The answer to `request` at the beginning of `input`, or `None` while it is incomplete.
    ///
    /// # Errors
    /// The answer is not one that a sound server gives to a sound request.
    fn answer(&self, request: &[u8], input: &[u8]) -> Result<Option<Answer>>;
}

/// An answer that has come in whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) allowed: bool,
    pub(crate) bytes: usize,
}

struct Connection {
    socket: TcpStream,
    request: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    sent_at: Instant,
    waiting: bool,
}

/// Longer than any server's own deadline: nothing is answered any more.
const SILENCE_MAX: Duration = Duration::from_secs(20);
const READ_BYTES: usize = 16 * 1024;

/// Drives `server` until the plan is done and every request is answered.
///
/// # Errors
/// A connection failed, an answer was wrong, or the server fell silent.
pub(crate) fn drive(wire: &mut impl Wire, server: SocketAddr, plan: Plan) -> Result<Outcome> {
    let mut poll = Poll::new().context("making an epoll")?;
    let mut connections = connect(&poll, server, plan.connections)?;
    let mut load = Load::new(plan)?;
    for connection in &mut connections {
        connection.send_next(wire, &mut load)?;
    }
    let mut events = Events::with_capacity(plan.connections.clamp(16, 1024));
    let mut buffer = vec![0; READ_BYTES];
    while load.waiting > 0 {
        match poll.poll(&mut events, Some(SILENCE_MAX)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            polled => polled.context("waiting for answers")?,
        }
        if events.is_empty() {
            bail!("{server} has not answered for {}", clock::in_words(SILENCE_MAX));
        }
        for event in &events {
            let connection = &mut connections[event.token().0];
            connection.step(wire, &mut load, &mut buffer)?;
        }
    }
    Ok(load.finish())
}

fn connect(poll: &Poll, server: SocketAddr, count: usize) -> Result<Vec<Connection>> {
    let mut connections = Vec::with_capacity(count);
    for index in 0..count {
        let socket =
            std::net::TcpStream::connect(server).with_context(|| format!("connecting to {server}"))?;
        socket.set_nodelay(true).context("setting up a socket")?;
        socket.set_nonblocking(true).context("setting up a socket")?;
        let mut socket = TcpStream::from_std(socket);
        let both = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut socket, Token(index), both).context("registering a socket")?;
        let (request, input) = (Vec::with_capacity(1024), Vec::with_capacity(READ_BYTES));
        connections.push(Connection {
            socket,
            request,
            written: 0,
            input,
            sent_at: clock::now(),
            waiting: false,
        });
    }
    Ok(connections)
}

impl Connection {
    fn send_next(&mut self, wire: &mut impl Wire, load: &mut Load) -> Result<()> {
        self.waiting = false;
        if let Some(key) = load.next_key() {
            wire.request(key, &mut self.request);
            (self.written, self.sent_at, self.waiting) = (0, clock::now(), true);
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        while self.written < self.request.len() {
            match self.socket.write(&self.request[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("sending a request"),
            }
        }
        Ok(())
    }

    /// Goes on wherever the socket lets it.
    fn step(&mut self, wire: &mut impl Wire, load: &mut Load, buffer: &mut [u8]) -> Result<()> {
        self.write()?;
        while self.waiting && self.read(buffer)? {
            let Some(answer) = wire.answer(&self.request, &self.input)? else { continue };
            if answer.bytes != self.input.len() {
                bail!("{} bytes follow an answer unasked", self.input.len() - answer.bytes);
            }
            self.input.clear();
            load.answered(self.sent_at, answer);
            self.send_next(wire, load)?;
            // The next answer brings its own event: asking for it now would only cost a system call.
            break;
        }
        Ok(())
    }

    /// Whether anything came.
    fn read(&mut self, buffer: &mut [u8]) -> Result<bool> {
        match self.socket.read(buffer) {
            Ok(0) => bail!("the server closed a connection before it answered"),
            Ok(bytes) => {
                self.input.extend_from_slice(&buffer[..bytes]);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error).context("reading an answer"),
        }
    }
}

struct Load {
    plan: Plan,
    random: Random,
    started: Instant,
    next: usize,
    waiting: usize,
    over: Option<Duration>,
    latency: Histogram,
    allowed: u64,
}

impl Load {
    fn new(plan: Plan) -> Result<Self> {
        Ok(Self {
            plan,
            random: Random::fresh()?,
            started: clock::now(),
            next: 0,
            waiting: 0,
            over: None,
            latency: Histogram::new(),
            allowed: 0,
        })
    }

    fn next_key(&mut self) -> Option<usize> {
        let key = match self.plan.order {
            Order::RandomFor(_) => self.over.is_none().then(|| self.random.below(self.plan.keys)),
            Order::EachOnce => (self.next < self.plan.keys).then_some(self.next),
        };
        self.next += 1;
        self.waiting += usize::from(key.is_some());
        key
    }

    /// What comes after the time is up belongs to requests that are only waited for.
    fn answered(&mut self, sent_at: Instant, answer: Answer) {
        let now = clock::now();
        self.waiting -= 1;
        if self.over.is_some() {
            return;
        }
        self.latency.record(now - sent_at);
        self.allowed += u64::from(answer.allowed);
        let elapsed = now - self.started;
        let done = match self.plan.order {
            Order::RandomFor(duration) => elapsed >= duration,
            Order::EachOnce => self.waiting == 0 && self.next >= self.plan.keys,
        };
        self.over = done.then_some(elapsed);
    }

    fn finish(self) -> Outcome {
        let elapsed = self.over.unwrap_or_else(|| self.started.elapsed());
        Outcome { latency: self.latency, allowed: self.allowed, elapsed }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// One byte asks, one byte answers.
    struct Bytes;

    impl Wire for Bytes {
        fn request(&mut self, key: usize, request: &mut Vec<u8>) {
            request.clear();
            request.push(u8::try_from(key % 2).unwrap());
        }

        fn answer(&self, request: &[u8], input: &[u8]) -> Result<Option<Answer>> {
            let Some(first) = input.first() else { return Ok(None) };
            assert_eq!(*first, request[0]);
            Ok(Some(Answer { allowed: *first == 0, bytes: 1 }))
        }
    }

    /// Answers each byte with `reply` of it, on as many connections as come.
    fn server(reply: fn(u8) -> Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for socket in listener.incoming() {
                thread::spawn(move || {
                    let mut socket = socket.unwrap();
                    let mut asked = [0];
                    while socket.read_exact(&mut asked).is_ok() {
                        socket.write_all(&reply(asked[0])).unwrap();
                    }
                });
            }
        });
        address
    }

    #[test]
    fn each_key_is_asked_for_once() {
        let plan = Plan { connections: 7, keys: 100, order: Order::EachOnce };
        let outcome = drive(&mut Bytes, server(|byte| vec![byte]), plan).unwrap();
        assert_eq!((outcome.answers(), outcome.allowed), (100, 50));
    }

    #[test]
    fn it_ends_when_the_time_is_up() {
        let order = Order::RandomFor(Duration::from_millis(20));
        let outcome =
            drive(&mut Bytes, server(|byte| vec![byte]), Plan { connections: 3, keys: 10, order }).unwrap();
        assert!(outcome.elapsed >= Duration::from_millis(20) && outcome.answers() > 0);
        assert!(outcome.allowed < outcome.answers());
    }

    #[test]
    fn what_nobody_asked_for_is_a_fault() {
        let plan = Plan { connections: 1, keys: 10, order: Order::EachOnce };
        assert!(drive(&mut Bytes, server(|byte| vec![byte, byte]), plan).is_err());
        assert!(drive(&mut Bytes, server(|_| Vec::new()), Plan { keys: 0, ..plan }).is_ok());
    }
}
