//! The programs beside Rust that a verb needs, from the distribution's packages.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

use crate::shell;

/// A program, and the package that has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// Any of these will do; the first is what the package brings.
    pub(crate) programs: &'static [&'static str],
    pub(crate) package: &'static str,
    pub(crate) needed_for: &'static str,
}

pub(crate) const POSTGRES: Tool = Tool {
    programs: &["postgres"],
    package: "postgresql",
    needed_for: "the tests of the store on PostgreSQL",
};
pub(crate) const MARIADB: Tool = Tool {
    programs: &["mariadbd"],
    package: "mariadb-server",
    needed_for: "the tests of the store on MariaDB",
};

pub(crate) const OPENSSL: Tool = Tool {
    programs: &["openssl"],
    package: "openssl",
    needed_for: "the tests of the documented first request",
};
pub(crate) const CURL: Tool =
    Tool { programs: &["curl"], package: "curl", needed_for: "the tests of the documented first request" };
pub(crate) const CHROMIUM: Tool =
    Tool { programs: &["chromium"], package: "chromium", needed_for: "the tests of the dashboard" };
pub(crate) const CHROMEDRIVER: Tool = Tool {
    programs: &["chromedriver"],
    package: "chromium-driver",
    needed_for: "the tests of the dashboard",
};
pub(crate) const CXX: Tool =
    Tool { programs: &["c++", "g++", "clang++"], package: "g++", needed_for: "building libFuzzer" };
pub(crate) const NGINX: Tool = Tool {
    programs: &["nginx"],
    package: "nginx-light",
    needed_for: "the tests of forward-auth, and the comparison with the proxy",
};
pub(crate) const CADDY: Tool =
    Tool { programs: &["caddy"], package: "caddy", needed_for: "the tests of forward-auth" };
pub(crate) const REDIS: Tool = Tool {
    programs: &["redis-server", "valkey-server"],
    package: "redis-server",
    needed_for: "the tests of the store on Redis, and the comparison with it",
};
pub(crate) const IP: Tool =
    Tool { programs: &["ip"], package: "iproute2", needed_for: "the tests in network namespaces" };
/// The package brings Node.js with it.
pub(crate) const NPM: Tool =
    Tool { programs: &["npm"], package: "npm", needed_for: "the tests of the TypeScript client" };

/// Makes sure that all `tools` are there: looks, and as root on a Debian installs what is missing.
///
/// # Errors
/// What is missing, what for, and how to get it.
pub(crate) fn ensure(tools: &[Tool]) -> Result<()> {
    let missing: Vec<Tool> = tools.iter().copied().filter(|tool| find(*tool).is_err()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for tool in &missing {
        println!("missing: {} (for {})", tool.programs[0], tool.needed_for);
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    if shell::find_program("apt-get").is_none() || !is_root() {
        bail!("please install: {} (on Debian: sudo apt-get install {0})", packages.join(" "));
    }
    install(&packages)?;
    match missing.iter().find(|tool| find(**tool).is_err()) {
        Some(tool) => bail!("package {} was installed, but brought no {}", tool.package, tool.programs[0]),
        None => Ok(()),
    }
}

/// Where the tool's program is.
///
/// # Errors
/// It is not there.
pub(crate) fn find(tool: Tool) -> Result<PathBuf> {
    tidegate_test_servers::program(tool.programs, tool.package)
}

/// `policy-rc.d` semantics by environment: a package must not start its service, a verb starts its own.
fn install(packages: &[&str]) -> Result<()> {
    let install = |packages: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["install", "--yes", "--no-install-recommends"]).args(packages);
        shell::run(command.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1"))
    };
    if install(packages).is_ok() {
        return Ok(());
    }
    // On a fresh machine the lists of packages are missing or old.
    shell::run(Command::new("apt-get").arg("update")).context("updating the lists of packages")?;
    install(packages).with_context(|| format!("installing {}", packages.join(" ")))
}

fn is_root() -> bool {
    shell::capture(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}
