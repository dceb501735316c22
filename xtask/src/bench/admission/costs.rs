//! Nanoseconds and bytes, on one thread.

use std::{
    hint::black_box,
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU32,
};

use anyhow::{Context, Result, ensure};
use governor::{DefaultKeyedRateLimiter, Quota};
use tidegate_admission::{
    Clock, Fingerprint, HttpAdmission, Operation, Scope, Seed, Sender, SourcePrefix, UdpGate,
};

use super::{Settings, ample};
use crate::bench::{process, random::Random, report::grouped};

/// What one kind of decision costs.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) ours_ns: Vec<f64>,
    pub(crate) governor_ns: Vec<f64>,
    pub(crate) bytes_a_key: f64,
}

/// Looked-up dimensions of a request and of a datagram; the others are the global one and such.
const HTTP_KEYED: usize = 4;
const UDP_KEYED: usize = 3;
/// Dimensions of both.
const DIMENSIONS: u64 = 6;

/// As many keys as the default profile allows, and as many as the settings say.
pub(super) fn measure(settings: &Settings) -> Result<Vec<Case>> {
    let few = Settings { keys: settings.keys.min(DEFAULT_KEYS), ..settings.clone() };
    Ok(vec![http(&few)?, http(settings)?, udp(&few)?, udp(settings)?])
}

/// `max_tracked_keys` of the default profile.
const DEFAULT_KEYS: usize = 65_536;

fn http(settings: &Settings) -> Result<Case> {
    let each = settings.keys / HTTP_KEYED;
    let admission = HttpAdmission::new(&ample(settings.keys)?, Seed::random()?, Clock::machine())?;
    let request = |choice: [usize; HTTP_KEYED]| {
        let [source, principal, ..] = choice;
        let identity = principal.to_le_bytes();
        // A tenant has one principal and one resource here, so there are as many of each.
        let scope = Scope::new().tenant(&identity).principal(&identity).resource(&identity);
        let lease = admission.stage_one(source_prefix(source), Operation::optional(0));
        lease.and_then(|mut lease| lease.stage_two(&scope))
    };
    for key in 0..each {
        request([key; HTTP_KEYED]).context("filling the tracker")?;
    }
    let keys = admission.tracked_keys();
    ensure!(keys == each * HTTP_KEYED, "{keys} keys are tracked");
    let mut case = turns(HTTP_KEYED, settings, each, |choice| choice, |choice| request(*choice).is_ok())?;
    case.bytes_a_key = admission.bytes() as f64 / keys as f64;
    Ok(case)
}

fn udp(settings: &Settings) -> Result<Case> {
    let each = settings.keys / UDP_KEYED;
    let (gate, clock) = (UdpGate::new(&ample(settings.keys)?, Seed::random()?)?, Clock::machine());
    let fingerprints: Vec<Fingerprint> = (0..each).map(|key| Fingerprint::of(&key.to_le_bytes())).collect();
    // A batch of datagrams shares one reading of the clock.
    let now_ms = clock.now_ms();
    let datagram = |(choice, capability): &([usize; HTTP_KEYED], Fingerprint)| {
        let [source, _, handle, _] = *choice;
        let admitted = gate.stage_one(now_ms, address(source), 1, 100);
        let mediation_handle = &handle.to_le_bytes();
        let sender = Sender { capability: *capability, role: 1, mediation_handle };
        black_box(admitted).is_some() && gate.stage_two(now_ms, &sender)
    };
    // A datagram brings its capability along: to look it up is no part of admission.
    let sent = |choice: [usize; HTTP_KEYED]| (choice, fingerprints[choice[1]]);
    for key in 0..each {
        ensure!(datagram(&sent([key; HTTP_KEYED])), "the tracker is full");
    }
    let keys = gate.tracked_keys(now_ms);
    ensure!(keys == each * UDP_KEYED, "{keys} keys are tracked");
    let mut case = turns(UDP_KEYED, settings, each, sent, datagram)?;
    case.bytes_a_key = gate.bytes() as f64 / keys as f64;
    Ok(case)
}

/// Ours and governor's in turn, over the same choices; `sent` makes of one what is admitted, before the turn.
fn turns<Sent>(
    keyed: usize,
    settings: &Settings,
    each: usize,
    sent: impl Fn([usize; HTTP_KEYED]) -> Sent,
    admit: impl Fn(&Sent) -> bool,
) -> Result<Case> {
    let quota = Quota::per_second(NonZeroU32::MAX);
    let governor: DefaultKeyedRateLimiter<u64> = governor::RateLimiter::keyed(quota);
    let check = |choice: &[usize; HTTP_KEYED]| {
        let looked_up =
            choice.iter().take(keyed).zip(0..).map(|(key, dimension)| *key as u64 * DIMENSIONS + dimension);
        let fixed = (keyed as u64..DIMENSIONS).map(|dimension| u64::MAX - dimension);
        looked_up.chain(fixed).all(|key| governor.check_key(&key).is_ok())
    };
    for key in 0..each {
        ensure!(check(&[key; HTTP_KEYED]), "governor refused");
    }
    let mut random = Random::fresh()?;
    let what = if keyed == HTTP_KEYED { "a request" } else { "a datagram" };
    let name = format!("{what}, {} keys", grouped(settings.keys as f64));
    let mut case = Case { name, ours_ns: vec![], governor_ns: vec![], bytes_a_key: 0.0 };
    for _ in 0..settings.rounds {
        let choices: Vec<[usize; HTTP_KEYED]> =
            (0..settings.decisions).map(|_| [(); HTTP_KEYED].map(|()| random.below(each))).collect();
        let all_sent: Vec<Sent> = choices.iter().map(|choice| sent(*choice)).collect();
        let ours = cost(&all_sent, &admit)?;
        let governors = cost(&choices, check)?;
        println!("{:<28} {ours:>6.0} ns  governor {governors:>6.0} ns", case.name);
        case.ours_ns.push(ours);
        case.governor_ns.push(governors);
    }
    Ok(case)
}

/// Nanoseconds of one decision; of CPU, so that other work on the machine counts little.
fn cost<Sent>(sent: &[Sent], admit: impl Fn(&Sent) -> bool) -> Result<f64> {
    let before = process::own_cpu_seconds()?;
    let admitted = sent.iter().filter(|sent| admit(sent)).count();
    let seconds = process::own_cpu_seconds()? - before;
    ensure!(admitted == sent.len(), "the budgets are ample, and yet something was refused");
    Ok(seconds * 1e9 / sent.len() as f64)
}

/// A /24 of its own for each number.
fn address(number: usize) -> IpAddr {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    Ipv4Addr::from_bits(number << 8).into()
}

fn source_prefix(number: usize) -> SourcePrefix {
    address(number).into()
}
