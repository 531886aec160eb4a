//! No top-level modules of a crate import each other in a circle, computed from the sources. A circle cannot
//! be read, tested or moved in parts.
//!
//! Code of tests does not count: modules behind `#[cfg(test)]`, and files `tests.rs`, `testing.rs` and
//! `fuzz.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which module imports which.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found: BTreeSet<(String, Vec<String>)> = BTreeSet::new();
    for entry in fs::read_dir(crates).expect("crates").flatten() {
        let source = entry.path().join("src");
        let name = entry.file_name().to_string_lossy().into_owned();
        if source.is_dir() {
            found.extend(circles(&imports(&source)).into_iter().map(|circle| (name.clone(), circle)));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_circle_is_found_in_imports_of_every_form() {
    let source = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = source.path().join(name);
        fs::create_dir_all(path.parent().expect("in it")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("lib.rs", "mod a; mod b; mod c; mod d;");
    write("a.rs", "use crate::{Error, b::{c, d}};\n");
    write("b/deep.rs", "fn f() { crate::c::g() }\n");
    write("d/mod.rs", "#[cfg(test)]\nmod cheaters;\n");
    write("d/cheaters.rs", "use crate::c;\n");
    write(
        "c.rs",
        "#[cfg(test)]\nmod more;\nuse super::a::x;\n// use crate::d;\n#[cfg(test)]\nmod tests {\n    use crate::d;\n}\n",
    );
    write("d/more.rs", "use crate::a;\n");
    assert_eq!(circles(&imports(source.path())), [["a", "b", "c"]]);
    write("lib.rs", "mod a; mod b; mod c; mod d;\npub use d::{inner};");
    write("c.rs", "use crate::inner::x;\n");
    assert_eq!(circles(&imports(source.path())), [["a", "b", "c", "d"]]);
}

/// What the top-level modules of a crate import of each other.
fn imports(source: &Path) -> Imports {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let modules: BTreeSet<String> = children(source).iter().filter_map(|path| stem(path)).collect();
    let moved = reexported(&code(&fs::read_to_string(source.join("lib.rs")).unwrap_or_default()), &modules);
    let mut imports = Imports::new();
    for module in modules.iter().filter(|module| !["lib", "main", "bin", "fuzz"].contains(&module.as_str())) {
        let file = source.join(format!("{module}.rs"));
        let mut named = BTreeSet::new();
        if let Ok(text) = fs::read_to_string(&file) {
            named.extend(names_after(&code(&text), &["crate::", "super::"]));
        }
        for nested in files(&source.join(module)) {
            let text = fs::read_to_string(&nested).expect("a source");
            named.extend(names_after(&code(&text), &["crate::"]));
        }
        let named = named.into_iter().map(|name| moved.get(&name).cloned().unwrap_or(name));
        let named = named.filter(|name| name != module && modules.contains(name)).collect();
        imports.insert(module.clone(), named);
    }
    imports
}

/// Modules inside others that the crate's root names, too, so that `crate::net` may be a part of the module
/// `interface`.
fn reexported(root: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut moved = BTreeMap::new();
    for line in root.lines() {
        let list = line.strip_prefix("pub use ").and_then(|path| path.split_once("::{"));
        if let Some((module, list)) = list.filter(|(module, _)| modules.contains(*module)) {
            let inner = listed(list).into_iter().map(first_name);
            let inner = inner.filter(|name| name.starts_with(char::is_lowercase));
            moved.extend(inner.map(|name| (name, module.to_owned())));
        }
    }
    moved
}

fn children(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The sources in a directory and below it, without those of tests.
fn files(dir: &Path) -> Vec<PathBuf> {
    let parents = [dir.with_extension("rs"), dir.join("mod.rs")];
    let parents: Vec<String> = parents.iter().flat_map(fs::read_to_string).collect();
    let is_of_tests = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        parents.iter().any(|parent| parent.contains(&format!("#[cfg(test)]\nmod {stem};")))
    };
    let mut found = Vec::new();
    for path in children(dir).into_iter().filter(|path| !is_of_tests(path)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            found.extend(files(&path));
        } else if name.ends_with(".rs") && !["tests.rs", "testing.rs", "fuzz.rs"].contains(&name.as_str()) {
            found.push(path);
        }
    }
    found
}

/// A source without comments, and without the tests at its end.
fn code(text: &str) -> String {
    // A module of tests in a file of its own may be declared above imports.
    let is_here = |at: usize| text[at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
    let tests = text.match_indices("#[cfg(test)]\nmod ").find(|(at, _)| is_here(*at));
    let end = tests.map_or(text.len(), |(at, _)| at);
    text[..end].lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The first name of each path that begins with one of these prefixes; of each path in braces, too.
fn names_after(code: &str, prefixes: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for prefix in prefixes {
        for (at, _) in code.match_indices(prefix) {
            let is_whole_word =
                !code[..at].ends_with(|before: char| before.is_alphanumeric() || "_:$".contains(before));
            if !is_whole_word {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            match rest.strip_prefix('{') {
                None => names.insert(first_name(rest)),
                Some(list) => {
                    names.extend(listed(list).iter().map(|path| first_name(path)));
                    true
                }
            };
        }
    }
    names
}

/// The paths of a list up to its closing brace.
fn listed(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut paths) = (0, 0, Vec::new());
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                paths.push(&list[start..at]);
                return paths;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                paths.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    paths
}

fn first_name(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The largest sets of modules that reach each other, each in the order of its names.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|module| (module, reached_from(module, imports))).collect();
    let mut circles = BTreeSet::new();
    for (module, reaches) in &reached {
        let circle: Vec<String> =
            reaches.iter().filter(|other| reached[*other].contains(module)).map(|o| o.to_string()).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reached_from<'i>(module: &String, imports: &'i Imports) -> BTreeSet<&'i String> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![module]);
    while let Some(from) = next.pop() {
        for to in imports.get(from).into_iter().flatten() {
            if reached.insert(to) {
                next.push(to);
            }
        }
    }
    // What nothing leads to, such as a module without imports, is in no circle.
    reached.retain(|name| imports.contains_key(*name));
    reached
}
