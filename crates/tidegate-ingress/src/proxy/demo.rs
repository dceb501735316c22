//! The app that is there where none is configured: a page, and an echo.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header, request::Parts};

use super::{answers, body::Source};

/// The page at `/`; elsewhere what was asked for, as the app behind would see it.
pub(super) fn answer(request: &Parts) -> Response<Source> {
    match request.uri.path() {
        "/" => answers::with(StatusCode::OK, "text/html; charset=utf-8", Bytes::from_static(PAGE.as_bytes())),
        _ => answers::with(StatusCode::OK, "text/plain; charset=utf-8", echo(request).into()),
    }
}

/// The request's head, without what may be a secret.
fn echo(request: &Parts) -> String {
    let mut out = format!("{} {}\n", request.method, request.uri.path());
    for (name, value) in shown(&request.headers) {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{name}: {value}");
    }
    out
}

fn shown(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let secret = [header::AUTHORIZATION, header::COOKIE];
    headers
        .iter()
        .filter(move |(name, _)| !secret.contains(name))
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
}

const PAGE: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>Tidegate demo app</title>
<style>
:root { color-scheme: light dark }
body { font: 1.05rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 12vh auto; padding: 0 1.25rem }
code { font-size: .95em }
</style>
<h1>It works</h1>
<p>This page is answered by Tidegate's demo app, through the proxy: its abuse defense sees every request, and blocks
nothing yet.</p>
<p>Put your own app here with</p>
<pre><code>[apps.shop]
domains = [\"shop.example\"]
upstreams = [\"http://127.0.0.1:3000\"]</code></pre>
<p>Any other path, such as <a href=\"/echo\"><code>/echo</code></a>, answers what the app behind the proxy would see.</p>
</html>
";
