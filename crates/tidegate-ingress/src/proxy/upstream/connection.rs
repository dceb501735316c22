//! One connection to a server, driven by whoever awaits its answer.
//!
//! The HTTP library would have the connection run in a task of its own, which is woken for the request and wakes
//! the asking task for the answer and for every piece of it. Here the task that asks drives the connection
//! itself: no other task is woken, and what it awaits inside the library needs no waker.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::Instant};

use super::{
    super::{body::RequestBody, gathered::Gathered},
    Failure, Limits, Upstream,
    patience::Patience,
    waking::Waking,
};

/// A connection to a server.
#[derive(Debug)]
pub(in crate::proxy) struct Connection {
    sender: http1::SendRequest<RequestBody>,
    /// None once it ended with a request unsent.
    driver: Option<http1::Connection<TokioIo<Gathered<TcpStream>>, RequestBody>>,
    /// The driver must not be polled any more.
    ended: bool,
    used_at: Instant,
    was_kept: bool,
    waking: Waking,
    patience: Patience,
}

/// A server's stream once it speaks another protocol, and what of it was read already.
#[derive(Debug)]
pub(in crate::proxy) struct Tunnelled {
    pub(in crate::proxy) stream: TcpStream,
    pub(in crate::proxy) read: Bytes,
}

impl Connection {
    pub(super) async fn new(stream: TcpStream, limits: &Limits) -> hyper::Result<Self> {
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(limits.head_bytes_max.max(MIN_BUFFER_BYTES))
            .max_headers(limits.headers_max)
            .handshake(TokioIo::new(Gathered::new(stream)))
            .await?;
        let now = Instant::now();
        Ok(Self {
            sender,
            driver: Some(driver),
            ended: false,
            used_at: now,
            was_kept: false,
            waking: Waking::new(),
            patience: Patience::new(now),
        })
    }

    pub(super) const fn used_at(&self) -> Instant {
        self.used_at
    }

    /// Whether it served a request before.
    pub(in crate::proxy) const fn was_kept(&self) -> bool {
        self.was_kept
    }

    /// Whether a kept connection may be used, as far as is known without looking at its stream.
    pub(super) fn may_serve(&mut self, idle: Duration) -> bool {
        self.used_at + idle > Instant::now() && !self.ended && (self.sender.is_ready() || self.is_ready())
    }

    /// Sends a request and awaits the head of its answer, for so long. After a 101 the connection [becomes a
    /// tunnel](Self::into_tunnel). The request is there again if nothing of it was sent.
    pub(in crate::proxy) async fn send(
        &mut self,
        request: &mut Option<Request<RequestBody>>,
        patience: Duration,
    ) -> Result<Response<Incoming>, Failure> {
        let Some(sending) = request.take() else { return Err(Failure::Broken) };
        self.patience.begin(patience);
        let sent = self.waking.muted(|| self.sender.try_send_request(sending));
        tokio::pin!(sent);
        let answered = std::future::poll_fn(|cx| {
            let mut unwoken = Context::from_waker(Waker::noop());
            self.drive(cx.waker());
            loop {
                match sent.as_mut().poll(&mut unwoken) {
                    Poll::Ready(Ok(response)) => return Poll::Ready(Ok(response)),
                    Poll::Ready(Err(mut error)) => {
                        *request = error.take_message();
                        let failure = if request.is_some() { Failure::Unsent } else { Failure::Broken };
                        return Poll::Ready(Err(failure));
                    }
                    // A driver that ends gives back what it has not begun with once it is dropped.
                    Poll::Pending if self.ended => {
                        if self.driver.take().is_none() {
                            return Poll::Ready(Err(Failure::Broken));
                        }
                    }
                    Poll::Pending => return self.patience.poll_end(cx).map(|()| Err(Failure::Late)),
                }
            }
        })
        .await;
        let response = answered?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // The connection is done with HTTP once it has handed over what it has read.
            std::future::poll_fn(|cx| {
                self.drive(cx.waker());
                if self.ended {
                    return Poll::Ready(Ok(()));
                }
                self.patience.poll_end(cx).map(|()| Err(Failure::Late))
            })
            .await?;
        }
        Ok(response)
    }

    /// The stream of a server that has changed the protocol; none if the connection broke.
    pub(in crate::proxy) fn into_tunnel(self) -> Option<Tunnelled> {
        let parts = self.driver?.into_parts();
        Some(Tunnelled { stream: parts.io.into_inner().into_inner(), read: parts.read_buf })
    }

    fn drive(&mut self, task: &Waker) {
        if let (false, Some(driver)) = (self.ended, &mut self.driver) {
            // An error shows where the answer or its body is awaited.
            self.ended = driver.poll_without_shutdown(&mut self.waking.of(task)).is_ready();
        }
    }

    /// Whether the next request may be sent, as far as what has come tells.
    fn is_ready(&mut self) -> bool {
        self.drive(Waker::noop());
        !self.ended && self.sender.is_ready()
    }
}

