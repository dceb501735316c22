//! GETs through a proxy over connections that are kept open, each for a client that a trusted peer names.

use std::io::Write;

use anyhow::{Context, Result, bail};

use super::{
    event_loop::{Answer, Wire},
    http1::{content_length, split_head},
};

/// A GET for the client of each key. A 200 is allowed, a 429 is not; anything else ends the run.
#[derive(Debug)]
pub(crate) struct Gets;

const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: bench/1.0 (load generator)\r\n\
                      Accept: */*\r\nX-Forwarded-For: ";

impl Wire for Gets {
    fn request(&mut self, key: usize, request: &mut Vec<u8>) {
        request.clear();
        request.extend_from_slice(HEAD);
        // 10.0.0.0/8 and beyond: each key has an address of its own.
        let [_, a, b, c] = u32::try_from(key).unwrap_or(u32::MAX).to_be_bytes();
        write!(request, "10.{a}.{b}.{c}\r\n\r\n").expect("a vector takes any write");
    }

    fn answer(&self, _request: &[u8], input: &[u8]) -> Result<Option<Answer>> {
        let Some((head, body)) = split_head(input) else { return Ok(None) };
        let length = content_length(head).context("the answer tells no content-length")?;
        if body.len() < length {
            return Ok(None);
        }
        let allowed = match head.get(9..12) {
            Some(b"200") => true,
            Some(b"429") => false,
            _ => bail!("neither 200 nor 429: {}", String::from_utf8_lossy(head)),
        };
        Ok(Some(Answer { allowed, bytes: head.len() + length }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_a_client() {
        let mut request = Vec::new();
        Gets.request(70_000, &mut request);
        assert!(request.ends_with(b"X-Forwarded-For: 10.1.17.112\r\n\r\n"));
        let answer = |status: &str| {
            let text = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
            Gets.answer(&request, text.as_bytes())
        };
        assert!(answer("200 OK").unwrap().unwrap().allowed);
        assert!(!answer("429 Too Many Requests").unwrap().unwrap().allowed);
        assert!(answer("502 Bad Gateway").is_err());
        assert_eq!(Gets.answer(&request, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no").unwrap(), None);
    }
}
