//! How a store on Redis is set up.

use std::time::Duration;

use crate::StoreUrl;

/// Where the store is and how it is talked to.
#[derive(Debug, Clone)]
pub struct Options {
    /// The servers, with their passwords.
    pub url: StoreUrl,
    /// What the names of all keys of the store begin with, in braces: `{tidegate}:…`. Stores with different
    /// prefixes know nothing of each other. At most 64 characters: letters, digits, `-`, `_` and `.`.
    pub prefix: String,
    /// The id of the secret that the driver applies to keys; none without a secret. Rows of another id can't
    /// be read and do not count.
    pub secret_id: Option<u64>,
    /// The driver's deadline. A call to the server ends a little later, whatever the server does.
    pub deadline: Duration,
    /// So many replicas must have a batch before it is answered (`WAIT`); with fewer in sight every update is
    /// answered that the store is unavailable. 0: the master alone answers, and a failover may lose what it
    /// answered last.
    pub wait_replicas: u32,
}

impl Options {
    /// A store at `url`, with the defaults of everything else.
    #[must_use]
    pub fn at(url: StoreUrl) -> Self {
        Self {
            url,
            prefix: "tidegate".to_owned(),
            secret_id: None,
            deadline: Duration::from_secs(2),
            wait_replicas: 0,
        }
    }
}
