//! The operator's calls over HTTP: the token before anything else, then the call.

use std::net::IpAddr;

use http::{Method, Request, header};
use hyper::body::Incoming;
use tidegate_core::secret::Secret;
use tidegate_protocol::{
    control::{self, FairnessReset, Forget, Resume, Stop},
    request::BadRequest,
};

use super::{Answer, Face, Refused, Service, respond};
use crate::{Operator, Refusal};

/// What all paths of the operator begin with.
pub(super) const PREFIX: &str = "/control/";

impl Service {
    pub(super) async fn control(&self, request: &mut Request<Incoming>, source: IpAddr) -> Answer {
        match self.controlled(request, source).await {
            Ok(body) => respond::ok(body),
            Err(refused) => refused.into_answer(),
        }
    }

    async fn controlled(&self, request: &mut Request<Incoming>, source: IpAddr) -> Result<Vec<u8>, Refused> {
        let face = std::sync::Arc::clone(&self.face.read());
        let Face::Ready { guard, operator_token, .. } = &*face else {
            return Err(Refusal::Unavailable.into());
        };
        // No bound on failures: an operator must get through from an address that others hammer from.
        if !shows(request, operator_token) {
            return Err(Refused::NoOperator);
        }
        let call = Call::of(request)?;
        let from = source.to_canonical().to_string();
        let operator = guard.operator();
        match call {
            Call::State => Ok(operator.state().await?.to_json()),
            Call::Audit { limit } => Ok(operator.audit(limit).await?.to_json()),
            Call::Change(change) => {
                let body = self.read_body(request).await?;
                Ok(apply(change, operator, &body, &from).await?)
            }
        }
    }
}

async fn apply(change: Change, operator: Operator<'_>, body: &[u8], from: &str) -> Result<Vec<u8>, Refusal> {
    Ok(match change {
        Change::Stop => operator.stop(Stop::from_json(body)?, from).await?.to_json(),
        Change::Resume => operator.resume(Resume::from_json(body)?, from).await?.to_json(),
        Change::FairnessReset => {
            operator.reset_fairness(FairnessReset::from_json(body)?, from).await?.to_json()
        }
        Change::Forget => operator.forget(Forget::from_json(body)?, from).await?.to_json(),
    })
}

enum Call {
    State,
    Audit { limit: usize },
    Change(Change),
}

#[derive(Clone, Copy)]
enum Change {
    Stop,
    Resume,
    FairnessReset,
    Forget,
}

impl Call {
    fn of(request: &Request<Incoming>) -> Result<Self, Refused> {
        let (call, method, allow) = match request.uri().path() {
            control::STATE_PATH => (Self::State, Method::GET, "GET"),
            control::AUDIT_PATH => (Self::Audit { limit: limit(request.uri().query())? }, Method::GET, "GET"),
            control::STOP_PATH => (Self::Change(Change::Stop), Method::POST, "POST"),
            control::RESUME_PATH => (Self::Change(Change::Resume), Method::POST, "POST"),
            control::FAIRNESS_RESET_PATH => (Self::Change(Change::FairnessReset), Method::POST, "POST"),
            control::FORGET_PATH => (Self::Change(Change::Forget), Method::POST, "POST"),
            _ => return Err(Refused::NotFound),
        };
        if *request.method() == method { Ok(call) } else { Err(Refused::MethodNotAllowed { allow }) }
    }
}

/// `limit=N` and nothing else.
fn limit(query: Option<&str>) -> Result<usize, Refusal> {
    let Some(query) = query.filter(|query| !query.is_empty()) else {
        return Ok(control::AUDIT_LIMIT_DEFAULT);
    };
    let number = query.strip_prefix("limit=").and_then(|number| number.parse().ok());
    number.filter(|number| (1..=control::AUDIT_LIMIT_MAX).contains(number)).ok_or_else(|| {
        let message = format!("must be limit=N, with N from 1 to {}", control::AUDIT_LIMIT_MAX);
        BadRequest { place: "the query".to_owned(), message }.into()
    })
}

/// Whether the request shows the token, exactly once. The scheme's name may be written in any case.
fn shows(request: &Request<Incoming>, token: &Secret) -> bool {
    let mut values = request.headers().get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    bearer_token(value.as_bytes()).is_some_and(|shown| token.ct_eq(shown))
}

/// The token of an `Authorization` header.
#[must_use]
pub fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

#[cfg(test)]
mod tests {
    use super::{bearer_token, limit};

    #[test]
    fn tokens_of_headers() {
        let table: [(&[u8], Option<&[u8]>); 6] = [
            (b"Bearer abc", Some(b"abc")),
            (b"bearer abc", Some(b"abc")),
            (b"Bearer ", Some(b"")),
            (b"Bearerabc", None),
            (b"Basic abc", None),
            (b"", None),
        ];
        for (value, token) in table {
            assert_eq!(bearer_token(value), token);
        }
    }

    #[test]
    fn limits_of_queries() {
        let table = [
            (None, Some(100)),
            (Some(""), Some(100)),
            (Some("limit=1"), Some(1)),
            (Some("limit=1000"), Some(1000)),
            (Some("limit=0"), None),
            (Some("limit=1001"), None),
            (Some("limit=-1"), None),
            (Some("limit=5&x=1"), None),
            (Some("n=5"), None),
        ];
        for (query, expected) in table {
            assert_eq!(limit(query).ok(), expected, "{query:?}");
        }
    }
}
