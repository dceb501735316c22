//! Who changed what: notes in a ring of rows, the newest of which a row of its own names.

use serde::Serialize;
use tidegate_core::{
    codec::{Reader, put_varint},
    policy::ChangeNote,
};
use tidegate_store::{Key, LimitStore, LimitStoreExt, StoreError, Value, View};

use super::store::GROUP;

/// A change, as the API tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// When, in ms since the epoch.
    pub at_ms: u64,
    /// Who: the name of a token.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To which app, if to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// What became different.
    pub changes: Vec<String>,
}

/// How many notes are kept; the oldest goes first.
pub const AUDIT_ROWS_MAX: u64 = 2000;
/// Rows that are read at once.
const READ_ROWS: usize = 128;
/// Others who write at the same time; after so many something else is wrong.
const ATTEMPTS: usize = 16;

/// Runs `apply` on the rows of `keys`, and writes the note in the same update if it says so.
pub(super) async fn with_note<R: Send + 'static>(
    store: &dyn LimitStore,
    keys: Vec<Key>,
    note: ChangeNote,
    apply: impl FnMut(&mut View<'_>) -> (R, bool) + Send + Clone + 'static,
) -> Result<R, StoreError> {
    for _ in 0..ATTEMPTS {
        let number = next_number(store).await?;
        let place = keys.len();
        let all = keys.iter().copied().chain([head_key(), entry_key(number)]).collect();
        let (mut apply, note) = (apply.clone(), ChangeNote { number, ..note.clone() });
        let written = store
            .update(all, move |view| {
                if head(view.get(place).map(|row| &row.value[..])) != number {
                    return None;
                }
                let (answer, noted) = apply(view);
                if noted {
                    write(view, place, &note);
                }
                Some(answer)
            })
            .await?;
        if let Some(answer) = written {
            return Ok(answer);
        }
    }
    Err(StoreError::Unavailable(tidegate_store::Unavailable::Busy))
}

/// The newest notes, newest first.
pub(super) async fn newest(store: &dyn LimitStore, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
    let next = next_number(store).await?;
    let oldest = next.saturating_sub((limit as u64).min(AUDIT_ROWS_MAX));
    let numbers: Vec<u64> = (oldest..next).rev().collect();
    let mut entries = Vec::with_capacity(numbers.len());
    for numbers in numbers.chunks(READ_ROWS) {
        let rows = store.read(numbers.iter().copied().map(entry_key).collect()).await?;
        // One that was written over meanwhile is not there any more.
        entries.extend(numbers.iter().zip(rows).filter_map(|(number, row)| {
            ChangeNote::decode(&row?.value).ok().filter(|note| note.number == *number).map(AuditEntry::from)
        }));
    }
    Ok(entries)
}

fn write(view: &mut View<'_>, place: usize, note: &ChangeNote) {
    let (mut head, mut entry) = (Value::new(), Value::new());
    put_varint(&mut head, note.number + 1);
    ChangeNote { at_ms: view.now_ms(), ..note.clone() }.encode(&mut entry);
    view.put_lasting(place, head);
    view.put_lasting(place + 1, entry);
}

async fn next_number(store: &dyn LimitStore) -> Result<u64, StoreError> {
    let rows = store.read(vec![head_key()]).await?;
    Ok(head(rows.first().and_then(Option::as_ref).map(|row| &row.value[..])))
}

/// The number of the next note. A head that can't be read begins anew: the ring writes over itself.
fn head(row: Option<&[u8]>) -> u64 {
    row.and_then(|row| Reader::new(row).varint().ok()).unwrap_or_default()
}

fn head_key() -> Key {
    Key::of(&[GROUP, b"audit"])
}

fn entry_key(number: u64) -> Key {
    Key::of(&[GROUP, b"audit", &(number % AUDIT_ROWS_MAX).to_le_bytes()])
}

impl From<ChangeNote> for AuditEntry {
    fn from(note: ChangeNote) -> Self {
        Self {
            at_ms: note.at_ms,
            actor: note.actor,
            action: note.action,
            app: note.app,
            changes: note.changes,
        }
    }
}
