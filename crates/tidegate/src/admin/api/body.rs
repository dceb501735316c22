//! Bodies and queries of the API, read strictly: what is not understood is refused, not passed over.

use serde::de::DeserializeOwned;

use super::Refused;

/// # Errors
/// It is not the JSON that is asked for.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| Refused::BadRequest(format!("the body: {error}")))
}
