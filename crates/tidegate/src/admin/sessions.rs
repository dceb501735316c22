//! Who is signed in to the dashboard. Sessions live in memory: a restart ends them.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tidegate_core::secret::Secret;
use tokio::time::Instant;

use super::access::{TokenHash, hash};
use crate::secrets::{self, SecretsError};

/// Some people with some browsers each; whoever signs in beyond it takes the place of the oldest.
const SESSIONS_MAX: usize = 256;
/// A working day.
pub(super) const SESSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// How long the link of the first start may be used.
pub(super) const CODE_LIFE: Duration = Duration::from_secs(60 * 60);
/// Drafts whose replay a session has seen: one a tab, with some to spare.
const REPLAYED_MAX: usize = 32;

/// Every session, by the hash of its id.
#[derive(Default)]
pub(super) struct Sessions {
    live: Mutex<HashMap<TokenHash, Live>>,
    code: Mutex<Option<Code>>,
}

struct Live {
    token: TokenHash,
    csrf: Secret,
    began: Instant,
    replayed: Vec<TokenHash>,
}

struct Code {
    sha256: TokenHash,
    token: TokenHash,
    made: Instant,
}

/// A session as a request sees it.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) key: TokenHash,
    /// The token that it was begun with.
    pub(super) token: TokenHash,
    /// What forms of this session carry.
    pub(super) csrf: Secret,
}

impl Sessions {
    /// Begins a session and answers its id, which only the browser keeps.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(super) fn begin(&self, token: TokenHash, now: Instant) -> Result<Secret, SecretsError> {
        let (id, csrf) = (secrets::fresh()?, secrets::fresh()?);
        let mut live = self.live.lock();
        live.retain(|_, session| is_live(session, now));
        if live.len() >= SESSIONS_MAX {
            let oldest = live.iter().min_by_key(|(_, session)| session.began).map(|(key, _)| *key);
            oldest.and_then(|key| live.remove(&key));
        }
        live.insert(hash(id.expose().as_bytes()), Live { token, csrf, began: now, replayed: Vec::new() });
        Ok(id)
    }

    /// The session with this id.
    pub(super) fn find(&self, id: &[u8], now: Instant) -> Option<Session> {
        let key = hash(id);
        let live = self.live.lock();
        let session = live.get(&key).filter(|session| is_live(session, now))?;
        Some(Session { key, token: session.token, csrf: session.csrf.clone() })
    }

    /// Whether the session still lives.
    pub(super) fn has(&self, key: &TokenHash, now: Instant) -> bool {
        self.live.lock().get(key).is_some_and(|session| is_live(session, now))
    }

    pub(super) fn end(&self, key: &TokenHash) {
        self.live.lock().remove(key);
    }

    /// Notes that the session has seen what `draft` would have blocked.
    pub(super) fn note_replayed(&self, key: &TokenHash, draft: TokenHash) {
        if let Some(session) = self.live.lock().get_mut(key) {
            session.replayed.retain(|known| *known != draft);
            if session.replayed.len() >= REPLAYED_MAX {
                session.replayed.remove(0);
            }
            session.replayed.push(draft);
        }
    }

    pub(super) fn has_replayed(&self, key: &TokenHash, draft: &TokenHash) -> bool {
        self.live.lock().get(key).is_some_and(|session| session.replayed.contains(draft))
    }

    /// Makes the one code that signs somebody in once, as who holds `token`.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(super) fn make_code(&self, token: TokenHash, now: Instant) -> Result<Secret, SecretsError> {
        let code = secrets::fresh()?;
        *self.code.lock() = Some(Code { sha256: hash(code.expose().as_bytes()), token, made: now });
        Ok(code)
    }

    /// The token that the code stands for; never again after this.
    pub(super) fn take_code(&self, shown: &[u8], now: Instant) -> Option<TokenHash> {
        let mut code = self.code.lock();
        let fits = code
            .as_ref()
            .is_some_and(|code| bool::from(code.sha256.ct_eq(&hash(shown))) && now - code.made < CODE_LIFE);
        if fits { code.take().map(|code| code.token) } else { None }
    }
}

fn is_live(session: &Live, now: Instant) -> bool {
    now - session.began < SESSION_LIFE
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: TokenHash = [7; 32];

    fn id_of(id: &Secret) -> &[u8] {
        id.expose().as_bytes()
    }

    #[test]
    fn a_session_ends_by_itself_and_by_its_holder() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let id = sessions.begin(TOKEN, start).unwrap();
        assert!(sessions.find(id_of(&id), start + SESSION_LIFE - Duration::from_secs(1)).is_some());
        assert!(sessions.find(id_of(&id), start + SESSION_LIFE).is_none());
        let session = sessions.find(id_of(&id), start).unwrap();
        sessions.end(&session.key);
        assert!(sessions.find(id_of(&id), start).is_none());
        assert!(sessions.find(b"", start).is_none());
    }

    #[test]
    fn the_oldest_makes_room() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let begin = |second: u64| sessions.begin(TOKEN, start + Duration::from_secs(second)).unwrap();
        let ids: Vec<Secret> = (0..=SESSIONS_MAX as u64).map(begin).collect();
        let now = start + Duration::from_secs(1000);
        let alive: Vec<bool> = ids.iter().map(|id| sessions.find(id_of(id), now).is_some()).collect();
        assert!(!alive[0] && alive[1..].iter().all(|alive| *alive));
    }

    #[test]
    fn a_code_works_once_and_for_a_while() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        assert_eq!(sessions.take_code(b"", start), None);
        let code = sessions.make_code(TOKEN, start).unwrap();
        assert_eq!(sessions.take_code(b"guess", start), None, "a wrong one takes nothing away");
        assert_eq!(sessions.take_code(id_of(&code), start), Some(TOKEN));
        assert_eq!(sessions.take_code(id_of(&code), start), None);
        let code = sessions.make_code(TOKEN, start).unwrap();
        assert_eq!(sessions.take_code(id_of(&code), start + CODE_LIFE), None);
    }

    #[test]
    fn what_was_replayed_is_bounded() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let id = sessions.begin(TOKEN, start).unwrap();
        let key = sessions.find(id_of(&id), start).unwrap().key;
        for draft in 0..=REPLAYED_MAX {
            sessions.note_replayed(&key, [u8::try_from(draft).unwrap(); 32]);
        }
        assert!(!sessions.has_replayed(&key, &[0; 32]));
        assert!(sessions.has_replayed(&key, &[1; 32]));
    }
}
