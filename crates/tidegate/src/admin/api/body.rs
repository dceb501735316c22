//! Bodies and queries of the API, read strictly: what is not understood is refused, not passed over.

use serde::de::DeserializeOwned;
use tidegate_core::json;

use super::Refused;

/// # Errors
/// It is not the JSON object that is asked for, or a field of it stands there twice.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    let refused = |error: serde_json::Error| Refused::BadRequest(format!("the body: {error}"));
    let read = json::read(body).map_err(refused)?;
    if let Some(place) = read.duplicates.first() {
        return Err(Refused::BadRequest(format!("{place}: is there twice")));
    }
    // The derived readers would take a list of the fields' values, too.
    if !read.value.is_object() {
        return Err(Refused::BadRequest("the body: must be an object".to_owned()));
    }
    serde_json::from_value(read.value).map_err(refused)
}
