use std::{cell::RefCell, net::TcpListener};

use http::StatusCode;
use tidegate_core::secret::Secret;
use tokio::time::Instant;

use super::*;

type Ended = Result<(), Failure>;

/// What the receiver answers, one after the other; the time at which each attempt came, in ms; the end.
async fn attempts(answers: &[Ended]) -> (Vec<u128>, Ended) {
    let (began, came) = (Instant::now(), RefCell::new(Vec::new()));
    let ended = persistently(async || {
        came.borrow_mut().push(began.elapsed().as_millis());
        let place = came.borrow().len() - 1;
        copy(&answers[place.min(answers.len() - 1)])
    });
    let ended = ended.await;
    (came.into_inner(), ended)
}

fn copy(ended: &Ended) -> Ended {
    match ended {
        Ok(()) => Ok(()),
        Err(Failure::Answer(status)) => Err(Failure::Answer(*status)),
        Err(_) => Err(Failure::TimedOut),
    }
}

fn answer(status: u16) -> Ended {
    Err(Failure::Answer(StatusCode::from_u16(status).unwrap()))
}

#[tokio::test(start_paused = true)]
async fn attempts_and_their_pauses() {
    let late = || Err(Failure::TimedOut);
    let table = [
        ("taken at once", vec![Ok(())], 1, true),
        ("taken at the second attempt", vec![answer(500), Ok(())], 2, true),
        ("taken at the last attempt", vec![late(), answer(503), Ok(())], 3, true),
        ("too late", vec![answer(500), answer(502), late(), Ok(())], 3, false),
        ("busy", vec![answer(429), answer(408), Ok(())], 3, true),
        ("refused", vec![answer(400), Ok(())], 1, false),
        ("refused after a pause", vec![answer(500), answer(404), Ok(())], 2, false),
        ("a redirect", vec![answer(301), Ok(())], 1, false),
        ("another redirect", vec![answer(308), Ok(())], 1, false),
    ];
    for (what, answers, count, taken) in table {
        let (came, ended) = attempts(&answers).await;
        assert_eq!((came.len(), ended.is_ok()), (count, taken), "{what}: {came:?} {ended:?}");
        let pauses: Vec<_> = came.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (pause_ms, expected) in pauses.iter().zip([750..=1251, 3000..=5001]) {
            assert!(expected.contains(pause_ms), "{what}: {pauses:?}");
        }
    }
}

#[test]
fn pauses_differ_by_a_quarter_at_most() {
    let second = Duration::from_secs(1);
    let table = [(0, 750_000), (256, 1_000_000), (511, 1_249_023), (512, 750_000), (u32::MAX, 1_249_023)];
    for (random, expected_us) in table {
        assert_eq!(jittered(second, random).as_micros(), expected_us, "{random}");
    }
}

/// Nothing in the process is awake but the clock, which jumps to the time-out.
#[tokio::test(start_paused = true)]
async fn a_receiver_that_never_answers_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = target(&silent);
    let began = Instant::now();
    let ended = target.post("{}".into()).await;
    assert!(matches!(ended, Err(Failure::TimedOut)), "{ended:?}");
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn a_failure_does_not_tell_the_whole_url() {
    let target = target(&TcpListener::bind("127.0.0.1:0").unwrap());
    let failure = target.post("{}".into()).await.unwrap_err();
    assert!(matches!(failure, Failure::Transport(_)), "nobody listens any more: {failure:?}");
    for text in [chain(&failure), format!("{failure:?}"), format!("{target:?}")] {
        assert!(!text.contains("for-us") && !text.contains(SECRET), "{text}");
    }
}

fn target(listener: &TcpListener) -> Target {
    let url = format!("http://{}/only-for-us?and=for-us", listener.local_addr().unwrap());
    Target::new(&url, Secret::new(SECRET).unwrap()).unwrap()
}

const SECRET: &str = "a-webhook-secret-0123456789abcdef-0123";
