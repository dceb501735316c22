use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::hash::BuildHasherDefault;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// FNV-1a: good enough for a test, and the same in each run.
#[derive(Default, Clone)]
struct Fnv(u64);

impl core::hash::Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[derive(Default)]
struct Kept(BTreeMap<(ClientKey, u64), Bucket>);

impl Buckets for Kept {
    fn bucket(&mut self, id: BucketId, _: u64) -> &mut Bucket {
        self.0.entry((id.client, id.limit)).or_default()
    }
}

fn policy(document: &Value) -> Policy {
    Policy::parse(document.to_string().as_bytes()).unwrap_or_else(|faults| panic!("{faults:?}"))
}

#[derive(Debug, Clone)]
struct Request {
    client: String,
    method: &'static str,
    path: &'static str,
    agent: &'static str,
    at_ms: u64,
}

impl Request {
    fn at(at_ms: u64) -> Self {
        Self { client: "192.0.2.7".to_string(), method: "GET", path: "/", agent: "curl/8", at_ms }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            client: Address::parse(&self.client).unwrap(),
            method: self.method,
            path: Normal::recorded(self.path.as_bytes()),
            user_agent: self.agent.as_bytes(),
            at_ms: self.at_ms,
        }
    }
}

/// What became of each: `.` allowed, or the first letter of the reason.
fn verdicts(policy: &Policy, buckets: &mut Kept, requests: &[Request]) -> String {
    let letter = |request: &Request| match decide(policy, &request.facts(), buckets).reason {
        None => '.',
        Some(Reason::RateLimit) => 'r',
        Some(Reason::DenyCidr) => 'c',
        Some(Reason::DenyUserAgent) => 'u',
        Some(Reason::MissingUserAgent) => 'm',
    };
    requests.iter().map(letter).collect()
}

fn burst(count: usize, at_ms: u64) -> Vec<Request> {
    (0..count).map(|_| Request::at(at_ms)).collect()
}

#[test]
fn the_order_of_the_checks() {
    let policy = policy(&json!({
        "mode": "enforce", "rps": 1, "burst": 1, "deny_missing_user_agent": true,
        "deny_cidrs": ["203.0.113.0/24", {"cidr": "192.0.2.66", "expires_at_ms": 100}],
        "allow_cidrs": ["203.0.113.5", {"cidr": "203.0.113.6", "expires_at_ms": 100}],
        "deny_user_agents": ["evil"],
    }));
    let table = [
        ("203.0.113.1", "curl", "cccc"),
        ("203.0.113.1", "evil", "cccc"),
        ("192.0.2.1", "Evil/1", "uuuu"),
        ("192.0.2.1", "", "mmmm"),
        ("192.0.2.1", "  \t", "mmmm"),
        ("192.0.2.1", "curl\n", "mmmm"),
        ("192.0.2.1", "evil\n", "uuuu"),
        ("192.0.2.1", "-", ".rrr"),
        ("203.0.113.5", "evil", "...."),
        ("203.0.113.6", "curl", "..cc"),
        ("192.0.2.66", "curl", "cc.r"),
    ];
    for (client, agent, expected) in table {
        let at = |at_ms| Request { client: client.to_string(), agent, ..Request::at(at_ms) };
        let requests = [at(98), at(99), at(100), at(101)];
        assert_eq!(verdicts(&policy, &mut Kept::default(), &requests), expected, "{client} {agent:?}");
    }
}

#[test]
fn a_denied_client_spends_no_token() {
    let rules = |denied: &[&str]| policy(&json!({"rps": 1, "burst": 2, "deny_cidrs": denied}));
    let mut buckets = Kept::default();
    assert_eq!(verdicts(&rules(&["192.0.2.7"]), &mut buckets, &burst(5, 0)), "ccccc");
    assert!(buckets.0.is_empty());
    assert_eq!(verdicts(&rules(&[]), &mut buckets, &burst(3, 0)), "..r");
}

#[test]
fn modes_differ_only_in_what_is_done() {
    let modes = [(Mode::LogOnly, Outcome::WouldBlock), (Mode::Enforce, Outcome::Blocked)];
    for (mode, outcome) in modes {
        let policy = policy(&json!({"mode": mode, "rps": 0.5, "burst": 1}));
        let mut buckets = Kept::default();
        let mut ask = |at_ms| decide(&policy, &Request::at(at_ms).facts(), &mut buckets);
        assert_eq!(ask(0), Verdict::ALLOWED);
        let wait = Wait { limit: LimitName::Client, burst: 1, window_s: 2, retry_after_ms: 1999 };
        assert_eq!(ask(1), Verdict { outcome, reason: Some(Reason::RateLimit), wait: Some(wait) });
        assert_eq!(ask(1999).outcome, outcome);
        assert_eq!(ask(2000), Verdict::ALLOWED);
    }
    let off = policy(&json!({"mode": "off", "rps": 1, "burst": 1, "deny_cidrs": ["0.0.0.0/0"]}));
    let mut buckets = Kept::default();
    assert_eq!(verdicts(&off, &mut buckets, &burst(3, 0)), "...");
    assert!(buckets.0.is_empty());
}

