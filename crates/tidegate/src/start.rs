//! From the sources to a configuration that a server can start with: every fault named, logging on.

use std::{error::Error, io::Write};

use crate::{
    alerts::{self, Alerts},
    cli,
    config::{self, Configuration, Fault, Loaded, Scope, Sources},
    log::{self, LevelHandle},
    process::EXIT_CONFIGURATION,
};

/// What the server is started with.
#[derive(Debug)]
pub struct Prepared {
    /// As it was read: for comparing with a reload.
    pub loaded: Loaded,
    /// The checked configuration.
    pub configuration: Configuration,
    /// Changes the log level while running.
    pub level: LevelHandle,
    /// The alerts that have come meanwhile.
    pub alerts: Alerts,
}

/// Reads the configuration, names every fault on `err`, and starts logging. The guard's own faults are inside
/// the configuration, for whoever serves it to log.
///
/// # Errors
/// The exit code, where the process can't start; `err` says why.
pub fn prepare(sources: &Sources, err: &mut dyn Write) -> Result<Prepared, u8> {
    let loaded = config::load(sources);
    let Ok(configuration) = loaded.clone().start() else {
        return Err(refuse(&loaded.faults, err));
    };
    let (layer, alerts) = alerts::channel();
    let level = log::init(&configuration.log, layer).map_err(|error| {
        complain(&error, err);
        EXIT_CONFIGURATION
    })?;
    for fault in loaded.faults.iter().filter(|fault| fault.scope > Scope::Guard) {
        tracing::warn!(kind = "configuration-fault", "{fault} ({})", cli::consequence(fault.scope));
    }
    Ok(Prepared { loaded, configuration, level, alerts })
}

/// Names every fault, the fatal ones first, and answers the exit code.
pub fn refuse(faults: &[Fault], err: &mut dyn Write) -> u8 {
    for fault in faults {
        // Where the standard error is gone there is nobody left to tell.
        let _ = writeln!(err, "{fault} ({})", cli::consequence(fault.scope));
    }
    EXIT_CONFIGURATION
}

/// Says what failed and why, on one line.
pub fn complain(error: &dyn Error, err: &mut dyn Write) {
    let _ = writeln!(err, "tidegate: {}", chain(error));
}

/// An error and its causes, outermost first, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::SecretsError;

    #[test]
    fn a_faulty_configuration_names_every_fault_and_ends_with_78() {
        let mut sources = Sources::default();
        for (key, text) in [("store.max_calls", "0"), ("guard.secrets", "short")] {
            sources.flag(key, text.into(), "--flag");
        }
        let mut err = Vec::new();
        assert_eq!(prepare(&sources, &mut err).unwrap_err(), 78);
        let text = String::from_utf8(err).unwrap();
        assert!(text.contains("store.max_calls: ") && text.contains("guard.secrets[0]: "), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn a_failure_says_its_causes() {
        let cause = std::io::ErrorKind::PermissionDenied.into();
        let mut err = Vec::new();
        complain(&SecretsError::Read { path: "data".into(), source: cause }, &mut err);
        assert_eq!(String::from_utf8(err).unwrap(), "tidegate: reading \"data\": permission denied\n");
    }
}
