//! The kinds of identity that share a family's budget.

/// A kind of identity that a request can carry, and that has a share of a family's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// The caller's address (IPv6: its /64).
    Source,
    /// Its IPv4 network of 256 addresses.
    Network24,
    /// Its IPv6 network of a site.
    Network56,
    /// Its IPv6 network of an organisation.
    Network48,
    /// The user, account or token's owner.
    Principal,
}

impl Axis {
    /// How many there are.
    pub const COUNT: usize = 5;

    /// Every axis.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Source, Self::Network24, Self::Network56, Self::Network48, Self::Principal];

    /// The name in messages and in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Network24 => "network/24",
            Self::Network56 => "network/56",
            Self::Network48 => "network/48",
            Self::Principal => "principal",
        }
    }

    /// The axis of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|axis| axis.as_str() == name)
    }

    /// The axis of a network with this prefix: 24, 56 or 48.
    #[must_use]
    pub const fn of_network(prefix: u8) -> Option<Self> {
        match prefix {
            24 => Some(Self::Network24),
            56 => Some(Self::Network56),
            48 => Some(Self::Network48),
            _ => None,
        }
    }

    /// The share of a family's budget that one identity may spend a day, in basis points, where none is
    /// configured.
    #[must_use]
    pub const fn default_share_bp(self) -> u64 {
        match self {
            Self::Source | Self::Principal => 500,
            Self::Network24 | Self::Network56 => 1_500,
            Self::Network48 => 2_500,
        }
    }

    /// Whether a family can require it. Requiring a network would shut out every caller of the other address
    /// family.
    #[must_use]
    pub const fn can_be_required(self) -> bool {
        matches!(self, Self::Source | Self::Principal)
    }
}
