//! The entry: reads what was typed, hands it to the library, ends with its exit code.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use tidegate::{
    cli::{self, Cli, Verb},
    config,
    process::{self, EXIT_ERROR},
    start,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (mut out, mut err) = (io::stdout().lock(), io::stderr());
    let done = run(cli, &mut out, &mut err).and_then(|code| out.flush().map(|()| code));
    match done {
        Ok(code) => ExitCode::from(code),
        // Whoever read the output has gone, as `head` does: not a failure to talk about.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(EXIT_ERROR),
        Err(error) => {
            let _ = writeln!(err, "tidegate: {error}");
            ExitCode::from(EXIT_ERROR)
        }
    }
}

fn run(cli: Cli, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let Cli { global, verb } = cli;
    let environment = || std::env::vars_os().collect();
    match verb {
        Verb::Check => cli::check(&global.sources(environment()), out),
        Verb::Config { reference } => cli::config(&global.sources(environment()), reference, out, err),
        Verb::Completions { shell } => {
            cli::completions(shell, out);
            Ok(process::EXIT_GOOD)
        }
        Verb::Keygen(keygen) => keygen.run(out).map(|()| process::EXIT_GOOD),
        Verb::Call(call) => {
            let _loaded = config::load(&global.sources(environment()));
            let _call = call;
            not_yet("call", err)
        }
        Verb::Serve => {
            process::raise_nofile_limit();
            match start::prepare(&global.sources(environment()), err) {
                Ok(_prepared) => not_yet("serve", err),
                Err(code) => Ok(code),
            }
        }
        Verb::Demo => not_yet("demo", err),
        Verb::Store(_) => not_yet("store", err),
    }
}

fn not_yet(verb: &str, err: &mut dyn Write) -> io::Result<u8> {
    writeln!(err, "tidegate: `{verb}` is not in this build yet")?;
    Ok(EXIT_ERROR)
}
