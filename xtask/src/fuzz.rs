//! Builds the targets of `fuzz/` with the project's own compiler, and runs them.
//!
//! libFuzzer needs coverage counters, which the stable compiler puts in when asked for LLVM's own pass. So a
//! fresh machine needs a C++ compiler and nothing else. There is no sanitizer: the code forbids `unsafe`.

use std::{
    fs,
    panic::resume_unwind,
    path::PathBuf,
    process::Command,
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{shell, tools};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// One of the targets; all of them, one after the other, if left out.
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Runs these inputs once instead of looking for new ones: to see a finding again.
    #[arg(long, value_name = "FILE")]
    reproduce: Vec<PathBuf>,
}

struct Target {
    name: &'static str,
    input_bytes_max: usize,
}

const TARGETS: [Target; 9] = [
    Target { name: "signature_header", input_bytes_max: 512 },
    // A little over the largest body, so that the bound itself is met.
    Target { name: "rpc_body", input_bytes_max: 17 * 1024 },
    Target { name: "engine_recovery", input_bytes_max: 32 * 1024 },
    Target { name: "address", input_bytes_max: 128 },
    Target { name: "rendezvous_datagram", input_bytes_max: 300 },
    Target { name: "admission_profile", input_bytes_max: 8 * 1024 },
    Target { name: "policy", input_bytes_max: 4 * 1024 },
    Target { name: "forwarded", input_bytes_max: 4 * 1024 },
    // A little over the longest trailers.
    Target { name: "answer", input_bytes_max: 17 * 1024 },
];

/// An input that takes longer than this is a finding: nothing that is fuzzed loops over more than its input.
const INPUT_SECONDS_MAX: u64 = 10;
/// Memory at which an input is a finding.
const MEMORY_MIB_MAX: u64 = 2048;

/// Coverage counters, the table of their places, and the operands of comparisons, for libFuzzer.
const COVERAGE: &str = "--cfg fuzzing -Clink-dead-code -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    tools::ensure(&[tools::CXX])?;
    let duration = Duration::from_secs(arguments.seconds);
    let Some(name) = &arguments.target else { return run_all(duration) };
    let known = || TARGETS.map(|target| target.name).join(", ");
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.with_context(|| format!("no target is called {name}; there are {}", known()))?;
    let programs = build()?;
    if arguments.reproduce.is_empty() {
        search(target, &programs, duration)
    } else {
        shell::run(program(target, &programs).args(&arguments.reproduce))
    }
}

/// Builds all targets, and gives each `duration`, as many at a time as there are processors: each uses one.
pub(crate) fn run_all(duration: Duration) -> Result<()> {
    let programs = build()?;
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    for targets in TARGETS.chunks(at_once) {
        thread::scope(|scope| {
            let search = |target| search(target, &programs, duration);
            let searches: Vec<_> = targets.iter().map(|target| scope.spawn(move || search(target))).collect();
            // All of them end before the first failure is told.
            let ended: Vec<_> = searches.into_iter().map(ScopedJoinHandle::join).collect();
            ended.into_iter().try_for_each(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
    }
    Ok(())
}

/// The folder of the programs.
fn build() -> Result<PathBuf> {
    let host = shell::host_triple()?;
    let folder = shell::target_directory().join("fuzz");
    // With the target named, cargo keeps the flags from build scripts and macros.
    let mut cargo = shell::cargo();
    cargo.args([
        "build",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--release",
        "--bins",
        "--locked",
        "--target",
    ]);
    cargo.arg(&host).env("RUSTFLAGS", COVERAGE).env("CARGO_TARGET_DIR", &folder);
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS");
    shell::run(&mut cargo)?;
    Ok(folder.join(host).join("release"))
}

/// Looks for new inputs, from the seeds and from what earlier runs found.
fn search(target: &Target, programs: &std::path::Path, duration: Duration) -> Result<()> {
    let fuzz = shell::root().join("fuzz");
    let [corpus, artifacts] = ["corpus", "artifacts"].map(|kind| fuzz.join(kind).join(target.name));
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let mut command = program(target, programs);
    command.arg(format!("-max_total_time={}", duration.as_secs().max(1)));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.args([&corpus, &fuzz.join("seeds").join(target.name)]);
    if let Err(error) = shell::run(&mut command) {
        bail!(
            "{error}\nthe input is in {}; `cargo xtask fuzz {} --reproduce FILE` runs it again",
            artifacts.display(),
            target.name
        );
    }
    Ok(())
}

fn program(target: &Target, programs: &std::path::Path) -> Command {
    let mut command = Command::new(programs.join(target.name));
    command.arg(format!("-max_len={}", target.input_bytes_max));
    command.arg(format!("-timeout={INPUT_SECONDS_MAX}")).arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
    // Statistics at the end; a line for each new input on the way would bury them.
    command.args(["-verbosity=0", "-print_final_stats=1", "-use_value_profile=1"]);
    command
}
