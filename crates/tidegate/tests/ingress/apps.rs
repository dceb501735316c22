//! Which app a request is for.

use crate::{
    backend::Backend,
    rig::{Rig, setup},
    support::{server::Setup, wire},
};

fn ask(rig: &Rig, host: &str) -> (u16, String) {
    let request = format!("GET /echo HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let reply = rig.wire().exchange(request.as_bytes()).unwrap();
    (reply.status, reply.text())
}

#[test]
fn hosts_find_their_app() {
    let (second, third) = (Backend::start(), Backend::start());
    let rig = Rig::with(|setup| {
        setup
            .set("apps.wild.domains", "*.shop.example")
            .set("apps.wild.upstreams", second.address.to_string())
            .set("apps.rest.domains", "*")
            .set("apps.rest.upstreams", third.address.to_string())
            .set("apps.off.domains", "off.example")
            .set("apps.off.upstreams", third.address.to_string())
            .set("apps.off.stopped", "true")
    });
    for host in
        ["shop.example", "SHOP.EXAMPLE:80", "shop.example.", "a.shop.example", "a.b.shop.example", "other"]
    {
        assert_eq!(ask(&rig, host).0, 200, "{host}");
    }
    assert_eq!([&rig.backend, &second, &third].map(|backend| backend.whole().len()), [3, 2, 1]);
    let (status, text) = ask(&rig, "off.example");
    assert_eq!((status, text.as_str()), (503, "the app is stopped\n"));
}

#[test]
fn a_demo_app_is_there_where_none_is_configured() {
    let server = Setup::new().start();
    let page = wire::get(server.apps, "/").unwrap();
    assert_eq!(page.status, 200);
    assert!(page.text().contains("<h1>It works</h1>"), "{}", page.text());
    let echo = wire::get_with(server.apps, "/some?where", &[("x-forwarded-for", "192.0.2.1")]).unwrap();
    assert!(
        echo.text().starts_with("GET /some\n") && echo.text().contains("x-forwarded-for: 127.0.0.1\n"),
        "{}",
        echo.text()
    );
}

#[test]
fn a_fault_of_the_guard_alone_leaves_apps_served() {
    let rig = Rig::with(|setup| setup.set("guard.daily_budget", "0").even_if_not_ready());
    assert_eq!(rig.get("/echo", &[]).status, 200);
    assert!(
        rig.server.log().contains("guard-misconfigured") || rig.server.log().contains("guard.daily_budget")
    );
}

#[test]
fn faults_of_apps_stop_the_start_by_name() {
    let backend = Backend::start();
    for (key, value, says) in [
        ("apps.shop.upstreams", "https://x", "http://127.0.0.1:3000"),
        ("apps.shop.upstreams", "", "blank"),
        ("apps.shop.domains", "a b", "must be a host"),
        ("apps.shop.root", "/", "stands beside apps.shop.upstreams"),
        ("apps.empty.domains", "empty.example", "nothing that answers"),
        ("apps.twin.domains", "SHOP.example", "is a domain of the app"),
        ("apps.shop.domain", "x", "TIDEGATE_APPS__<NAME>__DOMAINS"),
        ("ingress.lisen", "x", "TIDEGATE_INGRESS__LISTEN"),
        ("ingress.tls_listen", "127.0.0.1:0", "ingress.tls_cert"),
        ("ingress.forwarded", "proxy-protocol", "nobody could connect"),
    ] {
        let twin = if key.contains("twin") { backend.address.to_string() } else { String::new() };
        let mut setup = setup(&backend).set(key, value);
        if !twin.is_empty() {
            setup = setup.set("apps.twin.upstreams", twin);
        }
        let ended = setup.try_start().expect_err(key);
        assert_eq!(ended.status.code(), Some(78), "{key}={value}: {}", ended.log);
        assert!(ended.log.contains(says), "{key}={value}: {}", ended.log);
    }
}
