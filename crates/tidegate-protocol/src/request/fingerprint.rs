//! What a step asks for, as 32 bytes: the same operation with other commands is told by it.

use sha2::{Digest as _, Sha256};

use super::{Algorithm, Command, SetMode, Step};
use crate::{identity::Digest, name::Family};

impl Step {
    /// SHA-256 of family, partition, the step's index and its commands.
    ///
    /// Defaults that were written out count as defaults. Every part has a fixed size, or its size before it,
    /// so no two steps are written alike.
    #[must_use]
    pub fn fingerprint(&self, family: &Family, index: usize) -> [u8; 32] {
        let mut hash = Hash(Sha256::new());
        hash.text(family.as_str());
        hash.digest(&self.partition);
        hash.size(index);
        hash.size(self.commands.len());
        self.commands.iter().for_each(|command| hash.command(command));
        hash.0.finalize().into()
    }
}

struct Hash(Sha256);

impl Hash {
    fn command(&mut self, command: &Command) {
        match command {
            Command::Hit { windows, cost } => {
                self.tag(1);
                self.size(windows.len());
                for window in windows {
                    self.digest(&window.key);
                    self.number(window.limit);
                    self.number(window.period_ms);
                    self.tag(algorithm(window.algorithm));
                }
                self.number(*cost);
            }
            Command::Get { key } => self.keyed(2, key),
            Command::Set { key, value, ttl_ms, mode, keep_ttl } => {
                self.keyed(3, key);
                self.text(value);
                self.tag(u8::from(ttl_ms.is_some()));
                self.number(ttl_ms.unwrap_or_default());
                self.tag(set_mode(*mode));
                self.tag(u8::from(*keep_ttl));
            }
            Command::Delete { key } => self.keyed(4, key),
            Command::Ttl { key } => self.keyed(5, key),
            Command::Expire { key, ttl_ms } => {
                self.keyed(6, key);
                self.number(*ttl_ms);
            }
            Command::Increment { key, by, ttl_ms } => {
                self.keyed(7, key);
                self.0.update(by.to_le_bytes());
                self.number(*ttl_ms);
            }
            Command::Reserve { budgets, target, cost } => {
                self.tag(8);
                self.size(budgets.len());
                for budget in budgets {
                    self.digest(&budget.key);
                    self.number(budget.limit);
                    self.number(budget.period_ms);
                }
                self.size(*target);
                self.number(*cost);
            }
            Command::Refund { receipt } => {
                self.tag(9);
                self.text(receipt.as_str());
            }
        }
    }

    fn keyed(&mut self, tag: u8, key: &Digest) {
        self.tag(tag);
        self.digest(key);
    }

    fn tag(&mut self, tag: u8) {
        self.0.update([tag]);
    }

    fn digest(&mut self, digest: &Digest) {
        self.0.update(digest.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn size(&mut self, size: usize) {
        self.number(size as u64);
    }

    fn text(&mut self, text: &str) {
        self.size(text.len());
        self.0.update(text.as_bytes());
    }
}

const fn algorithm(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::Sliding => 1,
        Algorithm::Fixed => 2,
        Algorithm::Bucket => 3,
    }
}

const fn set_mode(mode: SetMode) -> u8 {
    match mode {
        SetMode::Always => 1,
        SetMode::Nx => 2,
        SetMode::Xx => 3,
    }
}
