//! Runs other programs, and says what is being done and how long it took.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::clock;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("the folder of this crate lies in the repository").to_path_buf()
}

/// The cargo that runs this tool, in the repository's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root());
    command
}

/// The compiler that belongs to [`cargo`].
pub(crate) fn host_triple() -> Result<String> {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let version = capture(Command::new(compiler).arg("-vV").current_dir(root()))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("finding the host in the answer of rustc -vV")?.to_owned())
}

/// Where cargo puts what it builds for this workspace.
pub(crate) fn target_directory() -> PathBuf {
    let chosen = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    chosen.map_or_else(|| root().join("target"), |path| root().join(path))
}

/// One part of a verb, with a header before it and its time after it.
pub(crate) fn section<T>(title: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("\n=== {title}");
    let started = clock::now();
    let done = work().with_context(|| format!("{title}: failed"))?;
    println!("--- {title}: good, {}", clock::in_words(started.elapsed()));
    Ok(done)
}

/// Runs `command` on this terminal to its end.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("starting `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Runs `command` quietly; its standard output, or an error that tells what it wrote to its error output.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("reading the output of `{shown}`"))
}

/// Where `PATH` has `program`, if it has.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
