//! Which app a request is for.

use std::{collections::HashMap, sync::Arc};

use super::app::AppState;

/// The apps by domain.
#[derive(Debug, Default)]
pub(super) struct Routes {
    exact: HashMap<Box<str>, Arc<AppState>>,
    /// By what stands behind `*.`.
    wildcard: HashMap<Box<str>, Arc<AppState>>,
    /// The app of `*`.
    any: Option<Arc<AppState>>,
    apps: Vec<Arc<AppState>>,
}

impl Routes {
    pub(super) fn add(&mut self, domains: &[String], app: &Arc<AppState>) {
        self.apps.push(Arc::clone(app));
        for domain in domains {
            let domain = domain.to_ascii_lowercase();
            match domain.strip_prefix("*.") {
                _ if domain == "*" => self.any = Some(Arc::clone(app)),
                Some(parent) => drop(self.wildcard.insert(parent.into(), Arc::clone(app))),
                None => drop(self.exact.insert(domain.into(), Arc::clone(app))),
            }
        }
    }

    /// The app of a host, with or without a port: by its own name, else by the closest wildcard.
    pub(super) fn app(&self, host: &str) -> Option<&Arc<AppState>> {
        if self.exact.is_empty() && self.wildcard.is_empty() {
            return self.any.as_ref();
        }
        let name = name_of(host);
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return self.by_name(&name.to_ascii_lowercase());
        }
        self.by_name(name)
    }

    /// Every app.
    pub(super) fn apps(&self) -> &[Arc<AppState>] {
        &self.apps
    }

    fn by_name(&self, name: &str) -> Option<&Arc<AppState>> {
        if let Some(app) = self.exact.get(name) {
            return Some(app);
        }
        if !self.wildcard.is_empty() {
            let mut rest = name;
            while let Some((_, parent)) = rest.split_once('.') {
                if let Some(app) = self.wildcard.get(parent) {
                    return Some(app);
                }
                rest = parent;
            }
        }
        self.any.as_ref()
    }
}

/// A host without its port and without the dot of the root.
fn name_of(host: &str) -> &str {
    // Hosts are short: to look at each byte costs less than to prepare a search.
    let name = match host.bytes().rposition(|byte| byte == b':') {
        Some(colon) if host[colon + 1..].bytes().all(|byte| byte.is_ascii_digit()) => &host[..colon],
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_domain_has_the_host() {
        let mut routes = Routes::default();
        for (name, domains) in [
            ("shop", &["shop.example", "*.shop.example"][..]),
            ("api", &["API.shop.example", "*.v1.api.shop.example"]),
            ("v6", &["[::1]"]),
        ] {
            let domains: Vec<String> = domains.iter().map(|domain| (*domain).to_owned()).collect();
            routes.add(&domains, &Arc::new(AppState::named(name)));
        }
        let app = |host: &str| routes.app(host).map_or("none", |app| app.name());
        for (host, expected) in [
            ("shop.example", "shop"),
            ("SHOP.example:8080", "shop"),
            ("shop.example.", "shop"),
            ("shop.example.:80", "shop"),
            ("a.shop.example", "shop"),
            ("a.b.shop.example", "shop"),
            ("api.shop.example", "api"),
            ("x.v1.api.shop.example", "api"),
            ("v1.api.shop.example", "shop"),
            ("[::1]:8080", "v6"),
            ("[::1]", "v6"),
            ("evilshop.example", "none"),
            ("example", "none"),
            ("", "none"),
            (":80", "none"),
        ] {
            assert_eq!(app(host), expected, "{host}");
        }
        let mut routes = Routes::default();
        assert!(routes.app("shop.example").is_none());
        routes.add(&["*".to_owned()], &Arc::new(AppState::named("all")));
        assert_eq!(["shop.example", ""].map(|host| routes.app(host).unwrap().name()), ["all", "all"]);
    }
}
