//! Bodies on both ways: what comes in is capped, what goes out holds the request's leases.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower::BoxError;

use crate::{
    refusal::BodyTooLarge,
    stage_two::{Held, StageTwo},
};

pin_project! {
    /// A request's body that ends with [`BodyTooLarge`] once it has come to more bytes than are read.
    #[derive(Debug)]
    pub struct CappedBody<B> {
        #[pin]
        body: B,
        left: u64,
        too_large: BodyTooLarge,
        is_cut: bool,
        request: StageTwo,
    }
}

pin_project! {
    /// A response's body. The request's leases end when it has been sent or is dropped.
    #[derive(Debug)]
    pub struct AdmittedBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProjection]
    #[derive(Debug)]
    enum Kind<B> {
        Admitted { #[pin] body: B, held: Option<Arc<Held>> },
        Refused { answer: Option<Bytes> },
    }
}

impl<B> CappedBody<B> {
    pub(crate) const fn new(body: B, too_large: BodyTooLarge, request: StageTwo) -> Self {
        Self { body, left: too_large.body_bytes_max, too_large, is_cut: false, request }
    }
}

impl<B> AdmittedBody<B> {
    pub(crate) const fn admitted(body: B, held: Arc<Held>) -> Self {
        Self { kind: Kind::Admitted { body, held: Some(held) } }
    }
}

impl<B> From<String> for AdmittedBody<B> {
    fn from(answer: String) -> Self {
        Self { kind: Kind::Refused { answer: Some(answer.into()) } }
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for CappedBody<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let this = self.project();
        if *this.is_cut {
            return Poll::Ready(None);
        }
        let frame = match ready!(this.body.poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        let bytes = frame.data_ref().map_or(0, |data| data.remaining() as u64);
        match this.left.checked_sub(bytes) {
            Some(left) => {
                *this.left = left;
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                *this.is_cut = true;
                this.request.body_is_too_large();
                Poll::Ready(Some(Err((*this.too_large).into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_cut || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        let mut capped = SizeHint::new();
        capped.set_lower(hint.lower().min(self.left));
        if let Some(upper) = hint.upper() {
            capped.set_upper(upper.max(capped.lower()));
        }
        capped
    }
}

impl<B: Body<Data = Bytes>> Body for AdmittedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProjection::Refused { answer } => {
                Poll::Ready(answer.take().map(|answer| Ok(Frame::data(answer))))
            }
            KindProjection::Admitted { body, held } => {
                let frame = ready!(body.poll_frame(context));
                if !matches!(frame, Some(Ok(_))) {
                    *held = None;
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Admitted { body, .. } => body.is_end_stream(),
            Kind::Refused { answer } => answer.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Admitted { body, .. } => body.size_hint(),
            Kind::Refused { answer } => {
                SizeHint::with_exact(answer.as_ref().map_or(0, |answer| answer.len() as u64))
            }
        }
    }
}
