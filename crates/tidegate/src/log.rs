//! Logging: lines on the standard error, as text or as JSON, at a level that can change while running.

use std::{fmt, io, io::IsTerminal};

use thiserror::Error;
use tracing::{Subscriber, subscriber};
use tracing_subscriber::{
    EnvFilter, Registry, filter::ParseError, fmt::MakeWriter, layer::SubscriberExt, reload,
};

use crate::config::{Log, LogFormat};

/// Why logging can't be set up or changed.
#[derive(Debug, Error)]
pub enum LogError {
    /// The level is not one; what was logged before is still logged.
    #[error("reading the log level")]
    Level(#[from] ParseError),
    /// Another part of the process has set up logging before.
    #[error("setting up logging")]
    Install(#[from] subscriber::SetGlobalDefaultError),
    /// The filter is gone; nothing was changed.
    #[error("changing the log level")]
    Reload(#[from] reload::Error),
}

/// Changes the level of a running process.
#[derive(Clone)]
pub struct LevelHandle(reload::Handle<EnvFilter, Registry>);

/// Sends log lines to the standard error from now on.
///
/// # Errors
/// The level is not one, or logging is set up already. Nothing was changed.
pub fn init(log: &Log) -> Result<LevelHandle, LogError> {
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let (subscriber, handle) = subscriber_to(log, io::stderr, colours)?;
    subscriber::set_global_default(subscriber)?;
    Ok(handle)
}

impl LevelHandle {
    /// Logs at `level` from now on.
    ///
    /// # Errors
    /// The level is not one; the one in force stays.
    pub fn change(&self, level: &str) -> Result<(), LogError> {
        Ok(self.0.reload(EnvFilter::try_new(level)?)?)
    }
}

impl fmt::Debug for LevelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LevelHandle(…)")
    }
}

type Boxed = Box<dyn Subscriber + Send + Sync>;

fn subscriber_to<W>(log: &Log, writer: W, colours: bool) -> Result<(Boxed, LevelHandle), LogError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(EnvFilter::try_new(&log.level)?);
    let registry = tracing_subscriber::registry().with(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours);
    let subscriber: Boxed = match log.format {
        LogFormat::Text => Box::new(registry.with(lines)),
        LogFormat::Json => Box::new(registry.with(lines.json().flatten_event(true))),
    };
    Ok((subscriber, LevelHandle(handle)))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, level: &str, work: impl FnOnce(&LevelHandle)) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = Log { format, level: level.into() };
        let (subscriber, handle) = subscriber_to(&log, move || writer.clone(), false).unwrap();
        subscriber::with_default(subscriber, || work(&handle));
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_level_decides_and_can_change() {
        let text = logged(LogFormat::Text, "warn", |handle| {
            tracing::info!("not yet");
            handle.change("info").unwrap();
            tracing::info!(kind = "seen", "now");
            assert!(matches!(handle.change("tidegate=nothing"), Err(LogError::Level(_))));
            tracing::info!("still");
        });
        assert!(!text.contains("not yet") && text.contains("now") && text.contains("still"), "{text}");
        assert!(text.contains("kind=\"seen\""), "{text}");
    }

    #[test]
    fn json_has_one_object_a_line_whatever_is_logged() {
        let text =
            logged(LogFormat::Json, "info", |_| tracing::info!(reason = "two\nlines \u{1b}[31m", "event"));
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(r#""reason":"two\nlines"#), "{text}");
    }

    #[test]
    fn a_text_line_holds_no_escapes_of_others() {
        let text = logged(LogFormat::Text, "info", |_| tracing::info!(reason = "\u{1b}[31m red", "event"));
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
