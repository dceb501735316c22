//! Policies as rows of a limit store: a head that says which version, and the document in pieces.

use tidegate_core::policy::{ChangeNote, DOCUMENT_BYTES_MAX, Policy, PolicyHead};
use tidegate_store::{Key, LimitStore, StoreError, VALUE_BYTES_MAX, Value, View};

use super::audit;

/// What the store holds for an app.
#[derive(Debug)]
pub(super) struct Stored {
    /// 0 where none was ever saved.
    pub(super) version: u64,
    pub(super) saved_at_ms: u64,
    /// None: what is there can't be read, and why.
    pub(super) policy: Result<Policy, String>,
}

/// How a save ended.
#[derive(Debug)]
pub(super) enum Saved {
    Done {
        version: u64,
        saved_at_ms: u64,
    },
    /// Another version is there than the one that was to be replaced.
    Stale {
        version: u64,
    },
}

/// The pieces that the largest document needs.
const PIECES: usize = DOCUMENT_BYTES_MAX.div_ceil(VALUE_BYTES_MAX);

/// Heads that are read at once.
const HEADS_AT_ONCE: usize = 128;

/// The versions of the apps' policies, in their order: 0 where there is none, none where the row can't be read.
pub(super) async fn versions(store: &dyn LimitStore, apps: &[&str]) -> Result<Vec<Option<u64>>, StoreError> {
    let mut versions = Vec::with_capacity(apps.len());
    for apps in apps.chunks(HEADS_AT_ONCE) {
        let rows = store.read(apps.iter().map(|app| head_key(app)).collect()).await?;
        versions.extend(rows.iter().map(|row| match row {
            None => Some(0),
            Some(row) => PolicyHead::decode(&row.value).ok().map(|head| head.version),
        }));
    }
    Ok(versions)
}

/// The policy of an app, as it stands in the store.
pub(super) async fn load(store: &dyn LimitStore, app: &str) -> Result<Stored, StoreError> {
    let rows = store.read(keys(app)).await?;
    let values: Vec<Option<&[u8]>> = rows.iter().map(|row| row.as_ref().map(|row| &row.value[..])).collect();
    Ok(assembled(&values))
}

fn assembled(rows: &[Option<&[u8]>]) -> Stored {
    let Some((Some(head), pieces)) = rows.split_first() else {
        return Stored { version: 0, saved_at_ms: 0, policy: Ok(Policy::default()) };
    };
    let Ok(head) = PolicyHead::decode(head) else {
        return Stored { version: 0, saved_at_ms: 0, policy: Err("the stored policy is damaged".to_owned()) };
    };
    let used = head.length.div_ceil(VALUE_BYTES_MAX).min(pieces.len());
    let document: Vec<u8> = pieces[..used].iter().copied().flatten().flatten().copied().collect();
    let policy = if head.fits(&document) {
        Policy::parse_stored(&document).map_err(|faults| {
            let first = faults
                .first()
                .map_or_else(String::new, |fault| format!(": {} {}", fault.field, fault.message));
            format!("the stored policy is invalid{first}")
        })
    } else {
        Err("the stored policy is damaged".to_owned())
    };
    Stored { version: head.version, saved_at_ms: head.saved_at_ms, policy }
}

/// Saves a policy and a note about it, in one update.
pub(super) async fn save(
    store: &dyn LimitStore,
    app: &str,
    policy: &Policy,
    if_match: Option<u64>,
    note: ChangeNote,
) -> Result<Saved, StoreError> {
    let document = serde_json::to_vec(policy.document()).expect("a document has only texts and numbers");
    let app = app.to_owned();
    audit::with_note(store, keys(&app), note, move |view| replace(view, &document, if_match)).await
}

/// Writes the document into its rows. The answer says whether the note is to be written too.
fn replace(view: &mut View<'_>, document: &[u8], if_match: Option<u64>) -> (Saved, bool) {
    let held =
        view.get(0).map_or(Some(0), |row| PolicyHead::decode(&row.value).ok().map(|head| head.version));
    // A head that can't be read has no version: nobody can have meant it, and anybody may write over it.
    let version = held.unwrap_or_default();
    if held.is_some() && if_match.is_some_and(|expected| expected != version) {
        return (Saved::Stale { version }, false);
    }
    let (version, saved_at_ms) = (version + 1, view.now_ms());
    let mut head = Value::new();
    PolicyHead::of(document, version, saved_at_ms).encode(&mut head);
    view.put_lasting(0, head);
    let mut pieces = document.chunks(VALUE_BYTES_MAX);
    for place in 1..=PIECES {
        match pieces.next() {
            Some(piece) => view.put_lasting(place, piece),
            None => view.delete(place),
        }
    }
    (Saved::Done { version, saved_at_ms }, true)
}

/// The head, then the pieces.
fn keys(app: &str) -> Vec<Key> {
    let pieces =
        (0..PIECES as u64).map(|piece| Key::of(&[GROUP, b"policy", app.as_bytes(), &piece.to_le_bytes()]));
    std::iter::once(head_key(app)).chain(pieces).collect()
}

fn head_key(app: &str) -> Key {
    Key::of(&[GROUP, b"policy", app.as_bytes()])
}

/// The group of all rows of the defense.
pub(super) const GROUP: &[u8] = b"defense";

#[cfg(test)]
mod tests;
