//! Legacy paths over a Redis that an application already has: what its families use until they are assigned,
//! and what a cut-over reads.
//!
//! Windows are fixed and begin with the first call. Keys are digests under the application's pepper, so that
//! Redis sees no identity either. Nothing is retried; a call takes 750 ms at most. While Redis is away routes
//! are let through, and everything else is shut.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ::redis::{Client, Cmd, ErrorKind, FromRedisValue, RedisError, aio::MultiplexedConnection, cmd};
use tidegate_core::secret::Secret;
use tidegate_protocol::identity::{Pepper, Purpose, digest};
use tidegate_store::clock::wall_ms;
use tokio::sync::Mutex;
use tracing::{info, warn};

use crate::{
    AttemptBudget, InvalidLimit, LegacyAttempt, LegacyError, LegacyRefund, LegacyRoute, LegacyToken, Pending,
    Refusal, RefusalCode, TIMEOUT_DEFAULT, TokenUse, Verdict, WindowLimit, WindowState,
    windows::{Windows, denial, whole_ms},
};

/// A path that a limit takes while its family is not assigned.
pub type LegacyFn<A, T> = Box<dyn Fn(A) -> Pending<T> + Send + Sync>;

/// A Redis of the application's own. Cloning shares its connection.
#[derive(Clone)]
pub struct RedisLegacy(Arc<Link>);

struct Link {
    client: Client,
    pepper: Pepper,
    connection: Mutex<Option<MultiplexedConnection>>,
    is_away: AtomicBool,
}

/// Two uses so close together are taken for one, as in the guard store.
const GRACE_MS: u64 = 10_000;

/// Charges all counters or none: whether it was refused, then what is used of each and how long it lives.
const HIT: &str = "
local refused, used, left = 0, {}, {}
for i, key in ipairs(KEYS) do
  used[i] = tonumber(redis.call('GET', key) or '0')
  left[i] = redis.call('PTTL', key)
  if used[i] >= tonumber(ARGV[2 * i - 1]) then refused = 1 end
