//! How a server is reached.

use std::time::Duration;

use sqlx::{ConnectOptions, mysql::MySqlConnectOptions};

use crate::{DatabaseUrl, OpenError};

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct MySqlOptions {
    /// `mysql://USER:PASSWORD@HOST:PORT/DATABASE`. TLS is used if the server has it; `?ssl-mode=VERIFY_IDENTITY`
    /// demands it and checks the certificate, against `ssl-ca=FILE` if that is given.
    pub url: DatabaseUrl,
    /// Which secret rows are named under; none is 0. Rows of another secret can't be read and do not count; they
    /// stay until they expire.
    pub secret_id: Option<u64>,
    /// The driver's deadline: no call takes much longer, and the server waits no longer for a row's lock.
    pub deadline: Duration,
}

impl MySqlOptions {
    /// The database at `url`, with the defaults of everything else.
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: DatabaseUrl::new(url), secret_id: None, deadline: Duration::from_secs(2) }
    }

    /// What the library needs to connect.
    pub(super) fn server(&self) -> Result<MySqlConnectOptions, OpenError> {
        let url = self.url.expose();
        if !SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
            return Err(OpenError::Url { fault: "must begin with mysql:// or mariadb://" });
        }
        let parsed = url.parse::<MySqlConnectOptions>();
        let server = parsed
            .map_err(|_| OpenError::Url { fault: "can't be read: mysql://USER:PASSWORD@HOST/DATABASE" })?;
        if server.get_database().is_none() {
            return Err(OpenError::Url { fault: "names no database: mysql://USER:PASSWORD@HOST/DATABASE" });
        }
        // Statements hold keys, which stand for identities.
        Ok(server.disable_statement_logging().pipes_as_concat(false).statement_cache_capacity(1))
    }

    /// How long the server waits for a row's lock, in whole seconds, as it counts them.
    pub(super) fn lock_patience_s(&self) -> u64 {
        self.deadline.as_secs().max(1)
    }

    /// How long any call may take: a little more than a caller waits, and than the server waits for a lock, so that
    /// it can say so.
    pub(super) fn call_patience(&self) -> Duration {
        self.deadline.max(Duration::from_secs(self.lock_patience_s())) * 5 / 4
    }
}

const SCHEMES: [&str; 2] = ["mysql://", "mariadb://"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_can_not_be_used_is_named_without_its_password() {
        let table = [
            ("mysql://u:passw0rd@localhost/tidegate", ""),
            ("mariadb://u:passw0rd@localhost:3307/tidegate?ssl-mode=REQUIRED", ""),
            ("postgres://u:passw0rd@localhost/tidegate", "must begin with"),
            ("mysql://u:passw0rd@localhost", "names no database"),
            ("mysql://u:passw0rd@localhost:port/tidegate", "can't be read"),
            ("mysql://u:passw0rd@localhost/tidegate?ssl-mode=perhaps", "can't be read"),
        ];
        for (url, fault) in table {
            let options = MySqlOptions::at(url);
            let said = options.server().err();
            let said = said.map(|error| format!("{error} {error:?}")).unwrap_or_default();
            assert!(said.contains(fault) && said.is_empty() == fault.is_empty(), "{url}: {said}");
            assert!(!format!("{said} {options:?} {}", options.url).contains("passw0rd"), "{url}");
        }
    }
}
