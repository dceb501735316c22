//! Headers on their way through: what belongs to one hop stays there, and what says who the client is comes from
//! us.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONNECTION, CONTENT_LENGTH, COOKIE, Entry, HOST, InvalidHeaderValue, UPGRADE},
};
use smallvec::SmallVec;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// How far a header goes, by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Belongs to one hop whether `Connection` names it or not.
    Hop,
    /// Stays here, whoever sent it: the app would wait for nobody, take another method than the one the policies see,
    /// or read who the client is where we don't write it.
    Here,
    /// Says who the client is or what it asked for, by the word of some other proxy: of no meaning from anybody who is
    /// not trusted.
    Trusted,
    /// Ours, whatever was sent.
    Ours,
    /// `X-Forwarded-Proto`: ours where nobody who is trusted has set it.
    Scheme,
    /// Goes through, in one line.
    Cookie,
    /// Goes through.
    Through,
}

impl Reach {
    /// Each header is looked at once: most heads hold none of these names, and to look for each of them in every head
    /// would cost more than all the rest that is done to it.
    fn of(name: &HeaderName) -> Self {
        let name = name.as_str();
        match Self::of_text(name) {
            // Many apps are handed headers as variables, in whose names a dash and an underscore are one: what reads like
            // one of these is one, and nobody writes it so but to get it past a proxy.
            // Names are short: a search would take longer to begin than to end.
            Self::Through if name.bytes().any(|byte| byte == b'_') => {
                let has_meaning = Self::of_text(&name.replace('_', "-")) != Self::Through;
                if has_meaning { Self::Here } else { Self::Through }
            }
            reach => reach,
        }
    }

    fn of_text(name: &str) -> Self {
        match name {
            "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade" => Self::Hop,
            "expect" | "forwarded" | "x-http-method-override" | "x-http-method" | "x-method-override" => {
                Self::Here
            }
            "cf-connecting-ip"
            | "true-client-ip"
            | "x-client-ip"
            | "x-cluster-client-ip"
            | "fastly-client-ip"
            | "forwarded-for"
            | "x-forwarded"
            | "x-forwarded-by"
            | "x-forwarded-host"
            | "x-forwarded-port"
            | "x-forwarded-prefix"
            | "x-forwarded-scheme"
            | "x-forwarded-server"
            | "x-forwarded-ssl"
            | "x-original-forwarded-for"
            | "x-original-host"
            | "x-original-url"
            | "x-rewrite-url" => Self::Trusted,
            "x-forwarded-for" | "x-real-ip" => Self::Ours,
            "x-forwarded-proto" => Self::Scheme,
            "cookie" => Self::Cookie,
            _ => Self::Through,
        }
    }
}

/// Who sent a request, for the app behind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// The client's address, which may be the peer's.
    pub(super) client: IpAddr,
    /// Whether the peer's word counts.
    pub(super) peer_is_trusted: bool,
    /// Whether the client's connection is TLS.
    pub(super) is_secure: bool,
}

/// Makes the headers of a request those of the next hop: first what belongs to the client's hop is removed, then
/// ours are set, so that a client that names them in `Connection` can't have them removed.
pub(super) fn for_app(headers: &mut HeaderMap, origin: Origin) {
    let (mut has_scheme, mut has_cookies) = (false, false);
    remove(headers, |reach| {
        match reach {
            Reach::Hop | Reach::Here => return true,
            Reach::Trusted => return !origin.peer_is_trusted,
            Reach::Scheme => has_scheme = true,
            Reach::Cookie => has_cookies = true,
            Reach::Ours | Reach::Through => {}
        }
        false
    });
    // What `Connection` names may have been removed since: looked for only where there is one.
    if !(origin.peer_is_trusted && has_scheme && headers.contains_key(&X_FORWARDED_PROTO)) {
        let scheme = if origin.is_secure { "https" } else { "http" };
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(scheme));
    }
    // An address's text is always a header's value.
    if let Ok(client) = address(origin.client) {
        headers.insert(X_FORWARDED_FOR, client.clone());
        headers.insert(X_REAL_IP, client);
    }
    if has_cookies {
        join_cookies(headers);
    }
}

/// Makes the headers of an answer those of the client's hop, and tells whether the server closes the connection.
pub(super) fn for_client(headers: &mut HeaderMap) -> bool {
    remove(headers, |reach| reach == Reach::Hop)
}

/// The protocol that the client asks to change to, if it does.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = |value: &HeaderValue| tokens(value).any(|token| token.eq_ignore_ascii_case(b"upgrade"));
    let protocol = headers.get(UPGRADE).filter(|_| headers.get_all(CONNECTION).iter().any(asks))?;
    // HTTP/2 is never reached by an upgrade: no client of today asks for it, and its answer would be no tunnel.
    (!tokens(protocol).any(|token| token.eq_ignore_ascii_case(b"h2c"))).then(|| protocol.clone())
}

/// Asks the next hop for, or grants the client, the change to `protocol`.
pub(super) fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// Removes what `Connection` names, and each header whose reach `goes` no further. Tells whether `Connection` says `close`.
fn remove(headers: &mut HeaderMap, mut goes: impl FnMut(Reach) -> bool) -> bool {
    let (mut removed, mut has_connection) = (SmallVec::<[HeaderName; 4]>::new(), false);
    for name in headers.keys() {
        if *name == CONNECTION {
            has_connection = true;
        } else if goes(Reach::of(name)) {
            removed.push(name.clone());
        }
    }
    let mut closes = false;
    if has_connection && let Entry::Occupied(lines) = headers.entry(CONNECTION) {
        for line in lines.remove_entry_mult().1 {
            for token in tokens(&line) {
                closes |= token.eq_ignore_ascii_case(b"close");
                // What frames and addresses the request is not the client's to remove.
                let named = (!is_usual(token)).then(|| HeaderName::from_bytes(token).ok()).flatten();
                removed.extend(named.filter(|name| *name != HOST && *name != CONTENT_LENGTH));
            }
        }
    }
    for name in removed {
        headers.remove(name);
    }
    closes
}

