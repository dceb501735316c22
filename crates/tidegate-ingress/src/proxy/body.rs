//! Bodies on their way through: a request's, within its bounds, and an answer's, wherever it comes from.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use tower_http::services::fs::ServeFileSystemResponseBody;

use super::{context::InFlight, shield::Permit, upstream::UpstreamBody};

/// Why a request's body is not brought to the app any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyFault {
    /// It is longer than the app takes.
    #[error("the request's body is too long")]
    TooLong,
    /// It does not come in time.
    #[error("the request's body does not come in time")]
    TooSlow,
    /// The client has gone, or frames it wrongly.
    #[error("the request's body can't be read")]
    Unreadable,
}

/// What a request's body is allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    pub(super) bytes_max: u64,
    /// Between two pieces.
    pub(super) idle: Duration,
    /// For the whole.
    pub(super) total: Duration,
}

/// A request's body, counted and timed as it arrives. Nothing is read, and no `100 Continue` sent, before the app's
/// server takes it.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    /// None for an empty one.
    meter: Option<Box<Meter>>,
}

#[derive(Debug)]
struct Meter {
    left: u64,
    idle: Duration,
    deadline: Instant,
    silence: Pin<Box<Sleep>>,
    fault: FaultCell,
}

/// Where a body leaves what was wrong with it, for whoever awaits the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct FaultCell(Arc<AtomicU8>);

impl FaultCell {
    pub(super) fn fault(&self) -> Option<BodyFault> {
        match self.0.load(Ordering::Relaxed) {
            1 => Some(BodyFault::TooLong),
            2 => Some(BodyFault::TooSlow),
            3 => Some(BodyFault::Unreadable),
            _ => None,
        }
    }

    fn set(&self, fault: BodyFault) -> BodyFault {
        self.0.store(fault as u8 + 1, Ordering::Relaxed);
        fault
    }
}

impl RequestBody {
    /// The body, and where its fault will stand; none for an empty body.
    pub(super) fn new(body: Incoming, limits: BodyLimits) -> (Self, Option<FaultCell>) {
        if body.is_end_stream() {
            return (Self { body, meter: None }, None);
        }
        let (now, fault) = (Instant::now(), FaultCell::default());
        let deadline = now + limits.total;
        let meter = Meter {
            left: limits.bytes_max,
            idle: limits.idle,
            deadline,
            silence: Box::pin(sleep_until(deadline.min(now + limits.idle))),
            fault: fault.clone(),
        };
        (Self { body, meter: Some(Box::new(meter)) }, Some(fault))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let this = self.get_mut();
        let piece = Pin::new(&mut this.body).poll_frame(cx);
        let Some(meter) = &mut this.meter else {
            return piece.map(|piece| piece.map(|piece| piece.map_err(|_| BodyFault::Unreadable)));
        };
        match piece {
            Poll::Ready(piece) => Poll::Ready(piece.map(|piece| meter.take(piece))),
            Poll::Pending => meter.poll_silence(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Meter {
    fn take(&mut self, piece: hyper::Result<Frame<Bytes>>) -> Result<Frame<Bytes>, BodyFault> {
        let piece = piece.map_err(|_| self.fault.set(BodyFault::Unreadable))?;
        let bytes = piece.data_ref().map_or(0, |data| data.len() as u64);
        self.left = self.left.checked_sub(bytes).ok_or_else(|| self.fault.set(BodyFault::TooLong))?;
        self.silence.as_mut().reset(self.deadline.min(Instant::now() + self.idle));
        Ok(piece)
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        self.silence.as_mut().poll(cx).map(|()| Some(Err(self.fault.set(BodyFault::TooSlow))))
    }
}

/// The body of an answer, and what is held until its end.
pub(super) struct AnswerBody {
    source: Source,
    held: Option<Held>,
}

/// Held until an answer has ended: the request's place among those in work, and the app's.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) in_flight: InFlight,
    pub(super) _permit: Option<Permit>,
}

/// Where an answer's body comes from.
pub(super) enum Source {
    /// All of it.
    Text(Full<Bytes>),
    /// As an app's server sends it.
    Upstream(UpstreamBody),
    /// As a file is read.
    File(ServeFileSystemResponseBody),
}

impl AnswerBody {
    pub(super) const fn new(source: Source, held: Held) -> Self {
        Self { source, held: Some(held) }
    }
}

impl From<Bytes> for Source {
    fn from(text: Bytes) -> Self {
        Self::Text(Full::new(text))
    }
}

/// The answer can't be brought to its end; its connection is closed, so that the client can tell.
pub(super) type AnswerFault = Box<dyn std::error::Error + Send + Sync>;

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = AnswerFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnswerFault>>> {
        let piece = match &mut self.source {
            Source::Text(text) => Pin::new(text)
                .poll_frame(cx)
                .map(|piece| piece.map(|piece| piece.map_err(|never: Infallible| match never {}))),
            Source::Upstream(body) => {
                Pin::new(body).poll_frame(cx).map(|piece| piece.map(|piece| piece.map_err(Into::into)))
            }
            Source::File(body) => {
                Pin::new(body).poll_frame(cx).map(|piece| piece.map(|piece| piece.map_err(Into::into)))
            }
        };
        if let (Poll::Ready(None), Some(held)) = (&piece, &mut self.held) {
            held.in_flight.ended();
        }
        piece
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Text(text) => text.is_end_stream(),
            Source::Upstream(body) => body.is_end_stream(),
            Source::File(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Text(text) => text.size_hint(),
            Source::Upstream(body) => body.size_hint(),
            Source::File(body) => body.size_hint(),
        }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        // Our own texts are no work that a client could make us waste; to a HEAD they are not even sent.
        let is_whole = matches!(self.source, Source::Text(_)) || self.is_end_stream();
        if is_whole && let Some(held) = &mut self.held {
            held.in_flight.ended();
        }
    }
}
