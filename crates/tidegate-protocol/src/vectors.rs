//! The vectors that every implementation shares: `protocol/vectors.json`.

use alloc::{string::String, vec::Vec};

use serde::Deserialize;
use tidegate_core::{
    address::{Address, source_or_unknown},
    secret::Secret,
};

use crate::{
    identity::{Pepper, Purpose, digest},
    signature::{Keyring, sign, verify},
};

#[derive(Deserialize)]
struct Vectors {
    signatures: Vec<Signature>,
    digests: Vec<Hashed>,
    sources: Vec<Source>,
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
