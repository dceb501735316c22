//! From verified bytes to a request, or to the place that is wrong.

use alloc::{
    format,
    string::{String, ToString},
};
use core::str;

use serde::Deserialize;
use serde_path_to_error::{Path, Segment};

use super::{BadRequest, Request, wire};
use crate::{Verified, bounds::BODY_BYTES_MAX};

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// The body is not JSON, says more or less than a request may, or is out of bounds. The error names the
    /// place.
    pub fn parse(body: Verified<'_>) -> Result<Self, BadRequest> {
        let request = read_json::<wire::Request>(body.body())?.0;
        request.validate()?;
        Ok(request)
    }
}

/// Reads a body of JSON, or says which place of it is wrong.
pub(crate) fn read_json<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, BadRequest> {
    if body.len() > BODY_BYTES_MAX {
        return Err(BadRequest::whole("must be at most 16 KiB"));
    }
    let text = str::from_utf8(body).map_err(|_| BadRequest::whole("must be UTF-8"))?;
    serde_json::from_str(text).map_err(|cause| locate::<T>(text, &cause))
}

/// Reads a faulty body once more, slowly, to learn which place is at fault.
fn locate<T: for<'de> Deserialize<'de>>(text: &str, cause: &serde_json::Error) -> BadRequest {
    let mut track = serde_path_to_error::Track::new();
    let mut json = serde_json::Deserializer::from_str(text);
    let located = T::deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track));
    let place = match located {
        Ok(_) => String::new(), // The fault comes after the request's end.
        Err(_) => place_of(&track.path()),
    };
    BadRequest { place, message: without_text(cause.to_string()) }
}

/// The path as far as it is known. What breaks off within a key, or before one, has no name for its end; the line and
/// the column of the message tell it.
fn place_of(path: &Path) -> String {
    let mut place = String::new();
    for segment in path.iter() {
        match segment {
            Segment::Seq { .. } => place += &segment.to_string(),
            Segment::Map { .. } | Segment::Enum { .. } => {
                let dot = if place.is_empty() { "" } else { "." };
                place += &format!("{dot}{segment}");
            }
            Segment::Unknown => break,
        }
    }
    place
}

/// A reader's message without the text that stood in the wrong place, which may be somebody's name.
fn without_text(message: String) -> String {
    let text_and_rest = message.strip_prefix("invalid type: string \"");
    match text_and_rest.and_then(|rest| rest.rsplit_once("\", expected ")) {
        Some((_, expected)) => format!("invalid type: string, expected {expected}"),
        None => message,
    }
}
