//! Headers on their way to the app and back.

use crate::{
    backend::value,
    rig::{HOST, Rig},
};

#[test]
fn a_client_cannot_have_our_headers_removed() {
    let rig = Rig::start();
    for connection in [
        "close, X-Forwarded-For, X-Real-IP, X-Forwarded-Proto",
        "keep-alive, Host, Authorization, Cookie",
        "upgrade, x-forwarded-for",
        "content-length, transfer-encoding",
    ] {
        let head =
            rig.seen(&[("Connection", connection), ("X-Forwarded-For", "192.0.2.1"), ("Accept", "x/y")]);
        assert_eq!(value(&head, "x-forwarded-for"), Some("127.0.0.1"), "{connection}: {head}");
        assert_eq!(value(&head, "x-real-ip"), Some("127.0.0.1"), "{connection}: {head}");
        assert_eq!(value(&head, "x-forwarded-proto"), Some("http"), "{connection}: {head}");
        assert_eq!(value(&head, "host"), Some(HOST), "{connection}: {head}");
        assert_eq!(value(&head, "accept"), Some("x/y"), "{connection}: {head}");
        assert_eq!(value(&head, "connection"), None, "{connection}: {head}");
    }
}

#[test]
fn what_belongs_to_one_hop_stays_there() {
    let rig = Rig::start();
    let head = rig.seen(&[
        ("Connection", "keep-alive, x-mine"),
        ("X-Mine", "1"),
        ("Keep-Alive", "timeout=5"),
        ("TE", "trailers"),
        ("Proxy-Authorization", "Basic x"),
        ("Proxy-Connection", "keep-alive"),
        ("Upgrade", "h2c"),
        ("X-Kept", "1"),
        ("X-HTTP-Method-Override", "DELETE"),
    ]);
    for gone in [
        "x-mine",
        "keep-alive",
        "te",
        "proxy-authorization",
        "proxy-connection",
        "upgrade",
        "x-http-method-override",
    ] {
        assert_eq!(value(&head, gone), None, "{gone}: {head}");
    }
    assert_eq!(value(&head, "x-kept"), Some("1"));
    let reply = rig.get("/odd", &[]);
    assert_eq!(
        (reply.header("x-end"), reply.header("x-hop"), reply.header("keep-alive")),
        (Some("1"), None, None)
    );
}

#[test]
fn the_target_has_one_host() {
    let rig = Rig::start();
    let absolute = format!("GET http://{HOST}/echo?x=1 HTTP/1.1\r\nHost: other.example\r\n\r\n");
    let reply = rig.wire().exchange(absolute.as_bytes()).unwrap();
    assert!(reply.text().starts_with("GET /echo?x=1 HTTP/1.1\r\n"), "{}", reply.text());
    assert_eq!(value(&reply.text(), "host"), Some(HOST));
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nHost: {HOST}\r\n\r\n"), 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n".to_owned(), 400),
        (format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}\r\n\r\n"), 405),
        (format!("TRACE / HTTP/1.1\r\nHost: {HOST}\r\n\r\n"), 405),
        ("GET / HTTP/1.1\r\nHost: nobody.example\r\n\r\n".to_owned(), 404),
    ] {
        assert_eq!(rig.wire().exchange(request.as_bytes()).unwrap().status, status, "{request}");
    }
    let before = rig.backend.whole().len();
    for path in ["/a%2Fb", "/a%5cb", "/a\\b", "/a%00", "/%252e%252e/x"] {
        assert_eq!(rig.get(path, &[]).status, 400, "{path}");
    }
    assert_eq!(rig.backend.whole().len(), before);
}

#[test]
fn paths_that_can_be_read_in_two_ways_pass_where_the_app_allows_them() {
    let rig = Rig::with(|setup| setup.set("apps.shop.allow_ambiguous_paths", "true"));
    let reply = rig.get("/group%2Fproject", &[]);
    assert!(reply.text().starts_with("GET /group%2Fproject HTTP/1.1\r\n"), "{}", reply.text());
}
