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
    let (mut apps, mut certificates) = (Vec::<App>::new(), Vec::new());
    for name in &names {
        let Some(app) = app(name, settings, faults) else { continue };
        check_domains(&app, &apps, settings, faults);
        let [cert, key] = ["tls_cert", "tls_key"].map(|key| path(name, key));
        if let Some(tls) = listeners::tls_pair(settings, &cert, &key, faults) {
            certificates.push(AppTls { domains: app.domains.clone(), tls });
        }
        apps.push(app);
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

fn app(name: &str, settings: &Settings, faults: &mut Vec<Fault>) -> Option<App> {
    let backend = backend(name, settings, faults)?;
    let flag = |key: &str| settings.boolean(&path(name, key));
    Some(App {
        name: name.to_owned(),
        domains: words(settings, &path(name, "domains"))
            .iter()
            .map(|domain| domain.to_ascii_lowercase())
            .collect(),
        backend,
        stopped: flag("stopped"),
        shield: shield(name, settings),
        allow_ambiguous_paths: flag("allow_ambiguous_paths"),
    })
}

fn backend(name: &str, settings: &Settings, faults: &mut Vec<Fault>) -> Option<Backend> {
    let (upstreams_key, root_key) = (path(name, "upstreams"), path(name, "root"));
    if settings.is_faulty(&upstreams_key) || settings.is_faulty(&root_key) {
        return None;
    }
    let mut refuse = |key: &str, place, message: String| {
        faults.push(Fault::new(Scope::Fatal, key, place, message));
        None
    };
    let upstreams = words(settings, &upstreams_key);
    match (upstreams.is_empty(), settings.path(&root_key)) {
        (true, None) => {
            let message = "has nothing that answers: set upstreams or root".into();
            refuse(&format!("{APPS}.{name}"), settings.place_of(APPS, name), message)
        }
        (false, Some(_)) => {
            let message = format!("stands beside {upstreams_key}; one of the two is enough");
            refuse(&root_key, settings.place(&root_key), message)
        }
        (true, Some(root)) if !root.is_dir() => {
            refuse(&root_key, settings.place(&root_key), format!("is no directory: {}", root.display()))
        }
        (true, Some(root)) => Some(Backend::Root(root)),
        (false, None) => {
            let mut addresses = Vec::new();
            for (index, text) in upstreams.iter().enumerate() {
                match UpstreamAddress::parse(text) {
                    Some(address) => addresses.push(address),
                    None => {
                        let message = format!(
                            "must be a host with or without a port, such as http://127.0.0.1:3000, with no path; \
                             it is {text:?}"
                        );
                        let place = settings.place(&upstreams_key);
                        return refuse(&format!("{upstreams_key}[{index}]"), place, message);
                    }
                }
            }
            Some(Backend::Upstreams(addresses))
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

/// Each domain is one, and no two apps have the same.
fn check_domains(app: &App, others: &[App], settings: &Settings, faults: &mut Vec<Fault>) {
    let key = path(&app.name, "domains");
    for (index, domain) in app.domains.iter().enumerate() {
        let taken = others.iter().find(|other| other.domains.contains(domain));
        let message = match taken {
            _ if !is_domain(domain) => {
                format!("must be a host such as shop.example, *.shop.example or *; it is {domain:?}")
            }
            Some(other) => format!("is a domain of the app {:?} too: {domain:?}", other.name),
            None => continue,
        };
        faults.push(Fault::new(Scope::Fatal, format!("{key}[{index}]"), settings.place(&key), message));
    }
}

fn is_domain(domain: &str) -> bool {
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

fn words<'a>(settings: &'a Settings, key: &str) -> &'a [String] {
    match settings.value(key) {
        Some(Value::Words(words)) => words,
        _ => &[],
    }
}

fn path(name: &str, key: &str) -> String {
    format!("{APPS}.{name}.{key}")
}
