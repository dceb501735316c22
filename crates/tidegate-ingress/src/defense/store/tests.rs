use super::*;

const DOCUMENT: &[u8] = br#"{"mode":"enforce"}"#;

fn head(document: &[u8], version: u64) -> Vec<u8> {
    let mut row = Vec::new();
    PolicyHead::of(document, version, 5).encode(&mut row);
    row
}

#[test]
fn rows_and_what_they_say() {
    let (whole, two) = (head(DOCUMENT, 3), [DOCUMENT, b" "].concat());
    let mut damaged = whole.clone();
    damaged[0] ^= 1;
    let other = head(br#"{"mode":"refuse"}"#, 4);
    let table: [(&str, &[Option<&[u8]>], u64, Result<(), &str>); 7] = [
        ("never saved", &[None, None], 0, Ok(())),
        ("whole", &[Some(&whole), Some(DOCUMENT), None], 3, Ok(())),
        ("its head is damaged", &[Some(&damaged), Some(DOCUMENT)], 0, Err("damaged")),
        ("its document is missing", &[Some(&whole), None], 3, Err("damaged")),
        ("its document is another one", &[Some(&whole), Some(&two)], 3, Err("damaged")),
        ("an empty head", &[Some(&[]), None], 0, Err("damaged")),
        ("another version's", &[Some(&other), Some(br#"{"mode":"refuse"}"#)], 4, Err("mode must be off")),
    ];
    for (what, rows, version, expected) in table {
        let stored = assembled(rows);
        assert_eq!(stored.version, version, "{what}");
        match (stored.policy, expected) {
            (Ok(_), Ok(())) => {}
            (Err(fault), Err(part)) => assert!(fault.contains(part), "{what}: {fault}"),
            (policy, _) => panic!("{what}: {policy:?}"),
        }
    }
}
