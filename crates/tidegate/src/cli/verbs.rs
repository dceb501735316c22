//! The verbs that only look: `check`, `config`, `completions`.

use std::io::{self, Write};

use clap::CommandFactory;
use serde_json::{Value, json};

use crate::{
    config::{self, Fault, Loaded, Place, Scope, Sources},
    process::{EXIT_CONFIGURATION, EXIT_DENIED, EXIT_GOOD},
    secrets,
};

/// Prints every fault and answers the exit code: 0 without any, 78 where one stops the process or the guard,
/// 1 otherwise. Changes nothing.
///
/// # Errors
/// `out` takes no more.
pub fn check(sources: &Sources, json: bool, out: &mut dyn Write) -> io::Result<u8> {
    let loaded = config::load(sources);
    let mut faults = loaded.faults.clone();
    faults.extend(data_directory_fault(&loaded));
    if json {
        let told: Vec<Value> = faults.iter().map(fault_json).collect();
        writeln!(out, "{}", json!({ "faults": told }))?;
    } else {
        for fault in &faults {
            writeln!(out, "{fault} ({})", consequence(fault.scope))?;
        }
        match faults.len() {
            0 => writeln!(out, "configuration is good")?,
            1 => writeln!(out, "1 fault")?,
            count => writeln!(out, "{count} faults")?,
        }
    }
    let stops = |fault: &Fault| matches!(fault.scope, Scope::Fatal | Scope::Guard);
    Ok(if faults.iter().any(stops) {
        EXIT_CONFIGURATION
    } else if faults.is_empty() {
        EXIT_GOOD
    } else {
        EXIT_DENIED
    })
}

/// Prints the effective configuration or the reference, and answers the exit code. Faults go to `err`.
///
/// # Errors
/// `out` or `err` takes no more.
pub fn config(
    sources: &Sources,
    reference: bool,
    json: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    if reference {
        out.write_all(config::reference().as_bytes())?;
        return Ok(EXIT_GOOD);
    }
    let loaded = config::load(sources);
    if json {
        writeln!(out, "{}", config::effective_json(&loaded.settings))?;
    } else {
        out.write_all(config::effective(&loaded.settings).as_bytes())?;
    }
    for fault in &loaded.faults {
        writeln!(err, "{fault} ({})", consequence(fault.scope))?;
    }
    let good = loaded.faults.iter().all(|fault| matches!(fault.scope, Scope::Client | Scope::Warning));
    Ok(if good { EXIT_GOOD } else { EXIT_CONFIGURATION })
}

fn fault_json(fault: &Fault) -> Value {
    let line = match &fault.place {
        Place::Line { line, .. } => Some(line),
        _ => None,
    };
    json!({
        "key": fault.key,
        "place": fault.place.to_string(),
        "line": line,
        "message": fault.message,
        "consequence": consequence(fault.scope),
    })
}

/// Prints the completion script of `shell`.
pub fn completions(shell: clap_complete::Shell, out: &mut dyn Write) {
    clap_complete::generate(shell, &mut super::Cli::command(), "tidegate", out);
}

/// What a fault means for the process, in a few words.
#[must_use]
pub(crate) const fn consequence(scope: Scope) -> &'static str {
    match scope {
        Scope::Fatal => "stops the start",
        Scope::Guard => "stops the guard: every RPC is answered 503",
        Scope::Client => "stops `tidegate call`",
        Scope::Warning => "has no effect",
    }
}

/// The secrets of the data directory, where there are some, are part of what a start needs.
fn data_directory_fault(loaded: &Loaded) -> Option<Fault> {
    let directory = &loaded.regardless().store.path;
    let error = match secrets::read(directory) {
        Ok(made) => return config::shared_with_made(loaded, &made?),
        Err(error) => error,
    };
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let place = Place::File(directory.join(secrets::FILE_NAME).into());
    Some(Fault::new(Scope::Fatal, "", place, format!("{error}{cause}")))
}
