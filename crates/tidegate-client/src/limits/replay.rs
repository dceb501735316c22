//! The replay fence: a single-use token is used once.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidegate_protocol::{Command, CommandResult, Step, bounds, identity::Purpose};

use super::{
    Core, Decision, InvalidLimit, LegacyPath, Pending, no_such_answer, options_of_every_limit, plain, ran,
};
use crate::{
    Backend, Caller, Cause, DecidedBy, Family, GuardClient, GuardUnavailable, Networks, Refusal, RefusalCode,
    Selection, Verdict, WindowLimit,
    memory::{Fingerprint, Memory},
    timestamp,
    windows::{InstanceWindows, Windows, whole_ms},
};

/// Claims a token's use once, over all instances: for refresh tokens, links that log in, webhooks.
///
/// While the store is unavailable it is shut.
pub struct ReplayFence {
    pub(super) core: Core,
    grace_ms: u64,
    read_through: ReadThrough,
    legacy: Option<LegacyPath<LegacyToken, Verdict<TokenUse>>>,
    /// Tokens that were proven replayed, until they end.
    replayed: Mutex<Memory<()>>,
    by_principal: InstanceWindows,
    by_source: InstanceWindows,
}

/// A token that the application has verified.
#[derive(Clone, Copy)]
pub struct Token<'a> {
    /// What tells it from all others: its `jti`, or all of it.
    pub id: &'a str,
    /// When it ends, in unix time.
    pub ends_at_ms: u64,
    /// Whose it is.
    pub principal: &'a str,
}

/// A use that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// The first.
    First,
    /// Another, so soon after the first that it is taken for the same: two tabs, a lost answer.
    Grace {
        /// When the first was, by the clock of the instance that saw it.
        first_use_ms: u64,
    },
}

/// What the legacy path of a [`ReplayFence`] is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct LegacyToken {
    /// The fence's scope.
    pub scope: String,
    /// The token's id.
    pub id: String,
    /// When it ends, in unix time.
    pub ends_at_ms: u64,
    /// Whose it is.
    pub principal: String,
    /// The canonical source.
    pub source: String,
}

/// Why a legacy store gave no answer.
pub type LegacyError = Box<dyn Error + Send + Sync>;

/// The cut-over from a legacy store, whose fences are still read.
struct ReadThrough {
    until: Deadline,
    reader: Option<LegacyReader>,
}

type LegacyReader = Arc<dyn Fn(String) -> Pending<Result<bool, LegacyError>> + Send + Sync>;

#[derive(Clone, Copy)]
enum Deadline {
    None,
    At(u64),
    Malformed,
}

/// Attempts of one principal that an instance lets through to the store in a minute.
const PRINCIPAL_A_MINUTE: u64 = 20;
/// Attempts of one source, likewise.
const SOURCE_A_MINUTE: u64 = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// A fence outlives its token by as much, for verifiers that are lenient about the end.
const MARGIN_MS: u64 = 60_000;
const GRACE: Duration = Duration::from_secs(10);

impl ReplayFence {
    /// A fence named `scope`, which all instances share, with ten seconds of grace. The deadline of a cut-over
    /// is the selection's.
    ///
    /// # Errors
    /// A bad scope.
    pub fn new(selection: &Selection, scope: &str) -> Result<Self, InvalidLimit> {
        let a_minute = |limit| {
            Windows::new([WindowLimit::fixed(limit, MINUTE)]).map(|windows| InstanceWindows::new(&windows))
        };
        let until = Deadline::read(selection.replay_legacy_until());
        Ok(Self {
            core: Core::new("replay", Family::Replay, selection, scope)?,
            grace_ms: whole_ms(GRACE),
            read_through: ReadThrough { until, reader: None },
            legacy: None,
            replayed: Mutex::default(),
            by_principal: a_minute(PRINCIPAL_A_MINUTE)?,
            by_source: a_minute(SOURCE_A_MINUTE)?,
        })
    }

    options_of_every_limit!();

