//! Lists and tables: each of their faults is named at once, whatever else is wrong with them.

use super::*;

/// Checks that the text has these faults and no other: the beginning of each after the file's name.
fn check(toml: &str, expected: &[&str]) {
    let loaded = loaded(toml, &[]);
    let found: Vec<_> = texts(&loaded).iter().map(|text| text.replace("tidegate.toml:", "")).collect();
    let fits = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected));
    assert!(fits, "{toml}\n{found:#?}\nis not\n{expected:#?}");
}

#[test]
fn every_fault_of_a_list_is_named() {
    let table: &[(&str, &[&str])] = &[
        (
            "[apps.a]\nupstreams = [\"ftp://x\", \"\", \"app\", 5, \"http://a:1/x\",\n\"app\", \"http://u:p@a:1\"]",
            &[
                "2: apps.a.upstreams[0]: must be a host",
                "2: apps.a.upstreams[1]: is blank",
                "2: apps.a.upstreams[3]: must be a string",
                "2: apps.a.upstreams[4]: must be a host",
                "3: apps.a.upstreams[5]: is the same",
                "3: apps.a.upstreams[6]: must be a host",
            ],
        ),
        (
            "[apps.a]\nupstreams = [\"app\"]\ndomains = [\"\", \"*.*.x\", \"x..y\", \"x:80\", \"A\", \"a\"]",
            &[
                "3: apps.a.domains[0]: is blank",
                "3: apps.a.domains[1]: must be a host",
                "3: apps.a.domains[2]: must be a host",
                "3: apps.a.domains[3]: must be a host",
                "3: apps.a.domains[5]: is the same",
            ],
        ),
        (
            "[ingress]\ntrusted_proxies = [\"::/0\", \"x\", \"0.0.0.0/0\", \"10.0.0.0/8\"]",
            &[
                "2: ingress.trusted_proxies[1]: ",
                "2: ingress.trusted_proxies: trusts ::/0",
                "2: ingress.trusted_proxies: trusts 0.0.0.0/0",
            ],
        ),
        (
            "[ingress]\ndeny_cidrs = [\"x\", \"y\", 1]",
            &["2: ingress.deny_cidrs[0]: ", "2: ingress.deny_cidrs[1]: ", "2: ingress.deny_cidrs[2]: "],
        ),
        (
            "[client]\nfamilies = [\"\", \"proxy\", \"proxy\"]",
            &["2: client.families[0]: is blank", "2: client.families[2]: is the same"],
        ),
        (
            "[guard]\nsecrets = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", 9]",
            &[
                "2: guard.secrets: must be a list of 1 to 8",
                "2: guard.secrets[0]: ",
                "2: guard.secrets[1]: ",
                "2: guard.secrets[2]: ",
                "2: guard.secrets[3]: ",
                "2: guard.secrets[4]: ",
                "2: guard.secrets[5]: ",
                "2: guard.secrets[6]: ",
                "2: guard.secrets[7]: ",
                "2: guard.secrets[8]: must be a string",
            ],
        ),
        (
            "[guard.families.proxy]\nrequires = [\"sauce\", \"source\", \"network/24\", \"source\"]",
            &[
                "2: guard.families.proxy.requires[0]: ",
                "2: guard.families.proxy.requires[2]: ",
                "2: guard.families.proxy.requires[3]: is the same",
            ],
        ),
    ];
    for (toml, expected) in table {
        check(toml, expected);
    }
}

