//! The rows of a batch while its updates run on them, one after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{
    bound::Bound,
    plan::Plan,
    shared::{Request, Verdict},
};
use crate::{
    Change, Entry, Key, Unavailable, View,
    view::{Row, Undo},
};

/// What the updates of a batch have made of its rows; its vectors are used for every batch.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    plan: Plan,
    rows: Vec<Row>,
    undo: Vec<Undo>,
}

/// Whether updates that find no room may wait for a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    MayBeMade,
    Settled,
}

/// What a batch has decided.
#[derive(Debug, Default)]
pub(super) struct Decided {
    pub(super) changes: Vec<Change>,
    /// How many rows the store holds when they are written.
    pub(super) held: u64,
    /// Updates that panicked.
    pub(super) panics: usize,
    /// Updates refused for want of room.
    pub(super) full: usize,
}

impl Overlay {
    /// Plans which rows `batch` needs.
    pub(super) fn plan(&mut self, batch: &[Request]) {
        self.plan.make(batch);
    }

    /// Their keys, ascending and distinct.
    pub(super) fn keys(&self) -> &[Key] {
        self.plan.keys()
    }

    /// Which of them are only watched.
    pub(super) fn watched(&self) -> &[bool] {
        self.plan.watched()
    }

    /// Runs every update of the planned `batch` in turn on `rows` as those before it left them.
    pub(super) fn decide(
        &mut self,
        batch: &mut [Request],
        rows: Vec<Option<Entry>>,
        now_ms: u64,
        bound: &Bound,
        room: Room,
    ) -> Decided {
        self.rows.clear();
        self.rows.extend(rows.into_iter().map(Row::loaded));
        let mut decided = Decided { held: bound.held(), ..Decided::default() };
        let mut places = self.plan.places();
        for request in batch {
            let places = places.next_of(request);
            if request.verdict == Verdict::Abandoned {
                continue;
            }
            let undo = std::mem::take(&mut self.undo);
            let view = View::new(now_ms, &mut self.rows, places, request.watched, undo);
            (request.verdict, self.undo) = run(request, view, &mut decided, bound, room);
        }
        let changes = self.plan.keys().iter().zip(self.rows.drain(..));
        decided
            .changes
            .extend(changes.filter_map(|(key, row)| Some(Change { key: *key, state: row.into_change()? })));
        decided
    }
}

/// Runs one update. Unless it is done, nothing of it stays.
fn run(
    request: &mut Request,
    mut view: View<'_>,
    decided: &mut Decided,
    bound: &Bound,
    room: Room,
) -> (Verdict, Vec<Undo>) {
    let applied = catch_unwind(AssertUnwindSafe(|| request.job.apply(&mut view)));
    let verdict = match (applied, view.fault()) {
        (Err(_), _) => {
            decided.panics += 1;
            Verdict::Refused(Unavailable::Backend.into())
        }
        (Ok(()), Some(invalid)) => Verdict::Refused(invalid.into()),
        (Ok(()), None) if bound.has_room(decided.held, view.growth()) => Verdict::Done,
        (Ok(()), None) if room == Room::MayBeMade => Verdict::NeedsRoom(view.growth().total().unsigned_abs()),
        (Ok(()), None) => {
            decided.full += 1;
            Verdict::Refused(Unavailable::Full.into())
        }
    };
    if verdict == Verdict::Done {
        decided.held = decided.held.saturating_add_signed(view.growth().total());
    } else {
        view.undo_all();
    }
    (verdict, view.end())
}
