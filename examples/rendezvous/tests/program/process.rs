//! The program's processes; they end with the test.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

pub(crate) const HOST: &str = "token-of-host-0123456789abcdefghi";
pub(crate) const JOINER: &str = "token-of-joiner-0123456789abcdefg";

/// A process and the lines that it prints.
pub(crate) struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

/// The program, ready to be given arguments.
pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rendezvous"))
}

/// The program in a network namespace.
pub(crate) fn program_in(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_rendezvous")]);
    command
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line that it prints; empty once it has ended.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The two addresses of `serving http on A and datagrams on B`.
    pub(crate) fn addresses(&mut self) -> (String, String) {
        let line = self.line();
        let addresses =
            line.strip_prefix("serving http on ").and_then(|rest| rest.split_once(" and datagrams on "));
        let (http, mediator) = addresses.unwrap_or_else(|| panic!("it printed: {line}"));
        (http.to_owned(), mediator.to_owned())
    }

    /// Waits for its end; whether it is content.
    pub(crate) fn succeeded(mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A credentials file with one tenant's host and joiner, in `folder`.
pub(crate) fn credentials(folder: &Path) -> PathBuf {
    let path = folder.join("credentials.json");
    let principal = |name, token| serde_json::json!({ "tenant": "t", "name": name, "tokens": [token] });
    let file = serde_json::json!({
        "keys": [{ "id": 1, "secret": "key-of-service-0123456789abcdefgh" }],
        "principals": [principal("host", HOST), principal("joiner", JOINER)],
    });
    std::fs::write(&path, file.to_string()).unwrap();
    path
}
