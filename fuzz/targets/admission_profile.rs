//! Admission profiles: what is read is valid, and can be served with; what isn't is refused by name.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tidegate_admission::{Clock, HttpAdmission, Operation, Profile, Scope, Seed, UdpGate};

fuzz_target!(|text: &str| {
    let profile = match Profile::parse(text) {
        Ok(profile) => profile,
        Err(invalid) => {
            assert!(!invalid.0.is_empty(), "refused without a reason");
            return;
        }
    };
    assert!(profile.validate().is_ok());
    let source = [192, 0, 2, 1];
    let admission = HttpAdmission::new(&profile, Seed::from([0; 16]), Clock::manual()).expect("it is valid");
    let lease = admission.stage_one(std::net::IpAddr::from(source).into(), Operation::critical(0));
    let mut lease = lease.expect("every budget and ceiling is at least one");
    lease
        .stage_two(&Scope::new().tenant(b"t").principal(b"p").resource(b"r"))
        .expect("there is room for one");
    drop(lease);
    assert_eq!(admission.active(), 0);
    let gate = UdpGate::new(&profile, Seed::from([0; 16])).expect("it is valid");
    assert!(gate.stage_one(0, source.into(), 0, 1).is_some());
});
