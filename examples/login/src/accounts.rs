//! Accounts and their passwords, in memory; an application has them in its database.

use std::{collections::HashMap, sync::Arc, thread::available_parallelism};

use anyhow::{Context, anyhow};
use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::limits::canonical;

pub(crate) struct Accounts {
    hashes: HashMap<String, Arc<str>>,
    /// Verified where there is no such account, so that the time tells nobody which there are.
    of_nobody: Arc<str>,
    /// A check takes a core and 19 MiB: as many at once as there are cores.
    checks: Semaphore,
}

impl Accounts {
    pub(crate) fn demo() -> anyhow::Result<Self> {
        let hashes =
            [("alice@example.com", "correct horse battery staple"), ("bob@example.com", "Tr0ub4dor&3")]
                .map(|(account, password)| Ok((account.to_owned(), hash(password)?)));
        Ok(Self {
            hashes: hashes.into_iter().collect::<anyhow::Result<_>>()?,
            of_nobody: hash("the password of no account")?,
            checks: Semaphore::new(available_parallelism().map_or(1, usize::from)),
        })
    }

    /// Whether there is such an account, and this is its password.
    pub(crate) async fn verify(&self, account: &str, password: String) -> bool {
        let known = self.hashes.get(&canonical(account));
        let hash = Arc::clone(known.unwrap_or(&self.of_nobody));
        let Ok(_permit) = self.checks.acquire().await else { return false };
        let verified = spawn_blocking(move || {
            let hash = PasswordHash::new(&hash);
            hash.is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
        });
        verified.await.unwrap_or(false) && known.is_some()
    }
}

fn hash(password: &str) -> anyhow::Result<Arc<str>> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    Ok(hash.map_err(|error| anyhow!(error)).context("hashing a password")?.to_string().into())
}
