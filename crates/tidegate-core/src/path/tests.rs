use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

#[test]
fn spellings_of_a_path() {
    let table = [
        ("/login", "/login"),
        ("/", "/"),
        ("//login", "/login"),
        ("/./login", "/login"),
        ("/x/../login", "/login"),
        ("/x/y/../../login", "/login"),
        ("/../../login", "/login"),
        ("/login/", "/login/"),
        ("/login/.", "/login/"),
        ("/a/b/..", "/a/"),
        ("/LOGIN", "/LOGIN"),
        ("/%6Cogin", "/login"),
        ("/%2e/login", "/login"),
        ("/%2E%2e/login", "/login"),
        ("/login;v=1", "/login;v=1"),
        ("/login%2F", "/login/"),
        ("/login%00", "/login\0"),
        ("/login?x=1", "/login"),
        ("/login#f", "/login"),
        ("/login?x=/../y", "/login"),
        ("\\\\login", "/login"),
        ("/x\\..\\login", "/login"),
        ("http://other.example/login", "/login"),
        ("http://other.example", "/"),
        ("http://other.example?x=/login", "/"),
        ("/%252e%252e/login", "/%2e%2e/login"),
        ("/%zz%4", "/%zz%4"),
        ("/...", "/..."),
        ("/.hidden", "/.hidden"),
        ("*", "/*"),
        ("", "/"),
    ];
    for (raw, normal) in table {
        let mut buffer = PathBuffer::default();
        let seen = buffer.normalise(raw.as_bytes()).as_bytes();
        assert_eq!(core::str::from_utf8(seen).unwrap(), normal, "{raw}");
    }
}

#[test]
fn a_rule_covers_every_spelling() {
    let table = [
        ("/login", "/login", true),
        ("/LOGIN", "/login", true),
        ("/login/", "/login", true),
        ("/login;v=1", "/login", true),
        ("/logins", "/login", true),
        ("/logi", "/login", false),
        ("/a/login", "/login", false),
        ("/api", "/api/", true),
        ("/API/", "/api/", true),
        ("/api/x", "/api/", true),
        ("/apis", "/api/", false),
        ("/anything", "/", true),
    ];
    for (path, prefix, matched) in table {
        assert_eq!(
            Normal::recorded(path.as_bytes()).begins_with(prefix.as_bytes()),
            matched,
            "{path} {prefix}"
        );
    }
}

#[test]
fn what_programs_may_read_differently_is_told() {
    let table = [
        ("/login%00", true),
        ("/login%0a", true),
        ("/login%2F", true),
        ("/login%5c", true),
        ("\\\\login", true),
        ("/x\\y", true),
        ("/%252e%252e/login", true),
        ("/%2e/login", false),
        ("/login?x=%00%2f\\", false),
        ("/100%25", false),
        ("/100%25/x", false),
        ("/%C3%BC", false),
        ("/login", false),
    ];
    for (raw, ambiguous) in table {
        assert_eq!(is_ambiguous(raw.as_bytes()), ambiguous, "{raw}");
    }
}

proptest! {
    /// What is normal already is left as it is, unless it holds an escape: those are decoded once.
    #[test]
    fn a_normal_path_stays(raw in "[/\\\\.a%2eE5cC?#]{0,40}") {
        let (mut first, mut second) = (PathBuffer::default(), PathBuffer::default());
        let once = first.normalise(raw.as_bytes()).as_bytes();
        prop_assert!(once.starts_with(b"/"));
        prop_assert!(!once.windows(2).any(|two| two == b"//"));
        prop_assert!(!once.split(|byte| *byte == b'/').any(|segment| segment == b"." || segment == b".."));
        if !once.iter().any(|byte| matches!(byte, b'%' | b'?' | b'#')) {
            prop_assert_eq!(second.normalise(once).as_bytes(), once);
        }
    }

    /// What is beyond the bound is only counted, and comes out as if all had been written.
    #[test]
    fn long_paths_are_those_that_are_written_whole(raw in "(/(a{0,150}|\\.|\\.\\.|bc|%2e%2E)){0,40}/?") {
        let mut segments: Vec<&str> = Vec::new();
        let parts: Vec<&str> = raw.split('/').skip(1).collect();
        for part in &parts {
            match *part {
                "" | "." => {}
                ".." | "%2e%2E" => drop(segments.pop()),
                part => segments.push(part),
            }
        }
        let is_folder = matches!(parts.last(), Some(&("" | "." | ".." | "%2e%2E")));
        let mut whole = alloc::format!("/{}", segments.join("/"));
        if is_folder && !segments.is_empty() {
            whole.push('/');
        }
        whole.truncate(PATH_BYTES_MAX);
        let mut buffer = PathBuffer::default();
        // A query has it written out.
        let raw = alloc::format!("{raw}?");
        prop_assert_eq!(buffer.normalise(raw.as_bytes()).as_bytes(), whole.as_bytes(), "{}", raw);
        prop_assert!(!buffer.0.spilled());
    }

    #[test]
    fn any_length_is_cut(raw in "/[a/]{0,900}") {
        prop_assert!(PathBuffer::default().normalise(raw.as_bytes()).as_bytes().len() <= PATH_BYTES_MAX);
    }
}
