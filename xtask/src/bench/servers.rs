//! The servers that are measured, each in a folder of its own and on a free port.

use std::{
    fmt, fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};

use super::{
    load,
    process::{self, Process},
};
use crate::{shell, tools};

/// What an acknowledgement is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    /// Tidegate: survives the process.
    TidegateProcess,
    /// The same, and every request carries a source, a network and a principal.
    TidegateFair,
    /// Tidegate: on the disk.
    TidegateFsync,
    /// Redis without a log: nothing survives the process.
    RedisMemory,
    /// Redis with a log that is flushed once a second: survives the process.
    RedisEverysec,
    /// Redis with a log that is flushed before the answer: on the disk.
    RedisAlways,
}

impl System {
    pub(crate) const fn is_tidegate(self) -> bool {
        matches!(self, Self::TidegateProcess | Self::TidegateFair | Self::TidegateFsync)
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TidegateProcess => "Tidegate `process`",
            Self::TidegateFair => "Tidegate `process`, identities",
            Self::TidegateFsync => "Tidegate `fsync`",
            Self::RedisMemory => "Redis, no AOF",
            Self::RedisEverysec => "Redis `everysec`",
            Self::RedisAlways => "Redis `always`",
        })
    }
}

/// A running server, killed and its folder removed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) system: System,
    /// Where checks go.
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
    folder: tempfile::TempDir,
    program: PathBuf,
    metrics: Option<SocketAddr>,
}

/// Of this run alone, and never of use elsewhere.
pub(crate) const SECRET: &str = "benchmark-signing-secret-0123456789";
const OPERATOR_TOKEN: &str = "benchmark-operator-token-0123456789";

/// Above what a run makes: a check leaves a record of its operation for three minutes.
const ENTRIES_MAX: &str = "50000000";
/// Commands a day; no run comes near.
const DAILY_BUDGET: &str = "1000000000000";
/// A million rows and a slow disk.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// Builds the server as it is shipped, and says where it is.
fn build_tidegate() -> Result<PathBuf> {
    shell::run(shell::cargo().args([
        "build",
        "--release",
        "--locked",
        "--package",
        "tidegate",
        "--bin",
        "tidegate",
    ]))?;
    Ok(shell::target_directory().join("release/tidegate"))
}

/// The server as it is shipped: the program `named`, from wherever this was started, or built if none is.
pub(crate) fn tidegate_program(named: Option<&Path>) -> Result<PathBuf> {
    named.map_or_else(build_tidegate, |program| {
        std::path::absolute(program).context("finding the server's program")
    })
}

impl Server {
    /// Starts `system` under `parent`, with nothing in it. `tidegate` is the program from [`build_tidegate`].
    pub(crate) fn start(system: System, tidegate: &Path, parent: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(parent);
        let folder = folder.with_context(|| format!("making a folder under {}", parent.display()))?;
        let program = match system.is_tidegate() {
            true => tidegate.to_path_buf(),
            false => tools::find(tools::REDIS).context("looking for a Redis server")?,
        };
        let address = process::free_address()?;
        let metrics = if system.is_tidegate() { Some(process::free_address()?) } else { None };
        fs::create_dir(folder.path().join("data")).context("making a data folder")?;
        let process = spawn(system, &program, folder.path(), address, metrics)?;
        let mut server = Self { system, address, process, folder, program, metrics };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Kills the server as a crash would and starts it again; how long it was away, but for the kill itself.
    pub(crate) fn crash_and_restart(&mut self) -> Result<Duration> {
        self.process.kill();
        self.process = spawn(self.system, &self.program, self.folder.path(), self.address, self.metrics)?;
        self.wait_until_ready()
    }

    /// What its data takes up on the disk.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        process::disk_bytes(&self.folder.path().join("data"))
    }

