//! No secret in anything that is printed: not in the configuration, not in a fault, not by `Debug`.

use proptest::prelude::*;

use super::*;

/// A marker that would be a good secret and stands nowhere else.
const MARKER: &str = "Zq7-marker-Xw9-4f1c2d83b7a6059e";

/// Everything that is printed about a configuration.
fn printed(sources: &Sources) -> String {
    let loaded = load(sources);
    let faults: Vec<_> = loaded.faults.iter().map(|fault| format!("{fault} {fault:?}")).collect();
    let regardless = format!("{:?}", loaded.regardless());
    format!("{}{faults:#?}{loaded:#?}{sources:?}{regardless}", effective(&loaded.settings))
}

/// The ways in which a secret goes wrong.
fn spoiled(secret: &str, how: usize) -> String {
    match how {
        0 => secret.to_owned(),
        1 => format!(" {secret}"),
        2 => secret.chars().take(31).collect(),
        3 => format!("{secret}\u{7f}"),
        4 => format!("change-me-{secret}"),
        _ => format!("{secret},{secret}"),
    }
}

const HIDDEN_LINES: [&str; 13] = [
    "store.secret = VALUE",
    "store.url = VALUE",
    "store.url = \"postgres://user:MARKER@db/x\"",
    "guard.secrets = [VALUE]",
    "guard.secrets = VALUE",
    "guard.secrets = [VALUE, VALUE]",
    "guard.operator_token = VALUE",
    "guard.operator_token = [VALUE]",
    "admin.tokens = [{ name = \"x\", token = VALUE, abilities = [\"read\"] }]",
    "admin.tokens = [{ name = \"x\", tokens = VALUE, token_sha256 = VALUE }]",
    "admin.webhook_secret = VALUE",
    "admin.webhook_url = \"https://user:MARKER@alerts.example/x\"",
    "client.key_pepper = VALUE",
];

fn is_shown(text: &str) -> bool {
    let markers = [MARKER, "Zq7-marker", "4f1c2d83b7a6059e"];
    markers.iter().any(|marker| text.contains(marker))
}

proptest! {
    #[test]
    fn nothing_shows_a_secret(
        lines in prop::collection::btree_set(0..HIDDEN_LINES.len(), 1..4),
        how in 0_usize..6,
        cut in prop::option::of(0.0_f64..1.0),
        unknown in any::<bool>(),
        in_environment in any::<bool>(),
    ) {
        let secret = spoiled(MARKER, how);
        let quoted = format!("\"{}\"", secret.replace('\u{7f}', "\\u007f"));
        let mut toml: String = lines.iter()
            .map(|line| HIDDEN_LINES[*line].replace("VALUE", &quoted).replace("MARKER", MARKER) + "\n")
            .collect();
        if unknown {
            toml += "guard.seccrets = 1\n[guard.families.x]\nshares_bp = 7\n";
        }
        // A cut file is a syntax error next to a secret, most often.
        if let Some(cut) = cut {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a short text")]
            let at = (toml.len() as f64 * cut) as usize;
            toml.truncate((0..=at).rev().find(|at| toml.is_char_boundary(*at)).unwrap_or(0));
        }
        let environment = [
            ("TIDEGATE_GUARD__SECRETS", secret.as_str()),
            ("TIDEGATE_ADMIN__TOKENS", quoted.as_str()),
            ("TIDEGATE_GUARD__SECRET", secret.as_str()),
            ("TIDEGATE_STORE__URL", secret.as_str()),
        ];
        let sources = sources(&toml, if in_environment { &environment } else { &[] });
        let text = printed(&sources);
        prop_assert!(!is_shown(&text), "{toml}\n{text}");
    }

    #[test]
    fn no_text_makes_it_panic(toml in "\\PC{0,80}", value in "\\PC{0,40}") {
        let environment: Vec<_> = KEYS.iter().map(KeySpec::environment).collect();
        let environment: Vec<_> = environment.iter().map(|name| (name.as_str(), value.as_str())).collect();
        let _ = printed(&sources(&toml, &environment));
    }
}

#[test]
fn the_check_would_see_a_secret() {
    assert!(is_shown(&format!("level = \"{MARKER}\"")));
    let shown = printed(&sources(&format!("client.backend = \"{MARKER}\""), &[]));
    assert!(is_shown(&shown), "a key that is not hidden is printed");
}

#[test]
fn a_syntax_error_does_not_quote_its_line() {
    let table = [
        format!("guard.secrets = [\"{MARKER}\""),
        format!("guard.secrets = [{MARKER}]"),
        format!("guard.operator_token = {MARKER}"),
        format!("guard.operator_token = \"{MARKER}"),
        format!("guard.operator_token = \"{MARKER}\\q\""),
        format!("guard.operator_token = \"{MARKER}\" trailing"),
        format!("guard.operator_token = \"{MARKER}\"\nguard.operator_token = \"{MARKER}\""),
        MARKER.to_owned(),
        format!("= {MARKER}"),
    ];
    for toml in table {
        let text = printed(&sources(&toml, &[]));
        assert!(text.contains("is not valid TOML"), "{toml}\n{text}");
        assert!(!is_shown(&text), "{toml}\n{text}");
    }
}
