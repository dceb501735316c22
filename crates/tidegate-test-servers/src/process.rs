//! A server's process: started in a folder of its own, paused, killed, and gone when it is dropped.

use std::{
    fs::{self, OpenOptions},
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: &'static str,
    log: PathBuf,
}

/// How long a server may take to start, on a machine that compiles meanwhile.
const START_PATIENCE: Duration = Duration::from_secs(60);
const LOG_LINES: usize = 40;

impl Process {
    /// Starts `command` with its output in `log`, and waits until `ready` says yes.
    ///
    /// # Errors
    /// It can't be started, or ends or is not ready in time; with the end of its log.
    pub fn start(
        name: &'static str,
        command: &mut Command,
        log: &Path,
        ready: impl FnMut() -> bool,
    ) -> Result<Self> {
        let file = || OpenOptions::new().create(true).append(true).open(log);
        let (out, err) = (file().context("opening a log")?, file().context("opening a log")?);
        command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        let mut process = Self { child, name, log: log.to_path_buf() };
        process.wait_until(ready)?;
        Ok(process)
    }

    fn wait_until(&mut self, mut ready: impl FnMut() -> bool) -> Result<()> {
        let step = Duration::from_millis(20);
        let mut waited = Duration::ZERO;
        while !ready() {
            let ended = self.child.try_wait().context("looking after a server")?;
            if ended.is_some() || waited > START_PATIENCE {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let end = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
                bail!("{} did not come up ({ended:?}); its log ends with:\n{end}", self.name);
            }
            #[expect(clippy::disallowed_methods, reason = "a real server is waited for in real time")]
            std::thread::sleep(step);
            waited += step;
        }
        Ok(())
    }

    /// The id of the server's process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the server.
    ///
    /// # Errors
    /// It is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid =
            i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("the id of a process")?;
        kill_process(pid, signal).with_context(|| format!("sending {signal:?} to {}", self.name))
    }

    /// Ends the server at once, as a crash would, and waits until it is gone.
    pub fn kill(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the server to end with `signal`, and waits until it has.
    ///
    /// # Errors
    /// It can't be asked.
    pub fn stop(&mut self, signal: Signal) -> Result<()> {
        self.signal(signal)?;
        self.child.wait().with_context(|| format!("waiting for the end of {}", self.name))?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A server that was paused takes no other signal until it goes on; this one it takes.
        self.kill();
    }
}

/// A port that nothing listens on at this moment.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port")?;
    Ok(listener.local_addr().context("looking for a free port")?.port())
}

/// Where a program is: the first of `names` in `PATH`, or where Debian keeps servers that are not for everybody's path.
///
/// # Errors
/// It is nowhere; says which package has it.
pub fn program(names: &[&str], package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .chain(postgres_folders())
        .collect();
    let found = names.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    let mut found = found.filter(|program| program.is_file());
    found.next().with_context(|| format!("no {} here; install the package {package}", names.join(" or ")))
}

/// Where Debian keeps the programs of each version of PostgreSQL apart, the newest first.
fn postgres_folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            let number = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        })
        .collect();
    folders.sort_unstable_by_key(|(version, _)| std::cmp::Reverse(*version));
    folders.into_iter().map(|(_, folder)| folder).collect()
}
