//! Two players in network namespaces of their own, behind different prefixes, and the service on the router
//! between them. The test makes the namespaces, and removes them.

use std::process::Command;

use crate::process::{HOST, JOINER, Process, credentials, program_in};

/// Three namespaces: host (10.71.1.2/24), joiner (10.71.2.2/24), and the router that both are linked to.
struct Network {
    names: [String; 3],
}

#[test]
fn two_players_behind_different_prefixes_meet() {
    let network = Network::make();
    let [router, host, joiner] = &network.names;
    let folder = tempfile::tempdir().unwrap();
    let mut serve = program_in(router);
    serve.args(["serve", "--listen", "0.0.0.0:8090", "--mediator", "0.0.0.0:3478", "--credentials"]);
    let mut serve = Process::start(serve.arg(credentials(folder.path())));
    serve.addresses();
    let player = |namespace: &str, side: &str, gateway: &str, token: &str| {
        let (url, mediator) = (format!("http://{gateway}:8090"), format!("{gateway}:3478"));
        let mut player = program_in(namespace);
        Process::start(
            player.args([side, "--url", &url, "--mediator", &mediator]).env("RENDEZVOUS_TOKEN", token),
        )
    };
    let mut hosting = player(host, "host", "10.71.1.1", HOST);
    let mut joining = player(joiner, "join", "10.71.2.1", JOINER);
    assert!(hosting.line().starts_with("met the other player at 10.71.2.2:"));
    assert!(joining.line().starts_with("met the other player at 10.71.1.2:"));
    assert!(hosting.succeeded() && joining.succeeded());
}

impl Network {
    fn make() -> Self {
        let process = std::process::id();
        let names = ["router", "host", "joiner"].map(|name| format!("tidegate-{name}-{process}"));
        let network = Self { names };
        let [router, host, joiner] = &network.names;
        for name in &network.names {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        for (number, player) in [(1, host), (2, joiner)] {
            let (near, far) = (format!("near{number}"), format!("far{number}"));
            ip(&["-n", router, "link", "add", &near, "type", "veth", "peer", "name", &far, "netns", player]);
            ip(&["-n", router, "address", "add", &format!("10.71.{number}.1/24"), "dev", &near]);
            ip(&["-n", router, "link", "set", &near, "up"]);
            ip(&["-n", player, "address", "add", &format!("10.71.{number}.2/24"), "dev", &far]);
            ip(&["-n", player, "link", "set", &far, "up"]);
            ip(&["-n", player, "route", "add", "default", "via", &format!("10.71.{number}.1")]);
        }
        let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        ip(&["netns", "exec", router, "sh", "-c", forward]);
        network
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).output();
    let output = done.unwrap_or_else(|error| panic!("`ip` of iproute2 is needed, and root: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {}: {said}", arguments.join(" "));
}
