//! What a call is signed and hashed with: the client's own, the configuration's, or the data directory's.

use std::net::{Ipv6Addr, SocketAddr};

use thiserror::Error;

use crate::{
    config::{Fault, GuardListener, Hidden, Loaded, Scope, Secret},
    secrets::{self, SecretsError},
};

/// What a client needs to ask the guard store of this configuration.
#[derive(Debug, Clone)]
pub struct ClientCredentials {
    /// Where it is.
    pub url: Hidden,
    /// Signs requests. None where nothing is configured and no server has started here yet: enough for a Unix
    /// socket.
    pub secret: Option<Secret>,
    /// Hashes partitions and keys.
    pub pepper: Secret,
    /// Hashes source, network and principal.
    pub fairness_pepper: Secret,
    /// How long a call may take.
    pub timeout_ms: u64,
}

/// Why a client can't be set up from the configuration.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The configuration is faulty where a client reads it.
    #[error("the configuration is faulty:\n{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Fault>),
    /// The data directory's secrets can't be read.
    #[error("reading the secrets of the data directory")]
    Secrets(#[from] SecretsError),
    /// No pepper anywhere.
    #[error(
        "no pepper: set TIDEGATE_CLIENT_KEY_PEPPER, or call from the folder where `tidegate serve` made its \
         data directory"
    )]
    NoPepper,
}

/// What the configuration says, and the secrets of its data directory for the rest.
///
/// # Errors
/// What is missing or faulty.
pub fn client_credentials(loaded: &Loaded) -> Result<ClientCredentials, ClientError> {
    let url = guard_url(loaded)?;
    let client = &loaded.client;
    let configured = loaded.signing_secrets().first();
    let own = client.secret.as_ref().or(configured);
    let made = match (own, &client.key_pepper) {
        (Some(_), Some(_)) => None,
        _ => secrets::read(&loaded.regardless().store.path)?,
    };
    let made = made.as_ref();
    let pepper = client.key_pepper.as_ref().or(made.map(|made| &made.pepper)).ok_or(ClientError::NoPepper)?;
    Ok(ClientCredentials {
        url,
        secret: own.or(made.map(|made| &made.guard_secret)).cloned(),
        pepper: pepper.clone(),
        fairness_pepper: client.fairness_pepper.as_ref().unwrap_or(pepper).clone(),
        timeout_ms: client.timeout_ms,
    })
}

/// Where the guard store is: `client.url`, or the guard listener of this configuration.
///
/// # Errors
/// The configuration is faulty where a client reads it.
pub fn guard_url(loaded: &Loaded) -> Result<Hidden, ClientError> {
    let faults: Vec<_> = loaded.faults.iter().filter(|fault| concerns(fault, loaded)).cloned().collect();
    if !faults.is_empty() {
        return Err(ClientError::Faults(faults));
    }
    let own = || Hidden::new(&own_url(&loaded.regardless().listener));
    Ok(loaded.client.url.clone().unwrap_or_else(own))
}

/// Whether a client would go wrong by the fault. What else is wrong with a server's configuration is no
/// concern of a caller, who may not be allowed to read the server's certificate, say.
fn concerns(fault: &Fault, loaded: &Loaded) -> bool {
    let needs_guard = loaded.client.secret.is_none();
    match fault.scope {
        Scope::Client => true,
        Scope::Fatal => fault.key.is_empty() || fault.key == "store.path" || fault.key == "guard.listen",
        Scope::Guard => needs_guard && fault.key.starts_with("guard.secrets"),
        Scope::Warning => false,
    }
}

/// How this machine reaches the guard listener.
pub(in crate::cli) fn own_url(listener: &GuardListener) -> String {
    let scheme = if listener.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{}", from_here(listener.listen))
}

/// How this machine reaches an address that it listens on.
pub(in crate::cli) fn from_here(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let loopback = if address.is_ipv4() { [127, 0, 0, 1].into() } else { Ipv6Addr::LOCALHOST.into() };
        address.set_ip(loopback);
    }
    address
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use zeroize::Zeroizing;

    use super::*;
    use crate::config::{self, FileText, Sources};

    const SECRET: &str = "one-signing-secret-for-tests-0123456789";
    const PEPPER: &str = "pepper-for-test-vectors-0123456789abcdef";

    fn loaded(directory: &Path, toml: &str) -> Loaded {
        let text = format!("store.path = {:?}\n{toml}", directory.to_str().unwrap());
        let file = FileText { path: Path::new("tidegate.toml").into(), text: Zeroizing::new(text) };
        config::load(&Sources { file: Some(file), ..Sources::default() })
    }

    #[test]
    fn a_client_finds_what_the_server_made() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(client_credentials(&loaded(folder.path(), "")), Err(ClientError::NoPepper)));
        let (made, _) = secrets::read_or_make(folder.path()).unwrap();
        let client = client_credentials(&loaded(folder.path(), "")).unwrap();
        assert_eq!(client.url.expose(), "http://127.0.0.1:8787");
        assert_eq!((client.secret.unwrap(), &client.pepper), (made.guard_secret, &made.pepper));
        assert_eq!(client.fairness_pepper, made.pepper);
        assert_eq!(client.timeout_ms, 750);
    }

    #[test]
    fn a_client_prefers_its_own_then_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let (made, _) = secrets::read_or_make(folder.path()).unwrap();
        let toml = format!(
            "guard.secrets = [\"{SECRET}\"]\nguard.listen = \"0.0.0.0:9\"\nguard.allow_cleartext = true\n\
             client.fairness_pepper = \"{PEPPER}\""
        );
        let client = client_credentials(&loaded(folder.path(), &toml)).unwrap();
        assert_eq!(client.url.expose(), "http://127.0.0.1:9");
        assert_eq!(client.secret.unwrap().expose(), SECRET);
        assert_eq!(client.pepper, made.pepper);
        assert_eq!(client.fairness_pepper.expose(), PEPPER);
        let faulty = client_credentials(&loaded(folder.path(), "client.secret = \"short\""));
        assert!(matches!(faulty, Err(ClientError::Faults(faults)) if faults.len() == 1));
    }

    #[test]
    fn faults_that_do_not_concern_a_client_do_not_stop_it() {
        let folder = tempfile::tempdir().unwrap();
        secrets::read_or_make(folder.path()).unwrap();
        let others = format!(
            "guard.tls_cert = \"/nowhere\"\nguard.tls_key = \"/nowhere\"\nguard.daily_budget = 0\n\
             guard.secrets = [\"{SECRET}\"]\nadmin.listen = \"x\"\nlog.otlp_endpoint = \"http://otel\""
        );
        let client = client_credentials(&loaded(folder.path(), &others)).unwrap();
        assert_eq!(client.secret.unwrap().expose(), SECRET, "the secret that a repaired server would take");
        for concerned in ["guard.secrets = [\"short\"]", "guard.listen = \"x\"", "x = ", "client.url = \"x\""]
        {
            let refused = client_credentials(&loaded(folder.path(), concerned));
            assert!(matches!(refused, Err(ClientError::Faults(_))), "{concerned}");
        }
    }
}
