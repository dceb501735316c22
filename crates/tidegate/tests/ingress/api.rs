//! The admin API, asked as an operator would.

use serde_json::{Value, json};

use crate::{
    rig::Rig,
    support::wire::{self, Reply, Wire},
};

impl Rig {
    /// A call below `/api/v1` with these headers, whatever comes back.
    #[track_caller]
    pub(crate) fn api_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let request = wire::request(method, &format!("/api/v1{path}"), headers, body.as_bytes());
        Wire::tcp(self.server.admin).and_then(|mut wire| wire.exchange(&request)).expect("an answer")
    }

    /// The same with the token that was made at the first start, which may do everything.
    #[track_caller]
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.server.made_secret("admin_token"));
        self.api_with(method, path, &[("authorization", &bearer)], body)
    }

    /// Puts a policy of `shop` in force, and answers how it stands then.
    #[track_caller]
    pub(crate) fn put(&self, policy: &str) -> Value {
        let reply = self.api("PUT", "/apps/shop/abuse", policy);
        assert_eq!(reply.status, 200, "{policy}: {}", reply.text());
        reply.json()
    }

    /// What a call tells.
    #[track_caller]
    pub(crate) fn told(&self, path: &str) -> Value {
        let reply = self.api("GET", path, "");
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// How `shop` stands: policy, status, counters of the last hour.
    #[track_caller]
    pub(crate) fn view(&self) -> Value {
        self.told("/apps/shop/abuse")
    }

    /// The condition of `shop`, and its sentence.
    #[track_caller]
    pub(crate) fn status(&self) -> (String, String) {
        let status = &self.view()["status"];
        let text = |field: &str| status[field].as_str().expect("a text").to_owned();
        (text("condition"), text("message"))
    }

    /// How often an outcome was counted in the last hour: a number, or one for each reason above 0.
    #[track_caller]
    pub(crate) fn counted(&self, outcome: &str) -> Value {
        let mut counted = self.view()["counters"][outcome].clone();
        if let Some(reasons) = counted.as_object_mut() {
            reasons.retain(|_, count| *count != json!(0));
        }
        counted
    }
}
