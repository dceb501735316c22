//! The nearest known name to an unknown one.

/// The candidate that takes the fewest edits to reach from `name`.
pub(crate) fn nearest<S: AsRef<str>>(name: &str, candidates: impl IntoIterator<Item = S>) -> Option<S> {
    candidates.into_iter().min_by_key(|candidate| strsim::damerau_levenshtein(name, candidate.as_ref()))
}

/// "; the nearest is `x`", or nothing where there is nothing to choose from.
pub(super) fn suggestion<S: AsRef<str>>(name: &str, candidates: impl IntoIterator<Item = S>) -> String {
    nearest(name, candidates).map(|near| format!("; the nearest is `{}`", near.as_ref())).unwrap_or_default()
}
