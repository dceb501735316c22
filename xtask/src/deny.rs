//! What the dependencies may be: licences, sources, duplicates, known vulnerabilities.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::shell;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Also known vulnerabilities and withdrawn releases; fetches their database.
    #[arg(long)]
    advisories: bool,
}

/// The rules are those of this release; another one may know other keys.
const CARGO_DENY: &str = "0.20.2";

/// Checks the rules in `deny.toml` for both workspaces.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let program = program()?;
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let mut cargo_deny = std::process::Command::new(&program);
        cargo_deny.current_dir(shell::root()).args([
            "--manifest-path",
            manifest,
            "--locked",
            "--config",
            "deny.toml",
        ]);
        cargo_deny.args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
        cargo_deny.args(arguments.advisories.then_some("advisories"));
        shell::run(&mut cargo_deny)?;
    }
    Ok(())
}

/// Built once into the target folder: about three minutes on two cores.
fn program() -> Result<PathBuf> {
    let tools = shell::target_directory().join("tools");
    let folder = tools.join(format!("cargo-deny-{CARGO_DENY}"));
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        let mut cargo = shell::cargo();
        cargo.args(["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--no-default-features"]);
        cargo.args(["--no-track", "--root"]).arg(&folder).env("CARGO_TARGET_DIR", tools.join("build"));
        shell::run(&mut cargo).context("building cargo-deny")?;
    }
    Ok(program)
}
