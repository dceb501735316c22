//! Two accounts, with hashed passwords.

use std::{collections::BTreeMap, sync::Arc, thread::available_parallelism};

use anyhow::Result;
use argon2::{Argon2, PasswordHasher, PasswordVerifier, password_hash::phc::PasswordHash};
use tokio::{sync::Semaphore, task::spawn_blocking};

/// Names and the hashes of their passwords.
pub(crate) struct Accounts {
    hashes: BTreeMap<&'static str, Arc<str>>,
    /// Of no account: checking an unknown name takes as long as a known one.
    decoy: Arc<str>,
    /// A check takes a core and 19 MiB: as many at once as there are cores.
    checks: Semaphore,
}

impl Accounts {
    /// `alice` and `bob`; each password is the name and `'s password`.
    pub(crate) fn of_the_example() -> Result<Self> {
        let hashed = |name: &'static str| Ok((name, hash(&format!("{name}'s password"))?));
        Ok(Self {
            hashes: ["alice", "bob"].into_iter().map(hashed).collect::<Result<_>>()?,
            decoy: hash("nobody's password")?,
            checks: Semaphore::new(available_parallelism().map_or(1, usize::from)),
        })
    }

    /// Whether there is such an account with this password.
    pub(crate) async fn are_right(&self, user: &str, password: String) -> bool {
        let known = self.hashes.get(user);
        let hash = Arc::clone(known.unwrap_or(&self.decoy));
        let Ok(_turn) = self.checks.acquire().await else { return false };
        let verified = spawn_blocking(move || {
            let hash = PasswordHash::new(&hash);
            hash.is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
        });
        verified.await.unwrap_or(false) && known.is_some()
    }
}

fn hash(password: &str) -> Result<Arc<str>> {
    let hashed = Argon2::default().hash_password(password.as_bytes());
    Ok(hashed.map_err(|error| anyhow::anyhow!("hashing a password: {error}"))?.to_string().into())
}
