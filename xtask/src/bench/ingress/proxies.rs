//! The proxies that are measured, before the same upstream: nginx, which answers by itself.

use std::{
    fmt, fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    bench::{
        process::{self, Process},
        servers,
    },
    tools,
};

/// The proxy has this core for itself; upstream and load generator share the other.
pub(super) const PROXY_CORE: &str = "0";
pub(super) const OTHER_CORE: &str = "1";

/// Who stands in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Nginx,
    Tidegate,
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nginx => "nginx, `limit_req`",
            Self::Tidegate => "Tidegate",
        })
    }
}

/// What the limit does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Everybody is far below it.
    Allow,
    /// Nearly everything is over it.
    Reject,
}

impl Mode {
    /// Requests a second, and how many may come at once.
    const fn rate(self) -> (u32, u32) {
        match self {
            Self::Allow => (100_000, 100_000),
            Self::Reject => (1, 1),
        }
    }
}

/// A running proxy, with its folder.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) system: System,
    pub(super) address: SocketAddr,
    pub(super) process: Process,
    _folder: tempfile::TempDir,
}

const PATIENCE: Duration = Duration::from_secs(60);
const ANSWER: &str = "hello from the app, in a body of some sixty-four bytes, or so....";

/// The upstream of every proxy.
pub(super) fn upstream(parent: &Path) -> Result<Proxy> {
    let config = format!(
        "{NGINX}http {{ access_log off; keepalive_requests 1000000000; server {{ listen ADDRESS; location / {{ \
         return 200 \"{ANSWER}\"; }} }} }}"
    );
    nginx(parent, &config, OTHER_CORE)
}

impl Proxy {
    /// Starts `system` before `upstream`, with room for so many clients.
    pub(super) fn start(
        system: System,
        mode: Mode,
        upstream: SocketAddr,
        clients: usize,
        parent: &Path,
        tidegate: &Path,
    ) -> Result<Self> {
        match system {
            System::Nginx => nginx(parent, &limited(mode, upstream, clients), PROXY_CORE),
            System::Tidegate => tidegate_proxy(mode, upstream, clients, parent, tidegate),
        }
    }
}

const NGINX: &str =
    "daemon off; master_process off; worker_processes 1; pid nginx.pid; error_log error.log crit;
events { worker_connections 4096; }
";

fn limited(mode: Mode, upstream: SocketAddr, clients: usize) -> String {
    let (rps, burst) = mode.rate();
    let zone_mib = clients / 5_000 + 16;
    format!(
        "{NGINX}http {{ access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
limit_req_zone $binary_remote_addr zone=clients:{zone_mib}m rate={rps}r/s; limit_req_status 429;
set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For; real_ip_recursive on;
upstream app {{ server {upstream}; keepalive 64; keepalive_requests 1000000000; }}
server {{ listen ADDRESS backlog=1024; location / {{ limit_req zone=clients burst={burst} nodelay;
proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\";
proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; }} }} }}
"
    )
}

fn nginx(parent: &Path, config: &str, core: &str) -> Result<Proxy> {
    let (folder, address) = (folder(parent)?, process::free_address()?);
    let path = folder.path().join("nginx.conf");
    fs::write(&path, config.replace("ADDRESS", &address.to_string())).context("writing nginx.conf")?;
    let mut command = pinned(&tools::find(tools::NGINX).context("looking for nginx")?, core);
    command.args(["-p", &folder.path().display().to_string(), "-c", &path.display().to_string()]);
    let mut process = Process::start("nginx", &mut command, &folder.path().join("log"))?;
    process.wait_until(PATIENCE, || TcpStream::connect(address).is_ok())?;
    Ok(Proxy { system: System::Nginx, address, process, _folder: folder })
}

fn tidegate_proxy(
    mode: Mode,
    upstream: SocketAddr,
    clients: usize,
    parent: &Path,
    program: &Path,
) -> Result<Proxy> {
    let folder = folder(parent)?;
    let (address, admin) = (process::free_address()?, process::free_address()?);
    let mut command = pinned(program, PROXY_CORE);
    command.arg("serve").current_dir(folder.path()).envs([
        ("TIDEGATE_INGRESS__LISTEN", address.to_string()),
        ("TIDEGATE_INGRESS__TRUSTED_PROXIES", "127.0.0.1".to_owned()),
        ("TIDEGATE_INGRESS__MAX_TRACKED_CLIENTS", clients.max(100_000).to_string()),
        ("TIDEGATE_APPS__BENCH__DOMAINS", "*".to_owned()),
        ("TIDEGATE_APPS__BENCH__UPSTREAMS", upstream.to_string()),
        ("TIDEGATE_GUARD__LISTEN", "127.0.0.1:0".to_owned()),
        ("TIDEGATE_ADMIN__LISTEN", admin.to_string()),
        ("TIDEGATE_STORE__PATH", "data".to_owned()),
        ("TIDEGATE_LOG__LEVEL", "warn".to_owned()),
    ]);
    let mut process = Process::start("tidegate", &mut command, &folder.path().join("log"))?;
    process.wait_until(PATIENCE, || {
        servers::http_get(admin, "/readyz", "").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
    })?;
    enforce(admin, mode, &folder.path().join("data/secrets.toml"))?;
    Ok(Proxy { system: System::Tidegate, address, process, _folder: folder })
}

/// Puts a policy that enforces in force.
fn enforce(admin: SocketAddr, mode: Mode, secrets: &Path) -> Result<()> {
    let secrets = fs::read_to_string(secrets).context("reading the admin token")?;
    let token = secrets.lines().find_map(|line| line.strip_prefix("admin_token = "));
    let token = token.context("finding the admin token")?.trim_matches('"');
    let (rps, burst) = mode.rate();
    let body = format!(r#"{{"mode":"enforce","rps":{rps},"burst":{burst}}}"#);
    let mut socket = TcpStream::connect(admin).context("connecting to the admin API")?;
    write!(
        socket,
        "PUT /api/v1/apps/bench/abuse HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: \
         application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .context("putting the policy")?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).context("reading the answer to the policy")?;
    ensure!(answer.starts_with("HTTP/1.1 200 "), "the policy was not taken: {answer}");
    Ok(())
}

fn pinned(program: &Path, core: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}

/// Keeps this process, the load generator, off the proxy's core.
pub(super) fn pin_self() -> Result<()> {
    let mut command = Command::new("taskset");
    command.args(["-a", "-cp", OTHER_CORE, &std::process::id().to_string()]);
    let done = command.output().context("running taskset")?;
    if !done.status.success() {
        bail!("taskset: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(())
}

fn folder(parent: &Path) -> Result<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(parent);
    folder.with_context(|| format!("making a folder under {}", parent.display()))
}
