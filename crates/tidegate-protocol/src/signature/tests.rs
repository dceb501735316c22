use alloc::{borrow::ToOwned, format, string::ToString, vec, vec::Vec};

use proptest::prelude::*;

use super::*;

const NOW_MS: u64 = 1_764_460_800_000;
const BODY: &[u8] = b"{\"op\":\"AAAAAAAAAAAAAAAAAAAAAA\"}";

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

fn current() -> Secret {
    secret("current-secret-0123456789abcdef-0123")
}

fn keyring() -> Keyring {
    Keyring::new(&[current(), secret("previous-secret-0123456789abcdef-012")]).unwrap()
}

fn check(headers: &[&[u8]], now_ms: u64) -> Result<(), Rejected> {
    verify(&keyring(), headers.iter().copied(), "POST", "/v1/rpc", BODY, now_ms).map(|verified| {
        assert_eq!(verified.body(), BODY);
    })
}

fn signed_at(t_ms: u64) -> String {
    sign(&current(), t_ms, "POST", "/v1/rpc", BODY)
}

/// A header with a right HMAC over whatever stands for t.
fn signed_over(t: &str) -> String {
    let mac = code(&prepare(&current()), t, "POST", "/v1/rpc", BODY);
    let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={t},v1={hex}")
}

#[test]
fn every_accepted_secret_verifies_and_no_other() {
    let table = [
        ("current-secret-0123456789abcdef-0123", Ok(())),
        ("previous-secret-0123456789abcdef-012", Ok(())),
        ("next-secret-0123456789abcdef-0123456", Err(Rejected::Unauthenticated)),
    ];
    for (text, expected) in table {
        let header = sign(&secret(text), NOW_MS, "POST", "/v1/rpc", BODY);
        assert_eq!(check(&[header.as_bytes()], NOW_MS), expected, "{text}");
    }
}

#[test]
fn the_clock() {
    let table = [
        (NOW_MS, Ok(())),
        (NOW_MS - 60_000, Ok(())),
        (NOW_MS + 60_000, Ok(())),
        (NOW_MS - 60_001, Err(Rejected::ClockOff { off_ms: -60_001 })),
        (NOW_MS + 60_001, Err(Rejected::ClockOff { off_ms: 60_001 })),
        (
            NOW_MS / 1000,
            Err(Rejected::ClockOff { off_ms: (NOW_MS / 1000).cast_signed() - NOW_MS.cast_signed() }),
        ),
        (0, Err(Rejected::ClockOff { off_ms: -NOW_MS.cast_signed() })),
    ];
    for (t_ms, expected) in table {
        assert_eq!(check(&[signed_at(t_ms).as_bytes()], NOW_MS), expected, "{t_ms}");
    }
    let message = check(&[signed_at(NOW_MS + 61_000).as_bytes()], NOW_MS).unwrap_err().to_string();
    assert!(message.contains("milliseconds") && message.contains("61000"), "{message}");
    // A stranger is not told about the clock.
    let mut wrong = signed_at(NOW_MS / 1000);
    let last = if wrong.pop() == Some('0') { '1' } else { '0' };
    wrong.push(last);
    assert_eq!(check(&[wrong.as_bytes()], NOW_MS), Err(Rejected::Unauthenticated));
}

#[test]
fn times_that_are_none() {
    let long = "1".repeat(17);
    for t in [
        "",
        "-1",
        "+1764460800000",
        " 1764460800000",
        "1764460800000 ",
        "01764460800000",
        "00",
        "NaN",
        "1e9",
        "1.0",
        "0x10",
        "2025-11-30T00:00:00Z",
        "18000000000000000000",
        &long,
        "１７６４",
    ] {
        let header = signed_over(t);
        assert_eq!(check(&[header.as_bytes()], NOW_MS), Err(Rejected::Unauthenticated), "{t:?}");
    }
    // The same helper makes a header that is accepted, so it is the time that was refused.
    assert_eq!(check(&[signed_over("1764460800000").as_bytes()], NOW_MS), Ok(()));
}

