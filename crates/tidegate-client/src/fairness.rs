//! Who calls, and a client's view that charges its calls to them.

use std::{fmt, net::IpAddr};

use tidegate_core::address::{Address, UNKNOWN};
use tidegate_protocol::{
    Request, Response,
    identity::{Pepper, Purpose, digest},
    request::Fairness,
};

use crate::{GuardClient, GuardUnavailable};

/// Who calls, as the application found out: never what a body or a header merely claims.
#[derive(Clone, Copy, Default)]
pub struct Caller<'a> {
    address: Option<Address>,
    principal: Option<&'a str>,
}

/// Whether the networks around a source are charged too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Networks {
    /// Those that the source belongs to: IPv4 /24; IPv6 /56 and /48.
    #[default]
    Around,
    /// None.
    None,
}

/// A client whose calls are charged to the identities of one request. It does not change.
#[derive(Clone)]
pub struct GuardView {
    client: GuardClient,
    fairness: Fairness,
}

impl<'a> Caller<'a> {
    /// Whoever calls from this address; [`Self::unknown`] if it can't be read.
    #[must_use]
    pub fn at(address: &str) -> Self {
        Self { address: Address::parse(address).ok(), principal: None }
    }

    /// Somebody whose address is not known: all of them share one allowance.
    #[must_use]
    pub const fn unknown() -> Self {
        Self { address: None, principal: None }
    }

    /// Also known as this user, account or token's owner, which the application has verified.
    #[must_use]
    pub const fn principal(self, principal: &'a str) -> Self {
        Self { principal: Some(principal), ..self }
    }

    /// The canonical text of the address.
    pub(crate) fn source(&self) -> String {
        self.address.map_or_else(|| UNKNOWN.to_owned(), Address::source)
    }

    pub(crate) const fn principal_text(&self) -> Option<&'a str> {
        self.principal
    }

    pub(crate) fn fairness(&self, pepper: &Pepper, networks: Networks) -> Fairness {
        let mut fairness = Fairness::default().source(digest(pepper, Purpose::Source, &self.source()));
        if networks == Networks::Around {
            for network in self.address.map(Address::networks).unwrap_or_default() {
                let hashed = digest(pepper, Purpose::Network, &network.text);
                fairness = fairness.network(network.prefix, hashed);
            }
        }
        match self.principal {
            Some(principal) => fairness.principal(digest(pepper, Purpose::Principal, principal)),
            None => fairness,
        }
    }
}

impl From<IpAddr> for Caller<'_> {
    fn from(ip: IpAddr) -> Self {
        Self { address: Some(Address::from(ip)), principal: None }
    }
}

impl fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller(…)")
    }
}

impl GuardView {
    pub(crate) const fn new(client: GuardClient, fairness: Fairness) -> Self {
        Self { client, fairness }
    }

    /// Sends a request, once, charged to the identities of this view.
    ///
    /// # Errors
    /// As [`GuardClient::run`].
    pub async fn run(&self, request: &Request) -> Result<Response, GuardUnavailable> {
        self.client.run(&request.clone().fairness(self.fairness.clone())).await
    }

    /// The client that it is a view of.
    #[must_use]
    pub const fn client(&self) -> &GuardClient {
        &self.client
    }
}

impl fmt::Debug for GuardView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardView").field("client", &self.client).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::secret::Secret;

    use super::*;

    fn pepper(text: &str) -> Secret {
        Secret::new(text).unwrap()
    }

    #[test]
    fn identities_are_canonical_and_hashed_apart() {
        let (storage, fairness) =
            (pepper("0f1e2d3c4b5a69788796a5b4c3d2e1f0"), pepper("pepper-for-test-vectors-0123456789abcdef"));
        let client = GuardClient::over_socket("/nowhere", &storage).with_fairness_pepper(&fairness);
        let hashed = |purpose, text: &str| digest(&Pepper::new(&fairness), purpose, text);

        let view = client.with_fairness(Some("::ffff:192.0.2.7"), Networks::Around, Some("user_42"));
        assert_eq!(view.fairness.source, Some(hashed(Purpose::Source, "192.0.2.7/32")));
        assert_eq!(view.fairness.principal, Some(hashed(Purpose::Principal, "user_42")));
        let networks: Vec<_> = view.fairness.networks.iter().map(|it| (it.prefix, it.digest)).collect();
        assert_eq!(networks, [(24, hashed(Purpose::Network, "192.0.2.0/24"))]);

        let table = [
            (Some("2001:db8::1"), Networks::Around, 2),
            (Some("2001:db8::1"), Networks::None, 0),
            (Some("not an address"), Networks::Around, 0),
            (None, Networks::Around, 0),
        ];
        for (source, networks, expected) in table {
            assert_eq!(client.with_fairness(source, networks, None).fairness.networks.len(), expected);
        }
        let unknown = hashed(Purpose::Source, "unknown");
        for source in [None, Some("1.2.3")] {
            assert_eq!(client.with_fairness(source, Networks::Around, None).fairness.source, Some(unknown));
        }
        // Storage names are hashed with the other pepper.
        assert_ne!(client.digest(Purpose::Source, "unknown"), unknown);
    }

    #[test]
    fn nothing_of_a_caller_is_printed() {
        let pepper = pepper("0f1e2d3c4b5a69788796a5b4c3d2e1f0");
        let client = GuardClient::over_socket("/nowhere", &pepper);
        let view = client.with_fairness(Some("192.0.2.7"), Networks::Around, Some("user_42"));
        let printed = format!("{view:?} {:?}", Caller::at("192.0.2.7").principal("user_42"));
        for hidden in ["192.0.2", "user_42", "0f1e2d3c"] {
            assert!(!printed.contains(hidden), "{printed}");
        }
    }
}
