//! `[guard]`: secrets, budgets, families.

use tidegate_core::admission::Axis;

use super::*;
use Scope::Guard;

#[test]
fn secrets_that_are_none() {
    let table = [
        ("\"\"", "has 0 characters"),
        ("\"   \"", "white space"),
        ("\"\\n\"", "white space"),
        ("\"change-me-in-production\"", "has 23 characters"),
        ("\"change-me-in-production-please-do-it-now\"", "placeholder"),
        ("\"ChangeMe0123456789012345678901234567890\"", "placeholder"),
        ("\"short\"", "has 5 characters"),
        ("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", "placeholder"),
        ("\" one-signing-secret-for-tests-0123456789\"", "white space"),
        ("\"one-signing-secret-for-tests-0123456789\\n\"", "white space"),
        ("\"one-signing-secret\\u0000for-tests-0123456789\"", "control character"),
        ("\"\\uFEFFone-signing-secret-for-tests-0123456789\"", "byte order mark"),
    ];
    for (secret, holds) in table {
        let second = format!("[guard]\nsecrets = [\n  \"{SECRET_A}\",\n  {secret},\n]");
        one_fault(&second, &[], Guard, "tidegate.toml:4: guard.secrets[1]: ", holds);
        let token = format!("[guard]\noperator_token = {secret}");
        one_fault(&token, &[], Guard, "tidegate.toml:2: guard.operator_token: ", holds);
    }
    one_fault("[guard]\nsecrets = []", &[], Guard, "tidegate.toml:2: guard.secrets: ", "1 to 8 secrets");
    let many: Vec<_> = (0..9).map(|index| format!("\"{SECRET_A}-{index}\"")).collect();
    let many = format!("[guard]\nsecrets = [{}]", many.join(","));
    one_fault(&many, &[], Guard, "tidegate.toml:2: guard.secrets: ", "it has 9");
}

#[test]
fn secrets_of_the_environment_that_are_none() {
    let table: [(&str, &str, &str); 4] = [
        ("", "guard.secrets[0]: ", "has 0 characters"),
        ("short", "guard.secrets[0]: ", "has 5 characters"),
        (
            "one-signing-secret-for-tests-0123456789, another-signing-secret-for-tests-98765",
            "guard.secrets[1]: ",
            "white space",
        ),
        ("one-signing-secret-for-tests-0123456789,", "guard.secrets[1]: ", "has 0 characters"),
    ];
    for (value, key, holds) in table {
        let begins = format!("environment TIDEGATE_GUARD__SECRETS: {key}");
        one_fault("", &[("TIDEGATE_GUARD__SECRETS", value)], Guard, &begins, holds);
    }
}

#[test]
fn no_secret_has_two_uses() {
    let twice = format!("[guard]\nsecrets = [\"{SECRET_A}\",\n\"{SECRET_A}\"]");
    one_fault(&twice, &[], Guard, "tidegate.toml:3: guard.secrets[1]: ", "same as one before it");

    let operator =
        format!("[guard]\nsecrets = [\"{SECRET_A}\", \"{SECRET_B}\"]\noperator_token = \"{SECRET_B}\"");
    one_fault(&operator, &[], Guard, "tidegate.toml:3: guard.operator_token: ", "same as guard.secrets[1]");

    let admin = format!(
        "[guard]\nsecrets = [\"{SECRET_A}\"]\n[admin]\ntokens = [{{ name = \"x\", token = \"{SECRET_A}\", abilities = [\"read\"] }}]"
    );
    one_fault(
        &admin,
        &[],
        Scope::Fatal,
        "tidegate.toml:4: admin.tokens[0].token: ",
        "same as guard.secrets[0]",
    );
}

#[test]
fn budgets_that_cannot_be_split() {
    let table = [
        ("family_budgets = \"offline\"", "one entry is \"offline\""),
        ("family_budgets = \"offline=+5\"", "one entry is \"offline=+5\""),
        ("family_budgets = \"offline=-5\"", "one entry is"),
        ("family_budgets = \"offline=5,\"", "one entry is \"\""),
        ("family_budgets = \"=5\"", "one entry is \"=5\""),
        ("family_budgets = \"offline=1e6\"", "one entry is"),
        ("family_budgets = \"offline=5,offline=6\"", "names `offline` twice"),
        ("family_budgets = \"ofline=5\"", "the nearest is `offline`"),
        ("family_budgets = \"Offline=5\"", "which is not configured"),
        ("family_budgets = \"offline=600000,replay=500000\"", "hands out 1100000 commands"),
        ("family_budgets = \"offline=18446744073709551615,replay=1\"", "one entry is"),
        ("family_budgets = 5", "it is a number"),
        ("family_budgets = { offline = \"5\" }", "`offline` is not such a number"),
    ];
    for (line, holds) in table {
        let begins = "tidegate.toml:2: guard.family_budgets: ";
        one_fault(&format!("[guard]\n{line}"), &[], Guard, begins, holds);
    }
}