/// An address as a header's value. Nearly all are IPv4: four numbers, for which the general formatter does a lot.
fn address(address: IpAddr) -> Result<HeaderValue, InvalidHeaderValue> {
    let IpAddr::V4(v4) = address else { return HeaderValue::try_from(address.to_string()) };
    let (mut text, mut length) = ([b'.'; 15], 0);
    for (index, octet) in v4.octets().into_iter().enumerate() {
        // The dot is there already.
        length += usize::from(index > 0);
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let first = usize::from(octet < 100) + usize::from(octet < 10);
        for digit in &digits[first..] {
            text[length] = b'0' + digit;
            length += 1;
        }
    }
    HeaderValue::from_bytes(&text[..length])
}

/// What most `Connection` headers hold, which is no header's name or removed anyway.
fn is_usual(token: &[u8]) -> bool {
    ["keep-alive", "close", "upgrade", "te"].iter().any(|usual| token.eq_ignore_ascii_case(usual.as_bytes()))
}

fn tokens(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// HTTP/2 lets a client send each cookie in a line of its own; HTTP/1.1 knows one line.
fn join_cookies(headers: &mut HeaderMap) {
    let mut lines = headers.get_all(COOKIE).iter();
    if lines.next().is_none() || lines.next().is_none() {
        return;
    }
    let lines: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn sorted(headers: &HeaderMap) -> Vec<String> {
        let line =
            |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        let mut lines: Vec<_> = headers.iter().map(line).collect();
        lines.sort();
        lines
    }

    const STRANGER: Origin =
        Origin { client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), peer_is_trusted: false, is_secure: true };

    #[track_caller]
    fn check(origin: Origin, lines: &[(&'static str, &'static str)], expected: &[&str]) {
        let mut headers = map(lines);
        for_app(&mut headers, origin);
        assert_eq!(sorted(&headers), expected, "{lines:?}");
    }

    #[test]
    fn a_client_decides_about_its_hop_only() {
        let ours = ["x-forwarded-for: 192.0.2.7", "x-forwarded-proto: https", "x-real-ip: 192.0.2.7"];
        for connection in [
            "close, X-Forwarded-For, X-Real-IP, X-Forwarded-Proto",
            "upgrade, x-forwarded-for",
            "keep-alive, secret, Content-Length",
        ] {
            let sent = [("connection", connection), ("host", "a"), ("secret", "s"), ("te", "trailers")];
            let mut headers = map(&sent);
            for_app(&mut headers, STRANGER);
            let kept = sorted(&headers);
            assert!(ours.iter().all(|line| kept.iter().any(|kept| kept == line)), "{connection}: {kept:?}");
            assert!(kept.contains(&"host: a".to_owned()), "{kept:?}");
            assert_eq!(kept.contains(&"secret: s".to_owned()), !connection.contains("secret"));
        }
    }

    #[test]
    fn the_word_of_strangers_does_not_count() {
        check(
            STRANGER,
            &[
                ("x-forwarded-for", "203.0.113.1"),
                ("x-real-ip", "203.0.113.1"),
                ("cf-connecting-ip", "203.0.113.1"),
                ("true-client-ip", "203.0.113.1"),
                ("forwarded", "for=203.0.113.1"),
                ("x-forwarded-host", "evil"),
                ("x-forwarded-proto", "gopher"),
                ("x-http-method-override", "POST"),
                ("x_forwarded_for", "203.0.113.1"),
                ("x_real-ip", "203.0.113.1"),
                ("transfer_encoding", "chunked"),
                ("x-original-url", "/admin"),
                ("forwarded-for", "203.0.113.1"),
                ("x_own", "kept"),
            ],
            &[
                "x-forwarded-for: 192.0.2.7",
                "x-forwarded-proto: https",
                "x-real-ip: 192.0.2.7",
                "x_own: kept",
            ],
        );
        check(
            Origin { peer_is_trusted: true, is_secure: false, ..STRANGER },
            &[
                ("x-forwarded-for", "203.0.113.1, 192.0.2.7"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "a"),
            ],
            &[
                "x-forwarded-for: 192.0.2.7",
                "x-forwarded-host: a",
                "x-forwarded-proto: https",
                "x-real-ip: 192.0.2.7",
            ],
        );
    }

    proptest! {
        #[test]
        fn an_address_is_written_as_everywhere(bits: u32) {
            let client = IpAddr::from(Ipv4Addr::from(bits));
            let written = address(client).unwrap();
            prop_assert_eq!(written.to_str().unwrap(), client.to_string());
        }
    }

    #[test]
    fn cookies_become_one_line() {
        let mut headers = map(&[("cookie", "a=1"), ("cookie", "b=2")]);
        join_cookies(&mut headers);
        assert_eq!(sorted(&headers), ["cookie: a=1; b=2"]);
    }

    #[test]
    fn an_upgrade_is_asked_for_by_both_headers() {
        let ask = |connection, protocol| upgrade(&map(&[("connection", connection), ("upgrade", protocol)]));
        assert!(ask("keep-alive, Upgrade", "websocket").is_some());
        assert!(ask("keep-alive", "websocket").is_none());
        assert!(ask("upgrade, http2-settings", "h2c").is_none());
    }
}
