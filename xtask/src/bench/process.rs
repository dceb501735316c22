//! A server under measurement: what it costs, and that it ends when the measurement does.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::clock;

/// A child process that is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    name: &'static str,
    /// Where its output goes, to be shown when it fails.
    log: std::path::PathBuf,
}

/// `/proc` counts CPU time in hundredths of a second, whatever the kernel's own tick.
const TICKS_PER_SECOND: f64 = 100.0;
/// Of a log that is shown: its end.
const LOG_LINES: usize = 100;

impl Process {
    /// Starts `command` with its output in `log`.
    pub(crate) fn start(name: &'static str, command: &mut Command, log: &Path) -> Result<Self> {
        let file = || fs::OpenOptions::new().create(true).append(true).open(log);
        let outputs = file().and_then(|out| file().map(|err| (out, err)));
        let (out, err) = outputs.with_context(|| format!("opening {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        Ok(Self { child, name, log: log.to_path_buf() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks `ready` every few ms until it says yes; the time that it took.
    ///
    /// # Errors
    /// The process has ended or `patience` has run out; with the end of its log.
    pub(crate) fn wait_until(
        &mut self,
        patience: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<Duration> {
        let started = clock::now();
        while !ready() {
            let ended = self.child.try_wait().context("looking after a server")?;
            if ended.is_some() || started.elapsed() > patience {
                let why =
                    ended.map_or_else(|| "is not ready in time".to_owned(), |status| status.to_string());
                bail!("{}: {why}; its log ends with:\n{}", self.name, self.log_tail());
            }
            clock::pause(Duration::from_millis(2));
        }
        Ok(started.elapsed())
    }

    /// SIGKILL, as a crash would.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// CPU seconds of the process and of its children that have ended.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        cpu_seconds(&self.id().to_string())
    }

    /// Resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.id())).context("reading a server's status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("finding VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().context("reading VmRSS")?;
        Ok(kib * 1024)
    }

    /// The last lines of its output.
    pub(crate) fn log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// CPU seconds of a process and its children, those that have ended included.
pub(crate) fn family_cpu_seconds(id: u32) -> Result<f64> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    // A child that ends between is counted with its parent the next time.
    let of_children = children.split_whitespace().filter_map(|child| cpu_seconds(child).ok());
    Ok(of_children.sum::<f64>() + cpu_seconds(&id.to_string())?)
}

/// CPU seconds of this process itself.
pub(crate) fn own_cpu_seconds() -> Result<f64> {
    cpu_seconds("self")
}

fn cpu_seconds(process: &str) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).context("reading a process's CPU time")?;
    // The name in brackets may hold blanks; utime, stime, cutime and cstime are fields 14 to 17 of all.
    let after_name = stat.rsplit_once(") ").context("reading /proc/PID/stat")?.1;
    let ticks = after_name.split(' ').skip(11).take(4).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>().context("reading /proc/PID/stat")? / TICKS_PER_SECOND)
}

/// A port that is free now.
pub(crate) fn free_address() -> Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .context("looking for a free port")
}

/// What the files under `folder` take up on the disk, in bytes.
pub(crate) fn disk_bytes(folder: &Path) -> Result<u64> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let mut bytes = 0;
    for entry in entries {
        let entry = entry.with_context(|| format!("listing {}", folder.display()))?;
        // A file may go away between the listing and the look.
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}
