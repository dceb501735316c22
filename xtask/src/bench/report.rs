//! Figures as Markdown, and their place in the documentation.

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result};

use crate::shell;

/// A Markdown table.
#[derive(Debug)]
pub(crate) struct Table {
    text: String,
}

impl Table {
    /// The first column is text, the others are numbers.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let rules = std::iter::once("---").chain(columns.iter().skip(1).map(|_| "---:"));
        let mut table = Self { text: String::new() };
        table.row(columns.iter().map(ToString::to_string));
        table.row(rules.map(str::to_owned));
        table
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        writeln!(self.text, "| {} |", cells.join(" | ")).expect("a string takes any write");
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// The middle value; of an even number, the mean of the two in the middle. Zero of none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// What a figure over another wants to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    /// A row of a table of aims: what, what is wanted, the median of the rounds' `ratios`, their range, and
    /// whether the median is within the bound.
    pub(crate) fn judge(self, what: String, ratios: &[f64]) -> [String; 5] {
        let reached = median(ratios.iter().copied());
        let (least, most) =
            ratios.iter().fold((f64::MAX, 0.0_f64), |(low, high), &r| (low.min(r), high.max(r)));
        let (wanted, good) = match self {
            Self::AtLeast(bound) => (format!("≥ {bound:.1}"), reached >= bound),
            Self::AtMost(bound) => (format!("≤ {bound:.1}"), reached <= bound),
        };
        [
            what,
            wanted,
            format!("{reached:.2}"),
            format!("{least:.2} to {most:.2}"),
            if good { "reached" } else { "**falls short**" }.to_owned(),
        ]
    }
}

/// `12 345`, as the documents write numbers.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = if number < -0.5 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn mebibytes(bytes: f64) -> String {
    format!("{} MiB", grouped(bytes / f64::from(1 << 20)))
}

/// Puts what a whole run measured into its section of the documentation. Half a table would look like all of it, and
/// the figures of a short run mean little.
pub(crate) fn publish(section: &str, text: &str, is_whole: bool) -> Result<()> {
    if !is_whole {
        println!("Not published: this was not a whole run.");
        return Ok(());
    }
    fill(&shell::root().join("docs/benchmarks.md"), section, text)
}

/// Puts `text` between the marks of `section` in `document`, and leaves the rest as it is.
fn fill(document: &Path, section: &str, text: &str) -> Result<()> {
    let before = match fs::read_to_string(document) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => EMPTY_DOCUMENT.to_owned(),
        read => read.with_context(|| format!("reading {}", document.display()))?,
    };
    let after = replace_section(&before, section, text);
    fs::write(document, after).with_context(|| format!("writing {}", document.display()))
}

const EMPTY_DOCUMENT: &str = "# Benchmarks\n";

fn replace_section(document: &str, section: &str, text: &str) -> String {
    let [begin, end] = ["begin", "end"].map(|mark| format!("<!-- bench:{section}:{mark} -->"));
    let filled = format!("{begin}\n\n{}\n\n{end}", text.trim());
    let old = document.find(&begin).zip(document.find(&end)).filter(|(start, stop)| start < stop);
    match old {
        Some((start, stop)) => format!("{}{filled}{}", &document[..start], &document[stop + end.len()..]),
        None => format!("{}\n\n{filled}\n", document.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let table: [(&[f64], f64); 4] =
            [(&[], 0.0), (&[3.0], 3.0), (&[9.0, 1.0, 2.0], 2.0), (&[4.0, 1.0], 2.5)];
        for (values, expected) in table {
            assert_eq!(median(values.iter().copied()), expected);
        }
    }

    #[test]
    fn numbers_in_groups() {
        for (number, text) in
            [(0.0, "0"), (999.4, "999"), (1000.0, "1 000"), (1_234_567.0, "1 234 567"), (-1e3, "-1 000")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_section_is_replaced_and_nothing_else() {
        let first = replace_section("# Title\n\nprose\n", "guard", "one");
        assert_eq!(
            first,
            "# Title\n\nprose\n\n<!-- bench:guard:begin -->\n\none\n\n<!-- bench:guard:end -->\n"
        );
        let second = replace_section(&format!("{first}\nmore\n"), "guard", "two");
        assert_eq!(second, format!("{}\nmore\n", first.replace("one", "two")));
        assert!(replace_section(&second, "engine", "three").starts_with(&second));
    }

    #[test]
    fn tables() {
        let mut table = Table::new(&["a", "b"]);
        table.row(["x", "1"].map(str::to_owned));
        assert_eq!(table.into_text(), "| a | b |\n| --- | ---: |\n| x | 1 |\n");
    }
}
