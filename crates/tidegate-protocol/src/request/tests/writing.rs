//! What a client writes is what a server reads, and bounds hold before sending.

use alloc::{vec, vec::Vec};

use proptest::prelude::*;

use super::*;

fn any_digest() -> impl Strategy<Value = Digest> {
    "[A-Za-z0-9_-]{43}".prop_map(|text| Digest::parse(&text).unwrap())
}

fn any_ttl() -> impl Strategy<Value = u64> {
    crate::bounds::TTL_MS_MIN..=crate::bounds::TTL_MS_MAX
}

fn any_windows() -> impl Strategy<Value = Vec<Window>> {
    let algorithms = [Algorithm::Sliding, Algorithm::Fixed, Algorithm::Bucket];
    let window = (
        any_digest(),
        0..=crate::bounds::INTEGER_MAX,
        1000..=crate::bounds::SLIDING_PERIOD_MS_MAX,
        0..3_usize,
    )
        .prop_map(move |(key, limit, period_ms, algorithm)| Window {
            key,
            limit,
            period_ms,
            algorithm: algorithms[algorithm],
        });
    prop::collection::vec(window, 1..=4)
}

fn any_budgets() -> impl Strategy<Value = Vec<Budget>> {
    let budget = (any_digest(), 0..=crate::bounds::INTEGER_MAX, any_ttl());
    prop::collection::vec(
        budget.prop_map(|(key, limit, period_ms)| Budget::new(key, limit, period_ms)),
        1..=4,
    )
}

fn any_command() -> impl Strategy<Value = Command> {
    let set = (
        any_digest(),
        "\\PC{0,20}|[\\x00-\\x1f\"\\\\]{0,9}",
        any_ttl(),
        prop::sample::select([SetMode::Always, SetMode::Nx, SetMode::Xx].as_slice()),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(key, value, ttl_ms, mode, keep_ttl, bare)| {
            let ttl_ms = if bare && keep_ttl && mode == SetMode::Xx { None } else { Some(ttl_ms) };
            Command::Set { key, value, ttl_ms, mode, keep_ttl }
        });
    let integer = crate::bounds::INTEGER_MAX.cast_signed();
    prop_oneof![
        (any_windows(), 0..=crate::bounds::INTEGER_MAX)
            .prop_map(|(windows, cost)| Command::Hit { windows, cost }),
        any_digest().prop_map(Command::get),
        set,
        any_digest().prop_map(Command::delete),
        any_digest().prop_map(Command::ttl),
        (any_digest(), any_ttl()).prop_map(|(key, ttl_ms)| Command::expire(key, ttl_ms)),
        (any_digest(), -integer..=integer, any_ttl())
            .prop_map(|(key, by, ttl_ms)| Command::increment(key, by, ttl_ms)),
        (any_budgets(), 0..4_usize, 0..9_u64).prop_map(|(budgets, target, cost)| {
            let target = target % budgets.len();
            Command::Reserve { budgets, target, cost }
        }),
        any::<[u8; 16]>().prop_map(|bits| Command::refund(ReceiptId::from_random(bits))),
    ]
}

