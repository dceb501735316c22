//! Builds the rows out of the log, on several threads: each reads every record and keeps those of its own
//! partitions, so that their order stays.

use std::{
    array,
    num::NonZero,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use super::walk::{Chain, Loaded, Stop};
use crate::{
    format::{FrameKind, Records},
    rows::{Name, PARTITIONS, Partition, Rows, partition_of},
};

/// Segments that wait for the slowest thread. Each is held in memory whole, which the allocator may keep for a
/// while, and the next one is read while this one is built into rows, so there is no use for more.
const WAITING_MAX: usize = 0;

/// Why the rows can't be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoSense {
    pub(crate) segment: u32,
    pub(crate) offset: usize,
}

/// Runs `walk`, which hands over segments in order, and builds the rows that are live at `now_ms`.
pub(crate) fn build(
    now_ms: u64,
    walk: impl FnOnce(&mut dyn FnMut(Arc<Loaded>)) -> Result<Chain, Stop>,
) -> Result<(Chain, Result<Rows, NoSense>), Stop> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(PARTITIONS);
    thread::scope(|scope| {
        let (senders, workers): (Vec<SyncSender<Arc<Loaded>>>, Vec<_>) = (0..threads)
            .map(|index| {
                let (sender, receiver) = sync_channel(WAITING_MAX);
                (sender, scope.spawn(move || build_share(index, threads, now_ms, &receiver)))
            })
            .unzip();
        let chain = walk(&mut |segment| {
            for sender in &senders {
                // A thread that has met nonsense listens no more; its answer says why.
                drop(sender.send(Arc::clone(&segment)));
            }
        });
        drop(senders);
        let shares =
            workers.into_iter().map(|worker| worker.join().expect("a share is built without a panic"));
        let rows = shares.collect::<Result<Vec<_>, _>>().map(|shares| join(shares, threads));
        Ok((chain?, rows))
    })
}

/// The partitions whose number leaves `share` when divided by `shares`; others stay empty.
fn build_share(
    share: usize,
    shares: usize,
    now_ms: u64,
    segments: &Receiver<Arc<Loaded>>,
) -> Result<[Option<Partition>; PARTITIONS], NoSense> {
    let mut partitions: [Option<Partition>; PARTITIONS] =
        array::from_fn(|index| (index % shares == share).then(Partition::new));
    for partition in partitions.iter_mut().flatten() {
        partition.advance(now_ms, usize::MAX);
    }
    for segment in segments {
        replay(&segment, now_ms, &mut partitions)?;
    }
    Ok(partitions)
}

fn replay(
    segment: &Loaded,
    now_ms: u64,
    partitions: &mut [Option<Partition>; PARTITIONS],
) -> Result<(), NoSense> {
    let with_rows = |kind| matches!(kind, FrameKind::Batch | FrameKind::Copies);
    for frame in segment.frames.iter().filter(|frame| with_rows(frame.header.kind)) {
        let no_sense = NoSense { segment: segment.number, offset: frame.offset };
        for record in Records::new(&segment.bytes.0[frame.payload()], frame.header.now_ms) {
            let record = record.map_err(|_| no_sense)?;
            let name = Name { key: record.key, tag: record.tag };
            let Some(partition) = &mut partitions[partition_of(&name)] else { continue };
            match record.put.filter(|&(expires_at_ms, _)| expires_at_ms > now_ms) {
                Some((expires_at_ms, value)) => {
                    partition.put(&name, expires_at_ms, value, segment.number).map_err(|_| no_sense)?;
                }
                None => partition.remove(&name),
            }
        }
    }
    Ok(())
}

fn join(mut shares: Vec<[Option<Partition>; PARTITIONS]>, threads: usize) -> Rows {
    Rows::from_partitions(array::from_fn(|index| {
        shares[index % threads][index].take().expect("every partition is in exactly one share")
    }))
}
