//! Logging: lines on the standard error, as text or as JSON, at a level that can change while running; beside
//! them the alerts, which no level silences.

use std::{fmt, io, io::IsTerminal};

use thiserror::Error;
use tracing::{Subscriber, subscriber};
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::ParseError, fmt::MakeWriter, layer::SubscriberExt, reload,
};

use crate::{
    alerts::AlertLayer,
    config::{Log, LogFormat},
};

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

/// Sends log lines to the standard error from now on, and alerts to `alerts`.
///
/// # Errors
/// The level is not one, or logging is set up already. Nothing was changed.
pub fn init(log: &Log, alerts: AlertLayer) -> Result<LevelHandle, LogError> {
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let (subscriber, handle) = subscriber_to(log, alerts, io::stderr, colours)?;
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

/// Each of the two layers has a filter of its own, so that a quiet level leaves the alerts alone.
fn subscriber_to<W>(
    log: &Log,
    alerts: AlertLayer,
    writer: W,
    colours: bool,
) -> Result<(impl Subscriber + Send + Sync, LevelHandle), LogError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(EnvFilter::try_new(&log.level)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours);
    let lines = match log.format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    Ok((tracing_subscriber::registry().with(lines).with(alerts.filtered()), LevelHandle(handle)))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use prometheus_client::{encoding::text, registry};
    use tracing::{
        Callsite, Metadata, callsite::Identifier, field::FieldSet, metadata::Kind, subscriber::Interest,
    };

    use super::*;
    use crate::alerts::{self, Alerts};

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
        let (layer, _) = alerts::channel();
        let (subscriber, handle) = subscriber_to(&log, layer, move || writer.clone(), false).unwrap();
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

    /// How many alerts of one kind were counted.
    fn full_count(alerts: &Alerts) -> usize {
        let mut registry = registry::Registry::default();
        alerts.register(&mut registry);
        let mut page = String::new();
        text::encode(&mut page, &registry).unwrap();
        let count = page
            .lines()
            .find_map(|line| line.strip_prefix(r#"tidegate_alerts_total{kind="limit-store-full"} "#));
        count.unwrap().parse().unwrap()
    }

    #[test]
    fn no_level_silences_alerts() {
        let raise = || tracing::error!(kind = "limit-store-full", "full");
        let (layer, alerts) = alerts::channel();
        let log = Log { format: LogFormat::Text, level: "off".into() };
        let (subscriber, handle) = subscriber_to(&log, layer, io::sink, false).unwrap();
        subscriber::with_default(subscriber, || {
            raise();
            for level in ["error", "tidegate=off", "off", "debug"] {
                handle.change(level).unwrap();
                raise();
            }
        });
        assert_eq!(full_count(&alerts), 5);

        // The same with one filter for both, which would silence them.
        let (layer, alerts) = alerts::channel();
        let filter = EnvFilter::try_new("off").unwrap();
        subscriber::with_default(tracing_subscriber::registry().with(filter).with(layer.filtered()), raise);
        assert_eq!(full_count(&alerts), 0);
    }

    /// What `tracing::event!` makes of a place in the code: asked once whether anybody wants its events.
    struct Place(Metadata<'static>);

    impl Callsite for Place {
        fn set_interest(&self, _: Interest) {}

        fn metadata(&self) -> &Metadata<'_> {
            &self.0
        }
    }

    macro_rules! interest {
        ($subscriber:expr, $target:literal, $level:ident, $fields:expr) => {{
            static PLACE: Place = Place(Metadata::new(
                "event",
                $target,
                tracing::Level::$level,
                None,
                None,
                None,
                FieldSet::new($fields, Identifier(&PLACE)),
                Kind::EVENT,
            ));
            $subscriber.register_callsite(PLACE.metadata())
        }};
    }

    #[test]
    fn an_event_that_nobody_wants_is_not_looked_at() {
        let log = Log { format: LogFormat::Text, level: "warn".into() };
        let (subscriber, _) = subscriber_to(&log, alerts::channel().0, io::sink, false).unwrap();
        let unwanted = [
            interest!(subscriber, "tidegate_guard", DEBUG, &["message"]),
            interest!(subscriber, "tidegate_guard", DEBUG, &["message", "kind"]),
            interest!(subscriber, "tidegate_guard", INFO, &["message"]),
            interest!(subscriber, "hyper", INFO, &["message", "kind"]),
        ];
        assert!(unwanted.iter().all(Interest::is_never), "{unwanted:?}");
        let wanted = interest!(subscriber, "tidegate_guard", INFO, &["message", "kind"]);
        assert!(!wanted.is_never(), "it may be an alert");
        assert_eq!(subscriber.max_level_hint(), Some(tracing::level_filters::LevelFilter::INFO));
    }
}
