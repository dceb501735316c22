//! Who may do what: tokens with abilities, from the configuration, the data directory, and those made later.

use http::{HeaderMap, header};
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tidegate_guard::service::bearer_token;

use super::tokens::StoredTokens;
use crate::{
    config::{Ability, Configuration, Credential},
    secrets::DataSecrets,
};

/// A token as it is compared: hashed, so that every comparison takes the same time.
pub(super) type TokenHash = [u8; 32];

/// Everybody who is known.
pub(super) struct Access {
    configured: RwLock<Configured>,
    pub(super) stored: StoredTokens,
}

/// The part that a reload replaces.
struct Configured {
    tokens: Vec<KnownToken>,
    metrics_public: bool,
}

#[derive(Clone)]
struct KnownToken {
    sha256: TokenHash,
    caller: Caller,
    origin: Origin,
}

/// Who asks, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) name: String,
    pub(super) abilities: Vec<Ability>,
}

/// Where a token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// `admin.tokens`.
    Configuration,
    /// The one of the first start.
    FirstStart,
    /// `tidegate token create`.
    Created,
}

impl Origin {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::FirstStart => "first_start",
            Self::Created => "created",
        }
    }
}

/// Why somebody gets no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// No bearer token.
    NoToken,
    /// One that nobody knows.
    UnknownToken,
    /// One that may not do this.
    Lacks(Ability),
}

impl Caller {
    pub(super) fn may(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }

    /// # Errors
    /// [`Denied::Lacks`].
    pub(super) fn needs(&self, ability: Ability) -> Result<(), Denied> {
        if self.may(ability) { Ok(()) } else { Err(Denied::Lacks(ability)) }
    }
}

impl Access {
    pub(super) fn new(
        configuration: &Configuration,
        secrets: Option<&DataSecrets>,
        stored: StoredTokens,
    ) -> Self {
        Self { configured: RwLock::new(Configured::of(configuration, secrets)), stored }
    }

    pub(super) fn replace(&self, configuration: &Configuration, secrets: Option<&DataSecrets>) {
        *self.configured.write() = Configured::of(configuration, secrets);
    }

    pub(super) fn metrics_public(&self) -> bool {
        self.configured.read().metrics_public
    }

    /// Whoever's bearer token the request carries.
    ///
    /// # Errors
    /// There is none, or nobody knows it.
    pub(super) fn bearer(&self, headers: &HeaderMap) -> Result<Caller, Denied> {
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| bearer_token(value.as_bytes()));
        self.token(&hash(shown.ok_or(Denied::NoToken)?)).ok_or(Denied::UnknownToken)
    }

    /// Whoever holds the token with this hash.
    pub(super) fn token(&self, sha256: &TokenHash) -> Option<Caller> {
        let configured = self.configured.read();
        // All of them are looked at, so that the time does not tell which was meant.
        let known = configured.tokens.iter().rfind(|token| bool::from(token.sha256.ct_eq(sha256)));
        known.map(|token| token.caller.clone()).or_else(|| self.stored.find(sha256))
    }

    /// Who holds the token of the first start, where that is one.
    pub(super) fn first_token(&self) -> Option<TokenHash> {
        let configured = self.configured.read();
        configured.tokens.iter().find(|token| token.origin == Origin::FirstStart).map(|token| token.sha256)
    }

    /// Every token that is not one of [`StoredTokens`].
    pub(super) fn configured(&self) -> Vec<(Caller, Origin)> {
        let configured = self.configured.read();
        configured.tokens.iter().map(|token| (token.caller.clone(), token.origin)).collect()
    }
}

pub(super) fn hash(token: &[u8]) -> TokenHash {
    Sha256::digest(token).into()
}

impl Configured {
    fn of(configuration: &Configuration, secrets: Option<&DataSecrets>) -> Self {
        let configured = configuration.admin.tokens.iter().map(|token| KnownToken {
            sha256: match &token.credential {
                Credential::Token(token) => hash(token.expose().as_bytes()),
                Credential::Sha256(sha256) => *sha256,
            },
            caller: Caller { name: token.name.clone(), abilities: token.abilities.clone() },
            origin: Origin::Configuration,
        });
        let mut tokens: Vec<KnownToken> = configured.collect();
        if tokens.is_empty() {
            tokens.extend(secrets.map(|secrets| KnownToken {
                sha256: hash(secrets.admin_token.expose().as_bytes()),
                caller: Caller { name: FIRST_TOKEN.to_owned(), abilities: Ability::ALL.to_vec() },
                origin: Origin::FirstStart,
            }));
        }
        Self { tokens, metrics_public: configuration.admin.metrics_public }
    }
}

/// The name of the token that the first start makes.
const FIRST_TOKEN: &str = "admin";
