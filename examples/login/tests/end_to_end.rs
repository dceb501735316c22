//! The example as it is started, driven over HTTP on each store.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking and says why")]

use std::{
    fmt,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tidegate_test_servers::{PostgresServer, RedisServer};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Store {
    Memory,
    Embedded,
    Sqlite,
    Postgres,
    Redis,
}

/// The example, running; killed when dropped.
struct Login {
    child: Child,
    address: SocketAddr,
}

struct Answer {
    status: u16,
    headers: String,
    body: String,
}

const ALICE: &str = "alice@example.com";
const PASSWORD: &str = "correct horse battery staple";
/// Longer than the store's deadline.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn on_memory() {
    drive(Store::Memory, None);
}

#[test]
fn on_embedded() {
    drive(Store::Embedded, None);
}

#[test]
fn on_sqlite() {
    drive(Store::Sqlite, None);
}

#[test]
fn on_postgres() {
    let server = PostgresServer::start().unwrap();
    let run = drive(Store::Postgres, Some(&server.url()));
    server.pause().unwrap();
    run.check_unavailable();
    server.go_on().unwrap();
    run.check_back();
}

#[test]
fn on_redis() {
    let server = RedisServer::start(&[]).unwrap();
    let run = drive(Store::Redis, Some(&server.url()));
    server.pause().unwrap();
    run.check_unavailable();
    server.resume().unwrap();
    run.check_back();
}

/// All that a client can see, but for a store that does not answer.
fn drive(store: Store, url: Option<&str>) -> Login {
    let folder = tempfile::tempdir().unwrap();
    let login = Login::start(store, folder.path(), url);

    // An account that is there and one that is not are answered alike.
    let (known, unknown) = (login.login(ALICE, "a guess"), login.login("nobody@example.com", "a guess"));
    for answer in [&known, &unknown] {
        assert_eq!(answer.status, 401, "{answer}");
        assert!(answer.headers.contains("\"login\";q=10;w=300, \"login-account\";q=100;w=3600"), "{answer}");
    }
    assert_eq!(known.body, unknown.body);

    // Successes are given back: more of them than there may be failures.
    for round in 0..12 {
        let answer = login.login("Alice@Example.com ", PASSWORD);
        assert_eq!(answer.status, 200, "round {round}: {answer}");
    }

    // Nine more may fail, however many come at once, and then the right password is not looked at either.
    let at_once: Vec<u16> = thread::scope(|scope| {
        let guesses: Vec<_> = (0..30).map(|_| scope.spawn(|| login.login(ALICE, "a guess").status)).collect();
        guesses.into_iter().map(|guess| guess.join().unwrap()).collect()
    });
    let count = |status| at_once.iter().filter(|&&seen| seen == status).count();
    assert_eq!((count(401), count(429)), (9, 21), "{at_once:?}");
    let refused = login.login(ALICE, PASSWORD);
    assert_eq!(refused.status, 429, "{refused}");
    assert!((1..=300).contains(&refused.retry_after()), "{refused}");
    assert!(refused.headers.contains("\"login\";r=0;t="), "{refused}");
    assert_eq!(login.login("bob@example.com", "Tr0ub4dor&3").status, 200, "others sign in meanwhile");

    let resets: Vec<Answer> =
        (0..4).map(|_| login.post("/password-reset", r#"{"account": "carol"}"#)).collect();
    assert_eq!(resets.iter().map(|answer| answer.status).collect::<Vec<_>>(), [202, 202, 202, 429]);
    assert!((1..=7200).contains(&resets[3].retry_after()), "{}", resets[3]);
    assert_eq!(login.post("/login", "{").status, 400);

    // What was counted outlives the process, but for memory.
    drop(login);
    let login = Login::start(store, folder.path(), url);
    let after = login.login(ALICE, PASSWORD).status;
    assert_eq!(after, if store == Store::Memory { 200 } else { 429 });
    login
}

impl Login {
    fn start(store: Store, folder: &Path, url: Option<&str>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_login"));
        command.arg("127.0.0.1:0").stdin(Stdio::null()).stderr(Stdio::piped());
        command.env("TIDEGATE_RATE_LIMIT__STORE", format!("{store:?}").to_lowercase());
        command.env("TIDEGATE_RATE_LIMIT__PATH", folder);
        command.envs(url.map(|url| ("TIDEGATE_RATE_LIMIT__URL", url)));
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("{store:?} did not come up: {said}")).unwrap();
            said.push_str(&line);
            if let Some((_, address)) = line.split_once("listening on http://") {
                break address.parse().unwrap();
            }
        };
        assert_eq!(said.contains("limit-store-single-instance"), store == Store::Memory, "{said}");
        // Nobody reads on; a full pipe would hold the server up.
        thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    fn login(&self, account: &str, password: &str) -> Answer {
        self.post("/login", &format!(r#"{{"account": "{account}", "password": "{password}"}}"#))
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            socket,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let (status, headers) = head.split_once("\r\n").unwrap();
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, headers: headers.to_owned(), body: body.to_owned() }
    }

    /// The store does not answer: closed, in time, and not as if somebody had been counted out.
    fn check_unavailable(&self) {
        for answer in [self.login(ALICE, PASSWORD), self.post("/password-reset", r#"{"account": "dave"}"#)] {
            assert_eq!((answer.status, answer.retry_after()), (503, 5), "{answer}");
        }
    }

    /// The store answers again: it is found within a few calls, and has kept its counts.
    fn check_back(&self) {
        let statuses: Vec<u16> = (0..20).map(|_| self.login(ALICE, PASSWORD).status).collect();
        assert!(statuses.iter().all(|status| [503, 429].contains(status)), "{statuses:?}");
        assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        // It may have ended; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    fn retry_after(&self) -> u64 {
        let line = self.headers.lines().find_map(|line| line.strip_prefix("retry-after: "));
        line.unwrap_or_else(|| panic!("no retry-after: {self}")).parse().unwrap()
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n\n{}", self.status, self.headers, self.body)
    }
}
