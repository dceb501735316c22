//! TLS for a listener, with certificates that are read anew without a restart.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
};

use thiserror::Error;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
};

/// Why TLS can't be offered.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file can't be read, or is not PEM.
    #[error("reading {what} from {path}")]
    File {
        /// The certificate chain, or the private key.
        what: &'static str,
        /// Where.
        path: String,
        /// Why.
        #[source]
        cause: rustls::pki_types::pem::Error,
    },
    /// The chain and the key don't make a TLS configuration.
    #[error("using the certificate with its key")]
    Unusable(#[source] rustls::Error),
}

/// Offers TLS 1.2 and 1.3 with the certificate chain and the private key in these PEM files, for HTTP/2 and
/// HTTP/1.1.
///
/// # Errors
/// A file can't be read, or the two don't belong together.
pub fn acceptor(certificate_chain: &Path, private_key: &Path) -> Result<TlsAcceptor, TlsError> {
    let files = vec![CertificateFiles {
        names: Vec::new(),
        chain: certificate_chain.to_owned(),
        key: private_key.to_owned(),
    }];
    Ok(CertifiedNames::read(files)?.acceptor())
}

/// Where a certificate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The hosts that it is shown for: exact, or `*.` and a name for everything below it. The first of all is shown to
    /// whoever asks for none of them.
    pub names: Vec<String>,
    /// The chain (PEM).
    pub chain: PathBuf,
    /// The private key (PEM).
    pub key: PathBuf,
}

/// Certificates by the host that a client asks for. They can be read anew: following connections see the new ones.
#[derive(Debug)]
pub struct CertifiedNames(RwLock<Vec<Certified>>);

#[derive(Debug)]
struct Certified {
    files: CertificateFiles,
    key: Arc<CertifiedKey>,
    text: Text,
}

/// What the files held, to tell whether they have changed.
#[derive(Debug, PartialEq, Eq)]
struct Text(Vec<u8>);

impl CertifiedNames {
    /// Reads all of them.
    ///
    /// # Errors
    /// A file can't be read, or a certificate and its key don't belong together.
    pub fn read(files: Vec<CertificateFiles>) -> Result<Arc<Self>, TlsError> {
        let certified = files.into_iter().map(Certified::read).collect::<Result<_, _>>()?;
        Ok(Arc::new(Self(RwLock::new(certified))))
    }

    /// Reads `files` in the place of those that were there.
    ///
    /// # Errors
    /// One of them is faulty. All that were there stay.
    pub fn replace(&self, files: Vec<CertificateFiles>) -> Result<(), TlsError> {
        let certified = files.into_iter().map(Certified::read).collect::<Result<_, _>>()?;
        *self.write() = certified;
        Ok(())
    }

    /// Looks at the files again, and tells whether any has changed.
    ///
    /// # Errors
    /// One of them is faulty. All that were there stay.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let files: Vec<_> = self.inner().iter().map(|certified| certified.files.clone()).collect();
        let certified: Vec<_> = files.into_iter().map(Certified::read).collect::<Result<_, _>>()?;
        let mut inner = self.write();
        let changed = inner.iter().zip(&certified).any(|(before, after)| before.text != after.text);
        if changed {
            *inner = certified;
        }
        Ok(changed)
    }

    /// Offers TLS 1.2 and 1.3 with them, for HTTP/2 and HTTP/1.1.
    #[must_use]
    pub fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Self>::clone(self);
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    fn inner(&self) -> std::sync::RwLockReadGuard<'_, Vec<Certified>> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Vec<Certified>> {
        self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl ResolvesServerCert for CertifiedNames {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let all = self.inner();
        let name = hello.server_name();
        let named = name.and_then(|name| all.iter().max_by_key(|certified| certified.fits(name)));
        let fitting = named.filter(|certified| name.is_some_and(|name| certified.fits(name) > 0));
        fitting.or_else(|| all.first()).map(|certified| Arc::clone(&certified.key))
    }
}

impl Certified {
    fn read(files: CertificateFiles) -> Result<Self, TlsError> {
        let failed = |what, path: &Path| {
            let path = path.display().to_string();
            move |cause| TlsError::File { what, path, cause }
        };
        let read = |path: &Path| std::fs::read(path).map_err(rustls::pki_types::pem::Error::Io);
        let chain_text = read(&files.chain).map_err(failed("the certificate chain", &files.chain))?;
        let key_text = read(&files.key).map_err(failed("the private key", &files.key))?;
        let chain = CertificateDer::pem_slice_iter(&chain_text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed("the certificate chain", &files.chain))?;
        let key = PrivateKeyDer::from_pem_slice(&key_text).map_err(failed("the private key", &files.key))?;
        let key =
            CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(TlsError::Unusable)?;
        // The key's own text is not kept: a certificate changes with its key.
        Ok(Self { files, key: Arc::new(key), text: Text(chain_text) })
    }

    /// How well it fits a host, in letters; 0: not at all.
    fn fits(&self, host: &str) -> usize {
        let fit = |name: &String| match name.strip_prefix('*') {
            Some(parent) if host.to_ascii_lowercase().ends_with(&parent.to_ascii_lowercase()) => parent.len(),
            None if name.eq_ignore_ascii_case(host) => usize::MAX,
            _ => 0,
        };
        self.files.names.iter().map(fit).max().unwrap_or(0)
    }
}
