//! Signed requests to the guard store, made from the protocol's description and not with the server's code.

use std::io::Write;

use anyhow::{Context, Result, bail};
use hmac::{Hmac, Mac};
use memchr::memmem;
use sha2::Sha256;

use crate::bench::random::Random;

/// What one check asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    OneWindow,
    ThreeWindows,
}

impl Check {
    /// The periods of its windows, in ms.
    pub(crate) const fn periods_ms(self) -> &'static [u64] {
        match self {
            Self::OneWindow => &[60_000],
            Self::ThreeWindows => &[60_000, 3_600_000, 86_400_000],
        }
    }

    /// Out of reach in a run, so that every check writes: a refusal costs less.
    pub(crate) const LIMIT: u64 = 1_000_000_000;
}

/// Signs request bodies with one secret.
#[derive(Debug, Clone)]
pub(crate) struct Signer(Hmac<Sha256>);

impl Signer {
    pub(crate) fn new(secret: &str) -> Self {
        Self(Hmac::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length"))
    }

    /// Appends the value of the signature header for a POST of `body` to the RPC path at `t_ms`.
    pub(crate) fn sign(&self, t_ms: u64, body: &[u8], out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        out.extend_from_slice(b"t=");
        let digits = out.len();
        write!(out, "{t_ms}").expect("a vector takes any write");
        let mut mac = self.0.clone();
        mac.update(b"v1\n");
        mac.update(&out[digits..]);
        mac.update(b"\nPOST\n/v1/rpc\n");
        mac.update(body);
        out.extend_from_slice(b",v1=");
        for byte in mac.finalize().into_bytes() {
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// The body of a check, with places for the operation id, the partition and the identities.
#[derive(Debug, Clone)]
pub(crate) struct RpcTemplate {
    body: Vec<u8>,
    partition: usize,
    identities: Vec<Identity>,
    random: Random,
}

/// Where a digest of an identity stands, and how many keys share it.
#[derive(Debug, Clone, Copy)]
struct Identity {
    place: usize,
    keys: u64,
    salt: u64,
}

/// A source and a principal for each key; 64 of them in one network.
const FAIRNESS: [(&str, u64); 3] = [("source", 1), ("digest", 64), ("principal", 1)];

const OPERATION: usize = r#"{"op":""#.len();
const OPERATION_CHARS: usize = 22;
const DIGEST_CHARS: usize = 43;

impl RpcTemplate {
    pub(crate) fn new(check: Check) -> Result<Self> {
        let windows = check.periods_ms().iter().zip(1..).map(|(period_ms, name)| window(name, *period_ms));
        let command = hit(&windows.collect::<Vec<_>>());
        let body = rpc(&[step(&digest(0), &[command])]);
        let partition =
            memmem::find(body.as_bytes(), b"\"partition\":\"").context("finding the partition")?;
        let partition = partition + "\"partition\":\"".len();
        Ok(Self { body: body.into_bytes(), partition, identities: Vec::new(), random: Random::fresh()? })
    }

    /// The same checks, each carrying a source, its IPv4 network and a principal.
    pub(crate) fn carrying_identities(mut self) -> Result<Self> {
        let none = digest(0);
        let fairness = format!(
            r#""fairness":{{"source":"{none}","networks":[{{"prefix":24,"digest":"{none}"}}],"principal":"{none}"}},"#
        );
        let steps = memmem::find(&self.body, b"\"steps\":").context("finding the steps")?;
        self.body.splice(steps..steps, fairness.bytes());
        self.partition += fairness.len();
        for ((name, keys), salt) in FAIRNESS.into_iter().zip(1..) {
            let name = format!(r#""{name}":""#);
            let place =
                memmem::find(&self.body, name.as_bytes()).context("finding an identity")? + name.len();
            self.identities.push(Identity { place, keys, salt });
        }
        Ok(self)
    }

    /// The body of a check of `key`, under an operation id that nobody has used.
    pub(crate) fn fill(&mut self, key: usize) -> &[u8] {
        self.random.base64url(&mut self.body[OPERATION..OPERATION + OPERATION_CHARS]);
        let partition = &mut self.body[self.partition..self.partition + DIGEST_CHARS];
        name(key as u64, partition);
        for Identity { place, keys, salt } in &self.identities {
            name(key as u64 / keys + (salt << 40), &mut self.body[*place..place + DIGEST_CHARS]);
        }
        &self.body
    }

    /// The same checks under other operation ids.
    pub(crate) fn another(&self) -> Result<Self> {
        Ok(Self { random: Random::fresh()?, ..self.clone() })
    }
}

/// A body that makes [`BULK_WINDOWS`] windows, the first of which is called `first_window`.
pub(crate) fn bulk(random: &mut Random, first_window: u64, period_ms: u64) -> String {
    let windows: Vec<String> = (0..BULK_WINDOWS).map(|n| window(first_window + n, period_ms)).collect();
    let commands: Vec<String> = windows.chunks(4).map(hit).collect();
    let steps = commands.chunks(8).zip(0..).map(|(commands, n)| step(&digest(first_window + n), commands));
    let mut body = rpc(&steps.collect::<Vec<_>>()).into_bytes();
    random.base64url(&mut body[OPERATION..OPERATION + OPERATION_CHARS]);
    String::from_utf8(body).expect("base64url stands in place of other ASCII")
}

/// As many as the protocol lets one request carry: 32 commands of 4 windows.
pub(crate) const BULK_WINDOWS: u64 = 128;

/// Whether the server let the check of `body` pass.
///
/// # Errors
/// The answer belongs to another operation, or a step has neither passed nor been refused.
pub(crate) fn read_answer(body: &[u8], answer: &[u8]) -> Result<bool> {
    let operation = &body[OPERATION..OPERATION + OPERATION_CHARS];
    let wrong = |what: &str| format!("{what}: {}", String::from_utf8_lossy(answer));
    if memmem::find(answer, operation).is_none() {
        bail!(wrong("the answer is to another operation"));
    }
    let denied = memmem::find(answer, b"\"denied\":").with_context(|| wrong("no verdict in the answer"))?;
    match &answer[denied + "\"denied\":".len()..] {
        [b't', ..] => Ok(false),
        [b'f', ..] if memmem::find(answer, b"\"status\":\"ok\"").is_some() => Ok(true),
        _ => bail!(wrong("a step failed")),
    }
}

fn rpc(steps: &[String]) -> String {
    let operation = "A".repeat(OPERATION_CHARS);
    format!(r#"{{"op":"{operation}","family":"proxy","steps":[{}]}}"#, steps.join(","))
}

fn step(partition: &str, commands: &[String]) -> String {
    format!(r#"{{"partition":"{partition}","commands":[{}]}}"#, commands.join(","))
}

fn hit(windows: &[String]) -> String {
    format!(r#"{{"cmd":"win.hit","windows":[{}]}}"#, windows.join(","))
}

fn window(key: u64, period_ms: u64) -> String {
    let (key, limit) = (digest(key), Check::LIMIT);
    format!(r#"{{"key":"{key}","limit":{limit},"period_ms":{period_ms},"algorithm":"sliding"}}"#)
}

fn digest(key: u64) -> String {
    let mut text = [0; DIGEST_CHARS];
    name(key, &mut text);
    String::from_utf8(text.to_vec()).expect("base64url is ASCII")
}

/// A name as a keyed hash of `key` would give it: always the same, and evenly spread.
pub(crate) fn name(key: u64, text: &mut [u8]) {
    Random::seeded(key.wrapping_mul(0xA076_1D64_78BD_642F)).base64url(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_as_the_protocol_says() {
        let signer = Signer::new("secret-for-test-vectors-0123456789abcdef");
        let body = br#"{"op":"AAAAAAAAAAAAAAAAAAAAAA","family":"proxy","steps":[]}"#;
        let mut header = Vec::new();
        signer.sign(1_764_460_800_000, body, &mut header);
        let expected = "t=1764460800000,v1=a44094081a10140d24910dec06bc9982c54f737a1281221e8fc09ce33bab372b";
        assert_eq!(String::from_utf8(header).unwrap(), expected);
    }

    #[test]
    fn each_body_is_new_but_for_its_partition() {
        let mut template = RpcTemplate::new(Check::ThreeWindows).unwrap();
        let first = template.fill(7).to_vec();
        let second = template.fill(7).to_vec();
        let other = template.fill(8).to_vec();
        let partition = template.partition..template.partition + DIGEST_CHARS;
        assert_ne!(first, second);
        assert_eq!(first[partition.clone()], second[partition.clone()]);
        assert_ne!(first[partition.clone()], other[partition]);
        assert_eq!(String::from_utf8(first).unwrap().matches("\"key\"").count(), 3);
    }

    #[test]
    fn identities_follow_from_the_key() {
        let mut template = RpcTemplate::new(Check::OneWindow).unwrap().carrying_identities().unwrap();
        let mut digests = |key: usize| {
            let body = String::from_utf8(template.fill(key).to_vec()).unwrap();
            let after = |name: &str| body.split_once(name).unwrap().1[..DIGEST_CHARS].to_owned();
            ["\"source\":\"", "\"digest\":\"", "\"principal\":\"", "\"partition\":\""].map(after)
        };
        let (first, neighbour, far) = (digests(0), digests(1), digests(64));
        assert_eq!(first, digests(0));
        assert_eq!((0..4).map(|n| first[n] == neighbour[n]).collect::<Vec<_>>(), [false, true, false, false]);
        assert!(first.iter().zip(&far).all(|(one, other)| one != other));
    }

    #[test]
    fn a_bulk_body_is_within_the_bounds() {
        let body = bulk(&mut Random::seeded(1), 1 << 40, 86_400_000);
        assert!(body.len() <= 16 * 1024, "{}", body.len());
        for (what, count) in [("\"partition\"", 4), ("\"cmd\"", 32), ("\"key\"", 128)] {
            assert_eq!(body.matches(what).count(), count, "{what}");
        }
    }

    #[test]
    fn answers() {
        let body = br#"{"op":"AAAAAAAAAAAAAAAAAAAAAA","family":"proxy","steps":[]}"#;
        let table = [
            (r#"{"op":"AAAAAAAAAAAAAAAAAAAAAA","denied":false,"steps":[{"status":"ok"}]}"#, Some(true)),
            (r#"{"op":"AAAAAAAAAAAAAAAAAAAAAA","denied":true,"steps":[{"status":"denied"}]}"#, Some(false)),
            (r#"{"op":"AAAAAAAAAAAAAAAAAAAAAA","denied":false,"steps":[{"status":"failed"}]}"#, None),
            (r#"{"op":"BAAAAAAAAAAAAAAAAAAAAA","denied":false,"steps":[{"status":"ok"}]}"#, None),
            (r#"{"error":{"code":"guard_unavailable"}}"#, None),
        ];
        for (answer, expected) in table {
            assert_eq!(read_answer(body, answer.as_bytes()).ok(), expected, "{answer}");
        }
    }
}
