//! The example and the server, both as programs, over HTTP.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

#[test]
fn routes_and_the_login_with_the_store_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(&mut tidegate(folder.path()), "  guard ");
    let api = Program::start(&mut api(folder.path(), server.address), "api listens");

    // Wrong passwords are looked at five times, however the name is spelled; then not even the right one is.
    assert_eq!(api.login("bob", "bob's password").status, 200);
    for (number, name) in ["alice", "Alice", " alice ", "ALICE", "alice"].into_iter().enumerate() {
        assert_eq!(api.login(name, "a guess").status, 401, "guess {number}");
    }
    let spent = api.login("alice", "alice's password");
    assert_eq!((spent.status, spent.code().as_str()), (429, "attempts_spent"));
    assert!(spent.header("retry-after").is_some());
    assert_eq!(api.login("bob", "bob's password").status, 200, "others log in");
    // An unknown name looks like a wrong password.
    assert_eq!(api.login("carol", "a guess").text, api.login("bob", "a guess").text);

    // Ten requests were made; a bucket of thirty refills by one every two seconds.
    let spent = api.until_refused("/items");
    assert_eq!((spent.status, spent.code().as_str()), (429, "rate_limited"));
    assert_eq!(spent.header("ratelimit-policy"), Some("\"1m\";q=30;w=60, \"1h\";q=1000;w=3600"));
    assert!(spent.header("ratelimit").unwrap().starts_with("\"1m\";r=0;t="), "{spent:?}");
    assert!(spent.header("retry-after").is_some());

    // Without the store the routes go on, counted here, and the login is shut. Started again, the program has
    // forgotten what the store denied.
    let address = server.address;
    drop((server, api));
    let api = Program::start(&mut self::api(folder.path(), address), "api listens");
    assert_eq!(api.get("/items").status, 200);
    let shut = api.login("bob", "bob's password");
    assert_eq!((shut.status, shut.header("retry-after")), (503, Some("30")));
    assert_eq!(api.until_refused("/items").status, 429);
}

const SECRET: &str = "example-signing-secret-0123456789abcdef";
const PEPPER: &str = "example-pepper-0123456789abcdef-01234567";

/// The server that the workspace builds, or the one that `TIDEGATE_BINARY` names.
fn tidegate(folder: &Path) -> Command {
    let beside = Path::new(env!("CARGO_BIN_EXE_api")).with_file_name("tidegate");
    let program = std::env::var_os("TIDEGATE_BINARY").map_or(beside, PathBuf::from);
    if !program.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "--package", "tidegate"]).status().unwrap();
        assert!(built.success(), "the server can't be built");
    }
    let mut command = Command::new(program);
    command.arg("serve").current_dir(folder).envs([
        ("TIDEGATE_GUARD__LISTEN", "127.0.0.1:0"),
        ("TIDEGATE_INGRESS__LISTEN", "127.0.0.1:0"),
        ("TIDEGATE_ADMIN__LISTEN", "127.0.0.1:0"),
        ("TIDEGATE_GUARD__SECRETS", SECRET),
        ("TIDEGATE_STORE__DURABILITY", "process"),
    ]);
    command
}

/// The example, with a server at this address.
fn api(folder: &Path, server: SocketAddr) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_api"));
    command.current_dir(folder).envs([
        ("API_LISTEN", "127.0.0.1:0"),
        ("TIDEGATE_CLIENT_FAMILIES", "proxy,password"),
        ("TIDEGATE_CLIENT_URL", &format!("http://{server}")),
        ("TIDEGATE_CLIENT_SECRET", SECRET),
        ("TIDEGATE_CLIENT_KEY_PEPPER", PEPPER),
        // A busy machine is not a store that is away.
        ("TIDEGATE_CLIENT_TIMEOUT_MS", "2000"),
    ]);
    command
}

/// A program that says where it listens, killed when dropped.
struct Program {
    child: Child,
    address: SocketAddr,
}

#[derive(Debug)]
struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    text: String,
}

impl Program {
    /// Waits for the line that begins with `label` and has the address.
    fn start(command: &mut Command, label: &str) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let line = lines.by_ref().find(|line| line.starts_with(label)).expect("it says where it listens");
        // Nobody waits for room in its standard output.
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next());
        Self { address: address.unwrap().parse().unwrap(), child }
    }

    fn get(&self, path: &str) -> Reply {
        exchange(TcpStream::connect(self.address).unwrap(), "GET", path, "")
    }

    fn until_refused(&self, path: &str) -> Reply {
        let mut replies = (0..200).map(|_| self.get(path));
        replies.find(|reply| reply.status != 200).expect("two hundred at once are too many")
    }

    fn login(&self, user: &str, password: &str) -> Reply {
        exchange(
            TcpStream::connect(self.address).unwrap(),
            "POST",
            "/login",
            &serde_json::json!({"user": user, "password": password}).to_string(),
        )
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.text).unwrap();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// One request on a connection of its own.
fn exchange(mut stream: TcpStream, method: &str, path: &str, body: &str) -> Reply {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: api\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_ascii_lowercase(), value.to_owned())
    };
    Reply { status, headers: lines.map(header).collect(), text: text.to_owned() }
}