    /// The sum of a Tidegate metric over its labels, if it is published.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let text = self.metrics()?;
        let samples = text.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            (series.split('{').next() == Some(name)).then(|| value.parse::<f64>().ok())?
        });
        samples.reduce(|sum, value| sum + value)
    }

    /// Adds to a failure what the server itself has to say: its folder goes with the run.
    pub(crate) fn explain<T>(&self, measured: Result<T>) -> Result<T> {
        measured.with_context(|| {
            let metrics = self.metrics().unwrap_or_default();
            let of_store = metrics.lines().filter(|line| line.starts_with("tidegate_store_"));
            let metrics: Vec<&str> = of_store.collect();
            format!(
                "{}; its log ends with:\n{}\n{}",
                self.system,
                self.process.log_tail(),
                metrics.join("\n")
            )
        })
    }

    fn metrics(&self) -> Option<String> {
        let authorization = format!("authorization: Bearer {}\r\n", self.admin_token()?);
        http_get(self.metrics?, "/metrics", &authorization).ok()
    }

    /// What the server made for itself at its first start.
    fn admin_token(&self) -> Option<String> {
        let secrets = fs::read_to_string(self.folder.path().join("data/secrets.toml")).ok()?;
        let token = secrets.lines().find_map(|line| line.strip_prefix("admin_token = "))?;
        Some(token.trim_matches('"').to_owned())
    }

    fn wait_until_ready(&mut self) -> Result<Duration> {
        let (address, tidegate) = (self.address, self.system.is_tidegate());
        self.process.wait_until(START_PATIENCE, || match tidegate {
            true => http_get(address, "/readyz", "").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 ")),
            false => load::command(address, &["PING"]).is_ok_and(|answer| answer == "+PONG\r\n"),
        })
    }
}

fn spawn(
    system: System,
    program: &Path,
    folder: &Path,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
) -> Result<Process> {
    let mut command = Command::new(program);
    command.current_dir(folder);
    match metrics {
        Some(metrics) => tidegate(&mut command, system, address, metrics),
        None => redis(&mut command, system, address),
    }
    Process::start(if system.is_tidegate() { "tidegate" } else { "redis" }, &mut command, &folder.join("log"))
}

fn tidegate(command: &mut Command, system: System, address: SocketAddr, metrics: SocketAddr) {
    let durability = if system == System::TidegateFsync { "fsync" } else { "process" };
    command.arg("serve").envs([
        ("TIDEGATE_STORE__PATH", "data"),
        ("TIDEGATE_STORE__DURABILITY", durability),
        ("TIDEGATE_STORE__MAX_ENTRIES", ENTRIES_MAX),
        ("TIDEGATE_GUARD__SECRETS", SECRET),
        ("TIDEGATE_GUARD__OPERATOR_TOKEN", OPERATOR_TOKEN),
        ("TIDEGATE_GUARD__DAILY_BUDGET", DAILY_BUDGET),
        ("TIDEGATE_LOG__LEVEL", "warn"),
    ]);
    command.env("TIDEGATE_GUARD__FAMILY_BUDGETS", format!("proxy={DAILY_BUDGET}"));
    command.env("TIDEGATE_GUARD__LISTEN", address.to_string());
    command.env("TIDEGATE_ADMIN__LISTEN", metrics.to_string());
    command.env("TIDEGATE_INGRESS__LISTEN", "127.0.0.1:0");
}

fn redis(command: &mut Command, system: System, address: SocketAddr) {
    let (append, flush) = match system {
        System::RedisAlways => ("yes", "always"),
        System::RedisEverysec => ("yes", "everysec"),
        _ => ("no", "everysec"),
    };
    command.args(["--bind", "127.0.0.1", "--dir", "data", "--save", "", "--loglevel", "warning"]);
    command.args(["--port", &address.port().to_string(), "--appendonly", append, "--appendfsync", flush]);
}

/// The whole answer to a GET with these `headers` more, head and body.
pub(super) fn http_get(server: SocketAddr, path: &str, headers: &str) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(server)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(socket, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n")?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}
