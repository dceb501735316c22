//! Relative links in the Markdown files lead somewhere.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::shell;

/// Looks at every Markdown file that git tracks or would add.
///
/// # Errors
/// Every broken link, with its file and line.
pub(crate) fn check(root: &Path) -> Result<()> {
    let files = markdown_files(root)?;
    let mut broken = Vec::new();
    for file in &files {
        let text = fs::read_to_string(root.join(file)).with_context(|| format!("reading {file}"))?;
        for link in links(&text) {
            if let Some(fault) = fault(root, file, link.target) {
                broken.push(format!("{file}:{}: {} {fault}", link.line, link.target));
            }
        }
    }
    if !broken.is_empty() {
        bail!("{} broken links:\n{}", broken.len(), broken.join("\n"));
    }
    println!("{} files", files.len());
    Ok(())
}

fn markdown_files(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"]);
    let listed = shell::capture(&mut git)?;
    let files: BTreeSet<&str> = listed.lines().filter(|file| root.join(file).is_file()).collect();
    Ok(files.into_iter().map(str::to_owned).collect())
}

#[derive(Debug, PartialEq)]
struct Link<'a> {
    line: usize,
    target: &'a str,
}

/// The targets of `[text](target)` outside code, with the lines they stand on.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let mut rest = text;
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            let target = rest[..end].split(' ').next().unwrap_or_default();
            found.push(Link { line, target: target.trim_matches(['<', '>']) });
            rest = &rest[end..];
        }
    }
    found
}

/// The numbered lines outside fenced code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fence && !fenced).then_some((number, line))
    })
}

/// What is wrong with a link that stands in `file`.
fn fault(root: &Path, file: &str, target: &str) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let document = match path {
        "" => root.join(file),
        _ => root.join(file).parent()?.join(path),
    };
    if !document.exists() {
        return Some("does not exist");
    }
    if anchor.is_empty() || document.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = fs::read_to_string(document).unwrap_or_default();
    let known = prose(&text).any(|(_, line)| line.starts_with('#') && slug(line) == anchor);
    (!known).then_some("has no such heading")
}

/// The anchor that a forge makes of a heading.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let text = "[a](one.md) and [b](<two.md> \"title\")\n```\n[c](three.md)\n```\n![d](four.png)";
        let found: Vec<_> = links(text).into_iter().map(|link| (link.line, link.target)).collect();
        assert_eq!(found, [(1, "one.md"), (1, "two.md"), (5, "four.png")]);
    }

    #[test]
    fn faults() {
        let root = shell::root();
        let table = [
            ("Cargo.toml", None),
            ("xtask/src/../Cargo.toml", None),
            ("https://example.com/nowhere", None),
            ("no-such-file.md", Some("does not exist")),
            ("CONTRIBUTING.md#no-such-heading", Some("has no such heading")),
        ];
        for (target, expected) in table {
            assert_eq!(fault(&root, "README.md", target), expected, "{target}");
        }
    }

    #[test]
    fn anchors_of_headings() {
        for (heading, anchor) in [("## Two words", "two-words"), ("# `code`, and a dot.", "code-and-a-dot")] {
            assert_eq!(slug(heading), anchor);
        }
    }
}
