//! What a fuzzing target calls.

use std::sync::Arc;

use tidegate_store::clock::ManualClock;

use super::SimulatedDisk;
use crate::{
    EmbeddedBackend, Options, Upkeep,
    format::{FrameBuffer, FrameHeader, FrameKind, Seal, SegmentHeader, segment_name},
    repair_disk, verify_disk,
};

const SEED: [u8; 16] = *b"a seed of a fuzz";

/// Opens, verifies and repairs a store of these segments: once as they are, and once with valid headers and
/// each as the payload of valid frames, so that what lies behind the checksums is reached too.
///
/// # Panics
/// A store that could be opened, or that was repaired, can't be opened again.
#[expect(clippy::panic, reason = "a finding is a panic, for a fuzzer")]
pub fn fuzz_recover(segments: &[&[u8]]) {
    for disk in [as_they_are(segments), as_payloads(segments)] {
        drop(verify_disk(&disk));
        let opened = open(&disk);
        if let Ok(rows) = opened {
            match open(&disk) {
                Ok(again) if again == rows => {}
                other => panic!("opened with {rows} rows, and then {other:?}"),
            }
        } else if repair_disk(&disk).is_ok()
            && let Err(error) = open(&disk)
        {
            panic!("repaired, and then {error}");
        }
    }
}

fn open(disk: &SimulatedDisk) -> Result<u64, crate::OpenError> {
    let options = Options {
        segment_bytes: 4096,
        clock: Arc::new(ManualClock::at(1)),
        disk: Some(Arc::new(disk.clone())),
        upkeep: Upkeep::Caller,
        ..Options::at("")
    };
    Ok(EmbeddedBackend::open(&options)?.stats().rows)
}

fn as_they_are(segments: &[&[u8]]) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    for (number, segment) in (1..).zip(segments) {
        disk.tamper(&segment_name(number), Some(segment.to_vec()));
    }
    disk
}

/// The first byte of each decides what frame it is.
fn as_payloads(segments: &[&[u8]]) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let mut frame = FrameBuffer::default();
    let mut lsn = 0;
    for (number, content) in (1..).zip(segments) {
        let seal = Seal::new(&SEED, number);
        let mut segment = SegmentHeader { seed: SEED, number }.to_bytes().to_vec();
        for payload in content.chunks(64) {
            lsn += 1;
            let (&choice, payload) = payload.split_first().unwrap_or((&0, &[]));
            let kinds =
                [FrameKind::Batch, FrameKind::Copies, FrameKind::Secrets, FrameKind::Mark, FrameKind::End];
            let header = FrameHeader::new(
                kinds[usize::from(choice) % kinds.len()],
                lsn + u64::from(choice >> 6) / 3,
                u64::from(choice),
                lsn.saturating_sub(u64::from(choice >> 4)),
                1 + u32::from(choice >> 7),
            );
            frame.start().extend_from_slice(payload);
            let offset = segment.len() as u64;
            segment.extend_from_slice(frame.finish(&seal, offset, &header));
        }
        disk.tamper(&segment_name(number), Some(segment));
    }
    disk
}