#[test]
fn every_fault_of_a_table_is_named() {
    let table: &[(&str, &[&str])] = &[
        (
            "[guard.families.proxy]\nshares_bp = { source = 10001, principal = 20000 }",
            &[
                "2: guard.families.proxy.shares_bp: gives `source`",
                "2: guard.families.proxy.shares_bp: gives `principal`",
            ],
        ),
        (
            "[guard.families.proxy.shares_bp]\nfoo = -1\nsource = -1",
            &[
                "2: guard.families.proxy.shares_bp: names the axis \"foo\"",
                "2: guard.families.proxy.shares_bp: must be",
                "3: guard.families.proxy.shares_bp: must be",
            ],
        ),
        (
            "[guard.families.proxy]\nshares_bp = \"foo=10001,source=x,source=1\"",
            &[
                "2: guard.families.proxy.shares_bp: names the axis \"foo\"",
                "2: guard.families.proxy.shares_bp: gives `foo`",
                "2: guard.families.proxy.shares_bp: must be",
                "2: guard.families.proxy.shares_bp: names `source` twice",
            ],
        ),
        (
            "[guard]\nfamily_budgets = \"yy=1,zz=1,offline,proxy=-1,offline=2000000\"",
            &[
                "2: guard.family_budgets: must be",
                "2: guard.family_budgets: must be",
                "2: guard.family_budgets: names the family \"yy\"",
                "2: guard.family_budgets: names the family \"zz\"",
                "2: guard.family_budgets: hands out",
            ],
        ),
        (
            "[guard]\ndaily_budget = -1\nfamily_budgets = \"zz=1\"",
            &["2: guard.daily_budget: ", "3: guard.family_budgets: names"],
        ),
    ];
    for (toml, expected) in table {
        check(toml, expected);
    }
}

#[test]
fn every_fault_of_a_token_is_named() {
    let tokens = format!(
        "[admin]\ntokens = [\n{{ name = \"a\", token = \"{SECRET_A}\", abilities = [\"read\"] }},\n\
         {{ name = \"a\", token = \"short\", abilities = [\"raed\", \"wirte\", \"\"], colour = 1 }},\n\
         {{ name = \"b\", token = \"short\", abilities = [] }},\n\
         {{ name = \"b\", token = \"{SECRET_B}\", abilities = [\"read\", \"read\"] }},\n5]"
    );
    let expected = [
        "4: admin.tokens[1].colour: ",
        "4: admin.tokens[1].token: ",
        "4: admin.tokens[1].abilities[0]: ",
        "4: admin.tokens[1].abilities[1]: ",
        "4: admin.tokens[1].abilities[2]: is blank",
        "4: admin.tokens[1].name: is the same",
        "5: admin.tokens[2].token: ",
        "5: admin.tokens[2].abilities: is empty",
        "6: admin.tokens[3].abilities[1]: is the same",
        "6: admin.tokens[3].name: is the same",
        "7: admin.tokens[4]: must be a table",
    ];
    check(&tokens, &expected);
}

#[test]
fn a_secret_with_two_uses_is_named_beside_other_faults() {
    let toml = format!(
        "[guard]\nsecrets = [\"short\", \"{SECRET_A}\"]\noperator_token = \"{SECRET_A}\"\n[admin]\n\
         tokens = [{{ name = \"x\", token = \"{SECRET_A}\", abilities = [\"read\"] }}, 5]"
    );
    let expected = [
        "5: admin.tokens[1]: must be a table",
        "5: admin.tokens: is the same as guard.secrets",
        "2: guard.secrets[0]: ",
        "3: guard.operator_token: is the same as guard.secrets",
    ];
    check(&toml, &expected);
}

#[test]
fn a_fault_of_an_app_hides_none_of_its_others() {
    let toml = "[apps.a]\nroot = \".\"\ndomains = [\"x.example\", \"\"]\n\
                [apps.b]\nupstreams = [\"ftp://x\"]\nroot = \"./nowhere\"\ndomains = [\"X.example\"]\ntls_key = \"./nowhere.pem\"\n\
                [apps.c]\ndomains = [\"x..y\"]\n[apps.d]\nroot = 5\n\
                [apps.E]\nroot = 6\nshield = { max_concurrency = -1 }";
    let expected = [
        "3: apps.a.domains[1]: is blank",
        "5: apps.b.upstreams[0]: ",
        "6: apps.b.root: stands beside",
        "6: apps.b.root: is no directory",
        "7: apps.b.domains[0]: is a domain of the app \"a\" too",
        "8: apps.b.tls_key: ",
        "8: apps.b.tls_key: needs",
        "10: apps.c.domains[0]: ",
        "10: apps.c: has nothing that answers",
        "12: apps.d.root: ",
        "13: apps.E: the name of an app",
        "14: apps.E.root: ",
        "15: apps.E.shield.max_concurrency: ",
    ];
    check(toml, &expected);
}
