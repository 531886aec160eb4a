//! The book in `docs/`: its pages in the order of `SUMMARY.md`, and the pages that are written from the code.

use std::fs;
use std::path::{Path, PathBuf};

/// If this variable is set, [`compare`] writes pages and does not compare them.
const WRITE: &str = "POLYCLAVE_WRITE_REFERENCE";

/// The first line of a page whose commands a test executes.
pub const EXECUTED: &str =
    "<!-- A test executes the commands of this page. CONTRIBUTING.md says how to write them. -->";

/// A page of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The part that it is in; empty before the first one.
    pub part: String,
    /// Its file, as a path in the book's folder.
    pub path: String,
}

/// The folder of the book.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))
}

/// The pages of the book, in their order.
pub fn pages() -> Vec<Page> {
    pages_of(&read("SUMMARY.md"))
}

/// The text of a page.
pub fn read(path: &str) -> String {
    fs::read_to_string(folder().join(path)).unwrap_or_else(|e| panic!("docs/{path}: {e}"))
}

/// Compares a page that is written from the code with its file. `what` names the test that writes it.
pub fn compare(path: &str, text: &str, what: &str) {
    compare_file(&folder().join(path), &wrapped(text), what);
}

/// The same for another file that is written from the code.
pub fn compare_file(path: &Path, text: &str, what: &str) {
    if std::env::var_os(WRITE).is_some() {
        return fs::write(path, text).expect("it can be written");
    }
    let (found, shown) = (fs::read_to_string(path), path.display());
    assert!(
        found.is_ok_and(|found| found == text),
        "{shown} is not what the code says: {WRITE}=1 cargo test {what} writes it"
    );
}

/// A page whose sentences are in lines of at most 110 characters. Tables, headings and fenced blocks stay.
fn wrapped(page: &str) -> String {
    let mut fenced = false;
    let mut lines = String::new();
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        let whole = fenced || ["|", "#", "<", "```"].iter().any(|start| line.starts_with(start));
        let mut length = 0;
        for word in line.split(if whole { '\n' } else { ' ' }) {
            let fits = length + 1 + word.chars().count() <= 110;
            lines += if length == 0 {
                ""
            } else if fits {
                " "
            } else {
                "\n"
            };
            lines += word;
            length = word.chars().count() + if fits && length > 0 { length + 1 } else { 0 };
        }
        lines.push('\n');
    }
    lines
}

/// The pages that a summary lists.
pub fn pages_of(summary: &str) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut part = String::new();
    for line in summary.lines().skip(1) {
        if let Some(title) = line.strip_prefix("# ") {
            part = title.into();
        }
        let path = line.split_once("](").and_then(|(_, rest)| rest.split_once(')'));
        pages.extend(path.map(|(path, _)| Page { part: part.clone(), path: path.into() }));
    }
    pages
}
