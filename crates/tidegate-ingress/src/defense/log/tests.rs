use proptest::prelude::*;

use super::*;

fn facts<'a>(client: u8, path: &'a str, user_agent: &'a str, at_ms: u64) -> Facts<'a> {
    Facts {
        client: Address::parse(&format!("192.0.2.{client}")).unwrap(),
        method: "GET",
        path: Normal::recorded(path.as_bytes()),
        user_agent: user_agent.as_bytes(),
        at_ms,
    }
}

fn log(entries: usize) -> Log {
    Log::new(LogBounds { entries, span_ms: 1000 })
}

/// The times of what it holds, oldest first.
fn times(log: &Log) -> Vec<u64> {
    log.snapshot()
        .iter()
        .flat_map(|segment| segment.entries().map(|entry| entry.facts.at_ms).collect::<Vec<_>>())
        .collect()
}

#[test]
fn what_was_said_is_told_again() {
    let mut log = log(100);
    let client = Address::parse("2001:db8::7").unwrap();
    let first = Facts { client, method: "POST", ..facts(1, "/a", "curl", 5) };
    log.push(&first, Kind::Firewall, 403);
    let number = log.push(&facts(2, "/b", "", 6), Kind::Allowed, 0);
    log.finish(number, 204);
    log.finish(number + 1, 500);
    let snapshot = log.snapshot();
    let entries: Vec<_> = snapshot.iter().flat_map(|segment| segment.entries()).collect();
    let told: Vec<_> = entries
        .iter()
        .map(|entry| {
            (entry.facts.client == client, entry.facts.method, entry.facts.path.as_bytes(), entry.status)
        })
        .collect();
    assert_eq!(told, [(true, "POST", &b"/a"[..], Some(403)), (false, "GET", b"/b", Some(204))]);
    assert_eq!((entries[0].facts.user_agent, entries[1].facts.user_agent), (&b"curl"[..], &b""[..]));
    assert_eq!((entries[0].kind, entries[1].kind), (Kind::Firewall, Kind::Allowed));
}

#[test]
fn entries_and_minutes_are_bounded() {
    for entries in [1, 2, 15, 16, 17, 100, 5000] {
        let mut log = log(entries);
        for at_ms in 0..20_000 {
            log.push(&facts(1, "/", "curl", at_ms / 1000), Kind::Allowed, 0);
        }
        let held = times(&log).len();
        assert!(held <= entries && held * 20 >= entries * 17, "{held} of {entries}");
    }
    let mut old = log(1000);
    for at_ms in [0, 0, 0, 5000] {
        // A segment of a log this small holds 62 records.
        for _ in 0..62 {
            old.push(&facts(1, "/", "", at_ms), Kind::Allowed, 0);
        }
    }
    assert_eq!(times(&old), [5000; 62]);
    let mut none = log(0);
    assert_eq!(none.push(&facts(1, "/", "", 0), Kind::Allowed, 0), 0);
    assert!(times(&none).is_empty());
}

#[test]
fn texts_are_bounded_and_their_memory_is_used_again() {
    const ENTRIES: usize = 2000;
    let mut log = log(ENTRIES);
    for n in 0..20_000_u32 {
        let agent = format!("{n:08}").repeat(128);
        log.push(&facts(1, "/", &agent, 0), Kind::Allowed, 0);
    }
    let bytes: usize = log.snapshot().iter().map(|segment| segment.texts.capacity()).sum();
    assert!(bytes < ENTRIES * TEXT_BYTES * 3, "{bytes} bytes");
    assert!(log.sealed.iter().all(|segment| !segment.records.is_empty()));

    let mut same = Log::new(LogBounds { entries: ENTRIES, span_ms: 1000 });
    for _ in 0..ENTRIES {
        same.push(&facts(1, "/", "curl", 0), Kind::Allowed, 0);
    }
    assert!(same.snapshot().iter().all(|segment| segment.texts.len() < 20), "a text is kept once a segment");
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let mut log = log(32);
    for at_ms in 0..10 {
        log.push(&facts(1, "/", "curl", at_ms), Kind::Allowed, 0);
    }
    let before = log.snapshot();
    for at_ms in 10..500 {
        log.push(&facts(2, "/x", "wget", at_ms), Kind::Allowed, 0);
    }
    let seen: Vec<_> = before
        .iter()
        .flat_map(|segment| segment.entries().map(|entry| entry.facts.at_ms).collect::<Vec<_>>())
        .collect();
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn it_holds_the_newest_in_order(
        entries in 1_usize..200,
        requests in prop::collection::vec((0_u8..5, 0_usize..4, 0_u64..3), 0..600),
    ) {
        let mut log = Log::new(LogBounds { entries, span_ms: u64::MAX });
        let (mut model, mut at_ms, mut numbers) = (Vec::new(), 0, Vec::new());
        for (client, text, step_ms) in requests {
            at_ms += step_ms;
            let facts = facts(client, ["/", "/a", "/b", "/c"][text], ["", "x", "y", "z"][text], at_ms);
            numbers.push(log.push(&facts, Kind::Allowed, 0));
            model.push((at_ms, client, text));
        }
        for (number, status) in numbers.iter().zip(1..) {
            log.finish(*number, status);
        }
        let snapshot = log.snapshot();
        let held: Vec<_> = snapshot.iter().flat_map(|segment| segment.entries()).collect();
        prop_assert!(held.len() <= entries);
        let expected = &model[model.len() - held.len()..];
        for (index, (entry, (at_ms, client, text))) in held.iter().zip(expected).enumerate() {
            prop_assert_eq!(entry.facts.at_ms, *at_ms);
            prop_assert_eq!(entry.facts.client, Address::parse(&format!("192.0.2.{client}")).unwrap());
            prop_assert_eq!(entry.facts.path.as_bytes(), ["/", "/a", "/b", "/c"][*text].as_bytes());
            let number = model.len() - held.len() + index;
            prop_assert_eq!(entry.status, Some(u16::try_from(number + 1).unwrap()));
        }
    }
}
