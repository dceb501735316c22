//! A policy as a form: lists are lines of text.
//!
//! A line of networks is `203.0.113.0/24 until=2026-12-31T00:00 # a note`, of routes `POST,PUT /login 0.5 5`.

use std::fmt::Write;

use super::visitor::Fields;
use crate::admin::shapes::{Network, Policy, PolicyFault, Route};

/// What stands in the form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) rps: String,
    pub(super) burst: String,
    pub(super) ipv6_prefix: String,
    pub(super) deny_missing_user_agent: bool,
    pub(super) deny_cidrs: String,
    pub(super) deny_user_agents: String,
    pub(super) allow_cidrs: String,
    pub(super) routes: String,
}

impl Draft {
    pub(super) fn of(policy: &Policy) -> Self {
        let lines = |networks: &[Network]| networks.iter().map(network_line).collect::<Vec<_>>().join("\n");
        Self {
            rps: policy.rps.to_string(),
            burst: policy.burst.to_string(),
            ipv6_prefix: policy.ipv6_prefix.to_string(),
            deny_missing_user_agent: policy.deny_missing_user_agent,
            deny_cidrs: lines(&policy.deny_cidrs),
            deny_user_agents: policy.deny_user_agents.join("\n"),
            allow_cidrs: lines(&policy.allow_cidrs),
            routes: policy.routes.iter().map(route_line).collect::<Vec<_>>().join("\n"),
        }
    }

    pub(super) fn read(fields: &Fields) -> Self {
        let text = |name| fields.text(name).replace("\r\n", "\n");
        Self {
            rps: text("rps"),
            burst: text("burst"),
            ipv6_prefix: text("ipv6_prefix"),
            deny_missing_user_agent: fields.has("deny_missing_user_agent"),
            deny_cidrs: text("deny_cidrs"),
            deny_user_agents: text("deny_user_agents"),
            allow_cidrs: text("allow_cidrs"),
            routes: text("routes"),
        }
    }

