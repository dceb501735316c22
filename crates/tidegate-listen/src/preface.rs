//! Which HTTP a cleartext connection speaks.

use std::time::Duration;

use tokio::net::TcpStream;

/// How every HTTP/2 connection begins when the client knows in advance that the server speaks it.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Looks at the first bytes without taking them; None: the client left before they told.
pub async fn speaks_http2(stream: &TcpStream) -> Option<bool> {
    let mut first = [0; HTTP2_PREFACE.len()];
    let mut seen = 0;
    loop {
        let length = stream.peek(&mut first).await.ok()?;
        if length == 0 {
            return None;
        }
        if !HTTP2_PREFACE.starts_with(&first[..length]) {
            return Some(false);
        }
        if length == HTTP2_PREFACE.len() {
            return Some(true);
        }
        if length == seen {
            // The socket stays readable while the rest is awaited: look again a little later.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        seen = length;
    }
}
