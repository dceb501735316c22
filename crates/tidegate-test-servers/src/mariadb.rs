//! MariaDB: a data folder of its own, on a free port, with a database and a user for each test.

use std::{
    path::Path,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::{Process, free_port, program};

/// A running MariaDB; killed, and its data removed, when dropped.
#[derive(Debug)]
pub struct MariaDb {
    // Dropped first: the folder goes once the server has.
    process: Process,
    folder: TempDir,
    port: u16,
    arguments: Vec<String>,
    databases: AtomicU32,
}

/// Who the tests are: a user with rights on its own database and no others.
const USER: &str = "tidegate";
const PASSWORD: &str = "quite-open";
const PACKAGE: &str = "mariadb-server";

impl MariaDb {
    /// Starts a server over an empty data folder.
    ///
    /// # Errors
    /// The package `mariadb-server` is not installed, or the server does not come up.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with further command-line `arguments`.
    ///
    /// # Errors
    /// As [`MariaDb::start`].
    pub fn start_with(arguments: &[&str]) -> Result<Self> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let folder = TempDir::with_prefix("tidegate-mariadb-").context("making a folder")?;
        make_data_folder(folder.path())?;
        let port = free_port()?;
        let process = start_server(folder.path(), port, &arguments)?;
        let server = Self { process, folder, port, arguments, databases: AtomicU32::new(0) };
        server.sql(&format!("CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'"))?;
        Ok(server)
    }

    /// The id of the server's process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Makes an empty database; answers the URL to reach it as a user who may make and use tables there, and
    /// nothing else.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn fresh_database(&self) -> Result<String> {
        let database = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!(
            "CREATE DATABASE {database}; \
             GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON {database}.* TO {USER}@'%'"
        ))?;
        Ok(format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port))
    }

    /// Runs `statements` as the server's administrator; answers the rows, a line each, columns parted by tabs.
    ///
    /// # Errors
    /// What the server says.
    pub fn sql(&self, statements: &str) -> Result<String> {
        sql(self.folder.path(), statements)
    }

    /// Cuts every connection of the tests' user, in the middle of what it does.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn cut_connections(&self) -> Result<()> {
        let ids =
            self.sql(&format!("SELECT id FROM information_schema.processlist WHERE user = '{USER}'"))?;
        for id in ids.lines() {
            // It may have gone by itself.
            let _ = self.sql(&format!("KILL {id}"));
        }
        Ok(())
    }

    /// Ends the server as a crash would. Its data stays.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again, over its data and on its port.
    ///
    /// # Errors
    /// It does not come up.
    pub fn restart(&mut self) -> Result<()> {
        self.process.kill();
        self.process = start_server(self.folder.path(), self.port, &self.arguments)?;
        Ok(())
    }

    /// The server stops answering, and keeps its connections, until [`MariaDb::resume`].
    ///
    /// # Errors
    /// It is gone.
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// It is gone.
    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }
}

fn make_data_folder(folder: &Path) -> Result<()> {
    let mut install = Command::new(program(&["mariadb-install-db"], PACKAGE)?);
    install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
    install.args(as_user()).arg(argument("datadir", &folder.join("data")));
    // Its temporary tables would be in the way of another server's that is made at the same time.
    install.arg(argument("tmpdir", folder));
    let made = install.output().context("starting mariadb-install-db")?;
    if !made.status.success() {
        bail!("mariadb-install-db failed: {}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(())
}

fn start_server(folder: &Path, port: u16, arguments: &[String]) -> Result<Process> {
    let mut server = Command::new(program(&["mariadbd"], PACKAGE)?);
    server.arg("--no-defaults").args(as_user());
    for (name, file) in [("datadir", "data"), ("socket", SOCKET), ("pid-file", "pid"), ("tmpdir", "")] {
        server.arg(argument(name, &folder.join(file)));
    }
    server.args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-buffer-pool-size=64M"]);
    server.arg(format!("--port={port}")).args(arguments);
    Process::start("mariadbd", &mut server, &folder.join("log"), || sql(folder, "SELECT 1").is_ok())
}

fn sql(folder: &Path, statements: &str) -> Result<String> {
    let mut client = Command::new(program(&["mariadb"], "mariadb-client")?);
    client.args(["--no-defaults", "--batch", "--skip-column-names", "--user=root"]);
    client.arg(argument("socket", &folder.join(SOCKET))).args(["--execute", statements]);
    let answer = client.output().context("starting the client of MariaDB")?;
    if !answer.status.success() {
        bail!("the server answered: {}", String::from_utf8_lossy(&answer.stderr));
    }
    String::from_utf8(answer.stdout).context("reading the answer of MariaDB")
}

fn argument(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// The server refuses to run as root unless told so.
fn as_user() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("--user=root")
}

const SOCKET: &str = "socket";