    /// The policy that the form describes, with `mode`.
    ///
    /// # Errors
    /// Everything in the form that is no policy's at all. What a policy may say is for its own check.
    pub(super) fn policy(&self, mode: &str) -> Result<Policy, Vec<PolicyFault>> {
        let mut faults = Vec::new();
        let mut fault = |field: String, message: &str| {
            faults.push(PolicyFault { field, message: message.to_owned() });
        };
        let rps = number(&self.rps).unwrap_or_else(|| {
            fault("rps".into(), "must be a number, such as 5 or 0.5");
            0.0
        });
        let burst = whole(&self.burst).unwrap_or_else(|| {
            fault("burst".into(), "must be a whole number");
            0
        });
        let ipv6_prefix = self.ipv6_prefix.parse().unwrap_or_else(|_| {
            fault("ipv6_prefix".into(), "must be a whole number from 0 to 128");
            64
        });
        let mut networks = |field: &str, text: &str| {
            let mut list = Vec::new();
            for (index, line) in lines(text) {
                match network(line) {
                    Some(network) => list.push(network),
                    None => fault(
                        format!("{field}[{index}]"),
                        "must be a network, then if need be until=2026-12-31T00:00 and # a note",
                    ),
                }
            }
            list
        };
        let deny_cidrs = networks("deny_cidrs", &self.deny_cidrs);
        let allow_cidrs = networks("allow_cidrs", &self.allow_cidrs);
        let mut routes = Vec::new();
        for (index, line) in lines(&self.routes) {
            match route(line) {
                Some(route) => routes.push(route),
                None => fault(
                    format!("routes[{index}]"),
                    "must be a path, requests a second and a burst, such as POST /login 0.5 5",
                ),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Policy {
            mode: mode.to_owned(),
            rps,
            burst,
            deny_cidrs,
            deny_user_agents: lines(&self.deny_user_agents).map(|(_, line)| line.to_owned()).collect(),
            deny_missing_user_agent: self.deny_missing_user_agent,
            allow_cidrs,
            ipv6_prefix,
            routes,
        })
    }
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate()
}

fn number(text: &str) -> Option<f64> {
    if text.is_empty() { Some(0.0) } else { text.parse().ok().filter(|number: &f64| number.is_finite()) }
}

fn whole(text: &str) -> Option<u64> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

fn network(line: &str) -> Option<Network> {
    let (rest, note) = match line.split_once('#') {
        Some((rest, note)) => (rest, Some(note.trim().to_owned()).filter(|note| !note.is_empty())),
        None => (line, None),
    };
    let mut words = rest.split_whitespace();
    let cidr = words.next()?.to_owned();
    let expires_at_ms = match words.next() {
        Some(word) => Some(instant(word.strip_prefix("until=")?)?),
        None => None,
    };
    if words.next().is_some() {
        return None;
    }
    if note.is_none() && expires_at_ms.is_none() {
        return Some(Network::Plain(cidr));
    }
    Some(Network::Noted { cidr, note, expires_at_ms })
}

fn network_line(network: &Network) -> String {
    match network {
        Network::Plain(cidr) => cidr.clone(),
        Network::Noted { cidr, note, expires_at_ms } => {
            let mut line = cidr.clone();
            if let Some(at_ms) = expires_at_ms {
                let _ = write!(line, " until={}", instant_text(*at_ms));
            }
            if let Some(note) = note {
                let _ = write!(line, " # {}", note.replace(['\n', '\r'], " "));
            }
            line
        }
    }
}

fn route(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (methods, rest) = match words.as_slice() {
        [methods, rest @ ..] if !methods.starts_with('/') => {
            (Some(methods.split(',').map(str::to_owned).collect()), rest)
        }
        rest => (None, rest),
    };
    let [path, rps, burst] = rest else { return None };
    Some(Route { path_prefix: (*path).to_owned(), methods, rps: number(rps)?, burst: whole(burst)? })
}

fn route_line(route: &Route) -> String {
    let Route { path_prefix, methods, rps, burst } = route;
    let methods = methods.as_ref().map(|methods| methods.join(",") + " ").unwrap_or_default();
    format!("{methods}{path_prefix} {rps} {burst}")
}

/// `2026-12-31T00:00`, UTC, in ms since the epoch; with seconds or a `Z` if need be.
fn instant(text: &str) -> Option<u64> {
    let (date, time) = text.trim_end_matches('Z').split_once('T').unwrap_or((text, "00:00"));
    let mut date = date.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next().unwrap_or(Some(0))?);
    let fits = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    fits.then(|| (days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1000)
}

fn instant_text(at_ms: u64) -> String {
    let text = crate::cli::Utc(at_ms).to_string();
    let text = text.trim_end_matches(" UTC");
    text.strip_suffix(":00").unwrap_or(text).replacen(' ', "T", 1)
}

/// Days from 1970-01-01 in the Gregorian calendar: years begin in March, so that the day that comes and goes is
/// the last one.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_survives_the_form() {
        let policy = Policy {
            rps: 2.5,
            burst: 10,
            deny_cidrs: vec![
                Network::Plain("203.0.113.0/24".into()),
                Network::Noted {
                    cidr: "2001:db8::/32".into(),
                    note: Some("card testing #2".into()),
                    expires_at_ms: Some(1_798_675_200_000),
                },
            ],
            deny_user_agents: vec!["BadBot".into(), "re:^curl/".into()],
            deny_missing_user_agent: true,
            allow_cidrs: vec![Network::Noted {
                cidr: "192.0.2.1".into(),
                note: Some("office".into()),
                expires_at_ms: None,
            }],
            routes: vec![
                Route {
                    path_prefix: "/login".into(),
                    methods: Some(vec!["POST".into(), "PUT".into()]),
                    rps: 0.5,
                    burst: 5,
                },
                Route { path_prefix: "/api".into(), methods: None, rps: 2.0, burst: 4 },
            ],
            ..Policy::default()
        };
        let draft = Draft::of(&policy);
        assert_eq!(
            draft.deny_cidrs,
            "203.0.113.0/24\n2001:db8::/32 until=2026-12-31T00:00 # card testing #2"
        );
        assert_eq!(draft.policy("log_only").unwrap(), policy);
    }

    #[test]
    fn every_fault_is_named() {
        let draft = Draft {
            rps: "fast".into(),
            burst: "-1".into(),
            ipv6_prefix: "x".into(),
            deny_cidrs: "192.0.2.1\n192.0.2.0/24 until=tomorrow".into(),
            routes: "/login 5".into(),
            ..Draft::default()
        };
        let fields: Vec<_> =
            draft.policy("enforce").unwrap_err().into_iter().map(|fault| fault.field).collect();
        assert_eq!(fields, ["rps", "burst", "ipv6_prefix", "deny_cidrs[1]", "routes[0]"]);
    }

    #[test]
    fn instants_of_lines() {
        let table = [
            ("1970-01-01T00:00", Some(0)),
            ("2026-12-31T00:00", Some(1_798_675_200_000)),
            ("2024-02-29T23:59:59Z", Some(1_709_251_199_000)),
            ("2026-12-31", Some(1_798_675_200_000)),
            ("2026-13-01T00:00", None),
            ("2026-12-31T24:00", None),
            ("soon", None),
        ];
        for (text, at_ms) in table {
            assert_eq!(instant(text), at_ms, "{text}");
            if let Some(at_ms) = at_ms {
                assert_eq!(instant(&instant_text(at_ms)), Some(at_ms));
            }
        }
    }
}
