//! A request on its way to an app's server, and the answer back.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Extensions, Request, Response, StatusCode, Version, request::Parts};
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;

use super::{
    ProxyOptions, answers,
    body::{BodyFault, BodyLimits, FaultCell, RequestBody, Source},
    context::{Context, Tunnel},
    handler::Reply,
    headers::{self, Origin},
    shield::Permit,
    upstream::{Connection, Failure, Limits, Upstream, UpstreamBody, Upstreams},
};

/// Between a request and its app's servers.
pub(super) struct Way<'a> {
    pub(super) context: &'a Arc<Context>,
    pub(super) upstreams: &'a Upstreams,
    pub(super) options: &'a ProxyOptions,
    pub(super) limits: BodyLimits,
    pub(super) origin: Origin,
}

/// Kept connections that turn out to be closed are no failed servers: so many more tries are free.
const STALE_MAX: usize = 4;

impl Way<'_> {
    /// Sends the request to the next server that takes it. It is sent again only where nothing of it was sent.
    pub(super) async fn forward(&self, mut parts: Parts, body: Incoming, permit: Permit) -> Reply {
        let has_body = !body.is_end_stream();
        let protocol = if has_body || parts.version != Version::HTTP_11 {
            None
        } else {
            headers::upgrade(&parts.headers)
        };
        headers::for_app(&mut parts.headers, self.origin);
        let asks_for_upgrade = protocol.is_some();
        if let Some(protocol) = protocol {
            headers::set_upgrade(&mut parts.headers, protocol);
        }
        parts.version = Version::HTTP_11;
        parts.extensions = Extensions::new();
        let (body, fault) = RequestBody::new(body, self.limits);
        let mut request = Request::from_parts(parts, body);

        let limits = self.upstream_limits();
        let mut tries = self.upstreams.len() + STALE_MAX;
        loop {
            let Some(upstream) = self.upstreams.pick() else {
                return self.failed(
                    has_body,
                    answers::again(StatusCode::SERVICE_UNAVAILABLE, "no server of the app is well\n"),
                );
            };
            tries -= 1;
            match upstream.connection(self.context.worker, &limits).await {
                Ok(mut connection) => {
                    match timeout(self.patience(has_body), connection.send(request)).await {
                        Ok(Ok(response)) => {
                            let upstream = Arc::clone(upstream);
                            return self.answered(response, connection, upstream, asks_for_upgrade, permit);
                        }
                        Ok(Err(Failure::Unsent(unsent))) if tries > 0 => request = *unsent,
                        Ok(Err(_broken)) => return self.failed(has_body, broken(fault.as_ref())),
                        Err(_elapsed) => {
                            let late = answers::text(
                                StatusCode::GATEWAY_TIMEOUT,
                                "the app does not answer in time\n",
                            );
                            return self.failed(has_body, late);
                        }
                    }
                }
                Err(_unreachable) if tries > STALE_MAX => {}
                Err(_unreachable) => {
                    let down = answers::text(StatusCode::BAD_GATEWAY, "the app can't be reached\n");
                    return self.failed(has_body, down);
                }
            }
        }
    }

    fn answered(
        &self,
        response: Response<Incoming>,
        connection: Box<Connection>,
        upstream: Arc<Upstream>,
        asks_for_upgrade: bool,
        permit: Permit,
    ) -> Reply {
        let (mut parts, body) = response.into_parts();
        parts.version = Version::HTTP_11;
        parts.extensions = Extensions::new();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            let protocol = headers::upgrade(&parts.headers).filter(|_| asks_for_upgrade);
            let Some(protocol) = protocol else {
                return answers::text(StatusCode::BAD_GATEWAY, "the app changes the protocol unasked\n")
                    .into();
            };
            headers::for_client(&mut parts.headers);
            headers::set_upgrade(&mut parts.headers, protocol);
            self.context.set_tunnel(Tunnel { app: connection.into_tunnel(), permit });
            return Response::from_parts(parts, Source::from(Bytes::new())).into();
        }
        headers::for_client(&mut parts.headers);
        let body = UpstreamBody::new(
            body,
            connection,
            upstream,
            self.context.worker,
            self.options.upstream_idle_max,
            self.options.body_idle_timeout,
        );
        Reply { response: Response::from_parts(parts, Source::Upstream(body)), permit: Some(permit) }
    }

    fn failed(&self, has_body: bool, response: Response<Source>) -> Reply {
        if has_body {
            self.context.activity.leave_unread();
            return answers::closing(response).into();
        }
        response.into()
    }

    /// For the head of the answer: a body has its own time before it.
    fn patience(&self, has_body: bool) -> Duration {
        let for_body = if has_body { self.limits.total } else { Duration::ZERO };
        self.options.upstream_timeout + for_body
    }

    fn upstream_limits(&self) -> Limits {
        Limits {
            connect_timeout: self.options.connect_timeout,
            unhealthy: self.options.unhealthy,
            idle: self.options.upstream_idle,
            head_bytes_max: self.options.header_bytes_max,
            headers_max: self.options.headers_max,
        }
    }
}

fn broken(fault: Option<&FaultCell>) -> Response<Source> {
    match fault.and_then(FaultCell::fault) {
        Some(BodyFault::TooLong) => answers::text(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long\n"),
        Some(BodyFault::TooSlow) => {
            answers::text(StatusCode::REQUEST_TIMEOUT, "the body does not come in time\n")
        }
        Some(BodyFault::Unreadable) => answers::text(StatusCode::BAD_REQUEST, "the body can't be read\n"),
        None => answers::text(StatusCode::BAD_GATEWAY, "the app broke off\n"),
    }
}
