//! The configuration as its users see it: what goes in, which faults come out.

mod faults;
mod guard;
mod ingress;
mod layers;
mod listeners;
mod lists;
mod output;
mod redaction;
mod secret_files;

use std::{ffi::OsString, path::Path};

use zeroize::Zeroizing;

use super::*;

pub(super) const SECRET_A: &str = "one-signing-secret-for-tests-0123456789";
pub(super) const SECRET_B: &str = "another-signing-secret-for-tests-98765";

pub(super) fn sources(toml: &str, environment: &[(&str, &str)]) -> Sources {
    let file = FileText { path: Path::new("tidegate.toml").into(), text: Zeroizing::new(toml.to_owned()) };
    let variables = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Sources { file: Some(file), environment: variables.collect(), ..Sources::default() }
}

pub(super) fn loaded(toml: &str, environment: &[(&str, &str)]) -> Loaded {
    load(&sources(toml, environment))
}

/// The one configuration that this text gives; it must have no fault.
pub(super) fn good(toml: &str, environment: &[(&str, &str)]) -> Configuration {
    let loaded = loaded(toml, environment);
    assert_eq!(texts(&loaded), Vec::<String>::new(), "{toml}");
    loaded.start().unwrap()
}

pub(super) fn texts(loaded: &Loaded) -> Vec<String> {
    loaded.faults.iter().map(ToString::to_string).collect()
}

/// Checks that the text has exactly one fault, which begins and ends as given.
pub(super) fn one_fault(toml: &str, environment: &[(&str, &str)], scope: Scope, begins: &str, holds: &str) {
    let loaded = loaded(toml, environment);
    let texts = texts(&loaded);
    assert_eq!(texts.len(), 1, "{toml}\n{environment:?}\n{texts:#?}");
    assert!(
        texts[0].starts_with(begins),
        "{toml}\n{environment:?}\n{}\ndoes not begin with {begins}",
        texts[0]
    );
    assert!(texts[0].contains(holds), "{toml}\n{environment:?}\n{}\ndoes not hold {holds}", texts[0]);
    assert_eq!(loaded.faults[0].scope, scope, "{}", texts[0]);
}
