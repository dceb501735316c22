//! The scripts, which run on the server as one step each. They compare and set; every decision is made here.

use redis::Cmd;

/// One script, and the name that the server gives it.
#[derive(Debug)]
pub(crate) struct Script {
    code: &'static str,
    hash: String,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) load: Script,
    pub(crate) commit: Script,
    pub(crate) secrets: Script,
    pub(crate) due: Script,
    pub(crate) sweep: Script,
    pub(crate) living: Script,
}

impl Script {
    pub(crate) fn new(code: &'static str) -> Self {
        Self { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }

    /// The command that runs the script if the server knows it.
    pub(crate) fn by_hash<K: AsRef<[u8]>>(&self, keys: &[K], arguments: &Arguments) -> Cmd {
        command("EVALSHA", &self.hash, keys, arguments)
    }

    /// The command that tells the server the script and runs it.
    pub(crate) fn by_code<K: AsRef<[u8]>>(&self, keys: &[K], arguments: &Arguments) -> Cmd {
        command("EVAL", self.code, keys, arguments)
    }
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            load: Script::new(include_str!("scripts/load.lua")),
            commit: Script::new(include_str!("scripts/commit.lua")),
            secrets: Script::new(include_str!("scripts/secrets.lua")),
            due: Script::new(include_str!("scripts/due.lua")),
            sweep: Script::new(include_str!("scripts/sweep.lua")),
            living: Script::new(include_str!("scripts/living.lua")),
        }
    }
}

/// What a script is given beside its keys.
pub(crate) type Arguments = Vec<Vec<u8>>;

fn command<K: AsRef<[u8]>>(name: &str, script: &str, keys: &[K], arguments: &Arguments) -> Cmd {
    let bytes =
        keys.iter().map(|key| key.as_ref().len()).chain(arguments.iter().map(Vec::len)).sum::<usize>();
    let parts = 3 + keys.len() + arguments.len();
    let mut command = Cmd::with_capacity(parts, bytes + script.len() + 32);
    command.arg(name).arg(script).arg(keys.len());
    for key in keys {
        command.arg(key.as_ref());
    }
    for argument in arguments {
        command.arg(argument.as_slice());
    }
    command
}
