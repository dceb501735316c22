//! Redis or Valkey: one server, a master with a replica and three sentinels, a cluster of three masters.

use std::{
    fmt::Write as _,
    io::{self, Read, Write as _},
    net::{Ipv4Addr, Shutdown, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::{Process, free_port, program};

/// One server. It keeps what it was told in an append-only file, and flushes that before it answers.
#[derive(Debug)]
pub struct RedisServer {
    process: Process,
    folder: TempDir,
    port: u16,
    arguments: Vec<String>,
}

/// A master, a replica of it, and three sentinels that put the replica in its place.
#[derive(Debug)]
pub struct RedisSentinels {
    /// The master, at first.
    pub master: RedisServer,
    /// Its replica, at first.
    pub replica: RedisServer,
    sentinels: Vec<Process>,
    ports: Vec<u16>,
    _folder: TempDir,
}

/// Three masters, each with a third of the slots.
#[derive(Debug)]
pub struct RedisCluster {
    /// The nodes, in the order of their slots.
    pub nodes: Vec<RedisServer>,
}

impl RedisServer {
    /// Starts an empty server with further command-line `arguments`.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for a server")?;
        let port = free_port()?;
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let process = run_server(folder.path(), port, &arguments)?;
        Ok(Self { process, folder, port, arguments })
    }

    /// `redis://…`
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The id of the server's process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Its port on this machine.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends a command, written as one line, and answers the reply as the server sent it.
    ///
    /// # Errors
    /// The server does not answer, or with an error.
    pub fn ask(&self, command: &str) -> Result<String> {
        ask(self.port, command)
    }

    /// Stops the server where it is; its connections stay open.
    ///
    /// # Errors
    /// It is gone.
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets a paused server go on.
    ///
    /// # Errors
    /// It is gone.
    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Ends the server as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again after it was killed, on the same port and files.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.process.kill();
        self.process = run_server(self.folder.path(), self.port, &self.arguments)?;
        Ok(())
    }
}

impl RedisSentinels {
    /// What the sentinels call the master.
    pub const MASTER: &'static str = "limits";

    /// Starts all five, and waits until they know each other.
    ///
    /// # Errors
    /// One does not start.
    pub fn start() -> Result<Self> {
        let master = RedisServer::start(&[])?;
        let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &master.port.to_string()])?;
        let folder = tempfile::tempdir().context("making a folder for sentinels")?;
        let ports = (0..3).map(|_| free_port()).collect::<Result<Vec<u16>>>()?;
        let sentinels = ports.iter().map(|port| run_sentinel(folder.path(), *port, master.port));
        let sentinels = sentinels.collect::<Result<Vec<Process>>>()?;
        wait_until("the replica to follow its master", || {
            replica.ask("INFO replication").is_ok_and(|info| info.contains("master_link_status:up"))
        })?;
        for port in &ports {
            wait_until("a sentinel to see all others", || {
                let seen = ask(*port, &format!("SENTINEL ckquorum {}", Self::MASTER));
                let replicas = ask(*port, &format!("SENTINEL replicas {}", Self::MASTER));
                seen.is_ok_and(|seen| seen.contains("OK 3 usable"))
                    && replicas.is_ok_and(|replicas| replicas.contains(&replica.port.to_string()))
            })?;
        }
        Ok(Self { master, replica, sentinels, ports, _folder: folder })
    }

    /// `redis+sentinel://…`
    #[must_use]
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis+sentinel://{}/{}", nodes.join(","), Self::MASTER)
    }

    /// Ends one of the sentinels.
    pub fn kill_sentinel(&mut self, number: usize) {
        self.sentinels[number].kill();
    }
}

impl RedisCluster {
    /// Starts three nodes and waits until each knows who has which slots.
    ///
    /// # Errors
    /// One does not start.
    pub fn start() -> Result<Self> {
        let nodes = (0..3).map(|_| {
            let bus = free_port()?.to_string();
            // A node that was away comes back with its slots; the others serve theirs meanwhile.
            RedisServer::start(&[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                "--cluster-node-timeout",
                "2000",
                "--cluster-require-full-coverage",
                "no",
            ])
        });
        let nodes = nodes.collect::<Result<Vec<RedisServer>>>()?;
        for (node, slots) in nodes.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
            node.ask(&format!("CLUSTER ADDSLOTSRANGE {slots}"))?;
            let bus = &nodes[0].arguments[3];
            node.ask(&format!("CLUSTER MEET 127.0.0.1 {} {bus}", nodes[0].port))?;
        }
        for node in &nodes {
            wait_until("a cluster to form", || {
                node.ask("CLUSTER INFO").is_ok_and(|info| {
                    info.contains("cluster_state:ok") && info.contains("cluster_slots_assigned:16384")
                })
            })?;
        }
        Ok(Self { nodes })
    }

    /// `redis+cluster://…` with all nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let mut url = "redis+cluster://".to_owned();
        for (number, node) in self.nodes.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(url, "{comma}127.0.0.1:{}", node.port).expect("writing to a string does not fail");
        }
        url
    }
}

fn run_server(folder: &Path, port: u16, arguments: &[String]) -> Result<Process> {
    let server = program(&["redis-server", "valkey-server"], "redis-server")?;
    let mut command = Command::new(server);
    command.arg("--dir").arg(folder).arg("--port").arg(port.to_string());
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
    command.args(["--repl-diskless-sync-delay", "0"]).args(arguments);
    Process::start("redis", &mut command, &folder.join("log"), || answers(port))
}

fn run_sentinel(folder: &Path, port: u16, master: u16) -> Result<Process> {
    let server: PathBuf = program(&["redis-server", "valkey-server"], "redis-server")?;
    let name = RedisSentinels::MASTER;
    let configuration = folder.join(format!("{port}.conf"));
    let text = format!(
        "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {name} 127.0.0.1 {master} 2\n\
         sentinel down-after-milliseconds {name} 500\nsentinel failover-timeout {name} 2000\n",
        folder.display()
    );
    std::fs::write(&configuration, text).context("writing a sentinel's configuration")?;
    let mut command = Command::new(server);
    command.arg(&configuration).arg("--sentinel");
    Process::start("sentinel", &mut command, &folder.join(format!("{port}.log")), || answers(port))
}

/// Whether the server has started; one that wants a password says so.
fn answers(port: u16) -> bool {
    exchange(port, "PING").is_ok_and(|answer| answer.starts_with("+PONG") || answer.starts_with("-NOAUTH"))
}

fn ask(port: u16, command: &str) -> Result<String> {
    let answer = exchange(port, command).with_context(|| format!("asking a server: {command}"))?;
    ensure!(!answer.starts_with('-'), "{command}: {answer}");
    Ok(answer)
}

fn exchange(port: u16, command: &str) -> io::Result<String> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    server.set_read_timeout(Some(PATIENCE))?;
    server.write_all(format!("{command}\r\n").as_bytes())?;
    // The server answers, reads no more, and hangs up; sentinels know no other way to ask for it.
    server.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) -> Result<()> {
    let step = Duration::from_millis(50);
    for _ in 0..PATIENCE.as_millis() / step.as_millis() {
        if done() {
            return Ok(());
        }
        #[expect(clippy::disallowed_methods, reason = "real servers are waited for in real time")]
        std::thread::sleep(step);
    }
    anyhow::bail!("waited too long for {what}")
}

const PATIENCE: Duration = Duration::from_secs(30);
