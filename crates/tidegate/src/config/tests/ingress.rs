//! `[ingress]` and `[apps]`: what they say, and what is refused.

use tidegate_core::{address::Address, forwarded::Source};
use tidegate_ingress::proxy::{Backend, Shield};

use super::*;

#[test]
fn apps_are_built_with_the_shields_of_the_ingress() {
    let configuration = good(
        "[ingress]\nmax_body_bytes = 5\n[apps.shop]\ndomains = [\"Shop.example\", \"*.shop.example\"]\n\
         upstreams = [\"http://127.0.0.1:3000\", \"app\"]\n[apps.shop.shield]\nmax_concurrency = 7",
        &[("TIDEGATE_APPS__MY_SITE__ROOT", "."), ("TIDEGATE_APPS__MY_SITE__SHIELD__MAX_BODY_BYTES", "9")],
    );
    let [my_site, shop] = &configuration.apps[..] else { panic!("{:?}", configuration.apps) };
    assert_eq!((my_site.name.as_str(), shop.name.as_str()), ("my_site", "shop"));
    assert_eq!(shop.domains, ["shop.example", "*.shop.example"]);
    assert_eq!(shop.shield, Shield { max_concurrency: 7, max_body_bytes: 5 });
    assert_eq!(my_site.shield, Shield { max_concurrency: 1024, max_body_bytes: 9 });
    assert!(matches!(&shop.backend, Backend::Upstreams(upstreams) if upstreams.len() == 2));
    assert!(matches!(my_site.backend, Backend::Root(_)));
}

#[test]
fn a_demo_app_stands_in_only_where_none_is_named() {
    let demo = good("", &[]);
    assert!(matches!(&demo.apps[..], [app] if app.name == "demo" && app.domains == ["*"]));
    let faulty = loaded("[apps.shop]\nupstreams = [\"ftp://x\"]", &[]);
    assert!(faulty.regardless().apps.is_empty());
}

#[test]
fn trust_is_all_or_nothing() {
    let trusted =
        |list: &str| good(&format!("[ingress]\ntrusted_proxies = {list}"), &[]).ingress.proxy.trusted;
    let address = |text: &str| Address::parse(text).unwrap();
    let some = trusted("[\"198.51.100.10\", \" 192.0.2.0/24\", \"\\n2001:db8::/48\\n\"]");
    for (text, expected) in [
        ("198.51.100.10", true),
        ("192.0.2.77", true),
        ("::ffff:192.0.2.77", true),
        ("2001:db8::7", true),
        ("203.0.113.200", false),
    ] {
        assert_eq!(some.contains(address(text)), expected, "{text}");
    }
    assert!(trusted("[]").is_empty(), "an empty list trusts nobody");
    for (list, says) in [
        ("[\"198.51.100.0/33\"]", "longer than 32 bits"),
        ("[\"198.51.100.0/ 24\"]", "no address and no network"),
        ("[\"proxy.example\"]", "no address and no network"),
        ("[\"198.51.100.3/24\"]", "198.51.100.0/24"),
        ("[\"0.0.0.0/0\"]", "allow_broad_trust"),
        ("[\"::/0\"]", "allow_broad_trust"),
        ("[\"10.0.0.0/7\"]", "allow_broad_trust"),
    ] {
        let toml = format!("[ingress]\ntrusted_proxies = {list}");
        one_fault(&toml, &[], Scope::Fatal, "tidegate.toml:2: ingress.trusted_proxies", says);
    }
    good("[ingress]\nallow_broad_trust = true\ntrusted_proxies = [\"0.0.0.0/0\"]", &[]);
}

#[test]
fn faults_are_named_with_key_and_line() {
    for (toml, begins, says) in [
        ("[apps.shop]\ndomains = [\"a\"]", "tidegate.toml:2: apps.shop", "upstreams or root"),
        (
            "[apps.shop]\nupstreams = [\"a\", \"http://b/c\"]",
            "tidegate.toml:2: apps.shop.upstreams[1]",
            "no path",
        ),
        ("[apps.shop]\nupstream = [\"a\"]", "tidegate.toml:2: apps.shop.upstream: is not a key", "upstreams"),
        ("[apps.Shop]\nroot = \".\"", "tidegate.toml:1: apps.Shop: the name of an app", "a-z"),
        ("[apps.shop]\nroot = \"./nowhere\"", "tidegate.toml:2: apps.shop.root", "no directory"),
        ("[apps.shop]\nroot = \".\"\ndomains = [\"a..b\"]", "tidegate.toml:3: apps.shop.domains[0]", "a..b"),
        (
            "[apps.shop]\nroot = \".\"\ntls_cert = \"Cargo.toml\"",
            "tidegate.toml:3: apps.shop.tls_cert",
            "PEM",
        ),
        (
            "[ingress]\nlisten = \"127.0.0.1:9090\"",
            "tidegate.toml:2: ingress.listen",
            "same port as admin.listen",
        ),
        ("[ingress]\nforwarded = \"proxy\"", "tidegate.toml:2: ingress.forwarded", "proxy-protocol"),
        (
            "[ingress]\nforwarded = \"proxy-protocol\"",
            "default: ingress.trusted_proxies",
            "nobody could connect",
        ),
        (
            "[ingress]\ntls_listen = \"127.0.0.1:8443\"",
            "tidegate.toml:2: ingress.tls_listen",
            "ingress.tls_cert",
        ),
        ("[ingress]\nmax_header_bytes = 1", "tidegate.toml:2: ingress.max_header_bytes", "1024"),
    ] {
        let texts = texts(&loaded(toml, &[]));
        assert!(
            texts.iter().any(|text| text.starts_with(begins) && text.contains(says)),
            "{toml}\n{texts:#?}"
        );
    }
}

#[test]
fn two_apps_never_have_the_same_domain() {
    let toml = "[apps.a]\nroot = \".\"\ndomains = [\"x.example\"]\n[apps.b]\nroot = \".\"\ndomains = [\"X.example\"]";
    one_fault(toml, &[], Scope::Fatal, "tidegate.toml:6: apps.b.domains[0]", "a domain of the app \"a\" too");
}

#[test]
fn how_clients_are_named_is_one_of_three() {
    let forwarded = |text: &str| {
        let toml = format!("[ingress]\ntrusted_proxies = [\"127.0.0.1\"]\nforwarded = \"{text}\"");
        good(&toml, &[]).ingress.forwarded
    };
    assert_eq!(forwarded("x-forwarded-for"), Forwarded::Header(Source::XForwardedFor));
    assert_eq!(forwarded("forwarded"), Forwarded::Header(Source::Forwarded));
    assert_eq!(forwarded("proxy-protocol"), Forwarded::ProxyProtocol);
}
