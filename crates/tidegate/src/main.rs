//! The entry: reads what was typed, hands it to the library, ends with its exit code.

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use tidegate::{
    cli::{self, Cli, Verb},
    config::{self, Sources},
    process::{self, EXIT_CONFIGURATION, EXIT_ERROR, EXIT_GOOD},
    serve, start,
};

/// Many small, short-lived allocations on every request: this allocator takes a third of the time that the
/// system's does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    let sources = move || global.sources(std::env::vars_os().collect());
    match verb {
        Verb::Check { json } => cli::check(&sources(), json, out),
        Verb::Config { reference, json } => cli::config(&sources(), reference, json, out, err),
        Verb::Completions { shell } => {
            cli::completions(shell, out);
            Ok(EXIT_GOOD)
        }
        Verb::Keygen(keygen) => keygen.run(out).map(|()| EXIT_GOOD),
        Verb::Call(call) => {
            let call = match call.into_call() {
                Ok(call) => call,
                Err(error) => return Ok(failed(&error, err)),
            };
            let loaded = config::load(&sources());
            let sent = runtime()?.block_on(cli::call::send(call, &loaded, out));
            Ok(sent.unwrap_or_else(|error| failed(&error, err)))
        }
        Verb::Control(arguments) => {
            let loaded = config::load(&sources());
            let done = runtime()?.block_on(cli::control::control(*arguments, &loaded, out));
            Ok(done.unwrap_or_else(|error| failed(&error, err)))
        }
        Verb::Apps(arguments) => {
            let loaded = config::load(&sources());
            let done = runtime()?.block_on(cli::apps::apps(*arguments, &loaded, out));
            Ok(done.unwrap_or_else(|error| failed(&error, err)))
        }
        Verb::Token(arguments) => {
            let loaded = config::load(&sources());
            let done = runtime()?.block_on(cli::token::token(arguments, &loaded, out));
            Ok(done.unwrap_or_else(|error| failed(&error, err)))
        }
        Verb::Drill(arguments) => {
            let loaded = config::load(&sources());
            let done = runtime()?.block_on(cli::drill::drill(*arguments, &loaded, out, err));
            Ok(done.unwrap_or_else(|error| failed(&error, err)))
        }
        Verb::Canary(arguments) => {
            let loaded = config::load(&sources());
            let done = runtime()?.block_on(cli::canary::canary(arguments, &loaded, out));
            Ok(done.unwrap_or_else(|error| failed(&error, err)))
        }
        Verb::Serve { take_over } => run_server(sources, take_over, out, err),
        Verb::Demo(arguments) => {
            let loaded = config::load(&sources());
            let told = runtime()?.block_on(async {
                let client = cli::call::configured_client(&loaded).map_err(Box::<dyn Error>::from)?;
                cli::demo(arguments, &client, &loaded, out).await.map_err(Box::from)
            });
            Ok(told.map_or_else(|error: Box<dyn Error>| failed(&*error, err), |()| EXIT_GOOD))
        }
        Verb::Migrate => {
            let loaded = config::load(&sources());
            let Ok(configuration) = loaded.clone().start() else {
                return Ok(start::refuse(&loaded.faults, err));
            };
            let done = runtime()?.block_on(serve::migrate(&configuration.store));
            match done {
                Ok(text) => writeln!(out, "{text}").map(|()| EXIT_GOOD),
                Err(error) => Ok(failed(&*error, err)),
            }
        }
        Verb::Store(verb) => cli::store(verb, &config::load(&sources()), out, err),
    }
}

fn run_server(
    sources: impl Fn() -> Sources + Send + 'static,
    take_over: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    process::raise_nofile_limit();
    let prepared = match start::prepare(&sources(), err) {
        Ok(prepared) => prepared,
        Err(code) => return Ok(code),
    };
    match serve::serve(prepared, sources, take_over, out) {
        Ok(()) => Ok(EXIT_GOOD),
        Err(error) => {
            start::complain(&error, err);
            Ok(EXIT_CONFIGURATION)
        }
    }
}

fn failed(error: &dyn Error, err: &mut dyn Write) -> u8 {
    start::complain(error, err);
    EXIT_ERROR
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