/// The HTTP library takes no smaller buffer.
const MIN_BUFFER_BYTES: usize = 8192;

/// The body of a server's answer. At its end the connection is kept for the next request.
#[derive(Debug)]
pub(in crate::proxy) struct UpstreamBody {
    body: Incoming,
    connection: Option<Box<Connection>>,
    home: Home,
    /// How long the server may send nothing.
    patience: Duration,
    /// Something has come since the silence was last measured.
    heard: bool,
}

/// Where a connection is kept between two requests.
#[derive(Debug)]
pub(in crate::proxy) struct Home {
    pub(in crate::proxy) upstream: Arc<Upstream>,
    pub(in crate::proxy) worker: usize,
    pub(in crate::proxy) idle_max: usize,
    /// The request was sent whole, and the server takes another one behind the end of its answer.
    pub(in crate::proxy) keeps_alive: bool,
}

impl UpstreamBody {
    pub(in crate::proxy) fn new(
        body: Incoming,
        connection: Box<Connection>,
        home: Home,
        patience: Duration,
    ) -> Self {
        Self { body, connection: Some(connection), home, patience, heard: true }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let mut unwoken = Context::from_waker(Waker::noop());
        // What has come already, then what the connection brings now.
        for driven in [false, true] {
            if driven && let Some(connection) = &mut self.connection {
                connection.drive(cx.waker());
            }
            let body = Pin::new(&mut self.body);
            let polled = match &self.connection {
                Some(connection) => connection.waking.muted(|| body.poll_frame(&mut unwoken)),
                None => body.poll_frame(&mut unwoken),
            };
            if let Poll::Ready(piece) = polled {
                return Poll::Ready(piece.map(|piece| piece.map_err(|_| Cut)));
            }
        }
        match &self.connection {
            Some(connection) if !connection.ended => Poll::Pending,
            _ => Poll::Ready(Some(Err(Cut))),
        }
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Some(connection) = &mut self.connection else { return Poll::Pending };
        if std::mem::take(&mut self.heard) {
            connection.patience.begin(self.patience);
        }
        connection.patience.poll_end(cx).map(|()| Some(Err(Cut)))
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.poll_piece(cx) {
            Poll::Ready(piece) => {
                self.heard = true;
                Poll::Ready(piece)
            }
            Poll::Pending => self.poll_silence(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        // Whoever uses it next finds out whether the server has closed it. Where its end is not as plain as this, the connection itself is asked.
        let is_over = self.home.keeps_alive && self.body.is_end_stream();
        if is_over || connection.is_ready() {
            (connection.used_at, connection.was_kept) = (Instant::now(), true);
            self.home.upstream.keep(connection, self.home.worker, self.home.idle_max);
        }
    }
}

/// The server's answer ended before its end.
#[derive(Debug, thiserror::Error)]
#[error("the server's answer ended before its end")]
pub(in crate::proxy) struct Cut;
