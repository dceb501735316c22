//! Bulk reads: windows for each source and each verified actor, and a clearance that a challenge gives.

use std::{fmt, sync::Arc, time::Duration};

use tidegate_core::window::Algorithm;
use tidegate_protocol::{
    Command, CommandResult, Response, Step,
    identity::{Digest, Purpose},
    response::Status,
};

use super::{Core, Decision, InvalidLimit, LegacyPath, no_such_answer, options_of_every_limit, plain, ran};
use crate::{
    Backend, Caller, DecidedBy, Family, GuardClient, GuardUnavailable, Networks, Refusal, RefusalCode,
    Selection, Verdict, WindowLimit,
    limits::route::denied,
    memory::Fingerprint,
    windows::{Denials, Windows, check_period, whole_ms},
};

/// What one source, and one actor, may read of a scope in a UTC day, whatever else is configured.
pub const BULK_READS_A_DAY: u64 = 50_000;

/// Guards reads that an application marks as bulk: a download of everything, an export.
///
/// While the store is unavailable it is shut.
pub struct BulkReadGuard {
    pub(super) core: Core,
    source_windows: Windows,
    actor_windows: Windows,
    clearance_ms: Option<u64>,
    legacy: Option<LegacyPath<LegacyRead, Verdict>>,
    carries_identities: bool,
    denials: Denials,
}

/// How much may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkReadLimits {
    /// For each source, up to three windows beside the daily one.
    pub source: Vec<WindowLimit>,
    /// For each actor, likewise.
    pub actor: Vec<WindowLimit>,
    /// How long a clearance lives; `None` if no challenge is asked for.
    pub clearance: Option<Duration>,
}

/// A read, and what the application knows of who asks.
#[derive(Clone, Copy)]
pub struct BulkRead<'a> {
    caller: Caller<'a>,
    actor: Option<&'a str>,
    is_proven: bool,
}

/// What the legacy path of a [`BulkReadGuard`] is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct LegacyRead {
    /// The guard's scope.
    pub scope: String,
    /// The canonical source.
    pub source: String,
    /// The verified actor.
    pub actor: Option<String>,
    /// Whether a challenge was solved.
    pub is_proven: bool,
}

impl Default for BulkReadLimits {
    /// 600 a minute for each source, 300 for each actor, and clearances of an hour.
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self {
            source: vec![WindowLimit::sliding(600, minute)],
            actor: vec![WindowLimit::sliding(300, minute)],
            clearance: Some(Duration::from_secs(3600)),
        }
    }
}

impl<'a> BulkRead<'a> {
    /// By somebody whose session is not verified.
    #[must_use]
    pub const fn unverified(caller: Caller<'a>) -> Self {
        Self { caller, actor: None, is_proven: false }
    }

    /// By a session or a user that the application has verified.
    #[must_use]
    pub const fn by(caller: Caller<'a>, actor: &'a str) -> Self {
        Self { caller, actor: Some(actor), is_proven: false }
    }

    /// The request brought the proof of a challenge, and the application has verified it.
    #[must_use]
    pub const fn proven(self) -> Self {
        Self { is_proven: true, ..self }
    }
}

impl BulkReadGuard {
    /// A guard named `scope`, which all instances share.
    ///
    /// # Errors
    /// A bad scope, more than three windows for one of them, or a window or life out of bounds.
    pub fn new(selection: &Selection, scope: &str, limits: BulkReadLimits) -> Result<Self, InvalidLimit> {
        let clearance_ms = limits.clearance.map(whole_ms);
        if let Some(life_ms) = clearance_ms {
            check_period(life_ms, Algorithm::Fixed)?;
        }
        let with_daily = |mut windows: Vec<WindowLimit>| {
            windows.push(WindowLimit::fixed(BULK_READS_A_DAY, Duration::from_secs(86_400)));
            Windows::new(windows)
        };
        Ok(Self {
            core: Core::new("bulk_read", Family::Offline, selection, scope)?,
            source_windows: with_daily(limits.source)?,
            actor_windows: with_daily(limits.actor)?,
            clearance_ms,
            legacy: None,
            carries_identities: false,
            denials: Denials::default(),
        })
    }

    options_of_every_limit!();

    /// What decides while the family is not assigned. Without it everything passes.
    #[must_use]
    pub fn with_legacy<F>(mut self, path: impl Fn(LegacyRead) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        self.legacy = Some(Arc::new(move |read| Box::pin(path(read))));
        self
    }

    /// Charges calls to the source and the actor too, for a server that requires them.
    #[must_use]
    pub fn with_identities(mut self) -> Self {
        self.carries_identities = true;
        self
    }

    /// Charges one read, and looks for a clearance or grants one.
    pub async fn check(&self, read: BulkRead<'_>) -> Verdict {
        let started = self.core.started();
        let decision = match &self.core.backend {
            Backend::Legacy => self.by_legacy(read).await,
            Backend::Guard(client) => self.by_guard(client, read).await,
            Backend::Off(cause) => Decision::closed(&self.core.failed(cause.clone().into())),
        };
        self.core.settle(started, decision, || ())
    }

