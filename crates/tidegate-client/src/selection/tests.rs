use super::*;
use crate::{GuardUnavailable, Reason};

const GOOD: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";

/// A complete configuration, but for what `changes` says; an empty text leaves a variable out.
fn selected(changes: &[(&str, &str)]) -> Selection {
    let complete = [
        ("FAMILIES", "replay,password"),
        ("URL", "https://guard.example"),
        ("SECRET", GOOD),
        ("KEY_PEPPER", GOOD),
    ];
    Selection::from_variables(|name| {
        let name = name.strip_prefix("TIDEGATE_CLIENT_").expect("its own variables only");
        let found = changes.iter().chain(&complete).find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned())
    })
}

fn kind(selection: &Selection, family: Family) -> &'static str {
    match selection.backend(family) {
        Backend::Guard(_) => "guard",
        Backend::Legacy => "legacy",
        Backend::Off(cause) => GuardUnavailable::from(cause).reason().as_str(),
    }
}

#[test]
fn an_assigned_family_that_is_misconfigured_in_any_way_is_off() {
    let ways: [&[(&str, &str)]; 16] = [
        &[("URL", "")],
        &[("URL", "http://guard.example")],
        &[("URL", "guard.example")],
        &[("URL", "https://guard.example/v1/rpc")],
        &[("SECRET", "")],
        &[("SECRET", "short")],
        &[("SECRET", "   ")],
        &[("SECRET", "0f1e2d3c4b5a69788796a5b4c3d2e1f0\n")],
        &[("KEY_PEPPER", "")],
        &[("KEY_PEPPER", "short")],
        &[("FAIRNESS_PEPPER", "short")],
        &[("TIMEOUT_MS", "750ms")],
        &[("TIMEOUT_MS", "\u{fffd}")],
        &[("BACKEND", "Legacy")],
        &[("BACKEND", "upstash")],
        &[("URL", ""), ("SECRET", ""), ("KEY_PEPPER", "")],
    ];
    for way in ways {
        let selection = selected(way);
        for family in [Family::Replay, Family::Password] {
            assert_eq!(kind(&selection, family), Reason::Configuration.as_str(), "{way:?}");
        }
        // Others are as they were.
        assert_eq!(kind(&selection, Family::Offline), "legacy", "{way:?}");
        assert_eq!(kind(&selection, Family::Proxy), "legacy", "{way:?}");
    }
}

#[test]
fn where_families_go() {
    type Changes<'a> = &'a [(&'a str, &'a str)];
    let table: [(Changes<'_>, &str, &str); 7] = [
        (&[], "guard", "legacy"),
        (&[("FAMILIES", "")], "legacy", "legacy"),
        (&[("FAMILIES", "Replay")], "legacy", "legacy"),
        (&[("BACKEND", "legacy")], "legacy", "legacy"),
        (&[("BACKEND", "legacy"), ("URL", "")], "legacy", "legacy"),
        (&[("BACKEND", "off")], "off", "legacy"),
        (&[("BACKEND", "off"), ("SECRET", "short")], "off", "legacy"),
    ];
    for (changes, assigned, other) in table {
        let selection = selected(changes);
        assert_eq!(kind(&selection, Family::Replay), assigned, "{changes:?}");
        assert_eq!(kind(&selection, Family::Proxy), other, "{changes:?}");
    }
}

#[test]
fn a_fault_names_its_variable_and_never_its_value() {
    let table = [
        ("URL", "http://guard.example", "URL: "),
        ("URL", "", "URL is missing"),
        ("SECRET", "hunter2", "SECRET has 7 characters"),
        ("KEY_PEPPER", "hunter2", "KEY_PEPPER has 7 characters"),
        ("FAIRNESS_PEPPER", "hunter2", "FAIRNESS_PEPPER has 7 characters"),
        ("TIMEOUT_MS", "hunter2", "TIMEOUT_MS must be"),
        ("BACKEND", "hunter2", "BACKEND must be"),
    ];
    for (name, value, expected) in table {
        let Backend::Off(cause) = selected(&[(name, value)]).backend(Family::Replay) else {
            panic!("{name} is taken");
        };
        let text = cause.to_string();
        assert!(text.contains(expected) && !text.contains("hunter2"), "{text}");
    }
}

#[test]
fn unknown_names_are_warned_of_once() {
    let log = crate::log::Log::default();
    let _captured = log.capture();
    for _ in 0..3 {
        let selection = selected(&[("FAMILIES", "Proxy,no-such-family,replay")]);
        assert_eq!(kind(&selection, Family::Proxy), "legacy");
        assert_eq!(kind(&selection, Family::Replay), "guard");
    }
    for name in ["\"Proxy\"", "\"no-such-family\""] {
        assert_eq!(log.text().matches(name).count(), 1, "{}", log.text());
    }
}
