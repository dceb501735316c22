//! `[ingress]`: listeners, whose word counts, and every bound of the proxy.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tidegate_core::{
    forwarded::Source,
    network::{Prefix, PrefixSet},
};
use tidegate_ingress::proxy::ProxyOptions;

use super::{
    fault::{Fault, Scope},
    listeners,
    settings::Settings,
    typed::{Forwarded, Ingress},
    value::Value,
};

/// A trusted network with fewer bits is a slip, or trusts half the world.
const TRUSTED_BITS_MIN: (u8, u8) = (8, 16);

/// Builds the section. What is faulty has its default, and `faults` says so.
pub(super) fn build(settings: &Settings, faults: &mut Vec<Fault>) -> Ingress {
    let forwarded = match settings.text("ingress.forwarded") {
        "forwarded" => Forwarded::Header(Source::Forwarded),
        "proxy-protocol" => Forwarded::ProxyProtocol,
        _ => Forwarded::Header(Source::XForwardedFor),
    };
    let trusted = networks(settings, "ingress.trusted_proxies");
    check_trust(settings, forwarded, faults);
    let tls = listeners::tls_pair(settings, "ingress.tls_cert", "ingress.tls_key", faults);
    let tls_listen = settings.address("ingress.tls_listen");
    Ingress {
        listen: settings
            .address("ingress.listen")
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        tls_listen,
        authz_listen: settings.address("ingress.authz_listen"),
        tls,
        forwarded,
        allow: set(settings, "ingress.allow_cidrs"),
        deny: set(settings, "ingress.deny_cidrs"),
        max_tracked_clients: settings.integer("ingress.max_tracked_clients"),
        access_log_entries: settings.integer("ingress.access_log_entries"),
        access_log_minutes: settings.integer("ingress.access_log_minutes"),
        max_connections: settings.integer("ingress.max_connections"),
        proxy: options(settings, trusted, forwarded),
    }
}

fn options(settings: &Settings, trusted: &[Prefix], forwarded: Forwarded) -> ProxyOptions {
    let ms = |key: &str| Duration::from_millis(settings.integer(&format!("ingress.{key}")));
    let count =
        |key: &str| usize::try_from(settings.integer(&format!("ingress.{key}"))).unwrap_or(usize::MAX);
    ProxyOptions {
        trusted: trusted.iter().copied().collect(),
        proxy_protocol: forwarded == Forwarded::ProxyProtocol,
        header_timeout: ms("header_timeout_ms"),
        idle_timeout: ms("idle_timeout_ms"),
        body_idle_timeout: ms("body_idle_timeout_ms"),
        body_timeout: ms("body_timeout_ms"),
        connect_timeout: ms("connect_timeout_ms"),
        upstream_timeout: ms("upstream_timeout_ms"),
        unhealthy: ms("unhealthy_ms"),
        tunnel_idle_timeout: ms("tunnel_idle_timeout_ms"),
        shutdown_timeout: ms("shutdown_timeout_ms"),
        header_bytes_max: count("max_header_bytes"),
        headers_max: count("max_headers"),
        streams_max: u32::try_from(settings.integer("ingress.max_streams")).unwrap_or(u32::MAX),
        upstream_idle_max: count("upstream_idle_connections"),
        upstream_idle: ms("upstream_idle_timeout_ms"),
    }
}

/// Trusting everybody by a slip lets every client choose its address.
fn check_trust(settings: &Settings, forwarded: Forwarded, faults: &mut Vec<Fault>) {
    let key = "ingress.trusted_proxies";
    let (trusted, place) = settings.readable(key);
    let trusted = prefixes(trusted);
    let mut refuse = |message: String| faults.push(Fault::new(Scope::Fatal, key, place.clone(), message));
    let (ipv4_min, ipv6_min) = TRUSTED_BITS_MIN;
    let is_broad = |network: &&Prefix| network.length() < if network.is_ipv6() { ipv6_min } else { ipv4_min };
    let may_be_broad = settings.boolean("ingress.allow_broad_trust");
    for broad in trusted.iter().filter(|network| !may_be_broad && is_broad(network)) {
        refuse(format!(
            "trusts {broad}: everybody in it may choose its address; name your proxies, or set \
             ingress.allow_broad_trust = true"
        ));
    }
    let faulty = settings.is_faulty(key);
    if forwarded == Forwarded::ProxyProtocol && trusted.is_empty() && !faulty {
        refuse("is empty; with ingress.forwarded = \"proxy-protocol\" nobody could connect".into());
    }
}

fn set(settings: &Settings, key: &str) -> PrefixSet {
    networks(settings, key).iter().copied().collect()
}

fn networks<'a>(settings: &'a Settings, key: &str) -> &'a [Prefix] {
    prefixes(settings.value(key))
}

fn prefixes(value: Option<&Value>) -> &[Prefix] {
    match value {
        Some(Value::Networks(networks)) => networks,
        _ => &[],
    }
}
