//! Versions of the tables: they only go forward, a step each, and every program works with one of them.

use crate::OpenError;

/// Whether tables of version `found` (0: there are none) are those that a program with so many steps works with.
pub(crate) fn check(found: u32, steps: &[&str]) -> Result<(), OpenError> {
    let needed = newest(steps);
    match found {
        0 => Err(missing(steps)),
        found if found < needed => Err(OpenError::SchemaOld { found, needed }),
        found if found > needed => Err(OpenError::SchemaNew { found, known: needed }),
        _ => Ok(()),
    }
}

/// What is said where there are no tables.
pub(crate) fn missing(steps: &[&str]) -> OpenError {
    OpenError::SchemaMissing { needed: newest(steps) }
}

/// The steps from version `found` to the newest, each with the version that it leads to.
pub(crate) fn steps_from(
    found: u32,
    steps: &[&'static str],
) -> Result<impl Iterator<Item = (u32, &'static str)>, OpenError> {
    let known = newest(steps);
    if found > known {
        return Err(OpenError::SchemaNew { found, known });
    }
    Ok((1..).zip(steps.iter().copied()).filter(move |(version, _)| *version > found))
}

fn newest(steps: &[&str]) -> u32 {
    u32::try_from(steps.len()).expect("the steps are written out in this crate")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &[&str] = &["one", "two", "three"];

    #[test]
    fn one_version_fits() {
        let said = |found| check(found, STEPS).err().map(|error| error.to_string()).unwrap_or_default();
        let table = [
            (0, "no tables of a limit store; version 3 is needed: run `tidegate migrate`"),
            (2, "version 2, and version 3 is needed: run `tidegate migrate`"),
            (3, ""),
            (4, "version 4, and this program knows versions up to 3"),
        ];
        for (found, words) in table {
            assert!(
                said(found).contains(words) && said(found).is_empty() == words.is_empty(),
                "{}",
                said(found)
            );
        }
    }

    #[test]
    fn steps_lead_forward_from_any_version() {
        let table: [(u32, &[(u32, &str)]); 4] = [
            (0, &[(1, "one"), (2, "two"), (3, "three")]),
            (1, &[(2, "two"), (3, "three")]),
            (2, &[(3, "three")]),
            (3, &[]),
        ];
        for (found, steps) in table {
            assert_eq!(steps_from(found, STEPS).unwrap().collect::<Vec<_>>(), steps, "from {found}");
        }
        assert!(matches!(steps_from(4, STEPS).err(), Some(OpenError::SchemaNew { found: 4, known: 3 })));
    }
}
