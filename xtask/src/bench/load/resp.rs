//! Redis's protocol: the scripts that do what a check of the guard store does.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::{
    event_loop::{Answer, Wire},
    rpc::{self, Check},
};
use crate::clock;

/// A script that the server has been handed.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    digest: String,
    check: Check,
}

impl Script {
    /// Hands the script for `check` to `server`.
    pub(crate) fn load(server: SocketAddr, check: Check) -> Result<Self> {
        let text = match check {
            Check::OneWindow => include_str!("../scripts/one_window.lua"),
            Check::ThreeWindows => include_str!("../scripts/three_windows.lua"),
        };
        let answer = command(server, &["SCRIPT", "LOAD", text])?;
        let digest = answer.lines().nth(1).context("reading the digest of a script")?;
        Ok(Self { digest: digest.to_owned(), check })
    }
}

/// Checks by EVALSHA.
#[derive(Debug)]
pub(crate) struct Resp {
    script: Script,
    periods_ms: Vec<u64>,
    arguments: Vec<u8>,
}

impl Resp {
    pub(crate) fn new(script: Script) -> Self {
        let periods_ms = script.check.periods_ms().to_vec();
        Self { script, periods_ms, arguments: Vec::with_capacity(512) }
    }

    /// The same checks, with windows of another length.
    pub(crate) fn lasting(script: Script, period_ms: u64) -> Self {
        let periods_ms = vec![period_ms; script.check.periods_ms().len()];
        Self { periods_ms, ..Self::new(script) }
    }
}

/// As long as the digest of a short identity usually is.
const ID_CHARS: usize = 22;

impl Wire for Resp {
    fn request(&mut self, key: usize, request: &mut Vec<u8>) {
        let mut id = [0; ID_CHARS];
        rpc::name(key as u64, &mut id);
        let id = std::str::from_utf8(&id).expect("base64url is ASCII");
        let now_ms = clock::unix_ms();
        let windows = self.periods_ms.len();
        request.clear();
        write!(request, "*{}\r\n", 3 + 2 * windows + 2 + 2 * windows).expect("a vector takes any write");
        let mut push = |argument: std::fmt::Arguments<'_>| {
            self.arguments.clear();
            self.arguments.write_fmt(argument).expect("a vector takes any write");
            write!(request, "${}\r\n", self.arguments.len()).expect("a vector takes any write");
            request.extend_from_slice(&self.arguments);
            request.extend_from_slice(b"\r\n");
        };
        push(format_args!("EVALSHA"));
        push(format_args!("{}", self.script.digest));
        push(format_args!("{}", 2 * windows));
        for period_ms in &self.periods_ms {
            let bucket = now_ms / period_ms;
            push(format_args!("rl:{id}:{period_ms}:{bucket}"));
            push(format_args!("rl:{id}:{period_ms}:{}", bucket - 1));
        }
        let limit = Check::LIMIT;
        match self.script.check {
            Check::OneWindow => {
                let period_ms = self.periods_ms[0];
                for number in [limit, now_ms, period_ms, 1] {
                    push(format_args!("{number}"));
                }
            }
            Check::ThreeWindows => {
                push(format_args!("{now_ms}"));
                push(format_args!("1"));
                for period_ms in &self.periods_ms {
                    push(format_args!("{limit}"));
                    push(format_args!("{period_ms}"));
                }
            }
        }
    }

    fn answer(&self, _request: &[u8], input: &[u8]) -> Result<Option<Answer>> {
        let Some(line) = input.strip_suffix(b"\r\n") else { return Ok(None) };
        let text = String::from_utf8_lossy(line);
        let left: i64 = match text.strip_prefix(':').map(str::parse) {
            Some(Ok(left)) => left,
            _ => bail!("not a number: {text}"),
        };
        Ok(Some(Answer { allowed: left >= 0, bytes: input.len() }))
    }
}

/// Sends one command on a connection of its own; the raw answer.
pub(crate) fn command(server: SocketAddr, arguments: &[&str]) -> Result<String> {
    let asked = || format!("asking {server} for {}", arguments[0]);
    let mut request = format!("*{}\r\n", arguments.len());
    for argument in arguments {
        request.push_str(&format!("${}\r\n{argument}\r\n", argument.len()));
    }
    let exchange = || -> std::io::Result<Vec<u8>> {
        let mut socket = TcpStream::connect(server)?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        socket.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while !is_whole(&answer) {
            match socket.read(&mut buffer)? {
                0 => break,
                bytes => answer.extend_from_slice(&buffer[..bytes]),
            }
        }
        Ok(answer)
    };
    let answer = String::from_utf8_lossy(&exchange().with_context(asked)?).into_owned();
    if answer.starts_with('-') {
        bail!("{}: {}", asked(), answer.trim());
    }
    Ok(answer)
}

/// Whether a simple answer or a bulk string is there to its end.
fn is_whole(answer: &[u8]) -> bool {
    let Some(line_end) = answer.windows(2).position(|two| two == b"\r\n") else { return false };
    let length = answer[0] == b'$';
    let length =
        length.then(|| std::str::from_utf8(&answer[1..line_end]).ok()?.parse::<usize>().ok()).flatten();
    length.is_none_or(|length| answer.len() >= line_end + 2 + length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(check: Check) -> Script {
        Script { digest: "0123456789012345678901234567890123456789".to_owned(), check }
    }

    #[test]
    fn requests_hold_as_many_arguments_as_they_say() {
        for (check, arguments) in [(Check::OneWindow, 9), (Check::ThreeWindows, 17)] {
            let mut request = Vec::new();
            Resp::new(script(check)).request(5, &mut request);
            let text = String::from_utf8(request).unwrap();
            assert!(text.starts_with(&format!("*{arguments}\r\n$7\r\nEVALSHA\r\n$40\r\n")), "{text}");
            assert_eq!(text.matches('$').count(), arguments);
        }
    }

    #[test]
    fn answers() {
        let wire = Resp::new(script(Check::OneWindow));
        let table = [
            (":12\r\n", Some(Some(true))),
            (":-1\r\n", Some(Some(false))),
            (":12", Some(None)),
            ("-NOSCRIPT No matching script\r\n", None),
            ("$3\r\nabc\r\n", None),
        ];
        for (input, expected) in table {
            let answer = wire.answer(b"", input.as_bytes()).ok();
            assert_eq!(answer.map(|answer| answer.map(|answer| answer.allowed)), expected, "{input}");
        }
    }

    #[test]
    fn bulk_answers_are_awaited() {
        for (answer, whole) in
            [("+OK\r\n", true), ("$3\r\nab", false), ("$3\r\nabc\r\n", true), ("$-1\r\n", true)]
        {
            assert_eq!(is_whole(answer.as_bytes()), whole, "{answer}");
        }
    }
}
