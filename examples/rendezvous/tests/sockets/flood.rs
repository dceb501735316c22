//! A flood of datagrams in the same process: HTTP has keys, budgets and a lock of its own.

use axum::http::StatusCode;
use tidegate_admission::Profile;

use crate::{
    rig::{Rig, good, introduction},
    support::ANN,
};

#[tokio::test]
async fn http_and_a_player_are_served_through_it() {
    let mut profile = Profile::default();
    // With as little room as can be.
    profile.udp.bounds.max_tracked_keys = profile.udp.bounds.critical_tracked_key_reserve + 3;
    let rig = Rig::start(&profile).await;
    let (host, joiner) = rig.attempt().await;
    let (hosting, joining, flooding) = (rig.socket().await, rig.socket().await, rig.socket().await);
    let mut answered = 0;
    for number in 0..20_000_u32 {
        // What the socket has no room for is lost, as it is meant to be.
        let _ = flooding.try_send(&number.to_be_bytes().repeat(64));
        if number % 1_000 == 0 {
            let list = rig.call("GET", "/v1/listings", ANN, "").await;
            answered += u32::from(list.status == StatusCode::OK);
        }
    }
    assert_eq!(answered, 20);
    assert!(rig.call("GET", "/healthz", ANN, "").await.status.is_success());

    // Once it is over, the players meet: each sends again until it is answered, as players do.
    let mut met = None;
    for sequence in 1..200 {
        hosting.send(&good(&host, sequence)).await.unwrap();
        joining.send(&good(&joiner, sequence)).await.unwrap();
        let introduced = introduction(&joining, &joiner);
        if let Ok(told) = tokio::time::timeout(std::time::Duration::from_millis(50), introduced).await {
            met = Some(told.endpoints[0].socket_address());
            break;
        }
    }
    assert_eq!(met, Some(hosting.local_addr().unwrap()));
}
