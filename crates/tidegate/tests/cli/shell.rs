//! A folder with a server, and the commands that are run in it.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::support::server::{Server, Setup};

/// How a command ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Both streams.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// # Panics
    /// It ended otherwise, or did not say all of this.
    #[track_caller]
    pub(crate) fn assert(&self, code: i32, said: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for part in said {
            assert!(self.said().contains(part), "{}\nlacks {part}", self.said());
        }
    }
}

/// Runs the binary; the line's words are its arguments.
pub(crate) fn tidegate(setup: &Setup, line: &str) -> Ran {
    let words: Vec<&str> = line.split_whitespace().collect();
    Ran::of(setup.command(&words).stdin(Stdio::null()).output().expect("cargo has built the binary"))
}

/// Runs a script by bash in the setup's folder and environment, with the binary on the path.
pub(crate) fn bash(setup: &Setup, script: &str) -> Ran {
    let prototype = setup.command(&[]);
    let binaries = Path::new(prototype.get_program()).parent().expect("the binary is in a directory");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([binaries.to_owned()].into_iter().chain(std::env::split_paths(&path)));
    let variables = prototype.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut command = Command::new("bash");
    command.arg("-c").arg(script).current_dir(setup.folder()).env_clear().envs(variables);
    command.env("PATH", path.expect("its parts were a path before"));
    Ran::of(command.stdin(Stdio::null()).output().expect("there is a bash"))
}

/// Nothing is configured but where to listen, so that several tests can run at once, and how long a client waits
/// on a busy machine.
pub(crate) fn unconfigured() -> Setup {
    let setup = Setup::new().unset("guard.secrets").unset("store.durability");
    setup.variable("TIDEGATE_CLIENT_TIMEOUT_MS", "2000")
}

/// A server at ports that other commands of its folder know. Others may take a port between the choice and the
/// start: then it is tried again.
#[track_caller]
pub(crate) fn start(setup: &Setup) -> Server {
    let mut refused = String::new();
    for _ in 0..8 {
        let setup = ["guard.listen", "admin.listen", "ingress.listen"]
            .into_iter()
            .fold(setup.clone(), |setup, key| setup.set(key, free_address()));
        match setup.try_start() {
            Ok(server) => return server,
            Err(ended) => refused = ended.log,
        }
        assert!(refused.contains("listening on"), "{refused}");
    }
    panic!("no free port: {refused}")
}

/// A free address of this machine.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

pub(crate) fn write(setup: &Setup, name: &str, text: &str) {
    fs::write(setup.folder().join(name), text).expect("the folder is ours");
}
