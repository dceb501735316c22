//! A PostgreSQL of its own: one cluster, one database, one role without any privilege but to own that database.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::process::{Process, free_port, program};

/// A running PostgreSQL with the database and the role `tidegate`; stopped and removed when dropped.
#[derive(Debug)]
pub struct PostgresServer {
    process: Process,
    folder: TempDir,
    port: u16,
    settings: Vec<String>,
}

/// How a server is set up beyond the usual.
#[derive(Debug, Default)]
pub struct PostgresSetup<'a> {
    /// Flushes what is committed. Off, a crash of the machine loses it, and a test is faster.
    pub fsync: bool,
    /// The certificate and its key, both PEM: the server offers TLS.
    pub tls: Option<(&'a str, &'a str)>,
}

const SUPERUSER: &str = "postgres";
/// A URL must write these characters in another way, which a client has to undo.
const PASSWORD: &str = "sesame+/ %";
const PASSWORD_IN_URL: &str = "sesame%2B%2F%20%25";
/// The processes of a server that was killed take a moment to notice, and until then no other may start.
const RESTARTS_MAX: usize = 100;
const RESTART_STEP: Duration = Duration::from_millis(100);

impl PostgresServer {
    /// Starts a server that does not flush.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start.
    pub fn start() -> Result<Self> {
        Self::start_with(&PostgresSetup::default())
    }

    /// Starts a server.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start.
    pub fn start_with(setup: &PostgresSetup<'_>) -> Result<Self> {
        let folder =
            tempfile::Builder::new().prefix("tidegate-postgres").tempdir().context("making a folder")?;
        let place = folder.path();
        let file = |name: &str, text: &str| fs::write(place.join(name), text).context("writing a file");
        file("password", PASSWORD)?;
        if let Some((certificate, key)) = setup.tls {
            file("server.crt", certificate)?;
            file("server.key", key)?;
            run(Command::new("chmod").arg("0600").arg(place.join("server.key")))?;
        }
        if geteuid().is_root() {
            run(Command::new("chown").args(["-R", SUPERUSER]).arg(place))?;
        }
        let password = place.join("password");
        run(as_server("initdb")?
            .args(["--no-sync", "--no-locale", "--encoding=UTF8", "--auth=scram-sha-256"])
            .args([
                "--username",
                SUPERUSER,
                "--pwfile",
                text(&password)?,
                "--pgdata",
                text(&place.join("data"))?,
            ]))?;
        let port = free_port()?;
        let settings = settings(place, setup, port)?;
        let process = launch(place, &settings, port)?;
        let server = Self { process, folder, port, settings };
        server.execute(SUPERUSER, &format!("CREATE ROLE tidegate LOGIN PASSWORD '{PASSWORD}'"))?;
        server.execute(SUPERUSER, "CREATE DATABASE tidegate OWNER tidegate")?;
        Ok(server)
    }

    /// The server that the tests of this process share, each in a schema or database of its own. It ends with
    /// the last test that holds it.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start.
    pub fn shared() -> Result<Arc<Self>> {
        static SHARED: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&server);
        Ok(server)
    }

    /// The id of the server's process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Where the role `tidegate` finds its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://tidegate:{PASSWORD_IN_URL}@127.0.0.1:{}/tidegate", self.port)
    }

    /// The same database for a superuser, to look behind the scenes.
    #[must_use]
    pub fn superuser_url(&self) -> String {
        format!("postgres://{SUPERUSER}:{PASSWORD_IN_URL}@127.0.0.1:{}/tidegate", self.port)
    }

    /// The password in both, as it is typed.
    #[must_use]
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Ends the server and all its sessions at once, as a crash would.
    pub fn kill(&mut self) {
        let sessions = self.sessions();
        self.process.kill();
        for session in sessions {
            // It may have ended with the server.
            let _ = kill_process(session, Signal::KILL);
        }
    }

    /// Starts a killed server again, on the same port.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self) -> Result<()> {
        for _ in 1..RESTARTS_MAX {
            match launch(self.folder.path(), &self.settings, self.port) {
                Ok(process) => {
                    self.process = process;
                    return Ok(());
                }
                #[expect(clippy::disallowed_methods, reason = "a real server is waited for in real time")]
                Err(_) => std::thread::sleep(RESTART_STEP),
            }
        }
        self.process = launch(self.folder.path(), &self.settings, self.port)?;
        Ok(())
    }

    /// Stops the server and all its sessions in their tracks: they neither answer nor go away.
    ///
    /// # Errors
    /// It is gone.
    pub fn pause(&self) -> Result<()> {
        self.signal_all(Signal::STOP)
    }

    /// Lets a paused server go on.
    ///
    /// # Errors
    /// It is gone.
    pub fn go_on(&self) -> Result<()> {
        self.signal_all(Signal::CONT)
    }

    fn signal_all(&self, signal: Signal) -> Result<()> {
        // The server first, so that no session begins meanwhile.
        self.process.signal(signal)?;
        for session in self.sessions() {
            // It may have ended meanwhile.
            let _ = kill_process(session, signal);
        }
        Ok(())
    }

    /// The processes that serve the server's sessions, and its helpers.
    fn sessions(&self) -> Vec<Pid> {
        let id = self.process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
    }

    /// Runs one statement as the superuser.
    fn execute(&self, database: &str, statement: &str) -> Result<()> {
        run(Command::new(find("psql")?)
            .env("PGPASSWORD", PASSWORD)
            .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--host=127.0.0.1"])
            .args(["--port", &self.port.to_string(), "--username", SUPERUSER, "--dbname", database])
            .args(["--command", statement]))
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn settings(place: &Path, setup: &PostgresSetup<'_>, port: u16) -> Result<Vec<String>> {
    let folder = text(place)?;
    let switch = |on: bool| if on { "on" } else { "off" };
    Ok(vec![
        format!("port={port}"),
        "listen_addresses=127.0.0.1".to_owned(),
        format!("unix_socket_directories={folder}"),
        format!("fsync={}", switch(setup.fsync)),
        format!("ssl={}", switch(setup.tls.is_some())),
        format!("ssl_cert_file={folder}/server.crt"),
        format!("ssl_key_file={folder}/server.key"),
        "max_connections=100".to_owned(),
    ])
}

fn launch(place: &Path, settings: &[String], port: u16) -> Result<Process> {
    let mut command = as_server("postgres")?;
    command.arg("-D").arg(place.join("data"));
    settings.iter().for_each(|setting| {
        command.args(["-c", setting]);
    });
    let is_ready = find("pg_isready")?;
    Process::start("PostgreSQL", &mut command, &place.join("log"), || {
        let asked = Command::new(&is_ready).args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).status();
        asked.is_ok_and(|status| status.success())
    })
}

/// PostgreSQL refuses to run as root; the package has made a user for it.
fn as_server(name: &str) -> Result<Command> {
    let found = find(name)?;
    if !geteuid().is_root() {
        return Ok(Command::new(found));
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", SUPERUSER, "--regid", SUPERUSER, "--clear-groups", "--"]).arg(found);
    command.current_dir("/");
    Ok(command)
}

fn find(name: &str) -> Result<PathBuf> {
    program(&[name], "postgresql")
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {said}");
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a temporary folder whose name is no text")
}
