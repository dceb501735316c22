//! One request: whose it is, which app it is for, whether it may pass, and its answer.

use std::{convert::Infallible, sync::Arc};

use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header, request::Parts};
use hyper::body::{Body as _, Incoming};
use tidegate_core::{address::Address, path};

use super::{
    ProxyOptions, answers,
    app::{AppState, Server},
    body::{AnswerBody, BodyLimits, Held, Source},
    context::Context,
    demo, files, forward,
    headers::{self, Origin},
    shield::Permit,
    target,
};
use crate::defense::{Incoming as Judging, Judged};

/// An answer, and the app's place that is held until its end.
pub(super) struct Reply {
    pub(super) response: Response<Source>,
    pub(super) permit: Option<Permit>,
}

impl From<Response<Source>> for Reply {
    fn from(response: Response<Source>) -> Self {
        Self { response, permit: None }
    }
}

/// What the HTTP library calls for every request.
pub(super) async fn answer(
    context: Arc<Context>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Infallible> {
    let in_flight = context.begin();
    let head = (request.version() <= Version::HTTP_11).then(|| context.next_head());
    let Reply { mut response, permit } = match head {
        Some(head) if context.framing.is_ambiguous(head) => {
            context.activity.leave_unread();
            answers::last(StatusCode::BAD_REQUEST, "the request is framed in two ways\n").into()
        }
        _ => respond(&context, request).await,
    };
    match head {
        Some(head) if context.is_ending() || context.framing.is_last(head) => {
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
        }
        Some(_) => {}
        None => drop(response.headers_mut().remove(header::CONNECTION)),
    }
    Ok(response.map(|source| AnswerBody::new(source, Held { in_flight, _permit: permit })))
}

async fn respond(context: &Arc<Context>, request: Request<Incoming>) -> Reply {
    let options = context.proxy.options();
    let (mut parts, body) = request.into_parts();
    if let Some(refusal) = unusable(&mut parts, &options) {
        return refuse(context, &body, refusal);
    }
    let host = target::host(&parts.headers).unwrap_or_default();
    let Some(app) = context.proxy.routes().app(host).cloned() else {
        let refusal = answers::text(StatusCode::NOT_FOUND, "no app has this host\n");
        return refuse(context, &body, refusal);
    };
    let origin = origin(context, &parts, &options);
    let judged = app.id.as_ref().map(|id| {
        context.proxy.defense.judge(
            id,
            &Judging {
                peer: context.peer,
                client: Address::from(origin.client),
                host,
                method: parts.method.as_str(),
                path: parts.uri.path(),
                headers: &parts.headers,
            },
        )
    });
    let reply = match refusal(judged.as_ref(), &parts) {
        Some(refusal) => refuse(context, &body, refusal),
        None => shielded(context, &app, parts, body, origin, &options).await,
    };
    if let Some(judged) = judged {
        judged.record.finish(reply.response.status().as_u16());
    }
    reply
}

/// The answer to a head that no app should see.
fn unusable(parts: &mut Parts, options: &ProxyOptions) -> Option<Response<Source>> {
    if parts.headers.len() > options.headers_max {
        return Some(answers::last(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "too many headers\n"));
    }
    if matches!(parts.method, Method::CONNECT | Method::TRACE) {
        return Some(answers::last(StatusCode::METHOD_NOT_ALLOWED, "this method is not taken\n"));
    }
    let target::Unusable(why) = target::settle(parts).err()?;
    Some(answers::last(StatusCode::BAD_REQUEST, why))
}

fn origin(context: &Context, parts: &Parts, options: &ProxyOptions) -> Origin {
    let is_secure = context.is_secure;
    if options.proxy_protocol {
        return Origin { client: Address::from(context.peer).ip(), peer_is_trusted: false, is_secure };
    }
    let client = context.proxy.defense.client(context.peer, &parts.headers).ip();
    Origin { client, peer_is_trusted: options.trusted.contains(Address::from(context.peer)), is_secure }
}

fn refusal(judged: Option<&Judged>, parts: &Parts) -> Option<Response<Source>> {
    let refusal = judged?.refusal.as_ref()?;
    Some(refusal.response(&parts.headers).map(Source::from))
}

/// Behind the defense: the app's own bounds, then its server.
async fn shielded(
    context: &Arc<Context>,
    app: &Arc<AppState>,
    parts: Parts,
    body: Incoming,
    origin: Origin,
    options: &ProxyOptions,
) -> Reply {
    if app.stopped {
        return refuse(
            context,
            &body,
            answers::text(StatusCode::SERVICE_UNAVAILABLE, "the app is stopped\n"),
        );
    }
    if !app.allow_ambiguous_paths && path::is_ambiguous(parts.uri.path().as_bytes()) {
        return refuse(
            context,
            &body,
            answers::text(StatusCode::BAD_REQUEST, "the path can be read in two ways\n"),
        );
    }
    let Some(permit) = app.in_work.enter(app.shield.max_concurrency) else {
        return refuse(
            context,
            &body,
            answers::again(StatusCode::SERVICE_UNAVAILABLE, "the app has enough to do\n"),
        );
    };
    if body.size_hint().lower() > app.shield.max_body_bytes {
        return refuse(
            context,
            &body,
            answers::text(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long\n"),
        );
    }
    let limits = BodyLimits {
        bytes_max: app.shield.max_body_bytes,
        idle: options.body_idle_timeout,
        total: options.body_timeout,
    };
    match &app.server {
        Server::Upstreams(upstreams) => {
            let way = forward::Way { context, upstreams, options, limits, origin };
            way.forward(parts, body, permit).await
        }
        Server::Files(directory) => {
            note_unread(context, &body);
            let response = files::answer(directory, parts.method, parts.uri, parts.headers).await;
            Reply { response: response.map(Source::File), permit: Some(permit) }
        }
        Server::Demo => {
            note_unread(context, &body);
            let mut parts = parts;
            headers::for_app(&mut parts.headers, origin);
            Reply { response: demo::answer(&parts), permit: Some(permit) }
        }
    }
}

/// An answer in the app's place. A body that nobody will read ends the connection.
pub(super) fn refuse(context: &Context, body: &Incoming, response: Response<Source>) -> Reply {
    if body.is_end_stream() {
        return response.into();
    }
    note_unread(context, body);
    answers::closing(response).into()
}

fn note_unread(context: &Context, body: &Incoming) {
    if !body.is_end_stream() {
        context.activity.leave_unread();
    }
}
