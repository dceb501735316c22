use super::{InvalidProfile, Profile};

#[test]
fn the_default_profile_is_valid() {
    assert_eq!(Profile::parse(Profile::DEFAULT_TEXT), Ok(Profile::default()));
}

/// The default profile with `from` replaced.
fn changed(from: &str, to: &str) -> String {
    assert!(Profile::DEFAULT_TEXT.contains(from), "{from} is not in the default profile");
    Profile::DEFAULT_TEXT.replacen(from, to, 1)
}

fn faults(text: &str) -> Vec<String> {
    let InvalidProfile(faults) = Profile::parse(text).expect_err("faulty");
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn each_fault_is_refused_by_name() {
    for (from, to, expected) in [
        (
            "[http.tenant]\nrequests = 5000\nconcurrent = 512\n",
            "",
            "http.tenant: is missing: a profile has every budget and ceiling",
        ),
        ("[udp.role]\ndatagrams = 10000", "", "udp.role: is missing: a profile has every budget and ceiling"),
        (
            "optional_requests = 40000\n",
            "",
            "http.global.optional_requests: is missing: a profile has every budget and ceiling",
        ),
        ("body_bytes_max = 16384", "body_bytes_max = 0", "http.body_bytes_max: must be from 1 to 1073741824"),
        (
            "body_bytes_max = 16384",
            "body_bytes_max = \"16 KiB\"",
            "http.body_bytes_max: must be an integer from 0 to 4294967295",
        ),
        ("window_seconds = 10", "window_seconds = 0", "http.window_seconds: must be from 1 to 3600"),
        ("window_seconds = 10", "window_seconds = 3601", "http.window_seconds: must be from 1 to 3600"),
        ("requests = 50000", "requests = 0", "http.global.requests: must be from 1 to 1000000000"),
        (
            "requests = 50000",
            "requests = -1",
            "http.global.requests: must be an integer from 0 to 4294967295",
        ),
        ("requests = 50000", "requests = 4294967295", "http.global.requests: must be from 1 to 1000000000"),
        (
            "optional_requests = 800",
            "optional_requests = 1001",
            "http.source_prefix.optional_requests: is over requests, of which it is a part",
        ),
        (
            "optional_requests = 800",
            "optional_requests = 0",
            "http.source_prefix.optional_requests: must be from 1 to 1000000000",
        ),
        (
            "concurrent = 8\n",
            "concurrent = 65536\n",
            "http.health_source_prefix.concurrent: must be from 1 to 65535",
        ),
        ("concurrent = 4096", "concurrent = 1000001", "http.global.concurrent: must be from 1 to 1000000"),
        (
            "max_tracked_keys = 65536",
            "max_tracked_keys = 24575",
            "http.max_tracked_keys: must be at least 24576: the keys that can be in use at once, and the reserve",
        ),
        (
            "critical_tracked_key_reserve = 8192",
            "critical_tracked_key_reserve = 65537",
            "http.critical_tracked_key_reserve: is over max_tracked_keys, of which it is a part",
        ),
        (
            "max_tracked_keys = 65536\n# Only",
            "max_tracked_keys = 16386\n# Only",
            "udp.max_tracked_keys: must be at least 16387: the keys that can be in use at once, and the reserve",
        ),
        (
            "trusted_proxies = []",
            "trusted_proxies = [\"10.0.0.0/7\"]",
            "client_address.trusted_proxies.0: is wider than /8 (IPv4) or /16 (IPv6), and allow_broad_trust is not set",
        ),
        (
            "trusted_proxies = []",
            "trusted_proxies = [\"10.0.0.0/8\", \"2001::/15\"]",
            "client_address.trusted_proxies.1: bits after the prefix are set; the network is 2000::/15",
        ),
        (
            "trusted_proxies = []",
            "trusted_proxies = [\"2000::/15\"]",
            "client_address.trusted_proxies.0: is wider than /8 (IPv4) or /16 (IPv6), and allow_broad_trust is not set",
        ),
        (
            "source = \"x_forwarded_for\"",
            "source = \"x_real_ip\"",
            "client_address.source: must be \"x_forwarded_for\" or \"forwarded\"",
        ),
        (
            "allow_broad_trust = false",
            "allow_broad_trust = 0",
            "client_address.allow_broad_trust: must be true or false",
        ),
        ("[udp]", "[udp]\nburst = 1", "udp.burst: is no key of an admission profile"),
    ] {
        assert_eq!(faults(&changed(from, to)), [expected], "{from} -> {to}");
    }
}

#[test]
fn the_bounds_themselves_are_valid() {
    for (from, to) in [
        ("max_tracked_keys = 65536", "max_tracked_keys = 24576"),
        ("window_seconds = 10", "window_seconds = 3600"),
        ("body_bytes_max = 16384", "body_bytes_max = 1073741824"),
        ("trusted_proxies = []", "trusted_proxies = [\"10.0.0.0/8\", \"fd00::/16\", \"192.0.2.7\"]"),
        ("trusted_proxies = []\n", "trusted_proxies = [\"0.0.0.0/0\"] #\n"),
    ] {
        let text = changed(from, to);
        let text =
            if to.ends_with("#\n") { text.replacen("_trust = false", "_trust = true", 1) } else { text };
        assert!(Profile::parse(&text).is_ok(), "{from} -> {to}: {:?}", faults(&text));
    }
}

#[test]
fn all_faults_come_at_once() {
    let text = changed("requests = 50000", "requests = 0")
        .replace("[http.resource]\nrequests = 200\nconcurrent = 16\n", "");
    let text = text.replace("trusted_proxies = []", "trusted_proxies = [\"nowhere\"]");
    let fields: Vec<String> =
        faults(&text).iter().filter_map(|fault| fault.split(':').next().map(str::to_owned)).collect();
    assert_eq!(fields, ["http.resource", "http.global.requests", "client_address.trusted_proxies.0"]);
}

#[test]
fn an_empty_file_lacks_everything_and_nonsense_is_not_toml() {
    assert_eq!(faults("").len(), 3, "three tables");
    assert!(faults("[http")[0].starts_with(": is not valid TOML"));
    assert!(faults(&" ".repeat(300_000))[0].contains("over"));
}
