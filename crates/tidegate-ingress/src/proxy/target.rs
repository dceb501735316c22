//! What a request is for: one host, one path, in one way of writing.

use http::{
    HeaderValue, Method, Uri, Version,
    header::{HOST, TRANSFER_ENCODING},
    request::Parts,
    uri,
};

/// Why a head can't be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unusable(pub(super) &'static str);

/// Brings the head into the form of the next hop: the host in `Host` alone, and the target without scheme and host.
pub(super) fn settle(parts: &mut Parts) -> Result<(), Unusable> {
    if parts.uri.path() == "*" && parts.method != Method::OPTIONS {
        return Err(Unusable("only OPTIONS asks about the server as a whole\n"));
    }
    if let Some(authority) = parts.uri.authority() {
        if authority.as_str().contains('@') {
            return Err(Unusable("a user has no place in the target\n"));
        }
        let host =
            HeaderValue::from_str(authority.as_str()).map_err(|_| Unusable("the host can't be read\n"))?;
        parts.headers.insert(HOST, host);
        let mut origin = uri::Parts::default();
        origin.path_and_query =
            parts.uri.path_and_query().cloned().or(Some(uri::PathAndQuery::from_static("/")));
        parts.uri = Uri::from_parts(origin).map_err(|_| Unusable("the target can't be read\n"))?;
    }
    Ok(())
}

/// The host that the request is for, with its port if it has one. Empty only for HTTP/1.0. One pass over the names looks
/// at how the body is framed, too.
pub(super) fn host(parts: &Parts) -> Result<&str, Unusable> {
    let (mut hosts, mut host, mut is_plainly_framed) = (0, None, true);
    for (name, value) in &parts.headers {
        if *name == HOST {
            hosts += 1;
            host = Some(value);
        } else if *name == TRANSFER_ENCODING {
            is_plainly_framed &= value.as_bytes().eq_ignore_ascii_case(b"chunked");
        }
    }
    let may_be_none = parts.version < Version::HTTP_11;
    let host =
        host.map_or(Some(""), plain_host).filter(|host| hosts < 2 && (may_be_none || !host.is_empty()));
    let host = host.ok_or(Unusable("one Host header is needed\n"))?;
    is_plainly_framed.then_some(host).ok_or(Unusable("no other transfer encoding than chunked is taken\n"))
}

fn plain_host(host: &HeaderValue) -> Option<&str> {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':' | b'[' | b']');
    host.to_str().ok().filter(|host| host.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    /// The host and the target, or what is wrong.
    fn settled(target: &str, headers: &[(&str, &str)]) -> Result<(String, String), Unusable> {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        settle(&mut parts)?;
        Ok((host(&parts)?.to_owned(), parts.uri.to_string()))
    }

    #[test]
    fn a_request_has_one_host() {
        for (target, headers, expected) in [
            ("/a?b", &[("host", "a.example:80")][..], Some(("a.example:80", "/a?b"))),
            ("http://b.example/a?b", &[("host", "a.example")], Some(("b.example", "/a?b"))),
            ("http://b.example", &[], Some(("b.example", "/"))),
            ("/", &[("host", "a"), ("host", "a")], None),
            ("/", &[], None),
            ("*", &[("host", "a")], None),
            ("/", &[("host", "a/b")], None),
            ("/", &[("host", "a b")], None),
            ("http://user@b.example/", &[], None),
            ("/", &[("host", "a"), ("transfer-encoding", "gzip, chunked")], None),
            ("/", &[("host", "a"), ("transfer-encoding", "Chunked")], Some(("a", "/"))),
        ] {
            let expected = expected.map(|(host, target)| (host.to_owned(), target.to_owned()));
            assert_eq!(settled(target, headers).ok(), expected, "{target} {headers:?}");
        }
    }
}
