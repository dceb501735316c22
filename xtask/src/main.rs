//! The verbs of a contributor and of CI. `cargo xtask --help` lists them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

#[cfg(feature = "bench")]
mod bench;
mod clock;
mod deny;
mod fuzz;
mod links;
mod shell;
mod test;
mod tools;
mod typescript;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The server's own, so that what is measured in this process is what a server runs.
#[cfg(feature = "bench")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Checks, fuzzes and measures Tidegate.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Everything that CI checks, in its order; stops at the first failure.
    Test(test::Arguments),
    /// Coverage-guided fuzzing of one target or of all.
    Fuzz(fuzz::Arguments),
    /// Licences, sources and duplicates of the dependencies; known vulnerabilities where the database can be reached.
    Deny(deny::Arguments),
    /// Measures, and publishes the figures: see `cargo xtask bench --help`.
    #[cfg(feature = "bench")]
    Bench(bench::Arguments),
    /// Measures, and publishes the figures: see `cargo xtask bench --help`.
    #[cfg(not(feature = "bench"))]
    #[command(disable_help_flag = true)]
    Bench {
        /// Handed on to the optimised build of this tool.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
            eprintln!("\nerror: {}", chain.join("\n  caused by: "));
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Test(arguments) => test::run(&arguments),
        Verb::Fuzz(arguments) => fuzz::run(&arguments),
        Verb::Deny(arguments) => deny::run(&arguments),
        #[cfg(feature = "bench")]
        Verb::Bench(arguments) => bench::run(&arguments),
        #[cfg(not(feature = "bench"))]
        Verb::Bench { arguments } => bench_optimised(&arguments),
    }
}

/// A load generator that isn't optimised measures itself, so it is built again for the purpose.
#[cfg(not(feature = "bench"))]
fn bench_optimised(arguments: &[std::ffi::OsString]) -> Result<()> {
    let build = ["run", "--release", "--locked", "--package", "xtask", "--features", "bench", "--", "bench"];
    shell::run(shell::cargo().args(build).args(arguments))
}
