//! What can go wrong between us and a server.

use super::super::body::RequestBody;

/// Why a server gave no answer.
#[derive(Debug)]
pub(in crate::proxy) enum Failure {
    /// Nothing of the request was sent: another connection may take it.
    Unsent(Box<http::Request<RequestBody>>),
    /// The request, or a part of it, went out.
    Broken,
}
