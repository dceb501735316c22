//! Everything that CI checks.

use std::time::Duration;

use anyhow::Result;

use crate::{clock, deny, fuzz, links, shell, tools, typescript};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How long each fuzz target runs; 0 leaves fuzzing out.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    fuzz_seconds: u64,
}

/// Runs every check, the quick ones first, and stops at the first that fails.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let started = clock::now();
    shell::section("tools", || tools::ensure(&TOOLS))?;
    shell::section("links", || links::check(&shell::root()))?;
    shell::section("format", format)?;
    shell::section("lints", lints)?;
    shell::section("dependencies", || deny::run(&deny::Arguments::default()))?;
    shell::section("tests", tests)?;
    shell::section("typescript", || typescript::test(BENCH))?;
    shell::section("documentation", documentation)?;
    if arguments.fuzz_seconds > 0 {
        shell::section("fuzz", || fuzz::run_all(Duration::from_secs(arguments.fuzz_seconds)))?;
    }
    println!("\nAll good, {}.", clock::in_words(started.elapsed()));
    Ok(())
}

const TOOLS: [tools::Tool; 12] = [
    tools::OPENSSL,
    tools::CURL,
    tools::CXX,
    tools::POSTGRES,
    tools::MARIADB,
    tools::REDIS,
    tools::NPM,
    tools::NGINX,
    tools::CADDY,
    tools::IP,
    tools::CHROMIUM,
    tools::CHROMEDRIVER,
];

fn format() -> Result<()> {
    shell::run(shell::cargo().args(["fmt", "--all", "--check"]))?;
    shell::run(shell::cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

fn lints() -> Result<()> {
    let all =
        ["clippy", "--workspace", "--all-targets", "--features", BENCH, "--locked", "--", "-D", "warnings"];
    shell::run(shell::cargo().args(all))
}

fn tests() -> Result<()> {
    shell::run(shell::cargo().args(["test", "--workspace", "--features", BENCH, "--locked"]))
}

fn documentation() -> Result<()> {
    let all = ["doc", "--workspace", "--no-deps", "--locked"];
    shell::run(shell::cargo().args(all).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The part of this tool that is left out of its quick build.
const BENCH: &str = "xtask/bench";
