//! Signed requests over HTTP/1.1 connections that are kept open.

use std::io::Write;

use anyhow::{Context, Result, bail};
use memchr::memmem;

use super::{
    event_loop::{Answer, Wire},
    rpc::{self, RpcTemplate, Signer},
};
use crate::{bench::random::Random, clock};

/// Where the bodies come from.
#[derive(Debug)]
enum Bodies {
    Checks(RpcTemplate),
    /// Windows that didn't exist before, many to a request; the key counts the requests.
    Bulk {
        random: Random,
        period_ms: u64,
    },
}

/// The guard store's RPC over HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Http1 {
    bodies: Bodies,
    signer: Signer,
}

impl Http1 {
    /// One check a request.
    pub(crate) fn checks(template: RpcTemplate, secret: &str) -> Self {
        Self { bodies: Bodies::Checks(template), signer: Signer::new(secret) }
    }

    /// [`rpc::BULK_WINDOWS`] new windows a request.
    pub(crate) fn bulk(period_ms: u64, secret: &str) -> Result<Self> {
        Ok(Self { bodies: Bodies::Bulk { random: Random::fresh()?, period_ms }, signer: Signer::new(secret) })
    }
}

const HEAD: &[u8] = b"POST /v1/rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

impl Wire for Http1 {
    fn request(&mut self, key: usize, request: &mut Vec<u8>) {
        let made;
        let body = match &mut self.bodies {
            Bodies::Checks(template) => template.fill(key),
            Bodies::Bulk { random, period_ms } => {
                made = rpc::bulk(random, key as u64 * rpc::BULK_WINDOWS, *period_ms);
                made.as_bytes()
            }
        };
        request.clear();
        request.extend_from_slice(HEAD);
        write!(request, "content-length: {}\r\ntidegate-signature: ", body.len())
            .expect("a vector takes any write");
        self.signer.sign(clock::unix_ms(), body, request);
        request.extend_from_slice(b"\r\n\r\n");
        request.extend_from_slice(body);
    }

    fn answer(&self, request: &[u8], input: &[u8]) -> Result<Option<Answer>> {
        let Some((head, body)) = split_head(input) else { return Ok(None) };
        let length = content_length(head).context("the answer tells no content-length")?;
        let Some(body) = body.get(..length) else { return Ok(None) };
        if !head.starts_with(b"HTTP/1.1 200 ") {
            bail!("not 200: {}{}", String::from_utf8_lossy(head), String::from_utf8_lossy(body));
        }
        let (_, sent) = split_head(request).context("finding the body that was sent")?;
        let allowed = rpc::read_answer(sent, body)?;
        Ok(Some(Answer { allowed, bytes: head.len() + length }))
    }
}

/// The head with its empty line, and what follows.
pub(super) fn split_head(message: &[u8]) -> Option<(&[u8], &[u8])> {
    memmem::find(message, b"\r\n\r\n").map(|end| message.split_at(end + 4))
}

pub(super) fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = lines.find(|line| line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME))?;
    std::str::from_utf8(&line[NAME.len()..]).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::load::Check;

    const SECRET: &str = "secret-for-test-vectors-0123456789abcdef";

    #[test]
    fn answers_are_read_whole_and_checked() {
        let mut wire = Http1::checks(RpcTemplate::new(Check::OneWindow).unwrap(), SECRET);
        let mut request = Vec::new();
        wire.request(1, &mut request);
        let text = String::from_utf8(request.clone()).unwrap();
        let operation = &text[text.find("{\"op\":\"").unwrap() + 7..][..22];
        let body = format!(r#"{{"op":"{operation}","denied":false,"steps":[{{"status":"ok"}}]}}"#);
        let answer =
            |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let good = answer("200 OK");
        let read = wire.answer(&request, good.as_bytes()).unwrap();
        assert_eq!(read, Some(Answer { allowed: true, bytes: good.len() }));
        for cut in 0..good.len() {
            assert_eq!(wire.answer(&request, &good.as_bytes()[..cut]).unwrap(), None, "{cut}");
        }
        assert!(wire.answer(&request, answer("503 Service Unavailable").as_bytes()).is_err());
    }

    #[test]
    fn requests_tell_their_length() {
        let mut wire = Http1::bulk(60_000, SECRET).unwrap();
        let mut request = Vec::new();
        wire.request(3, &mut request);
        let (head, body) = split_head(&request).unwrap();
        assert_eq!(content_length(head), Some(body.len()));
    }
}
