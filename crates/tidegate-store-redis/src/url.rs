//! Where the store is: its URL, checked once, and never printed with its passwords.

use std::{fmt, str::FromStr};

use percent_encoding::percent_decode_str;
use thiserror::Error;

/// The URL of a store.
///
/// | form | server |
/// |---|---|
/// | `redis://host:6379/0` | one server; the number of the database may be left out |
/// | `redis+sentinel://host:26379,host:26379/master` | the master that the sentinels know by that name; `/master/0` names the database, too |
/// | `redis+cluster://host:6379,host:6379` | the cluster that these nodes belong to |
///
/// `rediss` instead of `redis` is TLS to every node, checked against the system's certificates, or against those
/// in a PEM file with `?ca_file=…`; `valkey` and `valkeys` are other words for the two. `user:password@` (or
/// `:password@`) before the hosts are credentials for the servers; `?sentinel_user=…&sentinel_password=…` are the
/// sentinels'. What has a meaning in URLs is written as `%40` and the like in names and passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    pub(crate) tls: bool,
    /// Servers, sentinels, or nodes of the cluster.
    pub(crate) nodes: Vec<Address>,
    /// What the sentinels call the master; none: `nodes` are servers.
    pub(crate) master: Option<String>,
    pub(crate) database: u32,
    pub(crate) credentials: Credentials,
    pub(crate) sentinel_credentials: Credentials,
    /// What servers' certificates are checked against, if not the system's.
    pub(crate) ca_file: Option<String>,
    kind: Kind,
}

/// A host and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// What is wrong with a URL. No part of the URL is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error(
        "a store's URL begins with redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster:// \
         or rediss+cluster://"
    )]
    Scheme,
    /// An empty host.
    #[error("a host of the URL is empty")]
    Host,
    /// No number, or zero.
    #[error("a port of the URL is no number from 1 to 65535")]
    Port,
    /// More than one host without sentinels or a cluster.
    #[error("several hosts need redis+sentinel:// or redis+cluster://")]
    SeveralHosts,
    /// No name of the master after the sentinels.
    #[error(
        "the URL of sentinels ends with the name that they know the master by: redis+sentinel://host/name"
    )]
    Master,
    /// No number.
    #[error("the database of the URL is no number")]
    Database,
    /// A cluster's URL names a database.
    #[error("a cluster has only one database; its URL names none")]
    ClusterDatabase,
    /// Broken percent-encoding, or text that is not UTF-8.
    #[error("a user or a password of the URL is not percent-encoded UTF-8")]
    Encoding,
    /// An unknown parameter.
    #[error("the URL has a parameter other than ca_file, sentinel_user and sentinel_password")]
    Parameter,
}

#[derive(Default)]
struct Parameters {
    sentinel_credentials: Credentials,
    ca_file: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Standalone,
    Sentinel,
    Cluster,
}

impl FromStr for StoreUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let (tls, kind) = scheme_of(scheme)?;
        let (credentials, place) = match rest.rsplit_once('@') {
            Some((credentials, place)) => (credentials_of(credentials)?, place),
            None => (Credentials::default(), rest),
        };
        let (place, query) = place.split_once('?').unwrap_or((place, ""));
        let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
        let nodes = nodes_of(hosts, kind)?;
        let (master, database) = match kind {
            Kind::Sentinel => {
                let (master, database) = path.split_once('/').unwrap_or((path, ""));
                (Some(decoded(master)?).filter(|name| !name.is_empty()), database)
            }
            _ => (None, path),
        };
        let database = match database {
            "" => 0,
            _ if kind == Kind::Cluster => return Err(UrlError::ClusterDatabase),
            number => number.parse().map_err(|_| UrlError::Database)?,
        };
        if kind == Kind::Sentinel && master.is_none() {
            return Err(UrlError::Master);
        }
        let Parameters { sentinel_credentials, ca_file } = parameters_of(query)?;
        Ok(Self { tls, nodes, master, database, credentials, sentinel_credentials, ca_file, kind })
    }
}

impl fmt::Display for StoreUrl {
    /// Without users and passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Standalone => "",
            Kind::Sentinel => "+sentinel",
            Kind::Cluster => "+cluster",
        };
        write!(f, "redis{}{kind}://", if self.tls { "s" } else { "" })?;
        for (number, node) in self.nodes.iter().enumerate() {
            write!(f, "{}{node}", if number > 0 { "," } else { "" })?;
        }
        if let Some(master) = &self.master {
            write!(f, "/{master}")?;
        }
        if self.kind == Kind::Cluster { Ok(()) } else { write!(f, "/{}", self.database) }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Address {
    /// Reads `host:port`, `host`, `[::1]:port` or `[::1]`.
    pub(crate) fn parse(text: &str, default_port: u16) -> Result<Self, UrlError> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(UrlError::Host)?;
                (
                    host,
                    if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(UrlError::Port)?) },
                )
            }
            // A server tells an IPv6 address without brackets.
            None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() {
            return Err(UrlError::Host);
        }
        let port = port.map_or(Ok(default_port), str::parse).map_err(|_| UrlError::Port)?;
        if port == 0 { Err(UrlError::Port) } else { Ok(Self { host: host.to_owned(), port }) }
    }
}

