//! How much an app gets at once.

use crate::{
    rig::{Rig, get},
    support::eventually,
};

#[test]
fn no_more_than_its_places_are_in_work() {
    let rig = Rig::with(|setup| setup.set("apps.shop.shield.max_concurrency", "2"));
    let mut held: Vec<_> = (0..2)
        .map(|_| {
            let mut wire = rig.wire();
            wire.send(&get("/silent", &[])).unwrap();
            wire
        })
        .collect();
    eventually("both are in work", || (rig.backend.whole().len() == 2).then_some(()));
    let refused = rig.get("/echo", &[]);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(rig.backend.whole().len(), 2);
    // A client that leaves gives its place back.
    drop(held.pop());
    eventually("the place is free", || (rig.get("/echo", &[]).status == 200).then_some(()));
}
