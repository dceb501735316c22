//! A client of one connection: requests by the protocol's own types, signed anew each time they are sent.

use std::{
    io,
    net::{SocketAddr, TcpStream},
};

use tidegate_core::secret::Secret;
use tidegate_protocol::{
    Command, CommandResult, Request, Response, StepResult,
    identity::{Digest, Pepper, Purpose, digest},
    name::{Family, OperationId},
};

use crate::support::{
    message,
    server::SECRET,
    wire::{Reply, Wire},
};

/// A client.
pub(crate) struct Caller {
    address: SocketAddr,
    connection: Option<Wire<TcpStream>>,
}

impl Caller {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self { address, connection: None }
    }

    /// Posts the body, signed now. An error says nothing about whether it was executed.
    pub(crate) fn post(&mut self, body: &[u8]) -> io::Result<Reply> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Wire::tcp(self.address)?,
        };
        let reply = connection.exchange(&message::signed(SECRET, body))?;
        self.connection = Some(connection);
        Ok(reply)
    }

    /// Posts the body and reads the response of an executed request.
    pub(crate) fn run(&mut self, body: &[u8]) -> io::Result<Response> {
        executed(&self.post(body)?)
    }

    /// Runs one step under a fresh operation id.
    #[track_caller]
    pub(crate) fn step(
        &mut self,
        partition: &str,
        commands: impl IntoIterator<Item = Command>,
    ) -> StepResult {
        let body = body_of(&request(fresh_id()).step(partition_of(partition), commands));
        let response = self.run(&body).unwrap_or_else(|error| panic!("in {partition}: {error}"));
        response.steps.into_iter().next().expect("a response has a result for each step")
    }

    /// Runs one command under a fresh operation id.
    #[track_caller]
    pub(crate) fn one(&mut self, partition: &str, command: Command) -> CommandResult {
        let step = self.step(partition, [command]);
        step.results.into_iter().next().expect("a step that ran has a result for each command")
    }

    /// The record's value and what is left of its life.
    #[track_caller]
    pub(crate) fn record(&mut self, partition: &str, name: &str) -> (Option<String>, Option<u64>) {
        match self.one(partition, Command::get(key(name))) {
            CommandResult::Get { value, ttl_ms } => (value, ttl_ms),
            other => panic!("a kv.get answered {other:?}"),
        }
    }
}

/// The response of a request that was executed.
pub(crate) fn executed(reply: &Reply) -> io::Result<Response> {
    if reply.status != 200 {
        return Err(io::Error::other(format!("{}: {}", reply.status, reply.text())));
    }
    Response::from_json(&reply.body).map_err(io::Error::other)
}

/// Whether this is the refusal of a guard that can't store, as the protocol has it.
pub(crate) fn is_unavailable(reply: &Reply) -> bool {
    reply.status == 503 && reply.header("retry-after") == Some("30") && reply.code() == "guard_unavailable"
}

/// A request of the family that these tests use.
pub(crate) fn request(op: OperationId) -> Request {
    Request::new(op, Family::parse("proxy").expect("a default family"))
}

/// The bytes that are sent, each time the same.
pub(crate) fn body_of(request: &Request) -> Vec<u8> {
    request.to_json().expect("the tests stay within the bounds")
}

pub(crate) fn fresh_id() -> OperationId {
    OperationId::parse(&message::fresh_op()).expect("32 hexadecimal digits")
}

pub(crate) fn partition_of(name: &str) -> Digest {
    digest(&pepper(), Purpose::Partition, name)
}

pub(crate) fn key(name: &str) -> Digest {
    digest(&pepper(), Purpose::Key, name)
}

fn pepper() -> Pepper {
    Pepper::new(&Secret::new("pepper-of-the-crash-tests-0123456789abcdef").expect("long enough"))
}