#[test]
fn families_that_are_none() {
    let table = [
        (
            "[guard.families.Login]\nreserve_bp = 0",
            "tidegate.toml:1: guard.families.Login: ",
            "1 to 64 of a-z",
        ),
        (
            "[guard.families.login]\nreserve_bp = 0",
            "tidegate.toml:2: guard.families.login: ",
            "has no budget",
        ),
        (
            "[guard.families.proxy]\nreserve_bp = 10001",
            "tidegate.toml:2: guard.families.proxy.reserve_bp: ",
            "10001",
        ),
        (
            "[guard.families.proxy]\nreserves_bp = 1",
            "tidegate.toml:2: guard.families.proxy.reserves_bp: ",
            "nearest",
        ),
        (
            "[guard.families.proxy]\nrequires = [\"network/24\"]",
            "tidegate.toml:2: guard.families.proxy.requires[0]: ",
            "network/24",
        ),
        (
            "[guard.families.proxy]\nrequires = \"source\"",
            "tidegate.toml:2: guard.families.proxy.requires: ",
            "a string",
        ),
        (
            "[guard.families.proxy]\nshares_bp = { sauce = 1 }",
            "tidegate.toml:2: guard.families.proxy.shares_bp: ",
            "`source`",
        ),
        (
            "[guard.families.proxy]\nshares_bp = \"source=10001\"",
            "tidegate.toml:2: guard.families.proxy.shares_bp: ",
            "10000 are the whole",
        ),
        ("[guard.families]\nproxy = 4", "tidegate.toml:2: guard.families.proxy: ", "must be a table"),
    ];
    for (toml, begins, holds) in table {
        one_fault(toml, &[], Guard, begins, holds);
    }
}

#[test]
fn the_default_families() {
    let rules = good("", &[]).guard.unwrap();
    let budgets: Vec<_> =
        rules.families.iter().map(|(name, family)| (name.as_str(), family.budget)).collect();
    assert_eq!(
        budgets,
        [("offline", 600_000), ("password", 100_000), ("proxy", 200_000), ("replay", 100_000)]
    );
    let required = |name: &str| (rules.families[name].requires.clone(), rules.families[name].reserve_bp);
    assert_eq!(required("offline"), (vec![], 0));
    assert_eq!(required("proxy"), (vec![], 0));
    assert_eq!(required("password"), (vec![Axis::Source], 2_000));
    assert_eq!(required("replay"), (vec![Axis::Source, Axis::Principal], 2_000));
    assert_eq!(rules.families["proxy"].shares_bp[Axis::Network48 as usize], 2_500);
}

#[test]
fn configured_families() {
    let toml = "[guard]\ndaily_budget = 100\nfamily_budgets = \"login=60, proxy=40\"\n[guard.families.login]\n\
                requires = [\"principal\"]\nshares_bp = { source = 1000, \"network/24\" = 0 }\n\
                [guard.families.password]\nreserve_bp = 5";
    let environment = [
        ("TIDEGATE_GUARD__FAMILIES__LOGIN__RESERVE_BP", "7"),
        ("TIDEGATE_GUARD__FAMILIES__PROXY__SHARES_BP", "source=9,network/56=8"),
    ];
    let rules = good(toml, &environment).guard.unwrap();
    let login = &rules.families["login"];
    assert_eq!((login.budget, login.reserve_bp, login.requires.as_slice()), (60, 7, &[Axis::Principal][..]));
    assert_eq!(
        (login.shares_bp[Axis::Source as usize], login.shares_bp[Axis::Network24 as usize]),
        (1_000, 0)
    );
    assert_eq!(login.shares_bp[Axis::Principal as usize], 500);
    assert_eq!(rules.families["proxy"].shares_bp[Axis::Network56 as usize], 8);
    assert_eq!(rules.families["password"].reserve_bp, 5);
    assert_eq!(rules.families["offline"].budget, 0, "a split that does not name a family gives it nothing");
}

#[test]
fn an_empty_split_is_the_default_one() {
    let rules = good("", &[("TIDEGATE_GUARD__FAMILY_BUDGETS", "")]).guard.unwrap();
    assert_eq!(rules.families["offline"].budget, 600_000);
}

#[test]
fn tokens_of_the_admin_api() {
    let table = [
        ("{ token = \"SECRET\", abilities = [\"read\"] }", ".name: ", "is missing"),
        ("{ name = \"x\", abilities = [\"read\"] }", ": ", "either a token or a token_sha256"),
        ("{ name = \"x\", token = \"short\", abilities = [\"read\"] }", ".token: ", "has 5 characters"),
        (
            "{ name = \"x\", token_sha256 = \"abc\", abilities = [\"read\"] }",
            ".token_sha256: ",
            "64 hexadecimal",
        ),
        ("{ name = \"x\", token = \"SECRET\" }", ".abilities: ", "is missing"),
        ("{ name = \"x\", token = \"SECRET\", abilities = [] }", ".abilities: ", "could do nothing"),
        (
            "{ name = \"x\", token = \"SECRET\", abilities = [\"wirte\"] }",
            ".abilities[0]: ",
            "nearest is `write`",
        ),
        (
            "{ name = \"x\", token = \"SECRET\", abilites = [\"read\"], abilities = [\"read\"] }",
            ".abilites: ",
            "`abilities`",
        ),
        ("7", ": ", "it is a number"),
    ];
    for (token, part, holds) in table {
        let toml = format!("[admin]\ntokens = [{}]", token.replace("SECRET", SECRET_A));
        one_fault(&toml, &[], Scope::Fatal, &format!("tidegate.toml:2: admin.tokens[0]{part}"), holds);
    }
    let hash = "ab".repeat(32);
    let toml = format!(
        "[[admin.tokens]]\nname = \"ci\"\ntoken_sha256 = \"{hash}\"\nabilities = [\"read\", \"read:sensitive\"]"
    );
    let tokens = good(&toml, &[]).admin.tokens;
    assert_eq!(tokens[0].credential, Credential::Sha256([0xab; 32]));
    assert_eq!(tokens[0].abilities, [Ability::Read, Ability::ReadSensitive]);
    let text = format!("[{{ name = \"ci\", token = \"{SECRET_A}\", abilities = [\"operator\"] }}]");
    assert_eq!(good("", &[("TIDEGATE_ADMIN__TOKENS", &text)]).admin.tokens.len(), 1);
}