#[test]
fn who_is_one_client() {
    let with = |prefix: u8| policy(&json!({"rps": 1, "burst": 1, "ipv6_prefix": prefix}));
    let table = [
        (64, ["192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1"], ".rr"),
        (64, ["192.0.2.1", "192.0.2.2", "64:ff9b::192.0.2.3"], "..."),
        (64, ["2001:db8:aa:bb00::1", "2001:db8:aa:bb00::3e8", "2001:db8:aa:bb01::1"], ".r."),
        (56, ["2001:db8:aa:bb00::1", "2001:db8:aa:bbff::1", "2001:db8:aa:bc00::1"], ".r."),
        (128, ["2001:db8::1", "2001:db8::2", "2001:db8::1"], "..r"),
        (64, ["::1", "0.0.0.1", "::c000:201"], "..r"),
    ];
    for (prefix, clients, expected) in table {
        let requests = clients.map(|client| Request { client: client.to_string(), ..Request::at(0) });
        assert_eq!(verdicts(&with(prefix), &mut Kept::default(), &requests), expected, "{clients:?}");
    }
}

#[test]
fn routes_are_charged_with_the_client_or_not_at_all() {
    let policy = policy(&json!({
        "rps": 1, "burst": 4,
        "routes": [{"path_prefix": "/login", "methods": ["POST"], "rps": 0.05, "burst": 1}],
    }));
    let mut buckets = Kept::default();
    let login = |at_ms| Request { method: "POST", path: "/Login/x", ..Request::at(at_ms) };
    // The refused logins take nothing of the client's own bucket: three more requests find a token.
    let requests = [vec![login(0), login(0), login(0)], burst(4, 0)].concat();
    assert_eq!(verdicts(&policy, &mut buckets, &requests), ".rr...r");
    let verdict = decide(&policy, &login(0).facts(), &mut buckets);
    let wait = Wait { limit: LimitName::Route, burst: 1, window_s: 20, retry_after_ms: 20_000 };
    assert_eq!(verdict.wait, Some(wait), "the longest wait is told");
}

#[test]
fn a_changed_limit_keeps_what_was_spent() {
    let limit = |burst: u64| policy(&json!({"rps": 0.166_667, "burst": burst, "deny_cidrs": ["10.0.0.0/8"]}));
    let mut buckets = Kept::default();
    assert_eq!(verdicts(&limit(10), &mut buckets, &burst(10, 0)), "..........");
    assert_eq!(verdicts(&limit(10), &mut buckets, &burst(1, 0)), "r", "the same again");
    assert_eq!(verdicts(&limit(20), &mut buckets, &burst(11, 0)), "..........r", "raised");
    let lowered = decide(&limit(5), &Request::at(0).facts(), &mut buckets);
    let wait_ms = lowered.wait.map(|wait| wait.retry_after_ms);
    assert!(wait_ms.is_some_and(|wait_ms| wait_ms <= 60_000), "lowered: {wait_ms:?}");
    assert_eq!(verdicts(&policy(&json!({"rps": 0})), &mut buckets, &burst(1, 0)), ".", "off");
}

#[test]
fn a_clock_that_goes_back_refills_nothing() {
    let policy = policy(&json!({"rps": 1, "burst": 1}));
    let requests = [Request::at(10_000), Request::at(0), Request::at(10_999), Request::at(11_000)];
    assert_eq!(verdicts(&policy, &mut Kept::default(), &requests), ".rr.");
}

#[test]
fn a_rate_above_one_a_millisecond_is_reached() {
    for (rps, at_once) in
        [(8_000_usize, 100), (8_000, 1), (1_500, 1), (1_001, 1), (1_000, 1), (999, 1), (1_000_000, 1)]
    {
        let policy = policy(&json!({"mode": "enforce", "rps": rps, "burst": at_once}));
        let most = at_once.max(rps.div_ceil(1000));
        let mut buckets = Kept::default();
        let allowed = |verdicts: String| verdicts.matches('.').count();
        let first = allowed(verdicts(&policy, &mut buckets, &burst(most + 1, 0)));
        let rest = (1..=1000).map(|at_ms| allowed(verdicts(&policy, &mut buckets, &burst(most + 2, at_ms))));
        let all = first + rest.sum::<usize>();
        assert_eq!(first, most, "{rps} a second, {at_once} at once");
        assert!((most + rps - 1..=most + rps).contains(&all), "{rps} a second, {at_once} at once: {all}");
    }
}

