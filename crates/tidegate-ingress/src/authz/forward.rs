//! Proxies that ask over plain HTTP.
//!
//! One set of headers tells of the request: `X-Forwarded-Method`, `-Uri`, `-Host` and `-For`. Other names for
//! the same are not read: a proxy that sets one of them passes the others on as its caller wrote them.

use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header::HOST, request::Parts};

use super::Authz;
use crate::defense::{Caller, Refusal};

/// Where proxies ask that tell of the request in headers.
pub(super) const PATH: &str = "/authz";
/// Where a proxy asks that puts this before the request's path.
pub(super) const PATH_BEFORE: &str = "/authz/";

static FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
static FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// The status of a refusal, for proxies that only know 403.
static STATUS: HeaderName = HeaderName::from_static("x-tidegate-status");
static REASON: HeaderName = HeaderName::from_static("x-tidegate-reason");

/// A request that a proxy tells of.
struct Told<'a> {
    app: Option<&'a str>,
    host: &'a str,
    method: &'a str,
    target: &'a str,
    /// Whether the proxy takes every refusal but 403 for a failure.
    only_403: bool,
}

pub(super) fn answer(authz: &Authz, peer: IpAddr, parts: &Parts) -> Response<Bytes> {
    let told = Told::of(parts);
    let caller = authz.0.defense.caller(peer, &parts.headers);
    match authz.judge(told.app, told.host, &caller, told.method, told.target) {
        None => Response::new(Bytes::new()),
        Some(refusal) => refused(&refusal, &caller, told.only_403),
    }
}

impl<'a> Told<'a> {
    fn of(parts: &'a Parts) -> Self {
        let own_host = last(&parts.headers, &HOST).or(parts.uri.host()).unwrap_or_default();
        let appended = parts.uri.path().strip_prefix(PATH).filter(|path| !path.is_empty());
        if let Some(target) = appended {
            // The query is that of the request: a caller could name an app in it.
            let method = parts.method.as_str();
            return Self { app: None, host: own_host, method, target, only_403: false };
        }
        let told = |header, own| last(&parts.headers, header).unwrap_or(own);
        Self {
            app: query(parts, "app"),
            host: told(&FORWARDED_HOST, own_host),
            method: told(&FORWARDED_METHOD, parts.method.as_str()),
            target: told(&FORWARDED_URI, "/"),
            only_403: query(parts, "deny") == Some("403"),
        }
    }
}

fn refused(refusal: &Refusal, caller: &Caller<'_>, only_403: bool) -> Response<Bytes> {
    let mut response = refusal.response(caller);
    let status = response.status();
    let headers = response.headers_mut();
    headers.insert(STATUS.clone(), HeaderValue::from(status.as_u16()));
    headers.insert(REASON.clone(), HeaderValue::from_static(refusal.reason()));
    if only_403 {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
    response
}

/// The last line of a header: the one that the nearest proxy wrote.
fn last<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get_all(name).iter().next_back().and_then(|value| value.to_str().ok())
}

/// A value of the query, which has no need to be decoded: names of apps are plain.
fn query<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    let pairs = parts.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}
