//! Other proxies ask: over HTTP, and over gRPC with a real client.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use http::{Request, Uri, uri::PathAndQuery};
use http_body_util::{BodyExt, Empty};
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tidegate_ingress::{
    authz::{
        Authz,
        messages::{
            Address, Attributes, AttributesRequest, CheckRequest, CheckResponse, HeaderMap, HeaderValue,
            HttpRequest, Peer, SocketAddress,
        },
    },
    defense::{DefenseOptions, Window},
};
use tokio::net::{TcpListener, TcpStream};
use tonic::client::Grpc;

use crate::support::{PROXY, Site, networks, options};

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

/// `shop.example` is the shop, whatever the port.
pub(crate) fn authz(site: &Site) -> Authz {
    let shop = site.defense.app("shop").unwrap();
    Authz::new(site.defense.clone(), move |host| {
        (host.split(':').next() == Some("shop.example")).then(|| shop.clone())
    })
}

/// Serves it on a free port of loopback, HTTP/1.1 and HTTP/2.
pub(crate) async fn serve(authz: Authz) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let authz = authz.clone();
            let service = service_fn(move |request| {
                let authz = authz.clone();
                async move { Ok::<_, std::convert::Infallible>(authz.answer(peer.ip(), request).await) }
            });
            tokio::spawn(async move {
                auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await
            });
        }
    });
    (address, serving)
}

/// The status, the headers and the body of an answer to a proxy at `peer`.
async fn ask(
    authz: &Authz,
    peer: &str,
    uri: &str,
    headers: &[(&str, &str)],
) -> (u16, http::HeaderMap, String) {
    let mut request = Request::get(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let peer: IpAddr = peer.parse().unwrap();
    let response = authz.answer(peer, request.body(Empty::<Bytes>::new()).unwrap()).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn proxies_that_tell_of_a_request_in_headers() {
    let site = Site::new().await;
    site.put(
        r#"{"mode":"enforce","rps":1,"burst":2,"deny_user_agents":["evil"],
            "routes":[{"path_prefix":"/login","methods":["POST"],"rps":0.1,"burst":1}]}"#,
    )
    .await;
    let authz = authz(&site);
    let told = |client: &'static str, method: &'static str, uri: &'static str| {
        [
            ("x-forwarded-for", client),
            ("x-forwarded-method", method),
            ("x-forwarded-uri", uri),
            ("x-forwarded-host", "shop.example"),
        ]
    };
    let status = async |uri: &str, headers: &[(&str, &str)]| ask(&authz, PROXY, uri, headers).await.0;

    assert_eq!(status("/authz", &told("192.0.2.1", "POST", "/login?x=1")).await, 200);
    let (refused, headers, body) = ask(&authz, PROXY, "/authz", &told("192.0.2.1", "POST", "/login")).await;
    assert_eq!((refused, body.as_str()), (429, "Too many requests. Try again in 10 seconds.\n"));
    assert_eq!(
        (&headers["retry-after"], &headers["x-tidegate-reason"]),
        (&"10".parse().unwrap(), &"rate_limit".parse().unwrap())
    );
    let (refused, headers, _) =
        ask(&authz, PROXY, "/authz?app=shop&deny=403", &told("192.0.2.1", "POST", "/login")).await;
    assert_eq!((refused, &headers["x-tidegate-status"]), (403, &"429".parse().unwrap()));
    assert_eq!(status("/authz", &told("192.0.2.2", "POST", "/login")).await, 200, "another client");

    // Names that a caller could write past its proxy are not read.
    let forged =
        [&told("192.0.2.1", "POST", "/login")[..], &[("x-original-uri", "/"), ("x-original-method", "GET")]]
            .concat();
    assert_eq!(status("/authz", &forged).await, 429);

    // The app by its name, and none at all.
    assert_eq!(
        status("/authz?app=shop", &[("x-forwarded-for", "192.0.2.3"), ("user-agent", "Evil")]).await,
        403
    );
    assert_eq!(status("/authz?app=nobody", &[("user-agent", "Evil")]).await, 200);
    assert_eq!(status("/authz", &[("host", "other.example"), ("user-agent", "Evil")]).await, 200);
    assert_eq!(status("/authz", &[("host", "shop.example:8443"), ("user-agent", "Evil")]).await, 403);
    assert_eq!(status("/other", &[]).await, 404);
    assert_eq!(status("/authzx", &[]).await, 404);
}

#[tokio::test]
async fn envoy_over_http() {
    let site = Site::new().await;
    site.put(r#"{"mode":"enforce","routes":[{"path_prefix":"/login","rps":0.1,"burst":1}]}"#).await;
    let authz = authz(&site);
    let from = |client: &'static str| {
        [("host", "shop.example"), ("x-forwarded-for", client), ("x-forwarded-uri", "/")]
    };
    for (uri, client, expected) in [
        ("/authz/login?app=blog", "192.0.2.1", 200),
        ("/authz/login?app=blog", "192.0.2.1", 429),
        ("/authz/%6cogin", "192.0.2.1", 429),
        ("/authz/login", "192.0.2.2", 200),
        ("/authz/", "192.0.2.1", 200),
    ] {
        assert_eq!(ask(&authz, PROXY, uri, &from(client)).await.0, expected, "{uri} {client}");
    }
}

