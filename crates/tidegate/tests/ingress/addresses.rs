//! Whose request it is: what the app is told, for every way in which a client may be named.

use crate::{backend::value, rig::Rig};

/// The peer of these tests is 127.0.0.1; 198.51.100.0/24 are further proxies.
fn behind_proxies(forwarded: &'static str) -> Rig {
    Rig::with(|setup| {
        setup
            .set("ingress.trusted_proxies", "127.0.0.1,198.51.100.0/24,2001:db8:ffff::/48")
            .set("ingress.forwarded", forwarded)
    })
}

#[track_caller]
fn check(rig: &Rig, headers: &[(&str, &str)], client: &str) {
    let head = rig.seen(headers);
    let told: Vec<_> = head.split("\r\n").filter(|line| line.starts_with("x-forwarded-for:")).collect();
    assert_eq!(told, [format!("x-forwarded-for: {client}")], "{headers:?}");
    assert_eq!(value(&head, "x-real-ip"), Some(client), "{headers:?}");
    assert_eq!(value(&head, "forwarded"), None, "{headers:?}");
}

#[test]
fn the_first_untrusted_hop_from_the_right_is_the_client() {
    let rig = behind_proxies("x-forwarded-for");
    let xff = "X-Forwarded-For";
    for (lines, client) in [
        (&["203.0.113.1, 192.0.2.7"][..], "192.0.2.7"),
        (&["203.0.113.66", "192.0.2.7", "198.51.100.11"], "192.0.2.7"),
        (&["203.0.113.66, 192.0.2.7,", ",198.51.100.11"], "192.0.2.7"),
        (&["\t203.0.113.66 ,  192.0.2.7 , , 198.51.100.11 "], "192.0.2.7"),
        (&["203.0.113.66,192.0.2.7,198.51.100.11"], "192.0.2.7"),
        // With a port.
        (&["192.0.2.7:51034"], "192.0.2.7"),
        (&["[2001:db8:1:2::5]:443"], "2001:db8:1:2::5"),
        (&["[2001:db8:1:2::5]"], "2001:db8:1:2::5"),
        (&["2001:db8::1:8080"], "2001:db8::1:8080"),
        // What is no address ends the walk at the hop that vouched for it.
        (&["192.0.2.7:"], "127.0.0.1"),
        (&["192.0.2.7:99999"], "127.0.0.1"),
        (&["{${print(1)}}"], "127.0.0.1"),
        (&["192.0.2.7, not-an-ip-1"], "127.0.0.1"),
        (&["192.0.2.7, unknown, 198.51.100.11"], "198.51.100.11"),
        (&[""], "127.0.0.1"),
        (&[","], "127.0.0.1"),
        // Mapped and NAT64 addresses are the IPv4 address that they carry; others are not.
        (&["::ffff:192.0.2.1"], "192.0.2.1"),
        (&["64:ff9b::c000:201"], "192.0.2.1"),
        (&["192.0.2.1, ::ffff:198.51.100.7"], "192.0.2.1"),
        (&["::c000:201"], "::c000:201"),
        (&["::1"], "::1"),
        // A second proxy that is not listed is the client, and nobody guesses further left.
        (&["203.0.113.5, 203.0.113.99"], "203.0.113.99"),
        // All trusted: the furthest of them.
        (&["198.51.100.1, 198.51.100.2"], "198.51.100.1"),
    ] {
        let headers: Vec<_> = lines.iter().map(|line| (xff, *line)).collect();
        check(&rig, &headers, client);
    }
    check(&rig, &[], "127.0.0.1");
    // Other headers name nobody.
    check(&rig, &[("Forwarded", "for=192.0.2.7"), ("X-Real-IP", "192.0.2.7")], "127.0.0.1");
}

#[test]
fn long_lists_are_walked_within_a_bound() {
    let rig = behind_proxies("x-forwarded-for");
    let trusted = vec!["198.51.100.1"; 2000].join(",");
    let head = rig.seen(&[("X-Forwarded-For", &trusted)]);
    assert_eq!(value(&head, "x-forwarded-for"), Some("198.51.100.1"));
    let garbage = "A".repeat(5000);
    check(&rig, &[("X-Forwarded-For", &garbage)], "127.0.0.1");
    assert!(!rig.server.log().contains("AAAA"));
}

#[test]
fn zones_name_no_client() {
    let rig = behind_proxies("x-forwarded-for");
    let of = |text: &str| {
        let head = rig.seen(&[("X-Forwarded-For", text)]);
        value(&head, "x-forwarded-for").map(str::to_owned)
    };
    let zones: Vec<_> = (0..5).map(|zone| of(&format!("fe80::1%eth{zone}"))).collect();
    assert!(zones.windows(2).all(|two| two[0] == two[1]), "one key, not one a zone: {zones:?}");
}

#[test]
fn the_word_of_strangers_is_dropped() {
    let rig = Rig::with(|setup| setup.set("ingress.trusted_proxies", "198.51.100.0/24"));
    let client_written = [
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Real-IP", "192.0.2.1"),
        ("CF-Connecting-IP", "192.0.2.1"),
        ("True-Client-IP", "192.0.2.1"),
        ("Forwarded", "for=192.0.2.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "evil.example"),
    ];
    let head = rig.seen(&client_written);
    assert!(!head.contains("192.0.2.1") && !head.contains("evil"), "{head}");
    assert_eq!(value(&head, "x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(value(&head, "x-forwarded-proto"), Some("http"));
    let reply = rig.wire_from("127.0.0.9").exchange(&crate::rig::get("/echo", &client_written)).unwrap();
    assert_eq!(value(&reply.text(), "x-forwarded-for"), Some("127.0.0.9"));
}

#[test]
fn the_standard_header_is_read_where_it_is_configured() {
    let rig = behind_proxies("forwarded");
    for (line, client) in [
        ("for=192.0.2.7", "192.0.2.7"),
        ("For=\"[2001:db8:1:2::17]:4711\"", "2001:db8:1:2::17"),
        ("for=\"192.0.2.7:_p\"", "192.0.2.7"),
        ("for=unknown", "127.0.0.1"),
        ("for=_hidden", "127.0.0.1"),
        ("for=192.0.2.7, for=198.51.100.11;proto=https", "192.0.2.7"),
        ("for=\"192.0.2.7, for=203.0.113.66\"", "127.0.0.1"),
        ("for=2001:db8::1:8080", "127.0.0.1"),
    ] {
        check(&rig, &[("Forwarded", line)], client);
        // The other header is never read, nor passed on.
        check(&rig, &[("Forwarded", line), ("X-Forwarded-For", "203.0.113.66")], client);
    }
}

#[test]
fn the_firewall_knows_the_same_client() {
    let rig = Rig::with(|setup| {
        setup
            .set("ingress.trusted_proxies", "127.0.0.1")
            .set("ingress.deny_cidrs", "203.0.113.0/24,2001:db8:bad::/48")
            .set("ingress.allow_cidrs", "203.0.113.7")
    });
    for (client, status) in [
        ("203.0.113.1", 403),
        ("::ffff:203.0.113.1", 403),
        ("64:ff9b::cb00:7101", 403),
        ("2001:db8:bad::1", 403),
        ("203.0.113.7", 200),
        ("::ffff:203.0.113.7", 200),
        ("192.0.2.1", 200),
        ("192.0.2.1, 203.0.113.1", 403),
        ("203.0.113.1, 192.0.2.1", 200),
    ] {
        assert_eq!(rig.get("/echo", &[("X-Forwarded-For", client)]).status, status, "{client}");
    }
    assert_eq!(rig.backend.whole().len(), 4, "refused requests never reach the app");
}
