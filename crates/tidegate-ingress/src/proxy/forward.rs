//! A request on its way to an app's server, and the answer back.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Response, StatusCode, Version, request::Parts};
use hyper::body::{Body as _, Incoming};

use super::{
    ProxyOptions, answers,
    body::{BodyFault, BodyLimits, FaultCell, RequestBody, Source},
    context::{Context, Tunnel},
    handler::Reply,
    headers::{self, Origin},
    shield::Permit,
    upstream::{Connection, Failure, Head, Home, Limits, Outgoing, Upstream, UpstreamBody, Upstreams},
};

/// A request that is to be brought to one of its app's servers.
pub(super) struct Errand {
    request: Outgoing,
    fault: Option<FaultCell>,
    has_body: bool,
    asks_for_upgrade: bool,
    limits: BodyLimits,
}

/// Connections that take nothing of a request are no failed servers: so many more tries are free.
const STALE_MAX: usize = 4;

impl Errand {
    /// Makes the request one of the next hop.
    pub(super) fn new(mut parts: Parts, body: Incoming, origin: Origin, limits: BodyLimits) -> Self {
        let has_body = !body.is_end_stream();
        let protocol = if has_body || parts.version != Version::HTTP_11 {
            None
        } else {
            headers::upgrade(&parts.headers)
        };
        headers::for_app(&mut parts.headers, origin);
        let asks_for_upgrade = protocol.is_some();
        if let Some(protocol) = protocol {
            headers::set_upgrade(&mut parts.headers, protocol);
        }
        let (body, fault) = RequestBody::new(body, limits);
        let request = Outgoing::new(parts, body);
        Self { request, fault, has_body, asks_for_upgrade, limits }
    }

    /// Sends the request to the next server that takes it. It is sent again only where nothing of it was sent.
    pub(super) async fn run(
        &mut self,
        context: &Context,
        upstreams: &Upstreams,
        options: &ProxyOptions,
        permit: Option<Permit>,
    ) -> Reply {
        let (limits, patience) = (upstream_limits(options), self.patience(options));
        let mut tries = upstreams.len() + STALE_MAX;
        loop {
            let Some(upstream) = upstreams.pick() else {
                return self.failed(
                    context,
                    answers::again(StatusCode::SERVICE_UNAVAILABLE, "no server of the app is well\n"),
                );
            };
            tries -= 1;
            match self.ask(upstream, context.worker, &limits, patience).await {
                Ok((connection, asked)) => match asked {
                    Ok(head) => {
                        let upstream = Arc::clone(upstream);
                        return self.answered(head, connection, upstream, context, options, permit);
                    }
                    Err(Failure::Unsent) if tries > 0 => {}
                    Err(Failure::Unsent | Failure::Broken) => {
                        return self.failed(context, broken(self.fault.as_ref()));
                    }
                    Err(Failure::Late) => {
                        let late =
                            answers::text(StatusCode::GATEWAY_TIMEOUT, "the app does not answer in time\n");
                        return self.failed(context, late);
                    }
                },
                Err(_unreachable) if tries > STALE_MAX => {}
                Err(_unreachable) => {
                    let down = answers::text(StatusCode::BAD_GATEWAY, "the app can't be reached\n");
                    return self.failed(context, down);
                }
            }
        }
    }

    /// Asks over a kept connection if one takes the request, else over a new one. That a kept one is closed by now shows when
    /// it is used: to look at each before would cost every request what only the first one after the close has to pay.
    async fn ask(
        &mut self,
        upstream: &Arc<Upstream>,
        worker: usize,
        limits: &Limits,
        patience: Duration,
    ) -> io::Result<(Box<Connection>, Result<Head, Failure>)> {
        loop {
            let mut connection = upstream.connection(worker, limits).await?;
            match connection.send(&mut self.request, patience).await {
                Err(Failure::Unsent) if connection.was_kept() => {}
                asked => return Ok((connection, asked)),
            }
        }
    }

    fn answered(
        &self,
        head: Head,
        connection: Box<Connection>,
        upstream: Arc<Upstream>,
        context: &Context,
        options: &ProxyOptions,
        permit: Option<Permit>,
    ) -> Reply {
        let Head { status, version, mut headers, rest } = head;
        let mut response = Response::new(Source::from(Bytes::new()));
        *response.status_mut() = status;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let protocol = headers::upgrade(&headers).filter(|_| self.asks_for_upgrade);
            let Some(protocol) = protocol else {
                return answers::text(StatusCode::BAD_GATEWAY, "the app changes the protocol unasked\n")
                    .into();
            };
            headers::for_client(&mut headers);
            headers::set_upgrade(&mut headers, protocol);
            *response.headers_mut() = headers;
            context.set_tunnel(Tunnel { app: connection.into_tunnel(), permit });
            return response.into();
        }
        let closes = headers::for_client(&mut headers);
        let keeps_alive = version == Version::HTTP_11 && !closes;
        let home =
            Home { upstream, worker: context.worker, idle_max: options.upstream_idle_max, keeps_alive };
        *response.headers_mut() = headers;
        let body = UpstreamBody::new(rest, connection, home, options.body_idle_timeout);
        Reply { response: response.map(|_| Source::Upstream(body)), permit }
    }

    fn failed(&self, context: &Context, response: Response<Source>) -> Reply {
        if self.has_body {
            context.activity.leave_unread();
            return answers::closing(response).into();
        }
        response.into()
    }

    /// For the head of the answer: a body has its own time before it.
    fn patience(&self, options: &ProxyOptions) -> Duration {
        let for_body = if self.has_body { self.limits.total } else { Duration::ZERO };
        options.upstream_timeout + for_body
    }
}

const fn upstream_limits(options: &ProxyOptions) -> Limits {
    Limits {
        connect_timeout: options.connect_timeout,
        unhealthy: options.unhealthy,
        idle: options.upstream_idle,
        head_bytes_max: options.header_bytes_max,
        headers_max: options.headers_max,
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
