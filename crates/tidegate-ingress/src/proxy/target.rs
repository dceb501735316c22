//! What a request is for: one host, one path, in one way of writing.

use http::{
    HeaderMap, HeaderValue, Uri,
    header::{HOST, TRANSFER_ENCODING},
    request::Parts,
    uri,
};

/// Why a head can't be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unusable(pub(super) &'static str);

/// Brings the head into the form of the next hop: the host in `Host` alone, and the target without scheme and host.
pub(super) fn settle(parts: &mut Parts) -> Result<(), Unusable> {
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
    if is_repeated(&parts.headers) || host(&parts.headers).is_none() {
        return Err(Unusable("one Host header is needed\n"));
    }
    if !is_plainly_framed(&parts.headers) {
        return Err(Unusable("no other transfer encoding than chunked is taken\n"));
    }
    Ok(())
}

/// The host that the request is for, with its port if it has one. Empty only for HTTP/1.0.
pub(super) fn host(headers: &HeaderMap) -> Option<&str> {
    let Some(host) = headers.get(HOST) else { return Some("") };
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':' | b'[' | b']');
    host.to_str().ok().filter(|host| host.bytes().all(plain))
}

fn is_repeated(headers: &HeaderMap) -> bool {
    headers.get_all(HOST).iter().nth(1).is_some()
}

fn is_plainly_framed(headers: &HeaderMap) -> bool {
    headers.get_all(TRANSFER_ENCODING).iter().all(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked"))
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
        Ok((host(&parts.headers).unwrap().to_owned(), parts.uri.to_string()))
    }

    #[test]
    fn a_request_has_one_host() {
        for (target, headers, expected) in [
            ("/a?b", &[("host", "a.example:80")][..], Some(("a.example:80", "/a?b"))),
            ("http://b.example/a?b", &[("host", "a.example")], Some(("b.example", "/a?b"))),
            ("http://b.example", &[], Some(("b.example", "/"))),
            ("/", &[("host", "a"), ("host", "a")], None),
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
