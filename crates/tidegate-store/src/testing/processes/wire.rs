//! What the two ends say to each other, as frames: how many bytes come, which call they are about, what is said.

use std::io::{self, Read};

use crate::{Entry, Invalid, Key, Member, Scope, StoreError, Unavailable, testing::Disturbance};

/// What the end that holds a case says to the one that holds a store.
#[derive(Debug, PartialEq)]
pub(super) enum Ask {
    Run {
        keys: Vec<Key>,
        watched: u64,
    },
    /// What the job of an update writes, having seen its rows.
    Decide(Vec<Write>),
    Read(Vec<Key>),
    Forget(Scope),
    Sweep,
    Disturb(Disturbance),
}

/// The place of a key, and what becomes of its row; none: it is deleted.
pub(super) type Write = (u64, Option<Entry>);

/// What the end that holds a store says.
#[derive(Debug, PartialEq)]
pub(super) enum Say {
    /// The rows of an update, to decide on.
    Look { now_ms: u64, rows: Vec<Option<Entry>> },
    /// A call's answer.
    Answer(Answer),
}

/// A number or rows, whichever the call answers.
pub(super) type Answer = Result<(u64, Vec<Option<Entry>>), StoreError>;

/// Far more than the largest update needs: all its values together are 2 MiB.
const FRAME_BYTES_MAX: u64 = 16 << 20;

/// Sends what is said about a call.
pub(super) fn send(mut to: impl io::Write, call: u64, said: &impl Wire) -> io::Result<()> {
    let (mut body, mut frame) = (Vec::new(), Vec::new());
    call.put(&mut body);
    said.put(&mut body);
    (body.len() as u64).put(&mut frame);
    frame.append(&mut body);
    to.write_all(&frame)
}

/// What is said next, and about which call.
pub(super) fn receive<T: Wire>(mut from: impl Read) -> io::Result<(u64, T)> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    let bytes = u64::from_le_bytes(bytes);
    let mut body = Vec::new();
    if bytes > FRAME_BYTES_MAX || from.take(bytes).read_to_end(&mut body)? as u64 != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Wire::take(&mut &body[..]).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// What can be said.
pub(super) trait Wire: Sized {
    fn put(&self, to: &mut Vec<u8>);

    /// None: it makes no sense.
    fn take(from: &mut &[u8]) -> Option<Self>;
}

impl Wire for u8 {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        from.split_off_first().copied()
    }
}

impl Wire for u64 {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        from.split_off(..8)?.try_into().ok().map(Self::from_le_bytes)
    }
}

impl Wire for Key {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        from.split_off(..Self::BYTES)?.try_into().ok().map(Self::from_bytes)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        self.iter().for_each(|one| one.put(to));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let many = u64::take(from)?;
        (0..many).map(|_| T::take(from)).collect()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(self.is_some()).put(to);
        self.iter().for_each(|one| one.put(to));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(None),
            _ => T::take(from).map(Some),
        }
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some((A::take(from)?, B::take(from)?))
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(self.is_err()).put(to);
        match self {
            Ok(answer) => answer.put(to),
            Err(error) => error.put(to),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => T::take(from).map(Ok),
            _ => E::take(from).map(Err),
        }
    }
}

impl Wire for Entry {
    fn put(&self, to: &mut Vec<u8>) {
        self.expires_at_ms.put(to);
        self.value.to_vec().put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let expires_at_ms = u64::take(from)?;
        Some(Self { expires_at_ms, value: Vec::take(from)?.into() })
    }
}

impl Wire for Scope {
    fn put(&self, to: &mut Vec<u8>) {
        // Any key of the scope shows what all have in common.
        self.group.key_of(self.member.unwrap_or(Member::of(b"")), &[]).put(to);
        u8::from(self.member.is_some()).put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (key, one_member) = (Key::take(from)?, u8::take(from)? != 0);
        Some(Self { group: key.group(), member: one_member.then(|| key.member()) })
    }
}

impl Wire for StoreError {
    fn put(&self, to: &mut Vec<u8>) {
        let (kind, index, bytes) = match *self {
            Self::Unavailable(Unavailable::Deadline) => (0_u8, 0, 0),
            Self::Unavailable(Unavailable::Busy) => (1, 0, 0),
            Self::Unavailable(Unavailable::Full) => (2, 0, 0),
            Self::Unavailable(Unavailable::Backend) => (3, 0, 0),
            Self::Invalid(Invalid::DuplicateKey { index }) => (4, index, 0),
            Self::Invalid(Invalid::TooManyKeys { keys }) => (5, keys, 0),
            Self::Invalid(Invalid::Watched { index }) => (6, index, 0),
            Self::Invalid(Invalid::ValueTooLarge { index, bytes }) => (7, index, bytes),
            Self::Invalid(Invalid::ExpiryOutOfRange { index }) => (8, index, 0),
            Self::Unavailable(Unavailable::NotOpen) => (9, 0, 0),
        };
        kind.put(to);
        (index as u64, bytes as u64).put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let kind = u8::take(from)?;
        let (index, bytes) = Wire::take(from)?;
        let [index, bytes] = [place(index)?, place(bytes)?];
        Some(match kind {
            0 => Unavailable::Deadline.into(),
            1 => Unavailable::Busy.into(),
            2 => Unavailable::Full.into(),
            3 => Unavailable::Backend.into(),
            4 => Invalid::DuplicateKey { index }.into(),
            5 => Invalid::TooManyKeys { keys: index }.into(),
            6 => Invalid::Watched { index }.into(),
            7 => Invalid::ValueTooLarge { index, bytes }.into(),
            8 => Invalid::ExpiryOutOfRange { index }.into(),
            9 => Unavailable::NotOpen.into(),
            _ => return None,
        })
    }
}

/// A number that names a place in memory.
fn place(number: u64) -> Option<usize> {
    number.try_into().ok()
}

const DISTURBANCES: [Disturbance; 4] =
    [Disturbance::None, Disturbance::Hang, Disturbance::Fail, Disturbance::Unsettled];

impl Wire for Disturbance {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(*self as u8);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let kind = u8::take(from)?;
        DISTURBANCES.into_iter().find(|disturbance| *disturbance as u8 == kind)
    }
}

impl Wire for Ask {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Run { keys, watched } => {
                to.push(0);
                keys.put(to);
                watched.put(to);
            }
            Self::Decide(writes) => {
                to.push(1);
                writes.put(to);
            }
            Self::Read(keys) => {
                to.push(2);
                keys.put(to);
            }
            Self::Forget(scope) => {
                to.push(3);
                scope.put(to);
            }
            Self::Sweep => to.push(4),
            Self::Disturb(disturbance) => {
                to.push(5);
                disturbance.put(to);
            }
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => Self::Run { keys: Wire::take(from)?, watched: Wire::take(from)? },
            1 => Self::Decide(Wire::take(from)?),
            2 => Self::Read(Wire::take(from)?),
            3 => Self::Forget(Wire::take(from)?),
            4 => Self::Sweep,
            5 => Self::Disturb(Wire::take(from)?),
            _ => return None,
        })
    }
}

impl Wire for Say {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Look { now_ms, rows } => {
                to.push(0);
                now_ms.put(to);
                rows.put(to);
            }
            Self::Answer(answer) => {
                to.push(1);
                answer.put(to);
            }
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => Self::Look { now_ms: Wire::take(from)?, rows: Wire::take(from)? },
            1 => Self::Answer(Wire::take(from)?),
            _ => return None,
        })
    }
}
