use std::fmt::Debug;

use super::wire::{Ask, Say, Wire, receive, send};
use crate::{Entry, Group, Invalid, Key, Member, Scope, StoreError, Unavailable, testing::Disturbance};

fn comes_as_it_was_sent<T: Wire + PartialEq + Debug>(said: T) {
    let mut sent = Vec::new();
    send(&mut sent, 7, &said).unwrap();
    for end in 0..sent.len() {
        assert!(receive::<T>(&sent[..end]).is_err(), "{end} of {} bytes of {said:?}", sent.len());
    }
    assert_eq!(receive(&sent[..]).unwrap(), (7, said));
}

#[test]
fn all_that_can_be_said() {
    let keys = || vec![Key::of(&[b"a"]), Key::of(&[b"b"])];
    let entry = || Some(Entry { value: b"value".as_slice().into(), expires_at_ms: u64::MAX });
    let scope = |member| Scope { group: Group::of(b"group"), member };
    let asks = [
        Ask::Run { keys: keys(), watched: 1 },
        Ask::Run { keys: Vec::new(), watched: 0 },
        Ask::Decide(vec![(1, entry()), (0, None)]),
        Ask::Read(keys()),
        Ask::Forget(scope(None)),
        Ask::Forget(scope(Some(Member::of(b"member")))),
        Ask::Sweep,
    ];
    asks.into_iter().for_each(comes_as_it_was_sent);
    let disturbances = [Disturbance::None, Disturbance::Hang, Disturbance::Fail, Disturbance::Unsettled];
    disturbances.map(Ask::Disturb).into_iter().for_each(comes_as_it_was_sent);
    comes_as_it_was_sent(Say::Look { now_ms: 9, rows: vec![entry(), None] });
    comes_as_it_was_sent(Say::Answer(Ok((9, vec![None, entry()]))));
    let errors: [StoreError; 9] = [
        Unavailable::Deadline.into(),
        Unavailable::Busy.into(),
        Unavailable::Full.into(),
        Unavailable::Backend.into(),
        Invalid::DuplicateKey { index: 1 }.into(),
        Invalid::TooManyKeys { keys: 2 }.into(),
        Invalid::Watched { index: 3 }.into(),
        Invalid::ValueTooLarge { index: 4, bytes: 5 }.into(),
        Invalid::ExpiryOutOfRange { index: 6 }.into(),
    ];
    errors.map(|error| Say::Answer(Err(error))).into_iter().for_each(comes_as_it_was_sent);
}
