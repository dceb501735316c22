//! The kinds of values that keys take.

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A log level, or directives such as `info,tidegate_guard=debug`.
    Level,
    /// Any text, if it is not blank.
    Text,
    /// A whole number from the first to the second, both included.
    Integer(u64, u64),
    /// `true` or `false`.
    Boolean,
    /// An IP address and a port.
    Address,
    /// A path; a relative one is relative to the working directory.
    Path,
    /// A URL. It may hold a password, so that it is treated as a secret.
    Url,
    /// A secret of at least 32 characters.
    Secret,
    /// A list of secrets.
    Secrets,
    /// A list of words.
    Words,
    /// A list of hosts.
    Domains,
    /// A list of servers.
    Upstreams,
    /// A list of addresses and networks.
    Networks,
    /// A list of the identities that an RPC must carry.
    Axes,
    /// Shares in basis points by axis.
    Shares,
    /// Commands a day by family.
    Budgets,
    /// The tokens of the admin API.
    Tokens,
}

impl Kind {
    /// Whether a value of this kind must never be printed.
    #[must_use]
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::Url | Self::Secret | Self::Secrets | Self::Tokens)
    }

    /// What is allowed, in words that end a sentence.
    #[must_use]
    pub fn allowed(self) -> String {
        match self {
            Self::Choice(words) => one_of(words),
            Self::Level => "`error`, `warn`, `info`, `debug`, `trace`, `off`, or directives such as \
                            `info,tidegate_guard=debug`"
                .into(),
            Self::Text => "text".into(),
            Self::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Self::Boolean => "`true` or `false`".into(),
            Self::Address => "an IP address and a port, such as 127.0.0.1:8787 or [::1]:8787".into(),
            Self::Path => "a path".into(),
            Self::Url => "a URL".into(),
            Self::Secret => format!("{SECRET_RULES}; `tidegate keygen` prints one"),
            Self::Secrets => {
                format!("a list of 1 to {SECRETS_MAX} secrets, the current one first: each {SECRET_RULES}")
            }
            Self::Words | Self::Domains | Self::Upstreams => "a list of strings".into(),
            Self::Networks => "a list of addresses and networks, such as 192.0.2.7, 198.51.100.0/24 or 2001:db8::/48".into(),
            Self::Axes => "a list of `source` and `principal`".into(),
            Self::Shares => "basis points (0 to 10000) by axis, as \"source=500,principal=500\" or as a table; the axes are \
                             source, principal, network/24, network/56 and network/48"
                .into(),
            Self::Budgets => "commands a day by family, such as \"offline=600000,replay=100000\"".into(),
            Self::Tokens => "a list of { name, token or token_sha256, abilities }; the abilities are read, \
                             read:sensitive, write and operator"
                .into(),
        }
    }
}

/// How many signing secrets are accepted at once: a rotation needs two; a few more do no harm.
pub const SECRETS_MAX: usize = 8;

/// The rules of every secret, in words.
const SECRET_RULES: &str =
    "32 characters or more, with no white space around them, no control character and no placeholder";

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
