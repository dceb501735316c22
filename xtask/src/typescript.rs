//! The TypeScript client and its example: installed from their lock files, built, linted, and tested against
//! the server's binary.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::shell;

/// The oldest Node.js that the client supports.
const NODE_MAJOR_MIN: u32 = 20;

/// Runs all of it. `features` are those of the workspace's other tests, so that nothing is compiled again.
///
/// # Errors
/// What failed; the tests end what they start.
pub(crate) fn test(features: &str) -> Result<()> {
    ensure_node()?;
    let build = ["build", "--workspace", "--bin", "tidegate", "--features", features, "--locked"];
    shell::run(shell::cargo().args(build))?;
    let binary = shell::target_directory().join("debug/tidegate");
    let root = shell::root();
    let (client, example) = (root.join("clients/typescript"), root.join("examples/web"));
    for folder in [&client, &example] {
        shell::run(&mut npm(folder, &["ci", "--no-audit", "--no-fund"]))?;
    }
    shell::run(npm(&client, &["test"]).env("TIDEGATE_BINARY", &binary))?;
    shell::run(&mut npm(&example, &["run", "build"]))?;
    shell::run(npm(&example, &["test"]).env("TIDEGATE_BINARY", &binary))?;
    shell::run(&mut npm(&client, &["run", "lint"]))
}

fn ensure_node() -> Result<()> {
    let version = shell::capture(Command::new("node").arg("--version"))?;
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|text| text.parse().ok());
    let major: u32 = major.with_context(|| format!("reading the version of Node.js in {version:?}"))?;
    ensure!(
        major >= NODE_MAJOR_MIN,
        "the TypeScript client needs Node.js {NODE_MAJOR_MIN} or later; this is {}",
        version.trim()
    );
    Ok(())
}

fn npm(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.current_dir(folder).args(arguments);
    command
}
