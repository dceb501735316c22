//! Secrets in files: line ends are the editor's, everything else is the secret's.

use super::*;

fn with_files(secrets: Option<&str>, token: Option<&str>, more: &str) -> (tempfile::TempDir, Loaded) {
    let folder = tempfile::tempdir().unwrap();
    let mut toml = String::from("[guard]\n");
    for (key, text) in [("secrets_file", secrets), ("operator_token_file", token)] {
        if let Some(text) = text {
            let path = folder.path().join(key);
            std::fs::write(&path, text).unwrap();
            toml += &format!("{key} = {:?}\n", path.to_str().unwrap());
        }
    }
    let loaded = loaded(&(toml + more), &[]);
    (folder, loaded)
}

#[test]
fn what_a_file_may_hold() {
    let table = [
        (SECRET_A.to_owned(), Ok(vec![SECRET_A])),
        (format!("{SECRET_A}\n"), Ok(vec![SECRET_A])),
        (format!("{SECRET_A}\r\n"), Ok(vec![SECRET_A])),
        (format!("{SECRET_A}\n\n"), Ok(vec![SECRET_A])),
        (format!("{SECRET_A}\r\n{SECRET_B}\r\n"), Ok(vec![SECRET_A, SECRET_B])),
        (format!("{SECRET_A} "), Err("line 1 begins or ends with white space")),
        (format!("{SECRET_A} \n"), Err("line 1 begins or ends with white space")),
        (format!("{SECRET_A}\t\n"), Err("line 1 begins or ends with white space")),
        (format!("{SECRET_A}\r"), Err("line 1 begins or ends with white space")),
        (format!("\u{feff}{SECRET_A}\n"), Err("byte order mark")),
        (format!("{SECRET_A}\n\n{SECRET_B}\n"), Err("line 2 has 0 characters")),
        (format!("{SECRET_A}\n{SECRET_A}\n"), Err("line 2 is the same")),
        ("short\n".to_owned(), Err("line 1 has 5 characters")),
        (String::new(), Err("is empty")),
        ("\n".to_owned(), Err("is empty")),
    ];
    for (text, expected) in table {
        let (_folder, loaded) = with_files(Some(&text), None, "");
        match expected {
            Ok(secrets) => {
                assert_eq!(texts(&loaded), Vec::<String>::new(), "{text:?}");
                let rules = loaded.start().unwrap().guard.unwrap();
                assert_eq!(rules.secrets.iter().map(Secret::expose).collect::<Vec<_>>(), secrets);
            }
            Err(holds) => {
                let faults = texts(&loaded);
                assert!(faults.len() == 1 && faults[0].contains(holds), "{text:?}: {faults:#?}");
                assert!(faults[0].starts_with("tidegate.toml:2: guard.secrets_file: "), "{faults:#?}");
                assert!(!faults[0].contains(SECRET_A), "{faults:#?}");
            }
        }
    }
}

#[test]
fn the_operators_token_is_one_line_and_no_signing_secret() {
    let (_folder, loaded) = with_files(Some(SECRET_A), Some(&format!("{SECRET_B}\n")), "");
    let rules = loaded.start().unwrap().guard.unwrap();
    assert_eq!(rules.operator_token.unwrap().expose(), SECRET_B);

    let (_folder, two) = with_files(None, Some(&format!("{SECRET_A}\n{SECRET_B}\n")), "");
    assert!(texts(&two)[0].contains("has 2 lines; at most 1"), "{:#?}", texts(&two));

    let (_folder, same) = with_files(Some(SECRET_A), Some(SECRET_A), "");
    let expected = "tidegate.toml:3: guard.operator_token: is the same as guard.secrets[0]";
    assert!(texts(&same)[0].starts_with(expected), "{:#?}", texts(&same));
}

#[test]
fn a_secret_or_its_file_and_the_upper_layers_choice_wins() {
    let (folder, both) = with_files(Some(SECRET_A), None, &format!("secrets = [\"{SECRET_B}\"]"));
    assert!(texts(&both)[0].starts_with("tidegate.toml:2: guard.secrets_file: "), "{:#?}", texts(&both));
    assert!(texts(&both)[0].contains("stands beside guard.secrets"), "{:#?}", texts(&both));

    let path = folder.path().join("secrets_file");
    let toml = format!("[guard]\nsecrets_file = {:?}", path.to_str().unwrap());
    let rules = good(&toml, &[("TIDEGATE_GUARD__SECRETS", SECRET_B)]).guard.unwrap();
    assert_eq!(rules.secrets[0].expose(), SECRET_B);
    let toml = format!("[guard]\nsecrets = [\"{SECRET_B}\"]");
    let file = [("TIDEGATE_GUARD__SECRETS_FILE", path.to_str().unwrap())];
    assert_eq!(good(&toml, &file).guard.unwrap().secrets[0].expose(), SECRET_A);
}

#[test]
fn a_file_that_is_not_there() {
    let toml = "[guard]\nsecrets_file = \"/nowhere/at/all\"";
    one_fault(
        toml,
        &[],
        Scope::Guard,
        "tidegate.toml:2: guard.secrets_file: /nowhere/at/all: ",
        "can't be read",
    );
}
