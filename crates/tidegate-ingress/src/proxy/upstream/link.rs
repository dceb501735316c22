//! What can go wrong between us and a server.

/// Why a server gave no answer.
#[derive(Debug)]
pub(in crate::proxy) enum Failure {
    /// Nothing of the request was sent: another connection may take it.
    Unsent,
    /// The request, or a part of it, went out.
    Broken,
    /// The answer did not begin in time.
    Late,
}
