//! What the store's rows and its own few keys are called in Redis.

use std::fmt::Write;

use tidegate_store::{Key, Scope};

/// The names of one store under one secret. All begin with the same `{tag}`, so that a cluster keeps them on
/// one server, where they can be written together.
#[derive(Debug)]
pub(crate) struct Names {
    /// `{prefix}:`
    store: String,
    /// `{prefix}:<id of the secret>:`
    secret: String,
}

impl Names {
    pub(crate) fn new(prefix: &str, secret_id: u64) -> Self {
        let store = format!("{{{prefix}}}:");
        let mut secret = store.clone();
        write!(secret, "{secret_id:x}:").expect("writing to a string does not fail");
        Self { store, secret }
    }

    /// The names of the same store under another secret.
    pub(crate) fn of_secret(&self, secret_id: &str) -> Self {
        Self { store: self.store.clone(), secret: format!("{}{secret_id}:", self.store) }
    }

    /// How the rows are stored, as a number.
    pub(crate) fn format(&self) -> Vec<u8> {
        format!("{}format", self.store).into_bytes()
    }

    /// The ids of all secrets that may have rows.
    pub(crate) fn secrets(&self) -> Vec<u8> {
        format!("{}secrets", self.store).into_bytes()
    }

    /// All rows by their keys.
    pub(crate) fn rows(&self) -> Vec<u8> {
        format!("{}rows", self.secret).into_bytes()
    }

    /// The keys of all rows by their expiry.
    pub(crate) fn index(&self) -> Vec<u8> {
        format!("{}index", self.secret).into_bytes()
    }

    /// The keys of all rows in their own order, those of a group together.
    pub(crate) fn keys(&self) -> Vec<u8> {
        format!("{}keys", self.secret).into_bytes()
    }

    /// Who goes before all others.
    pub(crate) fn turn(&self) -> Vec<u8> {
        format!("{}turn", self.secret).into_bytes()
    }
}

/// The ends of a range of keys, as Redis is told them, that holds those of `scope` and of its group only.
pub(crate) fn bounds(scope: Scope) -> (Vec<u8>, Vec<u8>) {
    // All keys of a group begin alike.
    let any: Key = scope.group.key(&[]);
    let group = &any.as_bytes()[..GROUP_BYTES];
    ([b"[", group].concat(), [b"[", group, &[0xff; Key::BYTES - GROUP_BYTES]].concat())
}

/// The start of the range behind `key`.
pub(crate) fn after(key: &[u8]) -> Vec<u8> {
    [b"(", key].concat()
}

const GROUP_BYTES: usize = 8;

/// Whether `prefix` can stand in names: a few plain characters, none of which ends a hash tag or a name.
pub(crate) fn is_prefix(prefix: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=PREFIX_BYTES_MAX).contains(&prefix.len()) && prefix.bytes().all(plain)
}

/// Names stay short.
const PREFIX_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of a name that a cluster hashes.
    fn hash_tag(name: &[u8]) -> &[u8] {
        let open = name.iter().position(|byte| *byte == b'{').unwrap();
        let tag = &name[open + 1..];
        &tag[..tag.iter().position(|byte| *byte == b'}').unwrap()]
    }

    #[test]
    fn all_names_of_a_store_share_a_slot() {
        let names = Names::new("tidegate", 0x1f);
        let other = names.of_secret("2a");
        let all = [
            names.format(),
            names.secrets(),
            names.index(),
            names.keys(),
            names.turn(),
            names.rows(),
            other.index(),
            other.rows(),
        ];
        for (number, name) in all.iter().enumerate() {
            assert_eq!(hash_tag(name), b"tidegate");
            assert!(!all[..number].contains(name), "two are called {}", name.escape_ascii());
        }
        assert_eq!(names.index(), b"{tidegate}:1f:index");
    }

    #[test]
    fn prefixes() {
        let long = "x".repeat(PREFIX_BYTES_MAX + 1);
        let table = [
            ("tidegate", true),
            ("a.b-c_D9", true),
            ("", false),
            ("a}b", false),
            ("{a}", false),
            ("a:b", false),
            ("é", false),
            (&long, false),
        ];
        for (prefix, right) in table {
            assert_eq!(is_prefix(prefix), right, "{prefix}");
        }
    }
}
