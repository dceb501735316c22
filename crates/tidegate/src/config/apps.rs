//! `[apps.<name>]`: what is served for which host.

use tidegate_ingress::proxy::{App, Backend, Shield, UpstreamAddress};

use super::{
    fault::{Fault, Scope},
    listeners,
    settings::Settings,
    typed::{AppTls, Ingress},
    value::Value,
};

/// A client table and an access log are kept for each.
const APPS_MAX: usize = 1_000;
const APPS: &str = "apps";

/// Every app, with the apps' own certificates. A faulty app is left out, and `faults` says why.
pub(super) fn build(
    settings: &Settings,
    ingress: &Ingress,
    faults: &mut Vec<Fault>,
) -> (Vec<App>, Vec<AppTls>) {
    let names = settings.names_in(APPS);
    let before = faults.len();
    let (mut apps, mut certificates) = (Vec::new(), Vec::new());
    let mut taken: Vec<(&str, Vec<String>)> = Vec::new();
    for name in &names {
        let domains = domains(name, &taken, settings, faults);
        taken.push((name, domains.clone()));
        let [cert, key] = ["tls_cert", "tls_key"].map(|key| path(name, key));
        if let Some(tls) = listeners::tls_pair(settings, &cert, &key, faults) {
            certificates.push(AppTls { domains: domains.clone(), tls });
        }
        apps.extend(app(name, domains, settings, faults));
    }
    if names.len() > APPS_MAX {
        let place = names.last().map_or(super::Place::Default, |name| settings.place_of(APPS, name));
        let message = format!("are {}; at most {APPS_MAX} are served", names.len());
        faults.push(Fault::new(Scope::Fatal, APPS, place, message));
    }
    check_tls(settings, ingress, &certificates, faults);
    // With a faulty app none is served, so that the demo app does not stand in for it.
    if names.is_empty() && faults.len() == before {
        apps.push(demo(settings));
    }
    (apps, certificates)
}

/// What is served where no app is configured.
fn demo(settings: &Settings) -> App {
    App {
        name: "demo".to_owned(),
        domains: vec!["*".to_owned()],
        backend: Backend::Demo,
        stopped: false,
        shield: shield("demo", settings),
        allow_ambiguous_paths: false,
    }
}

fn app(name: &str, domains: Vec<String>, settings: &Settings, faults: &mut Vec<Fault>) -> Option<App> {
    let backend = backend(name, settings, faults)?;
    let flag = |key: &str| settings.boolean(&path(name, key));
    Some(App {
        name: name.to_owned(),
        domains,
        backend,
        stopped: flag("stopped"),
        shield: shield(name, settings),
        allow_ambiguous_paths: flag("allow_ambiguous_paths"),
    })
}

fn backend(name: &str, settings: &Settings, faults: &mut Vec<Fault>) -> Option<Backend> {
    let (upstreams_key, root_key) = (path(name, "upstreams"), path(name, "root"));
    let mut refuse = |key: &str, place, message: String| {
        faults.push(Fault::new(Scope::Fatal, key, place, message));
    };
    let upstreams = words(settings.value(&upstreams_key));
    let root = settings.path(&root_key);
    let has_upstreams = !upstreams.is_empty() || settings.is_faulty(&upstreams_key);
    let has_root = root.is_some() || settings.is_faulty(&root_key);
    if !has_upstreams && !has_root {
        let message = "has nothing that answers: set upstreams or root".into();
        refuse(&format!("{APPS}.{name}"), settings.place_of(APPS, name), message);
    }
    if has_upstreams && has_root {
        let message = format!("stands beside {upstreams_key}; one of the two is enough");
        refuse(&root_key, settings.readable(&root_key).1, message);
    }
    if let Some(root) = root.as_ref().filter(|root| !root.is_dir()) {
        refuse(&root_key, settings.place(&root_key), format!("is no directory: {}", root.display()));
    }
    match root {
        Some(root) => (root.is_dir() && !has_upstreams).then_some(Backend::Root(root)),
        None if upstreams.is_empty() || has_root => None,
        None => {
            let addresses = upstreams.iter().filter_map(|text| UpstreamAddress::parse(text));
            Some(Backend::Upstreams(addresses.collect()))
        }
    }
}

fn shield(name: &str, settings: &Settings) -> Shield {
    let of = |key: &str| match settings.value(&path(name, &format!("shield.{key}"))) {
        Some(Value::Integer(number)) => *number,
        _ => settings.integer(&format!("ingress.{key}")),
    };
    Shield { max_concurrency: of("max_concurrency"), max_body_bytes: of("max_body_bytes") }
}

/// The app's domains, which no app before it may have.
fn domains(
    name: &str,
    taken: &[(&str, Vec<String>)],
    settings: &Settings,
    faults: &mut Vec<Fault>,
) -> Vec<String> {
    let key = path(name, "domains");
    let (domains, place) = settings.readable(&key);
    let domains = words(domains);
    for (index, domain) in domains.iter().enumerate() {
        let Some((other, _)) = taken.iter().find(|(_, others)| others.contains(domain)) else { continue };
        let message = format!("is a domain of the app {other:?} too: {domain:?}");
        faults.push(Fault::new(Scope::Fatal, settings.entry(&key, index, ""), place.clone(), message));
    }
    domains.to_vec()
}

/// What a domain is, in words.
pub(super) const A_DOMAIN: &str = "a host such as shop.example, *.shop.example or *";
/// What an upstream is, in words.
pub(super) const AN_UPSTREAM: &str =
    "a host with or without a port, such as http://127.0.0.1:3000, with no path";

/// Whether it is a host, all hosts below one, or any host; in lower case.
pub(super) fn is_domain(domain: &str) -> bool {
    let name = domain.strip_prefix("*.").unwrap_or(domain);
    let label = |label: &str| {
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(allowed)
    };
    let is_ipv6 = || {
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
    };
    domain == "*" || name.len() <= 253 && (name.split('.').all(label) || is_ipv6())
}

/// A TLS listener needs a certificate to show, and a certificate a listener to show it.
fn check_tls(settings: &Settings, ingress: &Ingress, certificates: &[AppTls], faults: &mut Vec<Fault>) {
    let (key, has_any) = ("ingress.tls_listen", ingress.tls.is_some() || !certificates.is_empty());
    let faulty = settings.is_faulty("ingress.tls_cert") || settings.is_faulty("ingress.tls_key");
    if ingress.tls_listen.is_some() && !has_any && !faulty {
        let message = "needs ingress.tls_cert and ingress.tls_key, or those of an app";
        faults.push(Fault::new(Scope::Fatal, key, settings.place(key), message));
    }
}

fn words(value: Option<&Value>) -> &[String] {
    match value {
        Some(Value::Words(words)) => words,
        _ => &[],
    }
}

fn path(name: &str, key: &str) -> String {
    format!("{APPS}.{name}.{key}")
}
