//! How verbs write times, spans, tables and refusals for people.

use std::fmt::{self, Write};

use tidegate_core::{admission::DAY_MS, duration::Written};
use tidegate_protocol::response::ErrorBody;

/// An instant in ms since the epoch, written as `2026-08-02 10:00:00 UTC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Utc(pub(crate) u64);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0 / DAY_MS);
        let seconds = self.0 % DAY_MS / 1000;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{:02} UTC", seconds % 60)
    }
}

/// A span in its two largest units: `3h 12m`.
pub(super) fn span(span_ms: u64) -> String {
    let units = [("d", DAY_MS), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    let parts = units.iter().scan(span_ms, |left_ms, (unit, ms)| {
        let count = *left_ms / ms;
        *left_ms %= ms;
        Some((count, unit))
    });
    let parts: Vec<String> = parts
        .skip_while(|(count, _)| *count == 0)
        .take(2)
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if parts.is_empty() { "less than a second".to_owned() } else { parts.join(" ") }
}

/// Exact under ten seconds, to the second beyond, rounded up: a wait is never told too short.
pub(super) fn in_words(span_ms: u64) -> String {
    if span_ms < 10_000 {
        Written(span_ms).to_string()
    } else {
        Written(span_ms.div_ceil(1000) * 1000).to_string()
    }
}

/// What a guard store said instead of an answer.
pub(super) fn refusal_text(status: u16, refusal: &ErrorBody) -> String {
    let error = &refusal.error;
    let mut text = format!("refused: {} ({status})\n  {}\n", error.code.as_str(), error.message);
    if let Some(wait_ms) = error.retry_after_ms {
        let _ = writeln!(text, "  try again in {}", in_words(wait_ms));
    }
    printable(&text)
}

/// What others wrote shall not steer the terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// How a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Words.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

/// Rows under their columns' names, each column as wide as it must be.
pub(super) fn table<const N: usize>(columns: [Column; N], rows: &[[String; N]]) -> String {
    let name = |column: Column| match column {
        Column::Left(name) | Column::Right(name) => name,
    };
    let heads = columns.map(|column| name(column).to_owned());
    let mut widths = [0; N];
    for row in std::iter::once(&heads).chain(rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(columns).zip(widths).map(|((cell, column), width)| match column {
            Column::Left(_) => format!("{cell:<width$}"),
            Column::Right(_) => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    std::iter::once(&heads).chain(rows).map(line).collect()
}

/// Year, month and day of a day since the epoch. After Howard Hinnant's `civil_from_days`, for days that are
/// not before 1970: years begin in March there, so that a leap day is a year's last.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + 719_468;
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use tidegate_protocol::response::ErrorCode;

    use super::*;

    #[test]
    fn instants() {
        let table = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399_999, "2000-02-28 23:59:59 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_764_460_800_000, "2025-11-30 00:00:00 UTC"),
            (4_107_542_399_000, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ];
        for (instant_ms, text) in table {
            assert_eq!(Utc(instant_ms).to_string(), text);
        }
    }

    #[test]
    fn spans() {
        let table = [
            (0, "less than a second"),
            (999, "less than a second"),
            (1000, "1s"),
            (61_000, "1m 1s"),
            (3_600_000, "1h"),
            (3_601_000, "1h"),
            (11_520_000, "3h 12m"),
            (90_000_000, "1d 1h"),
        ];
        for (span_ms, text) in table {
            assert_eq!(span(span_ms), text);
        }
    }

    #[test]
    fn tables_are_as_wide_as_they_must_be() {
        let rows = [["proxy".to_owned(), "7".to_owned()], ["p".to_owned(), "123456".to_owned()]];
        let text = table([Column::Left("family"), Column::Right("used")], &rows);
        assert_eq!(text, "family    used\nproxy        7\np       123456\n");
    }

    #[test]
    fn refusals_can_not_steer_the_terminal() {
        let mut body = ErrorBody::new(ErrorCode::GuardUnavailable, "away\u{1b}[2J");
        body.error.retry_after_ms = Some(30_000);
        let text = refusal_text(503, &body);
        assert!(text.contains("guard_unavailable (503)") && text.contains("in 30s"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