end
local answer = {refused}
for i, key in ipairs(KEYS) do
  if refused == 0 then used[i] = redis.call('INCR', key) end
  if left[i] < 0 then
    left[i] = tonumber(ARGV[2 * i])
    if refused == 0 then redis.call('PEXPIRE', key, left[i]) end
  end
  answer[#answer + 1], answer[#answer + 2] = used[i], left[i]
end
return answer";

/// Gives one back to each counter that lives and has one.
const REFUND: &str = "
for _, key in ipairs(KEYS) do
  if tonumber(redis.call('GET', key) or '0') > 0 then redis.call('DECR', key) end
end
return 1";

impl RedisLegacy {
    /// A Redis at `redis://…` or `rediss://…`. Nothing is connected yet.
    ///
    /// # Errors
    /// The URL can't be read.
    pub fn new(url: &str, pepper: &Secret) -> Result<Self, RedisError> {
        let (client, pepper) = (Client::open(url)?, Pepper::new(pepper));
        let (connection, is_away) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self(Arc::new(Link { client, pepper, connection, is_away })))
    }

    /// For [`crate::RouteLimiter::with_legacy`].
    ///
    /// # Errors
    /// As [`crate::RouteLimiter::new`].
    pub fn routes(
        &self,
        limits: impl IntoIterator<Item = WindowLimit>,
    ) -> Result<LegacyFn<LegacyRoute, Verdict>, InvalidLimit> {
        let (link, windows) = (Arc::clone(&self.0), Arc::new(Windows::new(limits)?));
        Ok(Box::new(move |route| {
            let (link, windows) = (Arc::clone(&link), Arc::clone(&windows));
            Box::pin(async move { link.route(&windows, &route).await })
        }))
    }

    /// For [`crate::AttemptLimiter::with_legacy`].
    ///
    /// # Errors
    /// As [`crate::AttemptLimiter::new`].
    pub fn attempts(
        &self,
        source: AttemptBudget,
        target: AttemptBudget,
    ) -> Result<LegacyFn<LegacyAttempt, Verdict<Option<LegacyRefund>>>, InvalidLimit> {
        source.check()?;
        target.check()?;
        let (link, budgets) = (Arc::clone(&self.0), [source, target]);
        Ok(Box::new(move |attempt| Box::pin(Arc::clone(&link).attempt(budgets, attempt))))
    }

    /// For [`crate::ReplayFence::with_legacy`]: the first to set a key wins, with ten seconds of grace.
    #[must_use]
    pub fn fence(&self) -> LegacyFn<LegacyToken, Verdict<TokenUse>> {
        let link = Arc::clone(&self.0);
        Box::new(move |token| {
            let link = Arc::clone(&link);
            Box::pin(async move {
                link.claim(&token).await.unwrap_or_else(|_| Verdict::Refused(Refusal::unavailable()))
            })
        })
    }

    /// For [`crate::ReplayFence::with_legacy_reader`]: whether there is a key, which `key_of` makes of a token's
    /// id as the application always made it.
    #[must_use]
    pub fn reader(
        &self,
        key_of: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> LegacyFn<String, Result<bool, LegacyError>> {
        let link = Arc::clone(&self.0);
        Box::new(move |id| {
            let (link, key) = (Arc::clone(&link), key_of(&id));
            Box::pin(async move { Ok(link.ask(cmd("EXISTS").arg(key)).await?) })
        })
    }
}

impl Link {
    async fn route(&self, windows: &Windows, route: &LegacyRoute) -> Verdict {
        let limits = windows.plain();
        let key = |(_, period_ms): &(u64, u64)| {
            self.key(&format!("proxy:{}:{}:{period_ms}", route.scope, route.subject))
        };
        let keys: Vec<String> = limits.iter().map(key).collect();
        // Without Redis routes go on, as they do without any limit.
        let Ok(Charged { is_refused: true, counters }) = self.charge(&keys, &limits).await else {
            return Verdict::Allowed(());
        };
        let state = |((limit, period_ms), (used, left_ms)): (&(u64, u64), &(u64, u64))| WindowState {
            period_ms: *period_ms,
            limit: *limit,
            remaining: limit.saturating_sub(*used),
            reset_ms: *left_ms,
        };
        let states = limits.iter().zip(&counters).map(state).collect();
        Verdict::Refused(denial(wait_ms(&limits, &counters), states))
    }

    async fn attempt(
        self: Arc<Self>,
        budgets: [AttemptBudget; 2],
        attempt: LegacyAttempt,
    ) -> Verdict<Option<LegacyRefund>> {
        let LegacyAttempt { scope, source, target } = attempt;
        let names =
            [format!("password:{scope}:source:{source}"), format!("password:{scope}:target:{target}")];
        let keys = names.map(|name| self.key(&name));
        let limits = budgets.map(|budget| (budget.limit, whole_ms(budget.period)));
        match self.charge(&keys, &limits).await {
            Ok(Charged { is_refused: false, .. }) => Verdict::Allowed(Some(Box::pin(async move {
                self.ask::<i64>(&script(REFUND, &keys)).await.is_ok()
            }))),
            Ok(Charged { counters, .. }) => {
                let wait_ms = wait_ms(&limits, &counters).unwrap_or(1);
                Verdict::Refused(Refusal::after(RefusalCode::AttemptsSpent, wait_ms))
            }
            Err(_) => Verdict::Refused(Refusal::unavailable()),
        }
    }

    async fn claim(&self, token: &LegacyToken) -> Result<Verdict<TokenUse>, RedisError> {
        let now_ms = wall_ms();
        if token.ends_at_ms <= now_ms {
            return Ok(Verdict::Refused(Refusal::new(RefusalCode::TokenExpired)));
        }
        let key = self.key(&format!("replay:{}:{}", token.scope, token.id));
        let life_ms = token.ends_at_ms - now_ms;
        let mut claim = cmd("SET");
        claim.arg(&key).arg(now_ms).arg("NX").arg("PX").arg(life_ms);
        if self.ask::<Option<String>>(&claim).await?.is_some() {
            return Ok(Verdict::Allowed(TokenUse::First));
        }
        let first_use_ms: u64 = self.ask(cmd("GET").arg(&key)).await?;
        Ok(match now_ms.abs_diff(first_use_ms) <= GRACE_MS {
            true => Verdict::Allowed(TokenUse::Grace { first_use_ms }),
            false => Verdict::Refused(Refusal::new(RefusalCode::TokenReplayed)),
        })
    }

    /// Charges one to each counter, or to none.
    async fn charge(&self, keys: &[String], limits: &[(u64, u64)]) -> Result<Charged, RedisError> {
        let mut command = script(HIT, keys);
        for (limit, period_ms) in limits {
            command.arg(*limit).arg(*period_ms);
        }
        let answer: Vec<u64> = self.ask(&command).await?;
        let counters = answer.iter().skip(1).copied().collect::<Vec<_>>();
        let counters: Vec<_> = counters.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        if counters.len() != limits.len() {
            return Err((
                ErrorKind::UnexpectedReturnType,
                "a script's answer is not as long as it was asked",
            )
                .into());
        }
        Ok(Charged { is_refused: answer.first() == Some(&1), counters })
    }

    fn key(&self, name: &str) -> String {
        format!("tidegate:{}", digest(&self.pepper, Purpose::Key, name).as_str())
    }

    /// Sends a command, once.
    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        let late = |_| RedisError::from((ErrorKind::Io, "no answer in time"));
        let answer = tokio::time::timeout(TIMEOUT_DEFAULT, self.exchange(command)).await;
        let answer = answer.map_err(late).flatten();
        match &answer {
            Ok(_) if self.is_away.swap(false, Ordering::Relaxed) => info!("the legacy Redis is back"),
            Err(error) => {
                // The next call connects anew: what is left of this one must not be taken for its answer.
                *self.connection.lock().await = None;
                if !self.is_away.swap(true, Ordering::Relaxed) {
                    warn!(kind = ?error.kind(), "the legacy Redis is unavailable");
                }
            }
            Ok(_) => {}
        }
        answer
    }

    async fn exchange<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        let mut connection = {
            let mut kept = self.connection.lock().await;
            match &*kept {
                Some(connection) => connection.clone(),
                None => kept.insert(self.client.get_multiplexed_async_connection().await?).clone(),
            }
        };
        command.query_async(&mut connection).await
    }
}

/// Whether there was no room, and what is used of each counter and how long it lives.
struct Charged {
    is_refused: bool,
    counters: Vec<(u64, u64)>,
}

/// How long until the counters without room end.
fn wait_ms(limits: &[(u64, u64)], counters: &[(u64, u64)]) -> Option<u64> {
    let full = limits.iter().zip(counters).filter(|((limit, _), (used, _))| used >= limit);
    full.map(|(_, (_, left_ms))| *left_ms).max()
}

fn script(text: &str, keys: &[String]) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(text).arg(keys.len()).arg(keys);
    command
}

impl fmt::Debug for RedisLegacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL holds a password.
        f.write_str("RedisLegacy(…)")
    }
}
