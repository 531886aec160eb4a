//! What tests read in the sources of a crate: strings, and the fields of structs with their documentation.

use std::fs;
use std::path::{Path, PathBuf};

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, as serde has it.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Its documentation, in one line.
    pub words: String,
    /// Whether a file may leave it out.
    pub optional: bool,
    /// Its default, if the struct's `Default` names one.
    pub default: Option<String>,
}

/// The sources below a folder of `crates/`, such as `node/src`, without tests.
pub fn of(folder: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let is_test = |file: &PathBuf| {
        file.iter().any(|part| ["tests", "tests.rs", "fuzz.rs"].iter().any(|name| part == *name))
    };
    let sources = files(&path).into_iter().filter(|file| !is_test(file)).map(|file| {
        let text = fs::read_to_string(file).expect("it is text");
        text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
    });
    sources.collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it can be read").path());
    let (mut folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    folders.sort();
    files.sort();
    files.retain(|path| path.extension().is_some_and(|end| end == "rs"));
    files.extend(folders.iter().flat_map(|folder| self::files(folder)));
    files
}

/// The string that a text begins with, and what follows.
pub fn string(text: &str) -> Option<(String, &str)> {
    let (inside, rest) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    Some((inside.into(), rest))
}

/// The text of an item, from its beginning to the brace that closes it.
pub fn item(sources: &[String], beginning: &str) -> String {
    let found: Vec<&str> =
        sources.iter().filter_map(|text| Some(&text[text.find(&format!("\n{beginning}"))? + 1..])).collect();
    assert_eq!(found.len(), 1, "`{beginning}` is {} times in the sources", found.len());
    found[0]
        .split_inclusive('\n')
        .scan(false, |ended, line| (!std::mem::replace(ended, line == "}\n")).then_some(line))
        .collect()
}

/// The fields of a struct, of those that are in files.
pub fn fields(sources: &[String], name: &str) -> Vec<Field> {
    let public = sources.iter().find_map(|text| {
        ["pub struct", "pub(crate) struct", "struct"]
            .into_iter()
            .find(|start| text.contains(&format!("\n{start} {name} {{")))
    });
    let start = format!("{} {name} {{", public.unwrap_or_else(|| panic!("there is no struct {name}")));
    let whole = sources.iter().find(|text| text.contains(&format!("\n{start}"))).expect("found");
    let before = &whole[..whole.find(&format!("\n{start}")).expect("found")];
    let attributes = before.rsplit("\n\n").next().unwrap_or_default();
    let all_optional = attributes.contains("serde(default");
    let defaults = sources.iter().find_map(|text| text.split_once(&format!("impl Default for {name} {{")));
    let defaults = defaults.map_or("", |(_, rest)| rest.split("\n}\n").next().unwrap_or_default());
    let mut fields = Vec::new();
    let (mut words, mut serde) = (String::new(), String::new());
    for line in item(sources, &start).lines().skip(1).map(str::trim) {
        if let Some(more) = line.strip_prefix("///") {
            words += more;
        } else if line.starts_with("#[serde(") {
            serde += line;
        } else if let Some((declared, kind)) = line.split_once(": ") {
            let name = declared.rsplit(' ').next().unwrap_or_default();
            let renamed = serde.split_once("rename = \"").and_then(|(_, rest)| rest.split_once('"'));
            let kind = kind.trim_end_matches(',').to_owned();
            let optional = all_optional || serde.contains("default") || kind.starts_with("Option<");
            let given = defaults.split(['{', ',']).filter_map(|part| part.trim().split_once(": "));
            let default =
                given.filter(|(given, _)| *given == name).map(|(_, value)| value.trim().to_owned()).next();
            if !serde.contains("(skip)") {
                let name = renamed.map_or(name, |(renamed, _)| renamed).to_owned();
                fields.push(Field { name, kind, words: plain(&words), optional, default });
            }
            (words, serde) = Default::default();
        }
    }
    fields
}

/// Documentation without the marks of rustdoc's links.
pub fn plain(words: &str) -> String {
    words.trim().replace("[`", "`").replace("`]", "`")
}
