//! The scripts, which run on the server as one step each. They compare and set; every decision is made here.

use redis::{Arg, Cmd};

/// One script, and the name that the server gives it.
#[derive(Debug)]
pub(crate) struct Script {
    code: &'static str,
    hash: String,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) commit: Script,
    pub(crate) secrets: Script,
    pub(crate) sweep: Script,
}

impl Script {
    pub(crate) fn new(code: &'static str) -> Self {
        Self { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }

    /// The command that runs the script on `keys` if the server knows it. Its arguments are to be added; there is
    /// room for so many parts and bytes.
    pub(crate) fn by_hash(&self, keys: &[Vec<u8>], (parts, bytes): (usize, usize)) -> Cmd {
        let mut command = Cmd::with_capacity(parts, bytes);
        command.arg("EVALSHA").arg(&self.hash).arg(keys.len()).arg(keys);
        command
    }

    /// The same command as one `by_hash`, that tells the server the script and runs it.
    pub(crate) fn by_code(&self, by_hash: &Cmd) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.code);
        for argument in by_hash.args_iter().skip(2) {
            if let Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        command
    }
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            commit: Script::new(include_str!("scripts/commit.lua")),
            secrets: Script::new(include_str!("scripts/secrets.lua")),
            sweep: Script::new(include_str!("scripts/sweep.lua")),
        }
    }
}
