//! The words of a request.

use super::{Algorithm, Mode, SetMode};
use crate::word::{Word, word_in_json};

/// What `cmd` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Hit,
    Get,
    Set,
    Delete,
    Ttl,
    Expire,
    Increment,
    Reserve,
    Refund,
}

impl Word for Name {
    const WHAT: &'static str = "a command";
    const NAMES: &'static [(&'static str, Self)] = &[
        ("win.hit", Self::Hit),
        ("kv.get", Self::Get),
        ("kv.set", Self::Set),
        ("kv.del", Self::Delete),
        ("kv.ttl", Self::Ttl),
        ("kv.expire", Self::Expire),
        ("kv.incr", Self::Increment),
        ("res.reserve", Self::Reserve),
        ("res.refund", Self::Refund),
    ];
}

impl Word for Mode {
    const WHAT: &'static str = "a mode";
    const NAMES: &'static [(&'static str, Self)] =
        &[("sequential", Self::Sequential), ("independent", Self::Independent)];
}

impl Word for SetMode {
    const WHAT: &'static str = "a mode of writing";
    const NAMES: &'static [(&'static str, Self)] =
        &[("always", Self::Always), ("nx", Self::Nx), ("xx", Self::Xx)];
}

impl Word for Algorithm {
    const WHAT: &'static str = "an algorithm";
    const NAMES: &'static [(&'static str, Self)] =
        &[("sliding", Self::Sliding), ("fixed", Self::Fixed), ("bucket", Self::Bucket)];
}

word_in_json!(Name, Mode);
