//! What holds of every document: links lead somewhere, pages are in the book, and none is too long to be read
//! at once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use polyclave_harness::book;

/// The most bytes of a page of the book. The pages in `LONG` are looked up, and not read.
const PAGE: usize = 20_000;
const LONG: [&str; 2] = ["benchmarks.md", "reference/"];
/// The most bytes of the documents that people read first.
const FIRST: [(&str, usize); 3] = [("README.md", 6_000), ("ARCHITECTURE.md", 10_000), ("SECURITY.md", 6_000)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it is there")
}

/// All documents below a folder.
fn documents(folder: &Path) -> Vec<PathBuf> {
    files(folder, ".md")
}

/// All files below a folder whose names end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            found.extend(files(&path, end));
        } else if name.ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines of a document outside of fenced blocks, without what is set as code in them.
fn prose(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// What links of a document lead to.
fn links(text: &str) -> Vec<String> {
    let without_code: String = prose(text)
        .iter()
        .flat_map(|line| line.split('`').step_by(2).chain([" "]).map(str::to_owned))
        .collect();
    let targets = without_code.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.trim().to_owned()).filter(|target| !target.contains("://")).collect()
}

/// The anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(text) {
        let Some(heading) = line.starts_with('#').then(|| line.trim_start_matches('#').trim()) else {
            continue;
        };
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let mut candidates = std::iter::once(anchor.clone()).chain((1..).map(|n| format!("{anchor}-{n}")));
        anchors.extend(candidates.find(|candidate| !anchors.contains(candidate)));
    }
    anchors
}

/// A path without `..` and `.`, as text of it says and not as the file system does.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
        plain
    })
}

/// What is wrong with the links of a document. Those of the book stay in it, because it is read without the
/// sources, too.
fn faults(document: &Path, text: &str) -> Vec<String> {
    let book = plain(&book::folder());
    let mut faults = Vec::new();
    for link in links(text) {
        let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = match path {
            "" => document.to_owned(),
            path => plain(&document.parent().expect("in a folder").join(path)),
        };
        if !target.exists() {
            faults.push(format!("{link} does not exist"));
        } else if document.starts_with(&book) && !target.starts_with(&book) {
            faults.push(format!("{link} leaves the book: name the file as code"));
        } else if !anchor.is_empty() {
            let target =
                if target == document { text.to_owned() } else { fs::read_to_string(&target).expect("text") };
            if !anchors(&target).contains(anchor) {
                faults.push(format!("{link} names no heading"));
            }
        }
    }
    faults
}

#[test]
fn every_link_in_every_document_leads_to_a_file_and_a_heading() {
    let documents = documents(&root());
    assert!(documents.len() > 60, "{documents:?}");
    let mut found = Vec::new();
    for document in documents {
        let text = fs::read_to_string(&document).expect("text");
        found.extend(
            faults(&document, &text).into_iter().map(|fault| format!("{}: {fault}", document.display())),
        );
    }
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
}

#[test]
fn every_page_is_in_the_summary_once() {
    let folder = plain(&book::folder());
    let mut listed: Vec<String> = book::pages().into_iter().map(|page| page.path).collect();
    listed.push("SUMMARY.md".into());
    listed.sort();
    let in_book = |path: PathBuf| path.strip_prefix(&folder).expect("in it").to_string_lossy().into_owned();
    let mut written: Vec<String> = documents(&folder).into_iter().map(in_book).collect();
    written.sort();
    assert_eq!(listed, written);
}

#[test]
fn no_page_is_too_long_to_be_read_at_once() {
    let mut long = Vec::new();
    for page in book::pages().iter().filter(|page| !LONG.iter().any(|start| page.path.starts_with(start))) {
        let bytes = book::read(&page.path).len();
        if bytes > PAGE {
            long.push(format!("docs/{} has {bytes} bytes, and {PAGE} are a page", page.path));
        }
    }
    for (document, most) in FIRST {
        let bytes = fs::read_to_string(root().join(document)).expect("text").len();
        if bytes > most {
            long.push(format!("{document} has {bytes} bytes, and may have {most}"));
        }
    }
    assert_eq!(long, [""; 0]);
}

/// They are the index of the sources: ARCHITECTURE.md has none. A library can begin with its README.
#[test]
fn every_module_begins_with_what_it_is() {
    let crates =
        fs::read_dir(root().join("crates")).expect("it is there").map(|entry| entry.expect("read").path());
    let mut sources: Vec<PathBuf> = crates.flat_map(|one| files(&one.join("src"), ".rs")).collect();
    sources.retain(|path| !path.ends_with("tests.rs"));
    assert!(sources.len() > 500, "{}", sources.len());
    let headers = ["//! ", "#![doc = include_str!(\"../README.md\")]"];
    let begins = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("text");
        headers.iter().any(|header| text.starts_with(header))
    };
    let without: Vec<PathBuf> = sources.into_iter().filter(|path| !begins(path)).collect();
    assert!(without.is_empty(), "{without:?}");
}

/// What the tests above rest on.
#[test]
fn links_that_lead_nowhere_are_found() {
    let page = plain(&book::folder()).join("operate/index.md");
    for (text, fault) in [
        ("[a](nothing.md)", "does not exist"),
        ("[a](../../README.md)", "leaves the book"),
        ("# A page\n[a](#another)", "names no heading"),
        ("[a](install.md#no-such-heading)", "names no heading"),
        ("![a](../images/none.png)", "does not exist"),
    ] {
        let message = faults(&page, text);
        assert!(message.len() == 1 && message[0].contains(fault), "{text}: {message:?}");
    }
    for text in [
        "# One: `two`, three\n[a](#one-two-three)",
        "# A\n# A\n[a](#a-1)",
        "`[a](nothing.md)`\n```\n[a](nothing.md)\n```",
        "[a](https://example.org) [a](install.md)",
    ] {
        assert_eq!(faults(&page, text), [""; 0], "{text}");
    }
}
