//! TLS for a listener.

use std::{path::Path, sync::Arc};

use thiserror::Error;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
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
    let failed = |what, path: &Path| {
        let path = path.display().to_string();
        move |cause| TlsError::File { what, path, cause }
    };
    let chain = CertificateDer::pem_file_iter(certificate_chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(failed("the certificate chain", certificate_chain))?;
    let key = PrivateKeyDer::from_pem_file(private_key).map_err(failed("the private key", private_key))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
