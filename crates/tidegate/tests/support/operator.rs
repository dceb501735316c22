//! The operator's calls, with the token that was made at the first start.

use serde_json::Value;

use super::{
    server::Server,
    wire::{self, Reply, Wire},
};

/// The bytes of an operator's call that shows `token`.
pub(crate) fn call(token: &str, method: &str, target: &str, body: &str) -> Vec<u8> {
    wire::request(method, target, &[("authorization", &format!("Bearer {token}"))], body.as_bytes())
}

impl Server {
    /// Makes an operator's call on a connection of its own, whatever comes back.
    #[track_caller]
    pub(crate) fn control(&self, method: &str, target: &str, body: &str) -> Reply {
        let request = call(&self.made_secret("operator_token"), method, target, body);
        Wire::tcp(self.guard).and_then(|mut wire| wire.exchange(&request)).expect("an answer")
    }

    /// A POST that is answered 200.
    #[track_caller]
    pub(crate) fn order(&self, target: &str, body: &str) -> Value {
        let reply = self.control("POST", target, body);
        assert_eq!(reply.status, 200, "{target} {body}: {}", reply.text());
        reply.json()
    }

    /// How everything stands.
    #[track_caller]
    pub(crate) fn state(&self) -> Value {
        let reply = self.control("GET", "/control/state", "");
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// What a family has spent today.
    #[track_caller]
    pub(crate) fn used(&self, family: &str) -> u64 {
        self.state()["families"][family]["used"].as_u64().expect("a configured family")
    }

    /// What operators did, newest first.
    #[track_caller]
    pub(crate) fn audit(&self) -> Vec<Value> {
        let reply = self.control("GET", "/control/audit", "");
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["entries"].as_array().expect("a list").clone()
    }
}