#[test]
fn what_is_lost_with_a_bucket() {
    let limit = Limit::of_client(crate::policy::Rate(1_000_000), 2).unwrap();
    let (mut spent, mut refused) = (Bucket::default(), Bucket::default());
    spent.charge(&limit, 0);
    spent.charge(&limit, 0);
    refused.charge(&limit, 0);
    refused.refuse(&limit, 0);
    assert_eq!((Bucket::default().weight(0), spent.weight(0)), (0, 2000));
    assert!(refused.weight(0) > spent.weight(0), "one that refuses is kept");
    assert_eq!((spent.weight(2000), refused.weight(1000)), (0, 0), "full again");
}

proptest! {
    /// Against whole numbers with no bucket: a token is there if those taken so far were all refilled in time.
    #[test]
    fn buckets_are_exact(
        rate in prop_oneof![1_u64..10_000_000, 1_u64..2_000, 1_u64..=1_000_000_000_000],
        burst in 1_u64..6,
        steps in prop::collection::vec(prop_oneof![0_u64..5, 0_u64..2_000, 0_u64..10_000_000], 1..60),
    ) {
        let limit = Limit::of_client(crate::policy::Rate(rate), burst).unwrap();
        let full = (u128::from(burst) * 1_000_000_000).max(u128::from(rate) + 999_999_999);
        let (mut bucket, mut parts, mut now_ms) = (Bucket::default(), full, 0);
        for step in steps {
            now_ms += step;
            parts = (parts + u128::from(step) * u128::from(rate)).min(full);
            prop_assert_eq!(u128::from(bucket.tokens(&limit, now_ms)), parts / 1_000_000_000);
            let wait_ms = bucket.wait_ms(&limit, now_ms);
            prop_assert_eq!(wait_ms == 0, parts >= 1_000_000_000);
            if wait_ms == 0 {
                bucket.charge(&limit, now_ms);
                parts -= 1_000_000_000;
            } else {
                prop_assert_eq!(bucket.wait_ms(&limit, now_ms + wait_ms), 0);
                prop_assert!(bucket.wait_ms(&limit, now_ms + wait_ms - 1) > 0);
                bucket.refuse(&limit, now_ms);
            }
        }
    }

    #[test]
    fn a_replay_says_what_was_said_live(
        requests in prop::collection::vec((0_u8..8, 0_usize..3, 0_usize..3, 0_u64..400), 0..300),
        rps in 1_u32..20, size in 1_u32..6, mode in 0_usize..3,
    ) {
        let mode = Mode::ALL[mode];
        let policy = policy(&json!({
            "mode": mode, "rps": f64::from(rps) / 4.0, "burst": size, "deny_missing_user_agent": true,
            "deny_cidrs": ["192.0.2.7"], "allow_cidrs": ["192.0.2.6"], "deny_user_agents": ["evil"],
            "routes": [{"path_prefix": "/login", "methods": ["POST"], "rps": 0.5, "burst": 1}],
        }));
        let mut at_ms = 1_000;
        let requests: Vec<_> = requests.into_iter().map(|(client, agent, path, step_ms)| {
            at_ms += step_ms;
            Request {
                client: alloc::format!("192.0.2.{client}"),
                method: ["GET", "POST", "HEAD"][path],
                path: ["/", "/login", "/x"][path],
                agent: ["curl", "evil", ""][agent],
                at_ms,
            }
        }).collect();
        let mut buckets = Kept::default();
        let live: Vec<_> = requests.iter().map(|request| decide(&policy, &request.facts(), &mut buckets)).collect();
        let hasher = BuildHasherDefault::<Fnv>::default();
        let records = requests.iter().map(Request::facts);
        let replay = replay(&policy, records, requests.len() / 2, (1_000, at_ms), &hasher);
        for reason in Reason::ALL {
            let count = live.iter().filter(|verdict| verdict.reason == Some(reason)).count() as u64;
            prop_assert_eq!(replay.by_reason[reason as usize], count);
        }
        prop_assert_eq!(replay.requests, requests.len() as u64);
        let sum: u64 = replay.series.iter().map(|slice| slice.allowed + slice.would_block).sum();
        prop_assert_eq!(sum, replay.requests);
        prop_assert_eq!(replay.top_clients.iter().map(|client| client.would_block).sum::<u64>(), replay.would_block);
        prop_assert!(replay.top_clients.is_sorted_by_key(|client| core::cmp::Reverse(client.would_block)));
    }
}
