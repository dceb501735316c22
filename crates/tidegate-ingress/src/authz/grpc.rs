//! Envoy's gRPC service, `envoy.service.auth.v3.Authorization`.

use std::{
    error::Error,
    future::{Ready, ready},
    net::IpAddr,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic_prost::ProstCodec;

use super::{
    AnswerBody, Authz,
    messages::{
        Attributes, CheckRequest, CheckResponse, DeniedHttpResponse, HeaderValue as Told, HeaderValueOption,
        HttpRequest, HttpStatus, RpcStatus,
    },
};
use crate::defense::{Caller, Refusal};

/// The path of the one call.
pub(super) const PATH: &str = "/envoy.service.auth.v3.Authorization/Check";

/// More than the headers that Envoy takes, which are 60 KiB; bodies are not asked for.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;

const OK: i32 = 0;
const PERMISSION_DENIED: i32 = 7;

pub(super) async fn answer<B>(authz: &Authz, peer: IpAddr, request: Request<B>) -> Response<AnswerBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>> + Send,
{
    let codec = ProstCodec::<CheckResponse, CheckRequest>::default();
    let mut grpc = Grpc::new(codec).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let response = grpc.unary(Check { authz, peer }, request).await;
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}

struct Check<'a> {
    authz: &'a Authz,
    peer: IpAddr,
}

impl UnaryService<CheckRequest> for Check<'_> {
    type Response = CheckResponse;
    type Future = Ready<Result<tonic::Response<CheckResponse>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<CheckRequest>) -> Self::Future {
        ready(Ok(tonic::Response::new(self.check(request.into_inner()))))
    }
}

impl Check<'_> {
    fn check(&self, request: CheckRequest) -> CheckResponse {
        let Some(attributes) = request.attributes else { return allowed() };
        let peer = self.downstream(&attributes);
        let named = attributes.context_extensions.get("app").map(String::as_str);
        let Some(http) = attributes.request.as_ref().and_then(|request| request.http.as_ref()) else {
            return allowed();
        };
        let headers = headers_of(http);
        let caller = self.authz.0.defense.caller(peer, &headers);
        let judged = self.authz.judge(named, &http.host, &caller, &http.method, &http.path);
        judged.map_or_else(allowed, |refusal| denied(&refusal, &caller))
    }

    /// Who sent the request to Envoy: it says so, and is believed if it is trusted itself.
    fn downstream(&self, attributes: &Attributes) -> IpAddr {
        let source =
            attributes.source.as_ref().and_then(|peer| peer.address.as_ref()?.socket_address.as_ref());
        let told = source.and_then(|source| source.address.parse().ok());
        told.filter(|_| self.authz.0.defense.trusts(self.peer)).unwrap_or(self.peer)
    }
}

/// The headers, from whichever of the two forms Envoy was told to send.
fn headers_of(http: &HttpRequest) -> HeaderMap {
    let listed = http.header_map.iter().flat_map(|map| &map.headers).map(|header| {
        let value = if header.raw_value.is_empty() { header.value.as_bytes() } else { &header.raw_value };
        (header.key.as_str(), value)
    });
    let merged = http.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let mut headers = HeaderMap::new();
    for (name, value) in merged.chain(listed) {
        let name = HeaderName::from_bytes(name.as_bytes()).ok();
        if let Some((name, value)) = name.zip(HeaderValue::from_bytes(value).ok()) {
            headers.append(name, value);
        }
    }
    headers
}

fn allowed() -> CheckResponse {
    CheckResponse { status: Some(RpcStatus { code: OK, message: String::new() }), denied_response: None }
}

fn denied(refusal: &Refusal, caller: &Caller<'_>) -> CheckResponse {
    let response = refusal.response(caller);
    let told = |(name, value): (&HeaderName, &HeaderValue)| HeaderValueOption {
        header: Some(Told {
            key: name.as_str().to_owned(),
            value: value.to_str().unwrap_or_default().to_owned(),
            raw_value: Vec::new(),
        }),
    };
    CheckResponse {
        status: Some(RpcStatus { code: PERMISSION_DENIED, message: refusal.reason().to_owned() }),
        denied_response: Some(DeniedHttpResponse {
            status: Some(HttpStatus { code: response.status().as_u16().into() }),
            headers: response.headers().iter().map(told).collect(),
            body: String::from_utf8_lossy(response.body()).into_owned(),
        }),
    }
}
