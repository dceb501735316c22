//! Patterns for User-Agents, as one set that is matched in time linear in the User-Agent.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use regex::bytes::{RegexBuilder, RegexSet, RegexSetBuilder};

use super::{PATTERN_BYTES_MAX, faults::Faults};

/// How large one pattern may become when it is made ready, in bytes.
const PATTERN_SIZE_MAX: usize = 256 * 1024;
/// How large all of them may become.
const SET_SIZE_MAX: usize = 4 * 1024 * 1024;

/// The set of the patterns; none if there are none or any is faulty.
pub(super) fn compile(patterns: &[String], faults: &mut Faults) -> Option<RegexSet> {
    let mut good = Vec::with_capacity(patterns.len());
    for (index, pattern) in patterns.iter().enumerate() {
        match expression(pattern) {
            Ok(expression) => good.push(expression),
            Err(message) => faults.add(format!("deny_user_agents[{index}]"), message),
        }
    }
    if good.is_empty() || good.len() < patterns.len() {
        return None;
    }
    let set = RegexSetBuilder::new(&good)
        .case_insensitive(true)
        .unicode(false)
        .multi_line(true)
        .size_limit(SET_SIZE_MAX)
        .build();
    set.map_err(|_| faults.add("deny_user_agents", "are too large together; make them fewer or simpler")).ok()
}

fn expression(pattern: &str) -> Result<String, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    let Some(expression) = pattern.strip_prefix("re:") else {
        let blank = pattern.trim().is_empty();
        return if blank { Err(BLANK.to_string()) } else { Ok(regex::escape(pattern)) };
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
    built.map(|_| expression.to_string()).map_err(|error| fault(&error))
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
