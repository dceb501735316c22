//! The real Caddy asks, with the configuration that the documentation shows.

use std::{
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use tokio::runtime::Builder;

use crate::{
    authz,
    nginx::{app, asked, does_as_it_is_told, free_address, serves_without_it},
};

const CONFIGURATION: &str = include_str!("../../../../docs/forward-auth/Caddyfile");

/// A Caddy that is killed when it is dropped.
struct Caddy {
    process: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Caddy {
    /// In front of `app`, asking `authz`. It returns once Caddy listens.
    fn start(app: SocketAddr, authz: SocketAddr) -> Self {
        for _ in 0..10 {
            let folder = tempfile::tempdir().unwrap();
            let address = free_address();
            let site = CONFIGURATION
                .replace(
                    "shop.example {",
                    &format!("http://shop.example:{} {{\n\tbind 127.0.0.1", address.port()),
                )
                .replace("127.0.0.1:3000", &app.to_string())
                .replace("127.0.0.1:9091", &authz.to_string());
            let path = folder.path().join("Caddyfile");
            std::fs::write(&path, format!("{{\n\tadmin off\n\tauto_https off\n}}\n{site}")).unwrap();
            let mut command = Command::new("caddy");
            command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&path);
            command.env("HOME", folder.path()).env("XDG_DATA_HOME", folder.path());
            command.env("XDG_CONFIG_HOME", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
            let process = command.spawn().expect("install it with: apt-get install caddy");
            let mut caddy = Self { process, address, _folder: folder };
            if caddy.listens() {
                return caddy;
            }
        }
        panic!("caddy did not start");
    }

    /// Asks until it listens or has ended.
    fn listens(&mut self) -> bool {
        while self.process.try_wait().unwrap().is_none() {
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn caddy_asks_and_does_as_it_is_told() {
    let runtime = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (tidegate, elsewhere) = (runtime(), runtime());
    let (site, authz) = tidegate.block_on(async {
        let site = asked().await;
        let (authz, _) = authz::serve(authz::authz(&site)).await;
        (site, authz)
    });
    let caddy = Caddy::start(elsewhere.block_on(app()), authz);
    elsewhere.block_on(does_as_it_is_told(caddy.address));
    // With its runtime the connections end that Caddy keeps.
    drop(site);
    tidegate.shutdown_background();
    elsewhere.block_on(serves_without_it(caddy.address));
}