fn any_request() -> impl Strategy<Value = Request> {
    let fairness =
        (prop::option::of(any_digest()), any::<[bool; 3]>(), any_digest(), prop::option::of(any_digest()))
            .prop_map(|(source, networks, digest, principal)| {
                let networks = networks.into_iter().zip([24, 56, 48]).filter(|(given, _)| *given);
                let networks = networks.map(|(_, prefix)| Network { prefix, digest }).collect();
                Fairness { source, networks, principal }
            });
    let steps = prop::collection::vec((any_digest(), prop::collection::vec(any_command(), 1..4)), 1..4);
    (any::<[u8; 16]>(), "[a-z0-9_-]{1,64}", any::<bool>(), any::<bool>(), fairness, steps).prop_map(
        |(op, family, independent, good, fairness, steps)| Request {
            op: OperationId::from_random(op),
            family: Family::parse(&family).unwrap(),
            mode: if independent { Mode::Independent } else { Mode::Sequential },
            good,
            fairness,
            steps: steps.into_iter().map(|(partition, commands)| Step { partition, commands }).collect(),
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(request in any_request()) {
        let json = request.to_json().unwrap();
        prop_assert_eq!(Request::parse(Verified::trusted(&json)), Ok(request));
    }

    #[test]
    fn a_torn_request_is_refused(request in any_request(), cut: prop::sample::Index) {
        let json = request.to_json().unwrap();
        let cut = cut.index(json.len());
        prop_assert!(Request::parse(Verified::trusted(&json[..cut])).is_err());
    }

    #[test]
    fn no_bytes_panic(request in any_request(), place: prop::sample::Index, byte: u8, noise in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut json = request.to_json().unwrap();
        let place = place.index(json.len());
        json[place] = byte;
        let _ = Request::parse(Verified::trusted(&json));
        let _ = Request::parse(Verified::trusted(&noise));
    }

    #[test]
    fn steps_have_the_same_fingerprint_only_if_they_are_the_same(request in any_request()) {
        let families = [request.family, Family::parse("other").unwrap()];
        let mut all: Vec<_> = Vec::new();
        for step in &request.steps {
            for family in families {
                for index in 0..3 {
                    all.push(((step, family, index), step.fingerprint(&family, index)));
                }
            }
        }
        for (what, fingerprint) in &all {
            for (other, its) in &all {
                prop_assert_eq!(what == other, fingerprint == its);
            }
        }
    }
}

#[test]
fn a_client_is_told_before_it_sends() {
    let request = || Request::new(OperationId::from_random([7; 16]), Family::parse("proxy").unwrap());
    let k1 = key("1");
    let table = [
        (request(), "steps"),
        (request().step(k1, []), "steps[0].commands"),
        (request().step(k1, [Command::get(k1), Command::hit([])]), "steps[0].commands[1].windows"),
        (
            request().step(k1, [Command::hit([Window::sliding(k1, 5, 999)])]),
            "steps[0].commands[0].windows[0].period_ms",
        ),
        (request().step(k1, [Command::reserve([])]), "steps[0].commands[0].budgets"),
        (request().step(k1, [Command::expire(k1, 0)]), "steps[0].commands[0].ttl_ms"),
        (request().step(k1, [Command::increment(k1, i64::MIN, 1000)]), "steps[0].commands[0].by"),
        (
            request().fairness(Fairness::default().network(64, k1)).step(k1, [Command::get(k1)]),
            "fairness.networks[0].prefix",
        ),
        // Within every other bound, and too large in all.
        (request().step(k1, vec![Command::set(k1, "\u{1}".repeat(2048), 1000); 2]), ""),
    ];
    for (request, place) in table {
        assert_eq!(request.to_json().unwrap_err().place, place, "{request:?}");
    }
}

#[test]
fn what_changes_something() {
    let k1 = key("1");
    let hit = || Command::hit([Window::sliding(k1, 5, 1000)]);
    let reserve = || Command::reserve([Budget::new(k1, 5, 1000)]);
    let table = [
        (hit(), true),
        (hit().costing(0), false),
        (Command::get(k1), false),
        (Command::get(k1).costing(5), false),
        (Command::set(k1, "v", 1000), true),
        (Command::claim(k1, "v", 1000), true),
        (Command::delete(k1), true),
        (Command::ttl(k1), false),
        (Command::expire(k1, 1000), true),
        (Command::increment(k1, 0, 1000), true),
        (reserve(), true),
        (reserve().costing(0), false),
        (Command::refund(ReceiptId::from_random([0; 16])), true),
    ];
    for (command, expected) in table {
        assert_eq!(is_mutating(&command), expected, "{command:?}");
        let step = Step { partition: k1, commands: vec![Command::get(k1), command] };
        assert_eq!(step.is_mutating(), expected);
    }
}

#[test]
fn nothing_printed_shows_an_identity() {
    let request = Request::new(OperationId::from_random([7; 16]), Family::parse("proxy").unwrap()).step(
        key("secret"),
        [Command::get(key("secret")), Command::refund(ReceiptId::parse("secretsecretsecret1234").unwrap())],
    );
    let printed = format!("{request:?}{}", key("secret"));
    assert!(!printed.contains("secret"), "{printed}");
}
