//! One running `tidegate serve`, killed when dropped.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{DEADLINE, eventually, stores, wire};

/// Signs the requests of servers that were given no other secrets.
pub(crate) const SECRET: &str = "e2e-signing-secret-0123456789abcdef-01";

/// How a server is started: a folder, and variables of the environment.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    folder: Arc<TempDir>,
    variables: Vec<(String, OsString)>,
    must_be_ready: bool,
}

impl Setup {
    /// A fresh folder, free ports, [`SECRET`], and writes that survive a killed process; on an empty store of the
    /// kind that this process tests.
    pub(crate) fn new() -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("the system's temporary folder takes a folder"));
        stores::on_tested_store(Self { folder, variables: Vec::new(), must_be_ready: true })
            .set("guard.listen", "127.0.0.1:0")
            .set("admin.listen", "127.0.0.1:0")
            .set("ingress.listen", "127.0.0.1:0")
            .set("guard.secrets", SECRET)
            .set("store.durability", "process")
    }

    /// Sets a key of the configuration by its environment variable.
    pub(crate) fn set(self, key: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.variable(&format!("TIDEGATE_{}", key.replace('.', "__").to_uppercase()), value)
    }

    /// Sets a variable of the environment.
    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.variables.retain(|(other, _)| other != name);
        self.variables.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Leaves a key to its default, or to a configuration file.
    pub(crate) fn unset(mut self, key: &str) -> Self {
        let name = format!("TIDEGATE_{}", key.replace('.', "__").to_uppercase());
        self.variables.retain(|(other, _)| *other != name);
        self
    }

    /// The server counts as started once it listens, ready or not.
    pub(crate) fn even_if_not_ready(mut self) -> Self {
        self.must_be_ready = false;
        self
    }

    /// The folder that the server runs in; its data directory is `tidegate-data` in it.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the server and waits until it is ready.
    ///
    /// # Panics
    /// It ended, or was not ready in time.
    #[track_caller]
    pub(crate) fn start(&self) -> Server {
        self.try_start().unwrap_or_else(|ended| panic!("the server ended at its start: {ended:?}"))
    }

    /// Starts the server and waits until it is ready, or has ended.
    ///
    /// # Errors
    /// How it ended.
    pub(crate) fn try_start(&self) -> Result<Server, Ended> {
        self.try_serve(&["serve"])
    }

    /// Starts a server that takes over from the one that runs on the same folder.
    #[track_caller]
    pub(crate) fn take_over(&self) -> Server {
        let taken = self.try_serve(&["serve", "--take-over"]);
        taken.unwrap_or_else(|ended| panic!("the server did not take over: {ended:?}"))
    }

    fn try_serve(&self, arguments: &[&str]) -> Result<Server, Ended> {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("cargo has built the binary");
        let log = Text::reading(child.stderr.take().expect("piped"));
        let (banner, has_banner) = read_banner(child.stdout.take().expect("piped"));
        let mut process = Process(child);
        if has_banner.recv_timeout(DEADLINE).is_err() {
            let status = process.ended();
            return Err(Ended { status, log: log.whole() });
        }
        let address = |label| address_in(&banner.now(), label);
        let (guard, admin, apps) = (address("  guard "), address("  admin "), address("  apps "));
        let server = Server { process, guard, admin, apps, banner, log, setup: self.clone() };
        let is_https = server.banner.now().contains("https://");
        let probed = if is_https { server.admin } else { server.guard };
        eventually("ready", || {
            let reply = wire::get(probed, "/readyz").ok()?;
            (reply.status == 200 || !self.must_be_ready).then_some(())
        });
        Ok(server)
    }

    /// The binary in this folder and environment, with other arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let kept = ["PATH", "LLVM_PROFILE_FILE"];
        let kept = kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.args(arguments).current_dir(self.folder()).env_clear().envs(kept);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    process: Process,
    pub(crate) guard: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// Where apps are served without TLS.
    pub(crate) apps: SocketAddr,
    banner: Text,
    log: Text,
    setup: Setup,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// What it wrote to its standard error.
    pub(crate) log: String,
}

