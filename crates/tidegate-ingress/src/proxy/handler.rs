//! One request: whose it is, which app it is for, whether it may pass, and its answer.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context as Task, Poll},
};

use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header, request::Parts};
use hyper::body::{Body as _, Incoming};
use tidegate_core::path;
use tower_http::services::ServeDir;

use super::{
    Live, ProxyOptions, answers,
    app::{AppState, Server},
    body::{AnswerBody, BodyLimits, Held, Source},
    context::{Context, InFlight},
    demo, files,
    forward::Errand,
    headers::{self, Origin},
    shield::Permit,
    target,
    upstream::Upstreams,
};
use crate::defense::{Judged, RecordHandle};

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

/// An answer to come. What is refused is answered at once: only what goes on to an app is worth an allocation.
pub(super) enum Answering {
    /// None once it was taken.
    Now(Option<Response<AnswerBody>>),
    /// From an app.
    Later(Pin<Box<dyn Future<Output = Response<AnswerBody>> + Send>>),
}

impl Future for Answering {
    type Output = Result<Response<AnswerBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Now(response) => {
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
            }
            Self::Later(response) => response.as_mut().poll(cx).map(Ok),
        }
    }
}

/// What the HTTP library calls for every request.
pub(super) fn answer(context: &Arc<Context>, request: Request<Incoming>) -> Answering {
    let turn = Turn::begin(context, request.version());
    if turn.head.is_some_and(|head| context.framing.is_ambiguous(head)) {
        context.activity.leave_unread();
        let refusal = answers::last(StatusCode::BAD_REQUEST, "the request is framed in two ways\n");
        return turn.now(refusal.into());
    }
    match Passed::sift(context, request) {
        Ok(mut passed) => Answering::Later(Box::pin(async move {
            let reply = passed.serve(turn.in_flight.context()).await;
            turn.end(reply)
        })),
        Err(refusal) => turn.now(refusal),
    }
}

/// A request's turn on its connection.
struct Turn {
    in_flight: InFlight,
    /// The number of its head; none in HTTP/2.
    head: Option<u64>,
}

impl Turn {
    fn begin(context: &Arc<Context>, version: Version) -> Self {
        let head = (version <= Version::HTTP_11).then(|| context.next_head());
        Self { in_flight: context.begin(), head }
    }

    fn now(self, reply: Reply) -> Answering {
        Answering::Now(Some(self.end(reply)))
    }

    fn end(self, reply: Reply) -> Response<AnswerBody> {
        let Reply { mut response, permit } = reply;
        let context = self.in_flight.context();
        match self.head {
            Some(head) if context.is_ending() || context.framing.is_last(head) => {
                if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
            }
            Some(_) => {}
            None => drop(response.headers_mut().remove(header::CONNECTION)),
        }
        response.map(|source| AnswerBody::new(source, Held { in_flight: self.in_flight, _permit: permit }))
    }
}

/// A request that nothing stands against, on its way to its app.
struct Passed {
    options: Arc<ProxyOptions>,
    record: Option<RecordHandle>,
    permit: Option<Permit>,
    work: Work,
}

/// What there is to do for a request.
enum Work {
    Servers(Arc<Upstreams>, Errand),
    Files(ServeDir, Parts),
}

