//! RPCs: built as JSON, signed, sent.

use std::{io, net::SocketAddr};

use serde_json::{Value, json};
use tidegate_core::secret::Secret;
use tidegate_protocol::{
    identity::{Pepper, Purpose, digest as hash},
    signature,
};
use tidegate_store::clock::wall_ms;

use super::{
    server::{SECRET, Server},
    wire::{self, Reply, Wire},
};

const PEPPER: &str = "e2e-pepper-0123456789abcdef-0123456789";

/// The header that a client signs with.
pub(crate) const SIGNATURE: &str = "Tidegate-Signature";

/// The digest that a client sends for `name`, whether as partition or as key.
pub(crate) fn digest(name: &str) -> String {
    let pepper = Pepper::new(&Secret::new(PEPPER).expect("long enough"));
    hash(&pepper, Purpose::Key, name).as_str().to_owned()
}

/// A fresh operation id.
pub(crate) fn fresh_op() -> String {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).expect("the system gives random numbers");
    bits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A request of one step in the partition named `partition`, under a fresh operation id.
pub(crate) fn one_step(partition: &str, commands: Value) -> Value {
    steps(json!([{"partition": digest(partition), "commands": commands}]))
}

/// A request of these steps, under a fresh operation id.
pub(crate) fn steps(steps: Value) -> Value {
    json!({"op": fresh_op(), "family": "proxy", "steps": steps})
}

/// `kv.incr` by 1, to live for ten minutes.
pub(crate) fn incr(key: &str) -> Value {
    json!({"cmd": "kv.incr", "key": digest(key), "by": 1, "ttl_ms": 600_000})
}

pub(crate) fn get(key: &str) -> Value {
    json!({"cmd": "kv.get", "key": digest(key)})
}

/// `kv.set`, to live for ten minutes.
pub(crate) fn set(key: &str, value: &str, mode: &str) -> Value {
    json!({"cmd": "kv.set", "key": digest(key), "value": value, "ttl_ms": 600_000, "mode": mode})
}

/// `win.hit` of one fixed window, so long that it does not end during a test.
pub(crate) fn hit(key: &str, limit: u64) -> Value {
    let window = json!({"key": digest(key), "limit": limit, "period_ms": DAYS_100, "algorithm": "fixed"});
    json!({"cmd": "win.hit", "windows": [window]})
}

/// The value of the signature header for a POST of `body` to the RPC, now.
pub(crate) fn signature(secret: &str, body: &[u8]) -> String {
    signature_at(secret, wall_ms(), body)
}

/// The same at another time.
pub(crate) fn signature_at(secret: &str, t_ms: u64, body: &[u8]) -> String {
    signature_over(secret, t_ms, "POST", "/v1/rpc", body)
}

/// The same over another method and target.
pub(crate) fn signature_over(secret: &str, t_ms: u64, method: &str, target: &str, body: &[u8]) -> String {
    let secret = Secret::new(secret).expect("a test's secret is one");
    signature::sign(&secret, t_ms, method, target, body)
}

/// The bytes of a signed POST of `body`.
pub(crate) fn signed(secret: &str, body: &[u8]) -> Vec<u8> {
    post_with(&[(SIGNATURE, &signature(secret, body))], body)
}

/// The bytes of a POST of `body` with these headers and no others.
pub(crate) fn post_with(headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    wire::request("POST", "/v1/rpc", headers, body)
}

/// Sends the signed bytes of `body` on a connection of its own.
pub(crate) fn post_to(address: SocketAddr, secret: &str, body: &[u8]) -> io::Result<Reply> {
    Wire::tcp(address)?.exchange(&signed(secret, body))
}

impl Server {
    /// Sends the signed bytes of `body` on a connection of its own.
    #[track_caller]
    pub(crate) fn post(&self, body: &[u8]) -> Reply {
        post_to(self.guard, SECRET, body).unwrap_or_else(|error| panic!("no answer: {error}"))
    }

    /// Sends an RPC, whatever comes back.
    #[track_caller]
    pub(crate) fn rpc(&self, request: &Value) -> Reply {
        self.post(request.to_string().as_bytes())
    }

    /// Sends an RPC that is answered 200.
    #[track_caller]
    pub(crate) fn ok(&self, request: &Value) -> Value {
        let reply = self.rpc(request);
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// Runs one command in the partition `partition` and answers its result.
    #[track_caller]
    pub(crate) fn run(&self, partition: &str, command: Value) -> Value {
        self.ok(&one_step(partition, json!([command])))["steps"][0]["results"][0].clone()
    }

    /// The counter named `key`, or null where there is none.
    #[track_caller]
    pub(crate) fn counter(&self, partition: &str, key: &str) -> Value {
        self.run(partition, get(key))["value"].clone()
    }
}

/// A fixed window that a test's run falls into two of about once in a lifetime.
const DAYS_100: u64 = 100 * 24 * 3_600_000;
