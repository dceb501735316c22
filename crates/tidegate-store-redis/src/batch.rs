//! A batch between its load and its commit, and the command that commits it.

use redis::Cmd;
use tidegate_store::{BackendError, Change, Entry, Key, NewState};

use crate::{
    names::Names,
    row::{NO_VERSION, Row, Version, encode, unique},
    script::Script,
};

/// A batch between its load and its commit. Nothing on the server waits for it, but for others while it has
/// the turn.
#[derive(Debug)]
pub struct Batch {
    keys: Vec<Key>,
    /// What each row was.
    rows: Vec<Option<Seen>>,
    pub(crate) has_turn: bool,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    version: Version,
    expires_at_ms: u64,
}

/// What there is to do for the changes of a batch.
#[derive(Debug, Default)]
struct Work<'a> {
    written: Vec<(&'a Key, &'a Entry)>,
    /// Those that end at another time than before.
    ends: Vec<(u64, &'a Key)>,
    new: Vec<&'a Key>,
    removed: Vec<&'a Key>,
}

impl Batch {
    /// A batch that found `rows` under `keys`.
    pub(crate) fn of(keys: &[Key], rows: &[Option<Row>], has_turn: bool) -> Self {
        let seen = |row: &Row| Seen { version: row.version, expires_at_ms: row.entry.expires_at_ms };
        Self { keys: keys.to_vec(), rows: rows.iter().map(|row| row.as_ref().map(seen)).collect(), has_turn }
    }

    /// The command by which the instance that `token` names makes `changes`.
    pub(crate) fn commit(
        &self,
        script: &Script,
        names: &Names,
        token: &[u8],
        changes: &[Change],
    ) -> Result<Cmd, BackendError> {
        let Work { written, ends, new, removed } = self.work(changes)?;
        let values: usize = written.iter().map(|(_, entry)| entry.value.len()).sum();
        let parts = 16 + self.keys.len() + 2 * (written.len() + ends.len() + new.len() + removed.len());
        let names = [names.rows(), names.index(), names.keys(), names.turn()];
        let mut command = script.by_hash(&names, (parts, 256 + Key::BYTES * parts + values));
        let counts = [self.keys.len(), written.len(), ends.len(), new.len(), removed.len()];
        command.arg(token).arg(&counts).arg(self.versions().as_flattened());
        for key in &self.keys {
            command.arg(key.as_bytes());
        }
        let (version, mut bytes) = (unique(), Vec::new());
        for (key, entry) in written {
            encode(&mut bytes, version, entry);
            command.arg(key.as_bytes()).arg(bytes.as_slice());
        }
        for (expires_at_ms, key) in ends {
            command.arg(expires_at_ms).arg(key.as_bytes());
        }
        for key in new {
            command.arg(0).arg(key.as_bytes());
        }
        for key in removed {
            command.arg(key.as_bytes());
        }
        Ok(command)
    }

    fn versions(&self) -> Vec<Version> {
        self.rows.iter().map(|row| row.map_or(NO_VERSION, |seen| seen.version)).collect()
    }

    fn work<'a>(&self, changes: &'a [Change]) -> Result<Work<'a>, BackendError> {
        let mut work = Work::default();
        work.written.reserve(changes.len());
        for Change { key, state } in changes {
            let Ok(place) = self.keys.binary_search(key) else {
                return Err(BackendError {
                    doing: "writing a row that was not loaded".to_owned(),
                    cause: None,
                });
            };
            let NewState::Put(entry) = state else {
                work.removed.push(key);
                continue;
            };
            work.written.push((key, entry));
            let before = self.rows[place];
            if before.is_none() {
                work.new.push(key);
            }
            if before.is_none_or(|seen| seen.expires_at_ms != entry.expires_at_ms) {
                work.ends.push((entry.expires_at_ms, key));
            }
        }
        Ok(work)
    }
}