#[tokio::test]
async fn a_proxy_that_nobody_trusts_is_the_client() {
    let site = Site::new().await;
    site.put(r#"{"mode":"enforce","rps":0.1,"burst":2}"#).await;
    let authz = authz(&site);
    for (n, expected) in [200, 200, 429, 429].into_iter().enumerate() {
        let client = format!("192.0.2.{n}");
        let headers = [("host", "shop.example"), ("x-forwarded-for", &*client)];
        assert_eq!(ask(&authz, "203.0.113.9", "/authz", &headers).await.0, expected);
    }
}

fn check(source: &str, forwarded: &str, path: &str, app: Option<&str>) -> CheckRequest {
    let address = Address { socket_address: Some(SocketAddress { address: source.to_owned() }) };
    let header = |key: &str, value: &str| HeaderValue {
        key: key.to_owned(),
        value: String::new(),
        raw_value: value.as_bytes().to_vec(),
    };
    let headers = vec![
        header("user-agent", "curl/8"),
        header("x-forwarded-for", forwarded),
        header("accept", "application/json"),
    ];
    let http = HttpRequest {
        method: "POST".to_owned(),
        path: path.to_owned(),
        host: "shop.example".to_owned(),
        header_map: Some(HeaderMap { headers }),
        ..HttpRequest::default()
    };
    CheckRequest {
        attributes: Some(Attributes {
            source: Some(Peer { address: Some(address) }),
            request: Some(AttributesRequest { http: Some(http) }),
            context_extensions: app.map(|app| ("app".to_owned(), app.to_owned())).into_iter().collect(),
        }),
    }
}

#[tokio::test]
async fn envoy_over_grpc() {
    let site = Site::with(DefenseOptions { trusted: networks(&["127.0.0.0/8"]), ..options() }).await;
    site.put(
        r#"{"mode":"enforce","routes":[{"path_prefix":"/login","methods":["POST"],"rps":0.1,"burst":1}]}"#,
    )
    .await;
    let (address, _serving) = serve(authz(&site)).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = hyper::client::conn::http2::handshake::<_, _, tonic::body::Body>(
        TokioExecutor::new(),
        TokioIo::new(stream),
    )
    .await
    .unwrap();
    tokio::spawn(connection);
    let service = tower::service_fn(move |request| {
        let mut sender = sender.clone();
        async move { sender.send_request(request).await }
    });
    let origin: Uri = format!("http://{address}").parse().unwrap();
    let mut client = Grpc::with_origin(service, origin);
    let mut ask = async |request: CheckRequest| -> Result<CheckResponse, tonic::Status> {
        client.ready().await.unwrap();
        let codec = tonic_prost::ProstCodec::<CheckRequest, CheckResponse>::default();
        let answer =
            client.unary(tonic::Request::new(request), PathAndQuery::from_static(CHECK), codec).await?;
        Ok(answer.into_inner())
    };
    let table = [
        ("192.0.2.1", "192.0.2.1", "/login?x", None, 0),
        ("192.0.2.1", "192.0.2.1", "//LOGIN", None, 7),
        ("192.0.2.1", "192.0.2.1", "/", None, 0),
        // A caller that forges the header comes from where Envoy says.
        ("192.0.2.1", "192.0.2.9", "/login", None, 7),
        ("192.0.2.2", "192.0.2.1", "/login", None, 0),
        // Another proxy before Envoy, which is trusted too.
        ("127.0.0.5", "192.0.2.1", "/login", None, 7),
        ("192.0.2.1", "192.0.2.1", "/login", Some("blog"), 0),
        ("192.0.2.1", "192.0.2.1", "/login", Some("nobody"), 0),
        ("192.0.2.1", "192.0.2.1", "/login", Some("shop"), 7),
    ];
    for (source, forwarded, path, app, code) in table {
        let response = ask(check(source, forwarded, path, app)).await.unwrap();
        assert_eq!(response.status.unwrap().code, code, "{source} {path} {app:?}");
        assert_eq!(response.denied_response.is_some(), code != 0);
        if let Some(denied) = response.denied_response {
            let header = |name: &str| {
                let headers = denied.headers.iter().filter_map(|option| option.header.as_ref());
                headers.into_iter().find(|header| header.key == name).map(|header| header.value.as_str())
            };
            assert_eq!(denied.status.unwrap().code, 429);
            assert_eq!(
                (header("retry-after"), header("content-type")),
                (Some("10"), Some("application/json"))
            );
            assert_eq!(denied.body, r#"{"error":{"code":"rate_limited","retry_after_seconds":10}}"#);
        }
    }
    assert_eq!(ask(CheckRequest::default()).await.unwrap().status.unwrap().code, 0);
    let huge = check("192.0.2.1", &"x".repeat(300_000), "/", None);
    let refused = ask(huge).await.unwrap_err();
    assert!(
        matches!(refused.code(), tonic::Code::OutOfRange | tonic::Code::ResourceExhausted),
        "{refused:?}"
    );
    assert_eq!(site.defense.view("shop", Window::Hour).unwrap().counters.fail_open, 0);
}
