//! Patterns for User-Agents, as one set that is matched in time linear in the User-Agent.

use alloc::{
    format,
    string::{String, ToString},
};

use regex::bytes::{RegexBuilder, RegexSet, RegexSetBuilder};

use super::{PATTERN_BYTES_MAX, faults::Faults};

/// How large one pattern may become when it is made ready, in bytes.
const PATTERN_SIZE_MAX: usize = 256 * 1024;
/// How large all of them may become.
const SET_SIZE_MAX: usize = 4 * 1024 * 1024;

/// The set of the patterns, each of which has been checked; none if there are none.
pub(super) fn compile(patterns: &[String], faults: &mut Faults) -> Option<RegexSet> {
    if patterns.is_empty() {
        return None;
    }
    let expressions = patterns.iter().map(|pattern| expression(pattern));
    let set = RegexSetBuilder::new(expressions)
        .case_insensitive(true)
        .unicode(false)
        .multi_line(true)
        .size_limit(SET_SIZE_MAX)
        .build();
    set.map_err(|_| faults.add("deny_user_agents", "are too large together; make them fewer or simpler")).ok()
}

/// A plain pattern is a part of the User-Agent, whatever its characters mean elsewhere.
fn expression(pattern: &str) -> String {
    pattern.strip_prefix("re:").map_or_else(|| regex::escape(pattern), ToString::to_string)
}

/// Whether a pattern can be matched with.
///
/// # Errors
/// Why it can't.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    let Some(expression) = pattern.strip_prefix("re:") else {
        let blank = pattern.trim().is_empty();
        return if blank { Err(BLANK.to_string()) } else { Ok(()) };
    };
    if expression.is_empty() {
        return Err(BLANK.to_string());
    }
    let built = RegexBuilder::new(expression)
        .case_insensitive(true)
        .unicode(false)
        .multi_line(true)
        .size_limit(PATTERN_SIZE_MAX)
        .build();
    built.map(drop).map_err(|error| fault(&error))
}

/// The last line of what the library says; the ones before it draw an arrow.
fn fault(error: &regex::Error) -> String {
    let text = match error {
        regex::Error::CompiledTooBig(_) => return "is too large when it is made ready".to_string(),
        error => error.to_string(),
    };
    let last = text.lines().next_back().unwrap_or_default();
    format!("is no regular expression: {}", last.trim_start_matches("error: "))
}

const BLANK: &str = "is blank, which would match every User-Agent; see deny_missing_user_agent";
