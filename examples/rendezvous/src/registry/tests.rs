use std::collections::BTreeMap;

use super::*;

const LIMITS: RegistryLimits = RegistryLimits { listings_max: 5, tenant_listings_max: 3, listing_ms: 1_000 };

fn principal(tenant: &str, name: &str) -> Principal {
    Principal { tenant: tenant.to_owned(), name: name.to_owned() }
}

fn game(name: &str) -> Metadata {
    Metadata::new(name.to_owned(), BTreeMap::new()).unwrap()
}

fn id(number: u8) -> ListingId {
    ListingId([number; 16])
}

#[test]
fn a_listing_from_its_start_to_its_end() {
    let (ann, mut registry) = (principal("t", "ann"), Registry::new(LIMITS));
    assert_eq!(registry.create(id(1), &ann, game("one"), 0).unwrap().expires_at_ms, 1_000);
    assert_eq!(registry.update(id(1), &ann, game("two"), 500).unwrap().expires_at_ms, 1_000);
    assert_eq!(registry.renew(id(1), &ann, 999).unwrap().expires_at_ms, 1_999);
    assert_eq!(registry.list(&principal("t", "bob"), 9, 1_000)[0].1.metadata.name(), "two");
    assert_eq!(registry.renew(id(1), &ann, 1_999), Err(Refused::NotFound), "at its end it is over");
    assert!(registry.list(&ann, 9, 1_999).is_empty());
    registry.create(id(2), &ann, game("three"), 0).unwrap();
    registry.delete(id(2), &ann, 1).unwrap();
    assert_eq!(registry.delete(id(2), &ann, 1), Err(Refused::NotFound));
}

/// Whatever is another's is as if it were not there.
#[test]
fn others_get_nothing() {
    let (ann, mut registry) = (principal("t", "ann"), Registry::new(LIMITS));
    registry.create(id(1), &ann, game("one"), 0).unwrap();
    let cases =
        [(principal("t", "bob"), true), (principal("u", "ann"), false), (principal("u", "bob"), false)];
    for (asker, joinable) in cases {
        for listing in [id(1), id(9)] {
            assert_eq!(registry.renew(listing, &asker, 1), Err(Refused::NotFound));
            assert_eq!(registry.update(listing, &asker, game("mine"), 1), Err(Refused::NotFound));
            assert_eq!(registry.delete(listing, &asker, 1), Err(Refused::NotFound));
            assert_eq!(registry.check_holder(listing, &asker, 1), Err(Refused::NotFound));
            assert_eq!(registry.joinable(listing, &asker, 1).is_ok(), joinable && listing == id(1));
        }
        assert_eq!(registry.list(&asker, 9, 1).len(), usize::from(joinable));
    }
    assert_eq!(registry.list(&ann, 9, 1)[0].1.metadata.name(), "one");
}

#[test]
fn both_bounds_and_room_again() {
    let (ann, bob) = (principal("t", "ann"), principal("u", "bob"));
    let mut registry = Registry::new(LIMITS);
    for number in 0..3 {
        registry.create(id(number), &ann, game("g"), 0).unwrap();
    }
    assert_eq!(registry.create(id(3), &ann, game("g"), 0), Err(Refused::Full), "the tenant's bound");
    for number in 4..6 {
        registry.create(id(number), &bob, game("g"), 10).unwrap();
    }
    assert_eq!(registry.create(id(6), &bob, game("g"), 10), Err(Refused::Full), "the bound of all");
    assert_eq!(registry.list(&ann, 2, 10).len(), 2);
    registry.create(id(6), &bob, game("g"), 1_000).unwrap();
    assert_eq!(registry.listings.len(), 3, "what had ended made room");
    assert_eq!(registry.create(id(6), &bob, game("g"), 1_000), Err(Refused::Full), "an id is used once");
    for number in 4..=6 {
        registry.delete(id(number), &bob, 1_000).unwrap();
    }
    assert!(registry.by_tenant.is_empty());
}
