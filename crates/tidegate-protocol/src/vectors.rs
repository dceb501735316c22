//! The vectors that every implementation shares: `protocol/vectors.json`.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec::Vec,
};

use serde::Deserialize;
use tidegate_core::{
    address::{Address, source_or_unknown},
    duration::{Written, parse_ms},
    secret::Secret,
};

use crate::{
    Request, Verified, bounds,
    identity::{Pepper, Purpose, digest},
    signature::{Keyring, sign, verify},
};

#[derive(Deserialize)]
struct Vectors {
    signatures: Vec<Signature>,
    digests: Vec<Hashed>,
    sources: Vec<Source>,
    bounds: BTreeMap<String, u64>,
    requests: Vec<Asked>,
    durations: Vec<Duration>,
    names: Vec<Names>,
    secrets: Vec<Candidate>,
}

#[derive(Deserialize)]
struct Asked {
    name: String,
    request: serde_json::Value,
    refused_at: Option<String>,
}

#[derive(Deserialize)]
struct Duration {
    ms: u64,
    text: String,
}

#[derive(Deserialize)]
struct Names {
    partition: String,
    partition_digest: String,
    keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Key {
    value: String,
    digest: String,
}

#[derive(Deserialize)]
struct Candidate {
    name: String,
    text: String,
    accepted: bool,
}

#[derive(Deserialize)]
struct Signature {
    name: String,
    secret: String,
    t_ms: u64,
    method: String,
    path: String,
    body: String,
    v1: String,
    header: String,
}

#[derive(Deserialize)]
struct Hashed {
    pepper: String,
    purpose: String,
    value: String,
    digest: String,
}

#[derive(Deserialize)]
struct Source {
    input: Option<String>,
    source: String,
    networks: Vec<Network>,
}

#[derive(Deserialize)]
struct Network {
    prefix: u8,
    text: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../../../protocol/vectors.json")).unwrap()
}

/// Those that everyone has published against, so that a slip in the file is noticed.
#[test]
fn the_first_vectors_are_among_them() {
    let vectors = vectors();
    let v1 = "a44094081a10140d24910dec06bc9982c54f737a1281221e8fc09ce33bab372b";
    assert!(vectors.signatures.iter().any(|vector| vector.v1 == v1));
    let table = [
        ("partition", "login:alice@example.com", "IhHMAI2m0tggcz6QiHXcY_3yFwF5CG9u_rxuY3UV7KM"),
        ("key", "15m", "2GEDWG_sj-G1pliEVOrKD-H9Tzx0L93MXousclGKpwY"),
        ("source", "192.0.2.7/32", "F4f1twiMao4FqvivfP-Yu4To8zodLnFjPMuixtk42xA"),
        ("source", "2001:db8:0:1::/64", "vH8dLotjtfIwe5CDNKPNDPra3uu86rSJslf1t4MKg30"),
        ("network", "2001:db8::/48", "i69CYom4YxxjojT7Fvbng7Ervc9ClKGMD7qpaRuSVXo"),
        ("principal", "user_42", "Ka817EcMud0W456kMM-D-N9tj2P1ThYurtUSwwAX8_Y"),
        ("source", "unknown", "xP5yuVt1i1NMBVykVBianmWivHhnXGivmM61FZ4JWZk"),
    ];
    for (purpose, value, digest) in table {
        let same = |vector: &&Hashed| vector.purpose == purpose && vector.value == value;
        assert_eq!(vectors.digests.iter().find(same).map(|vector| vector.digest.as_str()), Some(digest));
    }
}

#[test]
fn signatures() {
    for vector in vectors().signatures {
        let Signature { name, secret, t_ms, method, path, body, v1, header } = vector;
        let secret = Secret::new(secret).unwrap();
        assert_eq!(sign(&secret, t_ms, &method, &path, body.as_bytes()), header, "{name}");
        assert!(header.ends_with(&v1), "{name}");
        let keyring = Keyring::new(&[secret]).unwrap();
        let verified = verify(&keyring, [header.as_bytes()], &method, &path, body.as_bytes(), t_ms);
        assert_eq!(verified.unwrap().body(), body.as_bytes(), "{name}");
    }
}

#[test]
fn digests() {
    let purposes = [Purpose::Partition, Purpose::Key, Purpose::Source, Purpose::Network, Purpose::Principal];
    for vector in vectors().digests {
        let pepper = Pepper::new(&Secret::new(vector.pepper).unwrap());
        let purpose = purposes.into_iter().find(|purpose| purpose.as_str() == vector.purpose).unwrap();
        assert_eq!(digest(&pepper, purpose, &vector.value).as_str(), vector.digest, "{}", vector.value);
    }
}

#[test]
fn canonical_sources() {
    for vector in vectors().sources {
        let input = vector.input.as_deref();
        assert_eq!(source_or_unknown(input), vector.source, "{input:?}");
        let networks = input.and_then(|text| Address::parse(text).ok()).map(Address::networks);
        let networks: Vec<_> =
            networks.unwrap_or_default().into_iter().map(|network| (network.prefix, network.text)).collect();
        let expected: Vec<_> =
            vector.networks.into_iter().map(|network| (network.prefix, network.text)).collect();
        assert_eq!(networks, expected, "{input:?}");
    }
}

#[test]
fn bounds_are_the_codes() {
    let table = [
        ("body_bytes_max", bounds::BODY_BYTES_MAX as u64),
        ("steps_max", bounds::STEPS_MAX as u64),
        ("step_commands_max", bounds::STEP_COMMANDS_MAX as u64),
        ("rpc_commands_max", bounds::RPC_COMMANDS_MAX as u64),
        ("windows_max", bounds::WINDOWS_MAX as u64),
        ("budgets_max", bounds::BUDGETS_MAX as u64),
        ("networks_max", bounds::NETWORKS_MAX as u64),
        ("value_bytes_max", bounds::VALUE_BYTES_MAX as u64),
        ("ttl_ms_min", bounds::TTL_MS_MIN),
        ("ttl_ms_max", bounds::TTL_MS_MAX),
        ("sliding_period_ms_max", bounds::SLIDING_PERIOD_MS_MAX),
        ("operation_chars_min", bounds::OPERATION_CHARS_MIN as u64),
        ("operation_chars_max", bounds::OPERATION_CHARS_MAX as u64),
        ("family_chars_max", bounds::FAMILY_CHARS_MAX as u64),
        ("digest_chars", bounds::DIGEST_CHARS as u64),
        ("receipt_chars", bounds::RECEIPT_CHARS as u64),
        ("integer_max", bounds::INTEGER_MAX),
        ("skew_ms_max", bounds::SKEW_MS_MAX),
        ("secret_chars_min", Secret::CHARS_MIN as u64),
    ];
    let vectors = vectors().bounds;
    for (name, expected) in table {
        assert_eq!(vectors.get(name), Some(&expected), "{name}");
    }
    // Those of the client alone: its time-outs and its memory.
    let of_the_client = |name: &&String| name.starts_with("timeout_") || name.starts_with("memory_");
    assert_eq!(vectors.keys().filter(of_the_client).count() + table.len(), vectors.len());
}

#[test]
fn requests_at_and_past_each_bound() {
    for Asked { name, request, refused_at } in vectors().requests {
        let json = serde_json::to_vec(&request).unwrap();
        let parsed = Request::parse(Verified::trusted(&json));
        assert_eq!(
            parsed.as_ref().err().map(|fault| &fault.place),
            refused_at.as_ref(),
            "{name}: {parsed:?}"
        );
        // What a client checks before it sends is the same.
        if let Ok(request) = parsed {
            assert!(request.validate().is_ok(), "{name}");
            assert_eq!(Request::parse(Verified::trusted(&request.to_json().unwrap())), Ok(request), "{name}");
        }
    }
}

#[test]
fn secrets() {
    for vector in vectors().secrets {
        assert_eq!(Secret::new(vector.text).is_ok(), vector.accepted, "{}", vector.name);
    }
}

#[test]
fn durations() {
    for vector in vectors().durations {
        assert_eq!(Written(vector.ms).to_string(), vector.text);
        assert_eq!(parse_ms(&vector.text), Ok(vector.ms));
    }
}

#[test]
fn names_of_the_ready_made_limits() {
    let pepper = Pepper::new(&Secret::new("pepper-for-test-vectors-0123456789abcdef").unwrap());
    for vector in vectors().names {
        let hashed = digest(&pepper, Purpose::Partition, &vector.partition);
        assert_eq!(hashed.as_str(), vector.partition_digest, "{}", vector.partition);
        for key in vector.keys {
            assert_eq!(digest(&pepper, Purpose::Key, &key.value).as_str(), key.digest, "{}", key.value);
        }
    }
}
