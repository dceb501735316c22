//! A call as a curl command that a shell takes.

use std::path::Path;

use tidegate_protocol::signature;

use crate::config::Secret;

/// The path that RPC is posted to.
pub(super) const PATH: &str = "/v1/rpc";

/// The command that posts `body` to `url`, signed at `now_ms`; the signature holds for a minute.
pub(super) fn signed(url: &str, secret: &Secret, now_ms: u64, body: &str) -> String {
    let signature = signature::sign(secret, now_ms, "POST", PATH, body.as_bytes());
    let signature = format!("{}: {signature}", signature::HEADER);
    let url = format!("{}{PATH}", url.trim_end_matches('/'));
    format!(
        "curl -sS {} -H {} -H 'content-type: application/json' --data-raw {}",
        quoted(&url),
        quoted(&signature),
        quoted(body)
    )
}

/// The command that posts `body` to the Unix socket at `path`.
pub(super) fn over_socket(path: &Path, body: &str) -> String {
    format!(
        "curl -sS --unix-socket {} http://localhost{PATH} -H 'content-type: application/json' --data-raw {}",
        quoted(&path.to_string_lossy()),
        quoted(body)
    )
}

/// One word for a shell, whatever stands in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_vector_of_the_protocol() {
        let secret = Secret::new("secret-for-test-vectors-0123456789abcdef").unwrap();
        let body = r#"{"op":"AAAAAAAAAAAAAAAAAAAAAA","family":"proxy","steps":[]}"#;
        let line = signed("http://127.0.0.1:8787/", &secret, 1_764_460_800_000, body);
        let expected = "v1=a44094081a10140d24910dec06bc9982c54f737a1281221e8fc09ce33bab372b'";
        assert!(line.contains(expected), "{line}");
        assert!(line.contains("'http://127.0.0.1:8787/v1/rpc'"), "{line}");
        assert!(!line.contains(secret.expose()), "{line}");
    }

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for word in ["", "plain", "it's", "'", "''\\''", "$(id) `id` \\ \" \n !", "{\"a\":\"b'c\"}"] {
            let script = format!("printf %s {}", quoted(word));
            let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }

    proptest! {
        #[test]
        fn nothing_ends_a_quoted_word_early(word in "[a'\\\\$\"]{0,12}") {
            let quoted = quoted(&word);
            prop_assert_eq!(quoted.replace(r"'\''", "").matches('\'').count(), 2);
        }
    }
}
