//! The way of a request through firewall and policy.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidegate_core::{defense::Facts, path::PathBuffer};

use super::{
    AppId, Defense, Refusal,
    caller::{Caller, Joined},
    counters::Kind,
    refusal::Cause,
};

/// What becomes of a request.
#[derive(Debug)]
pub struct Judged {
    /// The answer, if it is not let through.
    pub refusal: Option<Refusal>,
    /// Its place in the access log.
    pub record: RecordHandle,
}

/// A request's place in the access log.
#[derive(Debug)]
pub struct RecordHandle {
    app: AppId,
    number: Option<u64>,
}

impl Defense {
    /// What the firewall says to a caller whose request is for no app.
    #[must_use]
    pub fn firewall(&self, caller: &Caller<'_>) -> Option<Refusal> {
        caller.is_denied.then(|| Refusal::new(Cause::Firewall))
    }

    /// Asks the firewall, then the app's policy, about a request with this method and this path as it was sent; counts,
    /// and appends the request to the access log. A panic within lets the request pass and is counted.
    #[must_use]
    pub fn judge(&self, app: &AppId, caller: &Caller<'_>, method: &str, path: &str) -> Judged {
        let at_ms = self.0.clock.now_ms();
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge_at(app, caller, method, path, at_ms)));
        judged.unwrap_or_else(|_| {
            app.0.count_fail_open(at_ms);
            Judged { refusal: None, record: RecordHandle { app: app.clone(), number: None } }
        })
    }

    fn judge_at(&self, app: &AppId, caller: &Caller<'_>, method: &str, path: &str, at_ms: u64) -> Judged {
        let (mut normal, mut user_agent) = (PathBuffer::default(), Joined::new());
        let facts = Facts {
            client: caller.client(),
            method,
            path: normal.normalise(path.as_bytes()),
            user_agent: caller.user_agent(&mut user_agent),
            at_ms,
        };
        let (kind, cause) =
            if caller.is_denied { (Kind::Firewall, Some(Cause::Firewall)) } else { self.ask(app, &facts) };
        let refusal = cause.map(Refusal::new);
        let status = refusal.map_or(0, |refusal| refusal.status().as_u16());
        let number = app.0.record(&facts, kind, status, caller.origin);
        Judged { refusal, record: RecordHandle { app: app.clone(), number: Some(number) } }
    }

    /// The policy alone; a panic there is counted and logged with its request.
    fn ask(&self, app: &AppId, facts: &Facts<'_>) -> (Kind, Option<Cause>) {
        let asked = catch_unwind(AssertUnwindSafe(|| {
            if let Some(hook) = self.0.hook.get() {
                hook(facts);
            }
            app.0.decide(facts)
        }));
        asked.unwrap_or((Kind::FailOpen, None))
    }
}

impl RecordHandle {
    /// Notes what the app answered.
    pub fn finish(&self, status: u16) {
        if let Some(number) = self.number {
            self.app.0.finish(number, status);
        }
    }
}
