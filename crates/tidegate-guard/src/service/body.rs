//! Reading a request's body, bounded in bytes and in time.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tidegate_protocol::bounds::BODY_BYTES_MAX;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFault {
    /// More than [`BODY_BYTES_MAX`], declared or sent.
    TooLarge,
    /// It did not arrive in time, broke off, or was not framed as HTTP demands.
    Incomplete,
}

/// The whole body. What is declared too large is not read at all; what turns out too large is read up to the
/// frame that went over.
pub(super) async fn read(body: &mut Incoming, timeout: Duration) -> Result<Bytes, BodyFault> {
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(BodyFault::TooLarge);
    }
    let mut collected = pin!(collect(body));
    // Nearly always the body came with the head, and no timer is needed.
    if let Poll::Ready(read) = poll_fn(|cx| Poll::Ready(collected.as_mut().poll(cx))).await {
        return read;
    }
    match tokio::time::timeout(timeout, collected).await {
        Ok(read) => read,
        Err(_elapsed) => Err(BodyFault::Incomplete),
    }
}

async fn collect(body: &mut Incoming) -> Result<Bytes, BodyFault> {
    let first = match next(body).await? {
        Some(bytes) if body.is_end_stream() => return within_bound(bytes),
        Some(bytes) => bytes,
        None => return Ok(Bytes::new()),
    };
    let mut whole = BytesMut::from(within_bound(first)?);
    while let Some(bytes) = next(body).await? {
        if whole.len() + bytes.len() > BODY_BYTES_MAX {
            return Err(BodyFault::TooLarge);
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}

/// The next piece of data; trailers are passed over.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, BodyFault> {
    while let Some(frame) = body.frame().await {
        if let Ok(bytes) = frame.map_err(|_broken| BodyFault::Incomplete)?.into_data() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn within_bound(bytes: Bytes) -> Result<Bytes, BodyFault> {
    if bytes.len() > BODY_BYTES_MAX { Err(BodyFault::TooLarge) } else { Ok(bytes) }
}
