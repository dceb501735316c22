//! Limits of routes: all of a caller's windows in one command.

use std::{fmt, sync::Arc};

use tidegate_protocol::{Command, CommandResult, Step};

use super::{Core, Decision, InvalidLimit, LegacyPath, no_such_answer, options_of_every_limit, ran};
use crate::{
    Backend, Caller, DecidedBy, Family, GuardClient, GuardUnavailable, Networks, Refusal, Selection, Verdict,
    WindowLimit,
    memory::Fingerprint,
    windows::{Denials, InstanceWindows, Windows, denial},
};

/// Limits how often a caller may call, in up to four windows that are charged together.
///
/// A denial is remembered until it ends, so that whoever is blocked costs the store nothing. While the store is
/// unavailable this instance counts alone, in fixed windows that start at zero: a lost store never refuses
/// everybody.
///
/// ```
/// use std::time::Duration;
/// use tidegate_client::{Caller, RouteLimiter, Selection, WindowLimit};
///
/// # async fn handler(limiter: &RouteLimiter) -> Result<(), tidegate_client::Refusal> {
/// limiter.check(Caller::at("192.0.2.7")).await.into_result()?;
/// # Ok(()) }
/// let minute = WindowLimit::sliding(100, Duration::from_secs(60));
/// let limiter = RouteLimiter::new(&Selection::from_env(), "api", [minute])?;
/// # Ok::<(), tidegate_client::InvalidLimit>(())
/// ```
pub struct RouteLimiter {
    pub(super) core: Core,
    windows: Windows,
    legacy: Option<LegacyPath<LegacyRoute, Verdict>>,
    carries_identities: bool,
    denials: Denials,
    instance: InstanceWindows,
}

/// What the legacy path of a [`RouteLimiter`] is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct LegacyRoute {
    /// The limit's scope.
    pub scope: String,
    /// Who is counted: `source:192.0.2.7/32` or `principal:user_42`.
    pub subject: String,
}

impl RouteLimiter {
    /// A limit named `scope`, which all instances share.
    ///
    /// # Errors
    /// A bad scope, none or more than four windows, or a window out of bounds.
    pub fn new(
        selection: &Selection,
        scope: &str,
        limits: impl IntoIterator<Item = WindowLimit>,
    ) -> Result<Self, InvalidLimit> {
        let windows = Windows::new(limits)?;
        Ok(Self {
            core: Core::new("route", Family::Proxy, selection, scope)?,
            instance: InstanceWindows::new(&windows),
            windows,
            legacy: None,
            carries_identities: false,
            denials: Denials::default(),
        })
    }

    options_of_every_limit!();

    /// What decides while the family is not assigned. Without it everything passes.
    #[must_use]
    pub fn with_legacy<F>(mut self, path: impl Fn(LegacyRoute) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        self.legacy = Some(Arc::new(move |route| Box::pin(path(route))));
        self
    }

    /// Charges calls to the caller's identities too, for a server that requires them. Their shares of the
    /// family's budget then bound how much of a day is counted in the store.
    #[must_use]
    pub fn with_identities(mut self) -> Self {
        self.carries_identities = true;
        self
    }

    /// Charges one call to the caller, or says how long to wait.
    pub async fn check(&self, caller: Caller<'_>) -> Verdict {
        let started = self.core.started();
        let decision = match &self.core.backend {
            Backend::Legacy => self.by_legacy(caller).await,
            Backend::Guard(client) => self.by_guard(client, caller).await,
            Backend::Off(cause) => {
                let error = self.core.failed(cause.clone().into());
                self.by_instance(self.named(&Subject::of(caller)), &error)
            }
        };
        self.core.settle(started, decision, || ())
    }

    /// How many denials are remembered, at most 10 000.
    #[must_use]
    pub fn denials_remembered(&self) -> usize {
        self.denials.len()
    }

    /// How many callers are counted by this instance alone, at most 10 000.
    #[must_use]
    pub fn callers_counted_here(&self) -> usize {
        self.instance.len()
    }

    async fn by_legacy(&self, caller: Caller<'_>) -> Decision<()> {
        let Some(path) = &self.legacy else { return Decision::allowed((), DecidedBy::Nobody) };
        let Subject { kind, name } = Subject::of(caller);
        let route = LegacyRoute { scope: self.core.scope.to_string(), subject: format!("{kind}:{name}") };
        Decision::legacy(path(route).await)
    }

    async fn by_guard(&self, client: &GuardClient, caller: Caller<'_>) -> Decision<()> {
        let subject = Subject::of(caller);
        let key = self.named(&subject);
        if let Some(refusal) = self.denials.standing(key, self.core.now_ms()) {
            return Decision::refused(refusal, DecidedBy::Memory);
        }
        match self.core.noted(self.ask(client, &subject, caller).await) {
            Ok(None) => Decision::allowed((), DecidedBy::Store),
            Ok(Some(refusal)) => {
                self.denials.remember(key, self.core.now_ms(), refusal.clone(), u64::MAX);
                Decision::refused(refusal, DecidedBy::Store)
            }
            Err(error) => self.by_instance(key, &error),
        }
    }

    async fn ask(
        &self,
        client: &GuardClient,
        subject: &Subject,
        caller: Caller<'_>,
    ) -> Result<Option<Refusal>, GuardUnavailable> {
        let partition = self.core.partition(client, &[subject.kind, &subject.name]);
        let commands = vec![Command::hit(self.windows.hashed(client))];
        let request = self.core.request([Step { partition, commands }])?;
        let response = match self.carries_identities {
            true => client.view(caller, Networks::Around).run(&request).await?,
            false => client.run(&request).await?,
        };
        denied(&self.windows, ran(&response, 0)?.results.first())
    }

    fn by_instance(&self, key: Fingerprint, error: &GuardUnavailable) -> Decision<()> {
        let decision = match self.instance.hit(key, self.core.now_ms()) {
            Ok(()) => Decision::allowed((), DecidedBy::Instance),
            Err(refusal) => Decision::refused(refusal, DecidedBy::Instance),
        };
        decision.because(error)
    }

    fn named(&self, subject: &Subject) -> Fingerprint {
        self.core.names.of(&[subject.kind, &subject.name])
    }
}

/// Who is counted.
struct Subject {
    kind: &'static str,
    name: String,
}

impl Subject {
    fn of(caller: Caller<'_>) -> Self {
        match caller.principal_text() {
            Some(principal) => Self { kind: "principal", name: principal.to_owned() },
            None => Self { kind: "source", name: caller.source() },
        }
    }
}

/// The refusal that the result of a `win.hit` is, if it is one.
pub(super) fn denied(
    windows: &Windows,
    result: Option<&CommandResult>,
) -> Result<Option<Refusal>, GuardUnavailable> {
    match result {
        Some(CommandResult::Hit { allowed: true, .. }) => Ok(None),
        Some(CommandResult::Hit { windows: usages, retry_after_ms, .. }) => {
            let states = windows.states(usages).ok_or_else(no_such_answer)?;
            Ok(Some(denial(*retry_after_ms, states)))
        }
        _ => Err(no_such_answer()),
    }
}

impl fmt::Debug for RouteLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteLimiter").field("core", &self.core).finish_non_exhaustive()
    }
}

impl fmt::Debug for LegacyRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LegacyRoute({}, …)", self.scope)
    }
}
