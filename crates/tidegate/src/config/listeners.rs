//! Listeners: addresses that do not collide, and no cleartext to the world by accident.

use std::{
    fs::File,
    io::Read,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use super::{
    fault::{Fault, Scope},
    settings::Settings,
    typed::Tls,
};

/// A Unix socket's address holds 108 bytes, the closing zero included.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// A certificate chain has some kilobytes.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// The guard's and the admin's address.
pub(super) fn addresses(settings: &Settings, faults: &mut Vec<Fault>) -> (SocketAddr, SocketAddr) {
    let address = |path: &str| settings.address(path).unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
    let (guard, admin) = (address("guard.listen"), address("admin.listen"));
    check_collisions(settings, faults);
    let has_tls = |section: &str| {
        ["tls_cert", "tls_key"].iter().any(|key| settings.path(&format!("{section}.{key}")).is_some())
    };
    if is_public(guard) && !has_tls("guard") && !settings.boolean("guard.allow_cleartext") {
        let message = "other machines reach this address, and there is no TLS: set guard.tls_cert and \
                       guard.tls_key, or guard.allow_cleartext = true behind a proxy of yours";
        faults.push(listener_fault(settings, "guard.listen", message.into()));
    }
    if is_public(admin) && !has_tls("admin") && !settings.boolean("admin.allow_cleartext") {
        let message = "other machines reach this address, and there is no TLS: keep it on 127.0.0.1, or set \
                       admin.tls_cert and admin.tls_key, or admin.allow_cleartext = true behind a proxy of yours";
        faults.push(listener_fault(settings, "admin.listen", message.into()));
    }
    (guard, admin)
}

/// No two listeners take the same port.
fn check_collisions(settings: &Settings, faults: &mut Vec<Fault>) {
    for (index, key) in LISTENERS.iter().enumerate() {
        for other in &LISTENERS[..index] {
            let (Some(left), Some(right)) = (settings.address(key), settings.address(other)) else {
                continue;
            };
            if collide(left, right) {
                let is_default = settings.place(key) == super::Place::Default;
                let (key, other) = if is_default { (other, key) } else { (key, other) };
                faults.push(listener_fault(settings, key, format!("takes the same port as {other}")));
            }
        }
    }
}

/// The keys of every listener.
const LISTENERS: [&str; 5] =
    ["guard.listen", "admin.listen", "ingress.listen", "ingress.tls_listen", "ingress.authz_listen"];

/// The guard's Unix socket.
pub(super) fn socket(settings: &Settings, faults: &mut Vec<Fault>) -> Option<PathBuf> {
    let socket = settings.path("guard.socket")?;
    let bytes = socket.as_os_str().len();
    if bytes > SOCKET_PATH_BYTES_MAX {
        let message = format!("has {bytes} bytes; a socket's path has at most {SOCKET_PATH_BYTES_MAX}");
        faults.push(listener_fault(settings, "guard.socket", message));
    }
    Some(socket)
}

/// The guard's certificate and key.
pub(super) fn tls(settings: &Settings, faults: &mut Vec<Fault>) -> Option<Tls> {
    tls_pair(settings, "guard.tls_cert", "guard.tls_key", faults)
}

/// A certificate and its key, which stand together or not at all.
pub(super) fn tls_pair(
    settings: &Settings,
    cert_key: &str,
    key_key: &str,
    faults: &mut Vec<Fault>,
) -> Option<Tls> {
    for (key, label) in [(cert_key, "CERTIFICATE"), (key_key, "PRIVATE KEY")] {
        if let Some(fault) = settings.path(key).and_then(|path| pem_fault(&path, label)) {
            faults.push(listener_fault(settings, key, fault));
        }
    }
    match (settings.path(cert_key), settings.path(key_key)) {
        (Some(cert), Some(key)) => return Some(Tls { cert, key }),
        (Some(_), None) if !settings.is_faulty(key_key) => {
            faults.push(listener_fault(settings, cert_key, format!("needs {key_key}")));
        }
        (None, Some(_)) if !settings.is_faulty(cert_key) => {
            faults.push(listener_fault(settings, key_key, format!("needs {cert_key}")));
        }
        _ => {}
    }
    None
}

/// Whether what is sent to `url` stays on this machine or is encrypted.
pub(crate) fn is_private_url(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return url.starts_with("https://");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn listener_fault(settings: &Settings, key: &str, message: String) -> Fault {
    Fault::new(Scope::Fatal, key, settings.place(key), message)
}

/// Whether other machines can reach it. A private network is not trusted either: neighbours share it.
fn is_public(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

fn collide(left: SocketAddr, right: SocketAddr) -> bool {
    let overlapping = left.ip() == right.ip() || left.ip().is_unspecified() || right.ip().is_unspecified();
    left.port() != 0 && left.port() == right.port() && overlapping
}

/// What is wrong with a PEM file, without any of its text.
fn pem_fault(path: &Path, label: &str) -> Option<String> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PEM_BYTES_MAX).read_to_end(&mut text));
    let has_label = || {
        let text = String::from_utf8_lossy(&text);
        text.lines().any(|line| {
            line.starts_with("-----BEGIN ") && line.trim_end().ends_with(&format!("{label}-----"))
        })
    };
    match read {
        Err(error) => Some(format!("can't be read: {error}")),
        Ok(_) if !has_label() => Some(format!("is not PEM: there is no {label} in it")),
        Ok(_) => None,
    }
}
