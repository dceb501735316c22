//! The bytes of the log; docs/store-format.md describes them for people.

mod frame;
mod header;
mod record;
mod secrets;
mod varint;

pub(crate) use frame::{
    FRAME_HEADER_BYTES, FrameBuffer, FrameHeader, FrameKind, PAYLOAD_BYTES_MAX, Seal, frame_bytes,
};
pub(crate) use header::{HEADER_BYTES, HeaderFault, SegmentHeader, segment_name, segment_number};
pub(crate) use record::{Records, encode_delete, encode_put, record_bytes};
pub(crate) use secrets::{Secrets, TooManySecrets};

/// What makes the frames of one store different from all others', so that no bytes that came from outside
/// can pass for one.
pub(crate) type StoreSeed = [u8; 16];

/// The first `N` bytes from `at` on.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the range is as long as the array")
}
