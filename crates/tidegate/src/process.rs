//! What the process asks of the operating system, and how it ends.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The configuration is faulty (`EX_CONFIG` of `sysexits.h`).
pub const EXIT_CONFIGURATION: u8 = 78;
/// Something failed.
pub const EXIT_ERROR: u8 = 2;
/// Denied by the guard, or a fault that stops nothing.
pub const EXIT_DENIED: u8 = 1;
/// Done.
pub const EXIT_GOOD: u8 = 0;

/// Raises the limit of open files to what the system allows this process, since each connection is one.
/// Answers the limit now in force, or none where there is no limit. Where it can't be raised it stays.
pub fn raise_nofile_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files can't be raised");
        }
    }
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_the_most_that_is_allowed() {
        assert_eq!(raise_nofile_limit(), getrlimit(Resource::Nofile).maximum);
    }
}
