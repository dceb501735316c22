//! How a store is opened, and what its URL says.

use std::{fmt, time::Duration};

use percent_encoding::percent_decode_str;
use tokio_postgres::{Config, config::SslMode};
use zeroize::Zeroizing;

use crate::{
    OpenError,
    tls::{Tls, Trust},
};

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the database is.
    pub url: DatabaseUrl,
    /// The schema that holds the store's tables, so that several stores fit into one database.
    pub schema: String,
    /// Which secret rows are named under. Rows of another secret can't be read and do not count; they stay
    /// until they expire.
    pub secret_id: Option<u64>,
    /// The driver's deadline: the server gives up a statement after it, and a transaction that idles so long.
    pub deadline: Duration,
}

/// `postgres://user:password@host:port/database?parameters`, which is never printed.
///
/// Of libpq's parameters it knows `sslmode` (`disable`; `prefer`, the default, and `require`, which check no
/// certificate; `verify-full`), `sslrootcert` (a PEM file; without it `verify-full` goes by the system's
/// certificates), `options`, `application_name`, `connect_timeout`, `target_session_attrs` and those of TCP.
#[derive(Clone)]
pub struct DatabaseUrl(Zeroizing<String>);

/// What to connect to, and how.
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
}

/// The schema of a store that has its database to itself, or shares it with an application.
const SCHEMA: &str = "tidegate";
const SCHEMA_CHARS_MAX: usize = 63;

impl Options {
    /// A store in the database at `url`, with the defaults of everything else.
    #[must_use]
    pub fn at(url: impl Into<DatabaseUrl>) -> Self {
        Self { url: url.into(), schema: SCHEMA.to_owned(), secret_id: None, deadline: Duration::from_secs(2) }
    }

    /// Refuses a name that would have to be quoted.
    pub(crate) fn check_schema(&self) -> Result<(), OpenError> {
        let name = self.schema.as_bytes();
        let fits = (1..=SCHEMA_CHARS_MAX).contains(&name.len())
            && name[0].is_ascii_lowercase()
            && name.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_');
        if fits { Ok(()) } else { Err(OpenError::SchemaName { name: self.schema.clone() }) }
    }
}

impl DatabaseUrl {
    /// Reads the URL.
    pub(crate) fn target(&self) -> Result<Target, OpenError> {
        let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| self.0.starts_with(scheme));
        if !is_url {
            return Err(OpenError::Url { problem: "it must begin with postgres:// or postgresql://" });
        }
        // A password may hold a question mark.
        let credentials_end = self.0.find('@').unwrap_or(0);
        let place_end = self.0[credentials_end..].find('?').map_or(self.0.len(), |at| credentials_end + at);
        let (place, parameters) = self.0.split_at(place_end);
        let (mut mode, mut root) = ("prefer", None);
        let mut others = Zeroizing::new(format!("{place}?"));
        for parameter in parameters.trim_start_matches('?').split('&') {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = value,
                Some(("sslrootcert", value)) => root = Some(percent_decode_str(value).decode_utf8_lossy()),
                _ => {
                    others.push_str(parameter);
                    others.push('&');
                }
            }
        }
        let mut config: Config = others
            .trim_end_matches(['?', '&'])
            .parse()
            .map_err(|_| OpenError::Url { problem: UNREADABLE })?;
        let (encryption, trust) = security(mode, root.as_deref())?;
        config.ssl_mode(encryption);
        if config.get_application_name().is_none() {
            config.application_name("tidegate");
        }
        Ok(Target { config, tls: Tls::new(trust)? })
    }
}

fn security<'a>(mode: &str, root: Option<&'a str>) -> Result<(SslMode, Trust<'a>), OpenError> {
    match (mode, root) {
        ("disable", None) => Ok((SslMode::Disable, Trust::Anyone)),
        ("prefer", None) => Ok((SslMode::Prefer, Trust::Anyone)),
        ("require", None) => Ok((SslMode::Require, Trust::Anyone)),
        ("verify-full", None | Some("system")) => Ok((SslMode::Require, Trust::System)),
        ("verify-full", Some(file)) => Ok((SslMode::Require, Trust::File(file))),
        ("disable" | "prefer" | "require", Some(_)) => Err(OpenError::Url { problem: ROOT_UNUSED }),
        _ => Err(OpenError::Url { problem: "sslmode must be disable, prefer, require or verify-full" }),
    }
}

const UNREADABLE: &str = "it must read postgres://user:password@host:port/database?parameter=value, with known \
                          parameters only, and special characters of the password as %XX";
const ROOT_UNUSED: &str = "sslrootcert has an effect with sslmode=verify-full only";

impl<T: Into<String>> From<T> for DatabaseUrl {
    fn from(url: T) -> Self {
        Self(Zeroizing::new(url.into()))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_or_refused_without_a_word_of_theirs() {
        let table = [
            ("postgres://u:hidden@h/db", Ok(SslMode::Prefer)),
            ("postgresql://u:hidden@h:1/db?application_name=x&sslmode=disable", Ok(SslMode::Disable)),
            ("postgres://u:hidden@h/db?sslmode=require&connect_timeout=3", Ok(SslMode::Require)),
            ("postgres://u:hidden@h/db?sslmode=verify-full&sslrootcert=system", Ok(SslMode::Require)),
            ("postgres://u:hidden@h/db?sslmode=hidden", Err("sslmode must be")),
            ("postgres://u:hidden@h/db?sslmode=verify-ca", Err("sslmode must be")),
            ("postgres://u:hidden@h/db?sslmode=require&sslrootcert=x.pem", Err("sslrootcert has an effect")),
            ("postgres://u:pass?sslmode=hidden@h/db?sslmode=disable", Ok(SslMode::Disable)),
            ("postgres://u:hidden@h/db?sslmode=verify-full&sslrootcert=/no%20where", Err("from /no where")),
            ("postgres://u:hidden@h:port/db", Err("special characters")),
            ("postgres://u:hidden%@h/db?nonsense", Err("special characters")),
            ("host=h password=hidden", Err("must begin")),
            ("mysql://u:hidden@h/db", Err("must begin")),
            ("", Err("must begin")),
        ];
        for (url, right) in table {
            let url = DatabaseUrl::from(url);
            assert!(!format!("{url:?}").contains("hidden"));
            match (url.target(), right) {
                (Ok(target), Ok(mode)) => {
                    assert_eq!(target.config.get_ssl_mode(), mode);
                    assert!(target.config.get_application_name().is_some());
                }
                (Err(error), Err(text)) => {
                    assert!(error.to_string().contains(text), "{error}");
                    assert!(!format!("{error:?} {error}").contains("hidden"), "{error:?}");
                }
                (target, right) => panic!("{:?}, not {right:?}", target.map(|target| target.config)),
            }
        }
    }

    #[test]
    fn names_of_schemas() {
        let long = "x".repeat(64);
        let table =
            [("tidegate", true), ("a_1", true), ("", false), ("1a", false), ("a\"", false), (&long, false)];
        for (name, fits) in table {
            let options = Options { schema: name.to_owned(), ..Options::at("postgres://h") };
            assert_eq!(options.check_schema().is_ok(), fits, "{name}");
        }
    }
}
