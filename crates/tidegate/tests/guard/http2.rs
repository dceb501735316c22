//! A client of HTTP/2 that can hold many streams of one connection open, and leave them half done.

use std::{future::Future, net::SocketAddr};

use bytes::Bytes;
use h2::{
    RecvStream, SendStream,
    client::{ResponseFuture, SendRequest},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime::Runtime,
    task::JoinHandle,
    time::timeout,
};

use crate::support::{
    DEADLINE,
    message::{SIGNATURE, signature},
    server::SECRET,
    wire::Reply,
};

/// One connection.
pub(crate) struct Http2 {
    runtime: Runtime,
    sender: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

/// A stream whose request has begun.
pub(crate) struct Stream {
    answer: ResponseFuture,
    body: SendStream<Bytes>,
}

impl Http2 {
    /// With prior knowledge, without TLS.
    #[track_caller]
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(async move { TcpStream::connect(address).await.expect("the server listens") })
    }

    /// Over a transport that is made on the client's own runtime.
    #[track_caller]
    pub(crate) fn over<S>(transport: impl Future<Output = S>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (sender, connection) = runtime.block_on(async {
            let (sender, connection) =
                h2::client::handshake(transport.await).await.expect("it speaks HTTP/2");
            (sender, tokio::spawn(connection))
        });
        Self { runtime, sender, connection }
    }

    /// Begins a signed POST and sends nothing of its body yet.
    #[track_caller]
    pub(crate) fn begin(&self, body: &[u8]) -> Stream {
        let header = signature(SECRET, body);
        self.begin_with("POST", "/v1/rpc", &[(SIGNATURE, &header)])
    }

    /// The same where the server may have ended the connection.
    pub(crate) fn try_begin(&self, body: &[u8]) -> Option<Stream> {
        let header = signature(SECRET, body);
        self.try_begin_with("POST", "/v1/rpc", &[(SIGNATURE, &header)]).ok()
    }

    /// Begins a request with these headers.
    #[track_caller]
    pub(crate) fn begin_with(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Stream {
        self.try_begin_with(method, target, headers).expect("the connection lives")
    }

    fn try_begin_with(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Stream, h2::Error> {
        let mut request = http::Request::builder().method(method).uri(format!("http://guard{target}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a test's request is one");
        let ready = async { timeout(DEADLINE, self.sender.clone().ready()).await };
        let mut sender = self.runtime.block_on(ready).expect("room for a stream in time")?;
        let (answer, body) = sender.send_request(request, false)?;
        Ok(Stream { answer, body })
    }

    /// Sends a part of the body.
    pub(crate) fn send(&self, stream: &mut Stream, part: &[u8], is_last: bool) -> Result<(), h2::Error> {
        let _inside = self.runtime.enter();
        stream.body.send_data(Bytes::copy_from_slice(part), is_last)
    }

    /// Waits for the answer.
    pub(crate) fn answer(&self, stream: Stream) -> Result<Reply, h2::Error> {
        self.runtime.block_on(async {
            let read = async {
                // Kept until the answer is there: dropping it would reset the stream.
                let _body = stream.body;
                let (head, body) = stream.answer.await?.into_parts();
                let text = |value: &http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
                let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
                let headers = headers.collect();
                Ok(Reply { status: head.status.as_u16(), headers, body: whole(body).await? })
            };
            timeout(DEADLINE, read).await.expect("an answer in time")
        })
    }

    /// Sends all bodies, signed, each on a stream of its own, and then waits for all answers.
    #[track_caller]
    pub(crate) fn post_all(&self, bodies: &[Vec<u8>]) -> Vec<Reply> {
        let begun: Vec<_> = bodies.iter().map(|body| self.begin(body)).collect();
        let sent = begun.into_iter().zip(bodies).map(|(mut stream, body)| {
            self.send(&mut stream, body, true).expect("the connection lives");
            stream
        });
        let sent: Vec<_> = sent.collect();
        sent.into_iter().map(|stream| self.answer(stream).expect("an answer")).collect()
    }

    /// Waits until the server has closed the connection.
    #[track_caller]
    pub(crate) fn until_closed(self) {
        let Self { runtime, sender, connection } = self;
        let closed = runtime.block_on(async { timeout(DEADLINE, connection).await });
        // How it ended does not matter.
        assert!(closed.is_ok(), "the server left it open");
        drop(sender);
    }

    #[track_caller]
    pub(crate) fn post(&self, body: &[u8]) -> Reply {
        self.post_all(&[body.to_vec()]).remove(0)
    }
}

impl Stream {
    /// Gives up on it, as a client that has gone does.
    pub(crate) fn reset(mut self) {
        self.body.send_reset(h2::Reason::CANCEL);
    }
}

async fn whole(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut whole = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        whole.extend_from_slice(&part);
        body.flow_control().release_capacity(part.len())?;
    }
    Ok(whole)
}
