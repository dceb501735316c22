//! A server, a proxy before it, one of each ready-made limit, and what their hooks were told.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tidegate_client::{
    AttemptBudget, AttemptLimiter, BulkRead, BulkReadGuard, BulkReadLimits, Caller, DecidedBy, Event, Family,
    GuardClient, Observer, Outcome, Reason, Refusal, ReplayFence, RouteLimiter, Selection, Token, Verdict,
    WindowLimit,
};
use tidegate_core::secret::Secret;
use tidegate_store::clock::wall_ms;

use crate::{
    proxy::Proxy,
    support::server::{SECRET, Server, Setup},
};

pub(crate) const PEPPER: &str = "e2e-pepper-0123456789abcdef-0123456789";
/// What one caller may call of the route: little, so that a test can spend it.
pub(crate) const ROUTE_LIMIT: u64 = 3;

pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
}

/// One of each, and what they told.
pub(crate) struct Limits {
    pub(crate) route: RouteLimiter,
    pub(crate) bulk: BulkReadGuard,
    pub(crate) fence: ReplayFence,
    pub(crate) attempts: AttemptLimiter,
    pub(crate) told: Arc<Told>,
}

/// What a hook was told: the limit, the outcome, where it was decided, and why not in the store.
pub(crate) type Row = (&'static str, Outcome, DecidedBy, Option<Reason>);

#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Vec<Row>>);

impl Site {
    pub(crate) fn start() -> Self {
        Self::of(&Setup::new())
    }

    pub(crate) fn of(setup: &Setup) -> Self {
        let server = setup.start();
        let proxy = Proxy::before(server.guard);
        Self { server, proxy }
    }

    /// A client through the proxy. A test that makes it time out says so, and waits no longer than it must.
    pub(crate) fn client(&self) -> GuardClient {
        client_of(&format!("http://{}", self.proxy.address))
    }

    pub(crate) fn impatient(&self) -> GuardClient {
        self.client().with_timeout(tidegate_client::TIMEOUT_MIN)
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits::over(&all(self.client()))
    }
}

pub(crate) fn client_of(url: &str) -> GuardClient {
    let secret = |text| Secret::new(text).unwrap();
    // Long enough for a busy machine.
    GuardClient::new(url, secret(SECRET), &secret(PEPPER)).unwrap().with_timeout(tidegate_client::TIMEOUT_MAX)
}

/// Every family goes to this client.
pub(crate) fn all(client: GuardClient) -> Selection {
    Selection::of(client, Family::ALL)
}

impl Limits {
    pub(crate) fn over(selection: &Selection) -> Self {
        Self::with(selection, |limits| limits)
    }

    /// Which only observe.
    pub(crate) fn observing(selection: &Selection) -> Self {
        Self::with(selection, |limits| Self {
            route: limits.route.observing(),
            bulk: limits.bulk.observing(),
            fence: limits.fence.observing(),
            attempts: limits.attempts.observing(),
            ..limits
        })
    }

    fn with(selection: &Selection, change: impl FnOnce(Self) -> Self) -> Self {
        let told = Arc::new(Told::default());
        let observer = || Arc::clone(&told) as Arc<dyn Observer>;
        // So long that none ends during a test, whenever it runs.
        let long = Duration::from_secs(100 * 86_400);
        let route = RouteLimiter::new(selection, "api", [WindowLimit::fixed(ROUTE_LIMIT, long)]).unwrap();
        let bulk = BulkReadGuard::new(selection, "export", BulkReadLimits::default()).unwrap();
        let fence = ReplayFence::new(selection, "refresh").unwrap();
        let budget = |limit| AttemptBudget::new(limit, Duration::from_secs(900));
        let attempts = AttemptLimiter::new(selection, "login", budget(100), budget(5)).unwrap();
        change(Self {
            route: route.with_identities().with_observer(observer()),
            bulk: bulk.with_identities().with_observer(observer()),
            fence: fence.with_observer(observer()),
            attempts: attempts.with_observer(observer()),
            told,
        })
    }

    /// One call of each, by one caller: the refusals, in the order route, bulk read, replay, attempt.
    pub(crate) async fn ask_each(&self, number: usize) -> [Option<Refusal>; 4] {
        let (target, id, principal) =
            (format!("user-{number}"), format!("token-{number}"), format!("owner-{number}"));
        let token = Token { id: &id, ends_at_ms: wall_ms() + 3_600_000, principal: &principal };
        let caller = caller(number);
        let refused = |verdict: Verdict| verdict.into_result().err();
        [
            refused(self.route.check(caller).await),
            refused(self.bulk.check(BulkRead::by(caller, &target).proven()).await),
            self.fence.claim(token, caller).await.into_result().err(),
            self.attempts.begin(caller, &target).await.into_result().err(),
        ]
    }
}

/// One of many sources, each in a network of its own.
pub(crate) fn caller(number: usize) -> Caller<'static> {
    let number = u32::try_from(number).expect("a test's numbers are small");
    Caller::from(std::net::IpAddr::from((0x0a00_0001 + number * 256).to_be_bytes()))
}

impl Told {
    /// Everything since the last time.
    pub(crate) fn take(&self) -> Vec<Row> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Told {
    fn decided(&self, event: &Event<'_>) {
        let row = (event.limit, event.outcome, event.decided_by, event.unavailable);
        self.0.lock().unwrap().push(row);
    }
}
