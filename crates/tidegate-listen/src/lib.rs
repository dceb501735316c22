//! What every HTTP listener needs, whoever answers its requests: connections that are accepted within a bound and
//! served on a runtime of their own, TLS, an end for those that get nowhere, and an orderly end for all.
//!
//! A listener is handed its bound socket and its shutdown, so that a test can give it port 0 and end it.

mod accept;
mod activity;
mod closing;
mod preface;
mod tls;

pub use accept::{Connections, Listener, Shutdown, Workers, accept, finish, told};
pub use activity::{Activity, InWork, Patience};
pub use closing::close;
pub use preface::speaks_http2;
pub use tls::{CertificateFiles, CertifiedNames, TlsError, acceptor};
