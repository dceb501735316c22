//! The client's part of the vectors that every implementation shares: `protocol/vectors.json`.

use std::collections::BTreeMap;

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use tidegate_core::secret::Secret;

use crate::{
    Backend, ENTRIES_MAX, Family, GuardClient, Refusal, RefusalCode, Selection, TIMEOUT_DEFAULT, TIMEOUT_MAX,
    TIMEOUT_MIN, WindowState, timestamp, windows::whole_ms,
};

#[derive(Deserialize)]
struct Vectors {
    bounds: BTreeMap<String, u64>,
    refusals: Vec<Told>,
    rate_limit_headers: Vec<Headers>,
    timestamps: Vec<Time>,
    timeouts: Vec<Time>,
    families: Vec<Families>,
    urls: Vec<Url>,
    secrets: Vec<Text>,
}

#[derive(Deserialize)]
struct Told {
    code: String,
    status: u16,
    message: String,
}

#[derive(Deserialize)]
struct Headers {
    name: String,
    windows: Vec<Window>,
    retry_after_ms: u64,
    headers: BTreeMap<String, String>,
    body: String,
}

#[derive(Deserialize)]
struct Window {
    period_ms: u64,
    limit: u64,
    remaining: u64,
    reset_ms: u64,
}

#[derive(Deserialize)]
struct Time {
    text: String,
    ms: Option<u64>,
}

#[derive(Deserialize)]
struct Families {
    text: String,
    assigned: Vec<String>,
    unknown: Vec<String>,
}

#[derive(Deserialize)]
struct Url {
    url: String,
    accepted: bool,
}

#[derive(Deserialize)]
struct Text {
    name: String,
    text: String,
    accepted: bool,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../../../protocol/vectors.json")).unwrap()
}

#[test]
fn bounds_of_a_client() {
    let bounds = vectors().bounds;
    let table = [
        ("timeout_ms_default", whole_ms(TIMEOUT_DEFAULT)),
        ("timeout_ms_min", whole_ms(TIMEOUT_MIN)),
        ("timeout_ms_max", whole_ms(TIMEOUT_MAX)),
        ("memory_entries_max", ENTRIES_MAX as u64),
    ];
    for (name, expected) in table {
        assert_eq!(bounds[name], expected, "{name}");
    }
}

#[test]
fn refusals() {
    let codes = [
        RefusalCode::RateLimited,
        RefusalCode::AttemptsSpent,
        RefusalCode::Unauthenticated,
        RefusalCode::ChallengeRequired,
        RefusalCode::TokenReplayed,
        RefusalCode::TokenExpired,
        RefusalCode::Unavailable,
    ];
    let told: Vec<_> =
        codes.iter().map(|code| (code.as_str(), code.status().as_u16(), code.message())).collect();
    let vectors = vectors().refusals;
    let expected: Vec<_> =
        vectors.iter().map(|told| (told.code.as_str(), told.status, told.message.as_str())).collect();
    assert_eq!(told, expected);
}

#[test]
fn headers_and_bodies_of_refusals() {
    for vector in vectors().rate_limit_headers {
        let windows = vector.windows.into_iter().map(|window| {
            let Window { period_ms, limit, remaining, reset_ms } = window;
            WindowState { period_ms, limit, remaining, reset_ms }
        });
        let refusal = Refusal {
            windows: windows.collect(),
            ..Refusal::after(RefusalCode::RateLimited, vector.retry_after_ms)
        };
        assert_eq!(texts(&refusal.headers()), vector.headers, "{}", vector.name);
        let bodies: [Value; 2] =
            [&refusal.body(), &vector.body].map(|body| serde_json::from_str(body).unwrap());
        assert_eq!(bodies[0], bodies[1], "{}", vector.name);

        let response = refusal.to_response::<String>();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()["content-type"], "application/json");
    }
    assert_eq!(texts(&Refusal::new(RefusalCode::TokenReplayed).headers()), BTreeMap::new());
    assert_eq!(texts(&Refusal::unavailable().headers())["retry-after"], "30");
}

#[test]
fn deadlines() {
    for vector in vectors().timestamps {
        assert_eq!(timestamp::parse_ms(&vector.text), vector.ms, "{:?}", vector.text);
    }
}

#[test]
fn timeouts_of_the_environment() {
    for vector in vectors().timeouts {
        let found = match selected(&[("TIMEOUT_MS", &vector.text)]).backend(Family::Proxy) {
            Backend::Guard(client) => Some(whole_ms(client.timeout())),
            Backend::Off(_) => None,
            Backend::Legacy => panic!("an assigned family never goes to the legacy path by itself"),
        };
        assert_eq!(found, vector.ms, "{:?}", vector.text);
    }
}

#[test]
fn families_of_the_environment() {
    for vector in vectors().families {
        let selection = selected(&[("FAMILIES", &vector.text)]);
        let assigned = |family: &Family| matches!(selection.backend(*family), Backend::Guard(_));
        let mut found: Vec<_> = Family::ALL.into_iter().filter(assigned).map(Family::as_str).collect();
        let mut expected: Vec<_> = vector.assigned.iter().map(String::as_str).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{:?}", vector.text);
        assert_eq!(crate::selection::families(&vector.text).1, vector.unknown, "{:?}", vector.text);
    }
}

#[test]
fn urls() {
    let secret = || Secret::new("0f1e2d3c4b5a69788796a5b4c3d2e1f0").unwrap();
    for vector in vectors().urls {
        let client = GuardClient::new(&vector.url, secret(), &secret());
        assert_eq!(client.is_ok(), vector.accepted, "{}", vector.url);
        let off = matches!(selected(&[("URL", &vector.url)]).backend(Family::Proxy), Backend::Off(_));
        assert_eq!(off, !vector.accepted, "{}", vector.url);
    }
}

#[test]
fn secrets_of_the_environment() {
    for vector in vectors().secrets {
        for name in ["SECRET", "KEY_PEPPER", "FAIRNESS_PEPPER"] {
            let selection = selected(&[(name, &vector.text)]);
            let is_guard = matches!(selection.backend(Family::Proxy), Backend::Guard(_));
            // An empty variable is an unset one, and there may be no fairness pepper.
            let accepted = vector.accepted || (name == "FAIRNESS_PEPPER" && vector.text.is_empty());
            assert_eq!(is_guard, accepted, "{name}: {}", vector.name);
            assert!(!format!("{selection:?}").contains(&vector.text) || vector.text.is_empty());
        }
    }
}

/// A complete configuration, changed.
fn selected(changes: &[(&str, &str)]) -> Selection {
    let complete = [
        ("FAMILIES", "proxy"),
        ("URL", "http://127.0.0.1:8787"),
        ("SECRET", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"),
        ("KEY_PEPPER", "f1e2d3c4b5a69788796a5b4c3d2e1f00"),
    ];
    Selection::from_variables(|name| {
        let name = name.strip_prefix("TIDEGATE_CLIENT_")?;
        let found = changes.iter().chain(&complete).find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned())
    })
}

fn texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
}
