use std::{collections::BTreeSet, thread};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn exposed(secrets: &DataSecrets) -> [String; 4] {
    let fields = [&secrets.guard_secret, &secrets.operator_token, &secrets.pepper, &secrets.admin_token];
    fields.map(|secret| secret.expose().to_owned())
}

#[test]
fn made_once_and_for_the_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("data");
    assert!(read(&directory).unwrap().is_none());

    let (first, made) = read_or_make(&directory).unwrap();
    assert!(made);
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&directory.join(FILE_NAME)), 0o600);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "no temporary file is left");

    let (second, made) = read_or_make(&directory).unwrap();
    assert!(!made);
    assert_eq!(exposed(&second), exposed(&first));
    assert_eq!(exposed(&read(&directory).unwrap().unwrap()), exposed(&first));
}

#[test]
fn all_four_are_different_and_long() {
    let folder = tempfile::tempdir().unwrap();
    let (secrets, _) = read_or_make(folder.path()).unwrap();
    let distinct: BTreeSet<_> = exposed(&secrets).into_iter().collect();
    assert_eq!(distinct.len(), 4);
    assert!(distinct.iter().all(|secret| secret.len() == 64));
}

#[test]
fn processes_that_start_at_once_agree() {
    let folder = tempfile::tempdir().unwrap();
    let started: Vec<_> = thread::scope(|scope| {
        let start = || exposed(&read_or_make(folder.path()).unwrap().0);
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(started.iter().all(|secrets| *secrets == started[0]));
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    read_or_make(folder.path()).unwrap();
    let path = folder.path().join(FILE_NAME);
    for (file_mode, accepted) in
        [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false), (0o700, false)]
    {
        fs::set_permissions(&path, fs::Permissions::from_mode(file_mode)).unwrap();
        let read = read(folder.path());
        assert_eq!(read.is_ok(), accepted, "{file_mode:o}: {read:?}");
        if let Err(error) = read {
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
    }
}

#[test]
fn a_directory_that_everybody_can_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(read_or_make(folder.path()), Err(SecretsError::DirectoryMode { mode: 0o777, .. })));
}

#[test]
fn a_damaged_file_is_refused_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (secrets, _) = read_or_make(folder.path()).unwrap();
    let path = folder.path().join(FILE_NAME);
    let whole = fs::read_to_string(&path).unwrap();
    let table = [
        (String::new(), "has no guard_secret"),
        (whole.replace("pepper =", "peper ="), "has no pepper"),
        (whole.replace(secrets.pepper.expose(), "short"), "pepper has 5 characters"),
        (whole[..whole.len() - 4].to_owned(), "is not valid TOML"),
    ];
    for (text, expected) in table {
        fs::write(&path, &text).unwrap();
        let error = read_or_make(folder.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(exposed(&secrets).iter().all(|secret| !error.contains(secret.as_str())), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn nothing_prints_them() {
    let folder = tempfile::tempdir().unwrap();
    let (secrets, _) = read_or_make(folder.path()).unwrap();
    let debug = format!("{secrets:?}");
    assert!(exposed(&secrets).iter().all(|secret| !debug.contains(secret.as_str())), "{debug}");
}
