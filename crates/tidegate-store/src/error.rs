//! What a store answers when it can't do what was asked.

use thiserror::Error;

/// Why an update or a read gave no answer. Nothing of an update that ends in [`StoreError::Invalid`] was
/// done; after [`StoreError::Unavailable`] it may or may not have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The caller asked for something out of bounds.
    #[error("the update is out of bounds: {0}")]
    Invalid(#[from] Invalid),
    /// The store can't answer now. Callers decide what that means for their own request.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[from] Unavailable),
}

/// Why a store is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Unavailable {
    /// The deadline passed; the update may still be running in the backend.
    #[error("past its deadline")]
    Deadline,
    /// Too many calls are still running in the backend; this one was not tried.
    #[error("too many calls are running")]
    Busy,
    /// There is no room for a new key; keys that the store holds keep counting. Nothing was written.
    #[error("full of live entries")]
    Full,
    /// It could not be opened yet. Nothing was written.
    #[error("it is not open yet")]
    NotOpen,
    /// The backend failed; it has logged why.
    #[error("the backend failed")]
    Backend,
}

/// What is out of bounds in an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Invalid {
    /// The same key stands twice in one update.
    #[error("keys[{index}] is a duplicate")]
    DuplicateKey {
        /// The place of the second of the two.
        index: usize,
    },
    /// More keys than [`crate::KEYS_MAX`].
    #[error("{keys} keys; at most {} go into one update", crate::KEYS_MAX)]
    TooManyKeys {
        /// How many there were.
        keys: usize,
    },
    /// A row was written that is only watched; see [`crate::Keys::watching`].
    #[error("keys[{index}] is only watched")]
    Watched {
        /// The place of its key.
        index: usize,
    },
    /// A value larger than [`crate::VALUE_BYTES_MAX`].
    #[error("the value for keys[{index}] has {bytes} bytes; at most {} are kept", crate::VALUE_BYTES_MAX)]
    ValueTooLarge {
        /// The place of its key.
        index: usize,
        /// Its size.
        bytes: usize,
    },
    /// An expiry that is not after the store's clock, or more than [`crate::LIFE_MS_MAX`] after it.
    #[error("the expiry for keys[{index}] is in the past or more than 120 days away")]
    ExpiryOutOfRange {
        /// The place of its key.
        index: usize,
    },
}
