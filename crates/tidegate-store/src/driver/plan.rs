//! Which rows a batch needs, and where each update finds its own among them.

use super::shared::Request;
use crate::Key;

/// The distinct keys of a batch in ascending order, and every update's places among them.
#[derive(Debug, Default)]
pub(super) struct Plan {
    keys: Vec<Key>,
    /// Which of them every update that names them only watches.
    watched: Vec<bool>,
    /// For each key of each update, one after the other, where it stands in `keys`.
    places: Vec<u32>,
    /// Every key of every update with its number; kept for its room.
    named: Vec<(Key, u32, bool)>,
}

/// The places of a batch's updates that are still to be handed out.
#[derive(Debug)]
pub(super) struct Places<'a>(&'a [u32]);

impl Plan {
    /// Plans `batch`.
    pub(super) fn make(&mut self, batch: &[Request]) {
        self.named.clear();
        for request in batch {
            let written = request.keys.len() - request.watched;
            for (index, key) in request.keys.iter().enumerate() {
                self.named.push((*key, place(self.named.len()), index >= written));
            }
        }
        self.named.sort_unstable_by_key(|(key, ..)| *key);
        self.keys.clear();
        self.watched.clear();
        self.places.clear();
        self.places.resize(self.named.len(), 0);
        for (key, number, watched) in &self.named {
            if self.keys.last() == Some(key) {
                self.watched.last_mut().into_iter().for_each(|all| *all &= watched);
            } else {
                self.keys.push(*key);
                self.watched.push(*watched);
            }
            self.places[*number as usize] = place(self.keys.len() - 1);
        }
    }

    /// The keys, ascending and distinct.
    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Which of them are only watched.
    pub(super) fn watched(&self) -> &[bool] {
        &self.watched
    }

    /// The places of the planned updates, to be handed out in their order.
    pub(super) fn places(&self) -> Places<'_> {
        Places(&self.places)
    }
}

impl<'a> Places<'a> {
    /// The places of `request`'s keys; it is the next of the batch.
    pub(super) fn next_of(&mut self, request: &Request) -> &'a [u32] {
        let (own, others) = self.0.split_at(request.keys.len());
        self.0 = others;
        own
    }
}

fn place(index: usize) -> u32 {
    u32::try_from(index).expect("a batch's keys are bounded far below 2^32")
}