fn scheme_of(scheme: &str) -> Result<(bool, Kind), UrlError> {
    let (protocol, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
    let tls = match protocol {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(UrlError::Scheme),
    };
    match kind {
        "" if !scheme.contains('+') => Ok((tls, Kind::Standalone)),
        "sentinel" => Ok((tls, Kind::Sentinel)),
        "cluster" => Ok((tls, Kind::Cluster)),
        _ => Err(UrlError::Scheme),
    }
}

fn nodes_of(hosts: &str, kind: Kind) -> Result<Vec<Address>, UrlError> {
    let default_port = if kind == Kind::Sentinel { 26_379 } else { 6379 };
    let nodes: Vec<Address> =
        hosts.split(',').map(|host| Address::parse(host, default_port)).collect::<Result<_, _>>()?;
    if kind == Kind::Standalone && nodes.len() > 1 { Err(UrlError::SeveralHosts) } else { Ok(nodes) }
}

fn credentials_of(text: &str) -> Result<Credentials, UrlError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let given = |text: &str| Ok(Some(decoded(text)?).filter(|text| !text.is_empty()));
    Ok(Credentials { user: given(user)?, password: given(password)? })
}

fn parameters_of(query: &str) -> Result<Parameters, UrlError> {
    let mut parameters = Parameters::default();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').ok_or(UrlError::Parameter)?;
        let place = match name {
            "ca_file" => &mut parameters.ca_file,
            "sentinel_user" => &mut parameters.sentinel_credentials.user,
            "sentinel_password" => &mut parameters.sentinel_credentials.password,
            _ => return Err(UrlError::Parameter),
        };
        *place = Some(decoded(value)?);
    }
    Ok(parameters)
}

fn decoded(text: &str) -> Result<String, UrlError> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| UrlError::Encoding)?;
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_how_they_are_shown() {
        let table = [
            ("redis://localhost", "redis://localhost:6379/0"),
            ("valkey://10.0.0.1:7000/3", "redis://10.0.0.1:7000/3"),
            ("rediss://app:s3cret%40@[::1]:6380?ca_file=/a%20b.pem", "rediss://[::1]:6380/0"),
            ("redis://app:s3cret?/x@a", "redis://a:6379/0"),
            ("redis+sentinel://:s3cret@a,b:1/main", "redis+sentinel://a:26379,b:1/main/0"),
            ("redis+sentinel://a/main/2?sentinel_password=s3cret", "redis+sentinel://a:26379/main/2"),
            ("rediss+cluster://app:s3cret@a:7000,b:7001", "rediss+cluster://a:7000,b:7001"),
        ];
        for (text, shown) in table {
            let url: StoreUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?} {url}").contains("s3cret"));
        }
    }

    #[test]
    fn credentials_are_decoded() {
        let url: StoreUrl =
            "redis+sentinel://me:p%2Fw@a/m?sentinel_user=s&sentinel_password=%2B".parse().unwrap();
        let pair = |credentials: &Credentials| (credentials.user.clone(), credentials.password.clone());
        assert_eq!(pair(&url.credentials), (Some("me".to_owned()), Some("p/w".to_owned())));
        assert_eq!(pair(&url.sentinel_credentials), (Some("s".to_owned()), Some("+".to_owned())));
    }

    #[test]
    fn urls_that_are_refused() {
        let table = [
            ("localhost:6379", UrlError::Scheme),
            ("http://localhost", UrlError::Scheme),
            ("redis+://localhost", UrlError::Scheme),
            ("redis+proxy://localhost", UrlError::Scheme),
            ("redis://", UrlError::Host),
            ("redis+cluster://a,,b", UrlError::Host),
            ("redis://[::1", UrlError::Host),
            ("redis://a:0", UrlError::Port),
            ("redis://a:65536", UrlError::Port),
            ("redis://a,b", UrlError::SeveralHosts),
            ("redis+sentinel://a", UrlError::Master),
            ("redis+sentinel://a//1", UrlError::Master),
            ("redis://a/one", UrlError::Database),
            ("redis+cluster://a/0", UrlError::ClusterDatabase),
            ("redis://a:%ff@b", UrlError::Encoding),
            ("redis://a?timeout=1", UrlError::Parameter),
        ];
        for (text, error) in table {
            assert_eq!(text.parse::<StoreUrl>(), Err(error), "{text}");
        }
    }
}