impl Server {
    /// With [`Setup::new`].
    #[track_caller]
    pub(crate) fn start() -> Self {
        Setup::new().start()
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// What the start said on the standard output.
    pub(crate) fn banner(&self) -> String {
        self.banner.now()
    }

    /// What was logged until now.
    pub(crate) fn log(&self) -> String {
        self.log.now()
    }

    /// Waits until the log has this text.
    #[track_caller]
    pub(crate) fn wait_for_log(&self, text: &str) {
        eventually(&format!("{text:?} in the log"), || self.log.now().contains(text).then_some(()));
    }

    /// Sends a signal: `Signal::TERM`, `Signal::HUP`, …
    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Ends at once, as kill -9 does.
    pub(crate) fn kill(mut self) -> Ended {
        self.process.signal(Signal::KILL);
        self.wait()
    }

    /// Ends in order, as SIGTERM asks for.
    pub(crate) fn terminate(mut self) -> Ended {
        self.process.signal(Signal::TERM);
        self.wait()
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn wait(&mut self) -> Ended {
        let status = self.process.ended();
        Ended { status, log: self.log.whole() }
    }

    /// Kills the process and starts another on the same folder, at new ports.
    #[track_caller]
    pub(crate) fn kill_and_restart(self) -> Self {
        let setup = self.setup.clone();
        assert_eq!(self.kill().status.signal(), Some(Signal::KILL.as_raw()));
        setup.start()
    }

    /// Ends the process in order and starts another on the same folder, at new ports.
    #[track_caller]
    pub(crate) fn restart(self) -> Self {
        let setup = self.setup.clone();
        let ended = self.terminate();
        assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
        setup.start()
    }

    /// A value of the data directory's `secrets.toml`, such as `admin_token`.
    #[track_caller]
    pub(crate) fn made_secret(&self, name: &str) -> String {
        let path = self.data_directory().join("secrets.toml");
        let text = fs::read_to_string(path).expect("made at the first start");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
        line.and_then(|rest| rest.strip_suffix('"')).expect("one of its names").to_owned()
    }

    pub(crate) fn data_directory(&self) -> PathBuf {
        self.setup.folder().join("tidegate-data")
    }

    /// The metrics, read with the token that was made at the first start.
    #[track_caller]
    pub(crate) fn metrics(&self) -> String {
        let token = format!("Bearer {}", self.made_secret("admin_token"));
        let reply = wire::get_with(self.admin, "/metrics", &[("authorization", &token)]).expect("an answer");
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.text()
    }

    /// One number of the metrics; 0 where it is not there.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let metrics = self.metrics();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0, |value| value.trim_end_matches(".0").parse().expect("a whole number"))
    }
}

#[derive(Debug)]
struct Process(Child);

impl Process {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).expect("a process has an id");
        // An error means that it has ended already; whoever waits for it will see.
        let _ = kill_process(pid, signal);
    }

    fn ended(&mut self) -> ExitStatus {
        eventually("the process's end", || self.0.try_wait().expect("it is our child"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a process writes, read by a thread of its own so that it never has to wait.
#[derive(Debug, Clone, Default)]
struct Text {
    text: Arc<Mutex<String>>,
    ended: Option<Arc<Mutex<mpsc::Receiver<()>>>>,
}

impl Text {
    fn reading(stream: impl Read + Send + 'static) -> Self {
        let (end, ended) = mpsc::channel::<()>();
        let text = Self { text: Arc::default(), ended: Some(Arc::new(Mutex::new(ended))) };
        let shared = text.clone();
        thread::spawn(move || {
            let _dropped_at_the_end = end;
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                shared.push(&line);
            }
        });
        text
    }

    fn push(&self, line: &str) {
        let mut text = self.text.lock().expect("nobody panics with it");
        text.push_str(line);
        text.push('\n');
    }

    fn now(&self) -> String {
        self.text.lock().expect("nobody panics with it").clone()
    }

    /// All of it, once the writer has ended.
    fn whole(&self) -> String {
        if let Some(ended) = &self.ended {
            // Nothing is ever sent: this waits for the reader's end, or gives up.
            let _ = ended.lock().expect("nobody panics with it").recv_timeout(DEADLINE);
        }
        self.now()
    }
}

/// Reads the standard output. The receiver hears once the banner is whole, and errs where it never will be.
fn read_banner(stdout: impl Read + Send + 'static) -> (Text, mpsc::Receiver<()>) {
    let banner = Text::default();
    let (has_banner, told) = mpsc::channel();
    let shared = banner.clone();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            shared.push(&line);
            if line.contains("tidegate demo") {
                // The test may have given up.
                let _ = has_banner.send(());
            }
        }
    });
    (banner, told)
}

#[track_caller]
fn address_in(banner: &str, label: &str) -> SocketAddr {
    let line = banner.lines().find_map(|line| line.strip_prefix(label)).expect("the banner names it");
    let address = line.split("://").nth(1).and_then(|rest| rest.split_whitespace().next());
    address.and_then(|address| address.parse().ok()).expect("the banner has an address with its port")
}