impl Passed {
    /// Lets a request through, or answers it.
    #[expect(
        clippy::result_large_err,
        reason = "both ends are taken often, and a box would cost more than the copy"
    )]
    fn sift(context: &Context, request: Request<Incoming>) -> Result<Self, Reply> {
        // Nothing here waits: what is configured stays where it is for so long.
        let live = context.proxy.live.read();
        let Live { routes, options } = &*live;
        let (mut parts, body) = request.into_parts();
        if let Some(refusal) = unusable(&mut parts, options) {
            return Err(refuse(context, &body, refusal));
        }
        let host = match target::host(&parts) {
            Ok(host) => host,
            Err(target::Unusable(why)) => {
                return Err(refuse(context, &body, answers::last(StatusCode::BAD_REQUEST, why)));
            }
        };
        let defense = &context.proxy.defense;
        // With the PROXY protocol the peer is the client, and nobody's word on it counts.
        let caller = if options.proxy_protocol {
            defense.peer_as_caller(context.peer, &parts.headers)
        } else {
            defense.caller(context.peer, &parts.headers)
        };
        let Some(app) = routes.app(host) else {
            let refusal = match defense.firewall(&caller) {
                Some(refusal) => refusal.response(&caller).map(Source::from),
                None => answers::text(StatusCode::NOT_FOUND, "no app has this host\n"),
            };
            return Err(refuse(context, &body, refusal));
        };
        let origin = Origin {
            client: caller.client().ip(),
            peer_is_trusted: caller.peer_is_trusted() && !options.proxy_protocol,
            is_secure: context.is_secure,
        };
        let judged =
            app.id.as_ref().map(|id| defense.judge(id, &caller, parts.method.as_str(), parts.uri.path()));
        let record = match judged {
            // Its status stands in the access log already.
            Some(Judged { refusal: Some(refusal), .. }) => {
                let told = refusal.body(caller.accept());
                let response = refusal.response_in(std::mem::take(&mut parts.headers), told);
                return Err(refuse(context, &body, response.map(Source::from)));
            }
            Some(Judged { refusal: None, record }) => Some(record),
            None => None,
        };
        match admit(context, app, parts, body, origin, options) {
            Ok((permit, work)) => {
                Ok(Self { options: Arc::clone(options), record, permit: Some(permit), work })
            }
            Err(reply) => {
                note(record.as_ref(), &reply);
                Err(reply)
            }
        }
    }

    async fn serve(&mut self, context: &Context) -> Reply {
        let permit = self.permit.take();
        let reply = match &mut self.work {
            Work::Servers(upstreams, errand) => errand.run(context, upstreams, &self.options, permit).await,
            Work::Files(directory, parts) => {
                let response = files::answer(directory, parts).await;
                Reply { response: response.map(Source::File), permit }
            }
        };
        note(self.record.as_ref(), &reply);
        reply
    }
}

fn note(record: Option<&RecordHandle>, reply: &Reply) {
    if let Some(record) = record {
        record.finish(reply.response.status().as_u16());
    }
}

/// Behind the defense: the app's own bounds, and what there is to do for it. What needs no waiting is answered.
#[expect(
    clippy::result_large_err,
    reason = "both ends are taken often, and a box would cost more than the copy"
)]
fn admit(
    context: &Context,
    app: &AppState,
    mut parts: Parts,
    body: Incoming,
    origin: Origin,
    options: &ProxyOptions,
) -> Result<(Permit, Work), Reply> {
    let refuse = |response| Err(refuse(context, &body, response));
    if app.stopped {
        return refuse(answers::text(StatusCode::SERVICE_UNAVAILABLE, "the app is stopped\n"));
    }
    if !app.allow_ambiguous_paths && path::is_ambiguous(parts.uri.path().as_bytes()) {
        return refuse(answers::text(StatusCode::BAD_REQUEST, "the path can be read in two ways\n"));
    }
    let Some(permit) = app.in_work.enter(app.shield.max_concurrency) else {
        return refuse(answers::again(StatusCode::SERVICE_UNAVAILABLE, "the app has enough to do\n"));
    };
    if body.size_hint().lower() > app.shield.max_body_bytes {
        return refuse(answers::text(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long\n"));
    }
    match &app.server {
        Server::Upstreams(upstreams) => {
            let limits = BodyLimits {
                bytes_max: app.shield.max_body_bytes,
                idle: options.body_idle_timeout,
                total: options.body_timeout,
            };
            Ok((permit, Work::Servers(Arc::clone(upstreams), Errand::new(parts, body, origin, limits))))
        }
        Server::Files(directory) => {
            note_unread(context, &body);
            Ok((permit, Work::Files(directory.clone(), parts)))
        }
        Server::Demo => {
            note_unread(context, &body);
            headers::for_app(&mut parts.headers, origin);
            Err(Reply { response: demo::answer(&parts), permit: Some(permit) })
        }
    }
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

/// An answer in the app's place. A body that nobody will read ends the connection.
fn refuse(context: &Context, body: &Incoming, response: Response<Source>) -> Reply {
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