#[test]
fn headers_that_are_not_exactly_one_right_one() {
    let good = signed_at(NOW_MS);
    let (head, hex) = good.split_at(good.len() - 64);
    let flipped = if hex.ends_with('0') { "1" } else { "0" };
    let bad: Vec<String> = vec![
        String::new(),
        "t=".to_owned(),
        "t=1764460800000".to_owned(),
        hex.to_owned(),
        format!("{head}"),
        format!("{head}{}", &hex[..63]),
        format!("{head}{}", &hex[..32]),
        format!("{head}{hex}0"),
        format!("{head}{}{flipped}", &hex[..63]),
        format!("{head}{}", hex.to_uppercase()),
        format!("{head}{}", "g".repeat(64)),
        format!("{head}{}", "0".repeat(64)),
        format!("{head}{}\0", &hex[..63]),
        format!(" {good}"),
        format!("{good} "),
        format!("{good},"),
        format!("{good},v1={hex}"),
        format!("{good},{good}"),
        format!("{good}, {good}"),
        format!("{good},v2={hex}"),
        format!("v1={hex},t=1764460800000"),
        format!("T=1764460800000,v1={hex}"),
        format!("t=1764460800000, v1={hex}"),
        format!("t=1764460800000;v1={hex}"),
        format!("t=1764460800000,v1=\"{hex}\""),
        format!("t=1764460800000,t=1764460800000,v1={hex}"),
    ];
    for header in &bad {
        assert_eq!(check(&[header.as_bytes()], NOW_MS), Err(Rejected::Unauthenticated), "{header:?}");
    }
    let (good, bad) = (good.as_bytes(), bad[8].as_bytes());
    let invalid_utf8 = [good, &[0xff]].concat();
    for headers in [&[][..], &[good, good], &[good, bad], &[bad, good], &[good, good, good], &[&invalid_utf8]]
    {
        assert_eq!(check(headers, NOW_MS), Err(Rejected::Unauthenticated));
    }
    assert_eq!(check(&[good], NOW_MS), Ok(()));
}

#[test]
fn a_signature_can_not_be_moved() {
    let header = signed_at(NOW_MS);
    let verify =
        |method, path, body| verify(&keyring(), [header.as_bytes()], method, path, body, NOW_MS).map(|_| ());
    assert_eq!(verify("POST", "/v1/rpc", BODY), Ok(()));
    let table: [(&str, &str, &[u8]); 7] = [
        ("PUT", "/v1/rpc", BODY),
        ("post", "/v1/rpc", BODY),
        ("POST", "/v1/other", BODY),
        ("POST", "/v1/rpc/", BODY),
        ("POST", "/v1/rpc?a", BODY),
        ("POST", "/v1/rpc", b"{\"op\":\"AAAAAAAAAAAAAAAAAAAAAA\"} "),
        ("POST", "/v1/rpc", b""),
    ];
    for (method, path, body) in table {
        assert_eq!(verify(method, path, body), Err(Rejected::Unauthenticated), "{method} {path} {body:?}");
    }
}

#[test]
fn keyrings() {
    let many = vec![current(); SECRETS_MAX + 1];
    assert_eq!(Keyring::new(&[]).err(), Some(KeyringError { secrets: 0 }));
    assert_eq!(Keyring::new(&many).err(), Some(KeyringError { secrets: 9 }));
    assert!(Keyring::new(&many[1..]).is_ok());
    assert_eq!(format!("{:?}", keyring()), "Keyring(2 secrets)");
}

proptest! {
    #[test]
    fn what_is_signed_verifies(t_ms in 0..10_000_000_000_000_000_u64, body in prop::collection::vec(any::<u8>(), 0..100)) {
        let header = sign(&current(), t_ms, "POST", "/v1/rpc", &body);
        prop_assert!(verify(&keyring(), [header.as_bytes()], "POST", "/v1/rpc", &body, t_ms).is_ok());
    }

    #[test]
    fn one_changed_byte_is_noticed(place: prop::sample::Index, change in 1..=255_u8) {
        let mut header = signed_at(NOW_MS).into_bytes();
        let place = place.index(header.len());
        header[place] ^= change;
        prop_assert_eq!(check(&[&header], NOW_MS), Err(Rejected::Unauthenticated));
    }

    #[test]
    fn no_header_panics(header in prop::collection::vec(any::<u8>(), 0..100)) {
        prop_assert!(check(&[&header], NOW_MS).is_err());
    }
}
