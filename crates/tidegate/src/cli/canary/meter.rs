//! What the store of the measured server counts, from its `/metrics`.

use tidegate_client::control::read_metrics;
use tidegate_core::secret::Secret;

use crate::{
    cli::call::{from_here, own_url},
    config::{Ability, Credential, Hidden, Loaded},
    secrets,
};

/// Reads the counters of a server, where it can.
pub(super) struct Meter {
    /// Where they are, and what opens them; or why not.
    way: Result<(String, Option<Secret>), String>,
}

/// Counters at one time, or how far they went from one to another. None: not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reading {
    pub(super) row_writes: Option<u64>,
    pub(super) flushes: Option<u64>,
    pub(super) written_bytes: Option<u64>,
}

impl Meter {
    /// The meter of the server at `guard_url`: it can only be found where that is the one of this
    /// configuration.
    pub(super) fn of(guard_url: &Hidden, loaded: &Loaded) -> Self {
        let configuration = loaded.regardless();
        if guard_url.expose().trim_end_matches('/') != own_url(&configuration.listener) {
            let why = "row writes and flushes are only read from the server of this configuration";
            return Self { way: Err(why.to_owned()) };
        }
        let url = format!("http://{}", from_here(configuration.admin.listen));
        let token = if configuration.admin.metrics_public { Ok(None) } else { token(loaded).map(Some) };
        Self { way: token.map(|token| (url, token)) }
    }

    /// The counters now.
    pub(super) async fn read(&self) -> Reading {
        let Ok((url, token)) = &self.way else { return Reading::default() };
        let text = read_metrics(url, token.as_ref()).await;
        text.map(|text| Reading::of(&text)).unwrap_or_default()
    }

    /// Why the counters can't be read, if so.
    pub(super) async fn note(&self) -> Option<String> {
        match &self.way {
            Err(why) => Some(why.clone()),
            Ok((url, token)) => {
                let failed = read_metrics(url, token.as_ref()).await.err()?;
                Some(format!("row writes and flushes are not known: {failed}"))
            }
        }
    }
}

impl Reading {
    fn of(text: &str) -> Self {
        let counter = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            value.trim_end_matches(".0").parse().ok()
        };
        Self {
            row_writes: counter("tidegate_store_row_writes_total"),
            flushes: counter("tidegate_store_flushes_total"),
            written_bytes: counter("tidegate_store_written_bytes_total"),
        }
    }

    /// How far the counters went from here to `later`.
    pub(super) fn to(self, later: Self) -> Self {
        let by = |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from?));
        Self {
            row_writes: by(self.row_writes, later.row_writes),
            flushes: by(self.flushes, later.flushes),
            written_bytes: by(self.written_bytes, later.written_bytes),
        }
    }
}

/// A token of the admin API with the ability to read: a configured one, else the data directory's.
fn token(loaded: &Loaded) -> Result<Secret, String> {
    let configuration = loaded.regardless();
    let tokens = &configuration.admin.tokens;
    let readable = tokens.iter().filter(|token| token.abilities.contains(&Ability::Read));
    let configured = readable.filter_map(|token| match &token.credential {
        Credential::Token(token) => Some(token.clone()),
        Credential::Sha256(_) => None,
    });
    if let Some(token) = configured.into_iter().next() {
        return Ok(token);
    }
    let missing =
        "row writes and flushes are not known: there is no admin token with the ability `read` here";
    if !tokens.is_empty() {
        return Err(missing.to_owned());
    }
    let made = secrets::read(&configuration.store.path).ok().flatten();
    made.map(|made| made.admin_token).ok_or_else(|| missing.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_exact_names() {
        let text = "# TYPE tidegate_store_flushes counter\ntidegate_store_flushes_total 7\n\
                    tidegate_store_written_bytes_total 900\ntidegate_store_written_bytes_total_more 1\n# EOF\n";
        let reading = Reading::of(text);
        let expected = Reading { row_writes: None, flushes: Some(7), written_bytes: Some(900) };
        assert_eq!(reading, expected);
        let later = Reading { flushes: Some(10), written_bytes: Some(1000), ..reading };
        let went = Reading { row_writes: None, flushes: Some(3), written_bytes: Some(100) };
        assert_eq!(reading.to(later), went);
        assert_eq!(reading.to(Reading::default()), Reading::default());
    }
}