    /// With another grace; none lets no second use pass.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace_ms: whole_ms(grace), ..self }
    }

    /// Until the deadline, a token that `is_used` knows by its id counts as used. See `docs/clients.md` on the
    /// cut-over.
    #[must_use]
    pub fn with_legacy_reader<F>(mut self, is_used: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<bool, LegacyError>> + Send + 'static,
    {
        self.read_through.reader = Some(Arc::new(move |id| Box::pin(is_used(id))));
        self
    }

    /// The deadline of a cut-over, for a selection that was not read from the environment: a full ISO-8601
    /// timestamp. Anything else shuts the fence.
    #[must_use]
    pub fn with_legacy_until(mut self, deadline: &str) -> Self {
        self.read_through.until = Deadline::read(Some(deadline));
        self
    }

    /// What decides while the family is not assigned. Without it every use passes as the first.
    #[must_use]
    pub fn with_legacy<F>(mut self, path: impl Fn(LegacyToken) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Verdict<TokenUse>> + Send + 'static,
    {
        self.legacy = Some(Arc::new(move |token| Box::pin(path(token))));
        self
    }

    /// Claims the token's use by a caller at this address.
    pub async fn claim(&self, token: Token<'_>, caller: Caller<'_>) -> Verdict<TokenUse> {
        let started = self.core.started();
        let caller = caller.principal(token.principal);
        let decision = match &self.core.backend {
            Backend::Legacy => self.by_legacy(token, caller).await,
            Backend::Guard(client) => self.by_guard(Ok(client), token, caller).await,
            Backend::Off(cause) => self.by_guard(Err(cause), token, caller).await,
        };
        self.core.settle(started, decision, || TokenUse::First)
    }

    /// How many replayed tokens are remembered, at most 10 000.
    #[must_use]
    pub fn replays_remembered(&self) -> usize {
        self.replayed.lock().len()
    }

    async fn by_legacy(&self, token: Token<'_>, caller: Caller<'_>) -> Decision<TokenUse> {
        let Some(path) = &self.legacy else {
            return Decision::allowed(TokenUse::First, DecidedBy::Nobody);
        };
        let token = LegacyToken {
            scope: self.core.scope.to_string(),
            id: token.id.to_owned(),
            ends_at_ms: token.ends_at_ms,
            principal: token.principal.to_owned(),
            source: caller.source(),
        };
        Decision::legacy(path(token).await)
    }

    async fn by_guard(
        &self,
        client: Result<&GuardClient, &Cause>,
        token: Token<'_>,
        caller: Caller<'_>,
    ) -> Decision<TokenUse> {
        let (key, now_ms) = (self.core.names.of(&[token.id]), self.core.now_ms());
        if self.replayed.lock().get(key, now_ms).is_some() {
            return plain(RefusalCode::TokenReplayed, DecidedBy::Memory);
        }
        let usable = client.map_err(|cause| GuardUnavailable::from(cause.clone())).and_then(|client| {
            self.read_through.usable(now_ms)?;
            Ok(client)
        });
        let client = match usable {
            Ok(client) => client,
            Err(error) => return Decision::closed(&self.core.failed(error)),
        };
        if token.ends_at_ms <= now_ms {
            return plain(RefusalCode::TokenExpired, DecidedBy::Instance);
        }
        if token.ends_at_ms - now_ms > bounds::TTL_MS_MAX {
            let message = "a token must end within 120 days: its fence can't live longer";
            return Decision::closed(&Cause::BadRequest(message.into()).into());
        }
        if let Err(refusal) = self.pre_limit(caller, token.principal, now_ms) {
            return Decision::refused(refusal, DecidedBy::Instance);
        }
        match self.core.noted(self.ask(client, token, caller, now_ms).await) {
            Ok(Claimed::First) => Decision::allowed(TokenUse::First, DecidedBy::Store),
            Ok(Claimed::At { first_use_ms, now_ms }) if now_ms.abs_diff(first_use_ms) <= self.grace_ms => {
                Decision::allowed(TokenUse::Grace { first_use_ms }, DecidedBy::Store).in_grace()
            }
            Ok(Claimed::At { .. }) => self.replayed(key, token, DecidedBy::Store),
            Ok(Claimed::InLegacyStore) => self.replayed(key, token, DecidedBy::Legacy),
            Err(error) => Decision::closed(&error),
        }
    }

    fn replayed(&self, key: Fingerprint, token: Token<'_>, by: DecidedBy) -> Decision<TokenUse> {
        self.replayed.lock().put(key, token.ends_at_ms, ());
        plain(RefusalCode::TokenReplayed, by)
    }

    /// Counts an attempt with its principal and its source, or with neither.
    fn pre_limit(&self, caller: Caller<'_>, principal: &str, now_ms: u64) -> Result<(), Refusal> {
        let principal = self.core.names.of(&["principal", principal]);
        let source = self.core.names.of(&["source", &caller.source()]);
        let full = Refusal::after(RefusalCode::RateLimited, whole_ms(MINUTE));
        let has_room =
            self.by_principal.has_room(principal, now_ms) && self.by_source.has_room(source, now_ms);
        if !has_room {
            return Err(full);
        }
        let counted = [self.by_source.hit(source, now_ms), self.by_principal.hit(principal, now_ms)];
        // Another call may have taken the room since.
        if counted.iter().all(Result::is_ok) { Ok(()) } else { Err(full) }
    }

    async fn ask(
        &self,
        client: &GuardClient,
        token: Token<'_>,
        caller: Caller<'_>,
        now_ms: u64,
    ) -> Result<Claimed, GuardUnavailable> {
        if self.read_through.knows(client, token.id, now_ms).await? {
            return Ok(Claimed::InLegacyStore);
        }
        let left_ms = token.ends_at_ms.saturating_sub(now_ms);
        let life_ms = left_ms.saturating_add(MARGIN_MS).min(bounds::TTL_MS_MAX);
        let claim = Command::claim(client.digest(Purpose::Key, "use"), now_ms.to_string(), life_ms);
        let partition = self.core.partition(client, &[token.id]);
        let request = self.core.request([Step { partition, commands: vec![claim] }])?;
        let response = client.view(caller, Networks::Around).run(&request).await?;
        match ran(&response, 0)?.results.first() {
            Some(CommandResult::Set { written: true, .. }) => Ok(Claimed::First),
            Some(CommandResult::Set { written: false, current: Some(text) }) => {
                let first_use_ms = text.parse().map_err(|_| broken_record())?;
                Ok(Claimed::At { first_use_ms, now_ms: self.core.now_ms() })
            }
            _ => Err(no_such_answer()),
        }
    }
}

/// What the store knows of a token.
enum Claimed {
    First,
    At { first_use_ms: u64, now_ms: u64 },
    InLegacyStore,
}

impl ReadThrough {
    /// # Errors
    /// The deadline can't be read, or lies ahead while there is nothing to read.
    fn usable(&self, now_ms: u64) -> Result<(), GuardUnavailable> {
        match (self.until, &self.reader) {
            (Deadline::Malformed, _) => {
                let message = "REPLAY_LEGACY_UNTIL must be a full timestamp, such as 2026-02-28T00:00:00Z";
                Err(Cause::Configuration(message.into()).into())
            }
            (Deadline::At(until_ms), None) if now_ms < until_ms => {
                let message = "REPLAY_LEGACY_UNTIL lies ahead, but there is no legacy store to read";
                Err(Cause::Configuration(message.into()).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the legacy store has a token, as long as it counts.
    async fn knows(&self, client: &GuardClient, id: &str, now_ms: u64) -> Result<bool, GuardUnavailable> {
        let (Deadline::At(until_ms), Some(reader)) = (self.until, &self.reader) else { return Ok(false) };
        if now_ms >= until_ms {
            return Ok(false);
        }
        match tokio::time::timeout(client.timeout(), reader(id.to_owned())).await {
            Ok(Ok(is_used)) => Ok(is_used),
            // What the error says is the application's own; it may name the token.
            Ok(Err(_)) => Err(Cause::Transport("the legacy store can't be read".into()).into()),
            Err(_elapsed) => Err(Cause::TimedOut.into()),
        }
    }
}

impl Deadline {
    fn read(text: Option<&str>) -> Self {
        let read = |text| timestamp::parse_ms(text).map_or(Self::Malformed, Self::At);
        text.map_or(Self::None, read)
    }
}

/// Neither used nor unused: not known.
fn broken_record() -> GuardUnavailable {
    Cause::Unavailable("a fence's record holds no time".into()).into()
}

impl fmt::Debug for ReplayFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayFence").field("core", &self.core).finish_non_exhaustive()
    }
}

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl fmt::Debug for LegacyToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LegacyToken({}, …)", self.scope)
    }
}