    /// How many denials are remembered, at most 10 000.
    #[must_use]
    pub fn denials_remembered(&self) -> usize {
        self.denials.len()
    }

    async fn by_legacy(&self, read: BulkRead<'_>) -> Decision<()> {
        let Some(path) = &self.legacy else { return Decision::allowed((), DecidedBy::Nobody) };
        let read = LegacyRead {
            scope: self.core.scope.to_string(),
            source: read.caller.source(),
            actor: read.actor.map(str::to_owned),
            is_proven: read.is_proven,
        };
        Decision::legacy(path(read).await)
    }

    async fn by_guard(&self, client: &GuardClient, read: BulkRead<'_>) -> Decision<()> {
        let source = read.caller.source();
        let keys = [
            Some(self.core.names.of(&["source", &source])),
            read.actor.map(|actor| self.core.names.of(&["actor", actor])),
        ];
        let now_ms = self.core.now_ms();
        if let Some(refusal) = keys.iter().flatten().find_map(|key| self.denials.standing(*key, now_ms)) {
            return Decision::refused(refusal, DecidedBy::Memory);
        }
        match self.core.noted(self.ask(client, read, &source).await) {
            Ok(Found::Pass) => Decision::allowed((), DecidedBy::Store),
            Ok(Found::NoClearance) => plain(RefusalCode::ChallengeRequired, DecidedBy::Store),
            Ok(Found::NoActor) => plain(RefusalCode::Unauthenticated, DecidedBy::Store),
            Ok(Found::Denied { step, refusal }) => self.remember(keys.get(step).copied().flatten(), refusal),
            Err(error) => Decision::closed(&error),
        }
    }

    fn remember(&self, key: Option<Fingerprint>, refusal: Refusal) -> Decision<()> {
        if let Some(key) = key {
            self.denials.remember(key, self.core.now_ms(), refusal.clone(), u64::MAX);
        }
        Decision::refused(refusal, DecidedBy::Store)
    }

    async fn ask(
        &self,
        client: &GuardClient,
        read: BulkRead<'_>,
        source: &str,
    ) -> Result<Found, GuardUnavailable> {
        let request = self.core.request(self.steps(client, read, source))?;
        let response = match (self.carries_identities, read.actor) {
            (false, _) => client.run(&request).await?,
            (true, None) => client.view(read.caller, Networks::Around).run(&request).await?,
            (true, Some(actor)) => {
                client.view(read.caller.principal(actor), Networks::Around).run(&request).await?
            }
        };
        self.read_answer(&response, read)
    }

    /// The source's windows; then the actor's, with a look at the clearance; or a clearance after them, which a
    /// denial leaves out.
    fn steps(&self, client: &GuardClient, read: BulkRead<'_>, source: &str) -> Vec<Step> {
        let mut steps = vec![Step {
            partition: self.core.partition(client, &["source", source]),
            commands: vec![Command::hit(self.source_windows.hashed(client))],
        }];
        let Some(actor) = read.actor else { return steps };
        let partition = self.core.partition(client, &["actor", actor]);
        let mut commands = vec![Command::hit(self.actor_windows.hashed(client))];
        if self.clearance_ms.is_some() && !read.is_proven {
            commands.push(Command::get(clearance(client)));
        }
        steps.push(Step { partition, commands });
        if let (Some(life_ms), true) = (self.clearance_ms, read.is_proven) {
            steps.push(Step { partition, commands: vec![Command::set(clearance(client), "1", life_ms)] });
        }
        steps
    }

    fn read_answer(&self, response: &Response, read: BulkRead<'_>) -> Result<Found, GuardUnavailable> {
        let source = ran(response, 0)?;
        if let Some(refusal) = denied(&self.source_windows, source.results.first())? {
            return Ok(Found::Denied { step: 0, refusal });
        }
        if read.actor.is_none() {
            return Ok(Found::NoActor);
        }
        let actor = ran(response, 1)?;
        if let Some(refusal) = denied(&self.actor_windows, actor.results.first())? {
            return Ok(Found::Denied { step: 1, refusal });
        }
        match (self.clearance_ms, read.is_proven) {
            (None, _) => Ok(Found::Pass),
            (Some(_), true) => match ran(response, 2)?.status {
                Status::Ok => Ok(Found::Pass),
                _ => Err(no_such_answer()),
            },
            (Some(_), false) => match actor.results.get(1) {
                Some(CommandResult::Get { value: Some(_), .. }) => Ok(Found::Pass),
                Some(CommandResult::Get { value: None, .. }) => Ok(Found::NoClearance),
                _ => Err(no_such_answer()),
            },
        }
    }
}

/// What the store knows of a read.
enum Found {
    Pass,
    NoActor,
    NoClearance,
    /// Of the source (0) or the actor (1).
    Denied {
        step: usize,
        refusal: Refusal,
    },
}

fn clearance(client: &GuardClient) -> Digest {
    client.digest(Purpose::Key, "clearance")
}

impl fmt::Debug for BulkReadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkReadGuard").field("core", &self.core).finish_non_exhaustive()
    }
}

impl fmt::Debug for BulkRead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BulkRead(…)")
    }
}

impl fmt::Debug for LegacyRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LegacyRead({}, …)", self.scope)
    }
}
