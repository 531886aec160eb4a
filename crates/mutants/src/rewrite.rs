//! The text of a file with all mutants in it, each behind its switch.

use std::ops::Range;

use crate::mutant::{Change, Mutant};

/// What is added to a package, so that its code can ask for a switch.
pub const SWITCHES: &str = r#"
#[doc(hidden)]
#[allow(missing_docs, clippy::all)]
pub mod mutant_switch {
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static ON: LazyLock<u32> =
        LazyLock::new(|| std::env::var("POLYCLAVE_MUTANT").map_or(0, |id| id.parse().expect("a number")));
    static NOTES: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os("POLYCLAVE_MUTANT_NOTES"));
    static PASSED: [AtomicBool; 16384] = [const { AtomicBool::new(false) }; 16384];

    pub fn on(id: u32) -> bool {
        if let Some(path) = &*NOTES {
            if !PASSED[id as usize].swap(true, Ordering::Relaxed) {
                let mut file = std::fs::File::options().append(true).create(true).open(path).expect("notes");
                file.write_all(format!("{id}\n").as_bytes()).expect("notes");
            }
        }
        *ON == id
    }
}
"#;

/// A file with switches.
pub struct Rewritten {
    pub text: String,
    /// Which bytes of the text are there for which mutant.
    regions: Vec<(Range<usize>, u32)>,
    /// Which bytes are the places of which mutants.
    places: Vec<(Range<usize>, Vec<u32>)>,
    /// Where functions begin, and the mutants that end them there.
    begins: Vec<(usize, Vec<u32>)>,
}

impl Rewritten {
    /// The mutants that the text at this byte is there for.
    pub fn at(&self, byte: usize) -> Vec<u32> {
        self.regions.iter().filter(|(region, _)| region.contains(&byte)).map(|&(_, id)| id).collect()
    }

    /// The mutants of the innermost place around this byte.
    pub fn around(&self, byte: usize) -> Vec<u32> {
        let around = self.places.iter().filter(|(place, _)| place.contains(&byte));
        around.min_by_key(|(place, _)| place.len()).map_or_else(Vec::new, |(_, ids)| ids.clone())
    }

    /// The mutants at the begin of the function around this byte.
    pub fn before(&self, byte: usize) -> Vec<u32> {
        let before = self.begins.iter().filter(|(at, _)| *at <= byte);
        before.max_by_key(|(at, _)| *at).map_or_else(Vec::new, |(_, ids)| ids.clone())
    }
}

/// All mutants at one place.
struct Host<'a> {
    range: Range<usize>,
    mutants: Vec<&'a Mutant>,
}

/// Puts these mutants of one file into its text.
pub fn rewrite(text: &str, mutants: &[&Mutant]) -> Rewritten {
    let mut hosts: Vec<Host<'_>> = Vec::new();
    for mutant in mutants {
        let Some(range) = host(&mutant.change) else { continue };
        match hosts.iter_mut().find(|host| host.range == range) {
            Some(host) => host.mutants.push(mutant),
            None => hosts.push(Host { range, mutants: vec![mutant] }),
        }
    }
    for host in &mut hosts {
        // What is put before an expression comes first, then what replaces it.
        host.mutants.sort_by_key(|mutant| matches!(mutant.change, Change::Replace { .. }));
    }
    // Outer places before inner ones; what is only inserted comes first.
    hosts.sort_by_key(|host| {
        let Range { start, end } = host.range;
        (start, if end == start { 0 } else { usize::MAX - end })
    });
    let mut writer = Writer {
        text,
        out: Rewritten { text: String::new(), regions: Vec::new(), places: Vec::new(), begins: Vec::new() },
    };
    writer.range(0..text.len(), &hosts);
    writer.out
}

fn host(change: &Change) -> Option<Range<usize>> {
    match change {
        Change::Return { at, .. } => Some(*at..*at),
        Change::Replace { host, .. } | Change::Omit { host } => Some(host.clone()),
        Change::NeverTaken { guard: Some(guard), .. } => Some(guard.clone()),
        Change::NeverTaken { pattern_end, guard: None } => Some(*pattern_end..*pattern_end),
        Change::Other => None,
    }
}

struct Writer<'a> {
    text: &'a str,
    out: Rewritten,
}

impl Writer<'_> {
    /// Writes a range of the text, in which all these places are.
    fn range(&mut self, range: Range<usize>, hosts: &[Host<'_>]) {
        let mut at = range.start;
        let mut left = hosts;
        while let Some((host, rest)) = left.split_first() {
            let inner = rest.iter().take_while(|inner| inner.range.start < host.range.end).count();
            self.out.text.push_str(&self.text[at..host.range.start]);
            self.host(host, &rest[..inner]);
            at = host.range.end;
            left = &rest[inner..];
        }
        self.out.text.push_str(&self.text[at..range.end]);
    }

    fn host(&mut self, host: &Host<'_>, inner: &[Host<'_>]) {
        let start = self.out.text.len();
        let mut after = String::new();
        let mut expression = false;
        for mutant in &host.mutants {
            let switch = format!("crate::mutant_switch::on({})", mutant.id);
            match &mutant.change {
                Change::Return { value, .. } => {
                    self.piece(mutant.id, &format!("if {switch} {{ return {value}; }} "))
                }
                Change::NeverTaken { guard: None, .. } => self.piece(mutant.id, &format!(" if !{switch} ")),
                Change::NeverTaken { guard: Some(_), .. } => {
                    self.piece(mutant.id, &format!("!{switch} && ("));
                    after.insert(0, ')');
                }
                Change::Omit { .. } => {
                    self.piece(mutant.id, &format!("if !{switch} {{ "));
                    after.insert_str(0, " }");
                }
                Change::Replace { by, .. } => {
                    if !expression {
                        self.out.text.push('(');
                        after.insert_str(0, " })");
                        expression = true;
                    }
                    self.piece(mutant.id, &format!("if {switch} {{ {by} }} else "));
                }
                Change::Other => {}
            }
        }
        if expression {
            self.out.text.push_str("{ ");
        }
        self.range(host.range.clone(), inner);
        self.out.text.push_str(&after);
        let ids: Vec<u32> = host.mutants.iter().map(|mutant| mutant.id).collect();
        if host.mutants.iter().any(|mutant| matches!(mutant.change, Change::Return { .. })) {
            self.out.begins.push((start, ids.clone()));
        }
        self.out.places.push((start..self.out.text.len(), ids));
    }

    fn piece(&mut self, id: u32, piece: &str) {
        let start = self.out.text.len();
        self.out.text.push_str(piece);
        self.out.regions.push((start..self.out.text.len(), id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutants(text: &str) -> Vec<Mutant> {
        let syntax = syn::parse_file(text).expect("Rust");
        let found = crate::omissions::changes("f.rs".as_ref(), text, &syntax);
        let mutant =
            |(at, (name, change))| Mutant { id: at as u32 + 1, file: "f.rs".into(), source: 0, name, change };
        found.into_iter().enumerate().map(mutant).collect()
    }

    #[test]
    fn each_omission_is_behind_a_switch_of_its_own_and_is_still_rust() {
        let text = "fn f() -> Result<()> { check(a)?; if a == b { stop(); } g().inspect_err(|e| h(e)) }\n#[cfg(test)]\nmod tests { fn t() { check(); } }\n";
        let mutants = mutants(text);
        let names: Vec<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "f.rs:1: omit check(a)?;",
                "f.rs:1: replace g().inspect_err(|e| h(e)) with Ok(())",
                "f.rs:1: replace a == b with false",
                "f.rs:1: omit stop();",
                "f.rs:1: omit inspect_err of g().inspect_err(|e| h(e))",
            ]
        );
        let rewritten = rewrite(text, &mutants.iter().collect::<Vec<_>>());
        syn::parse_file(&rewritten.text).expect("Rust");
        for mutant in &mutants {
            let at = rewritten.text.find(&format!("on({})", mutant.id)).expect("its switch");
            assert_eq!(rewritten.at(at), [mutant.id]);
        }
        assert!(rewritten.text.contains("if !crate::mutant_switch::on(1) { check(a)?; }"));
        assert!(rewritten.text.contains("(if crate::mutant_switch::on(3) { false } else { a == b })"));
        assert!(rewritten.text.ends_with("mod tests { fn t() { check(); } }\n"), "tests stay as they are");
    }

    #[test]
    fn a_condition_comes_before_what_replaces_it_and_a_value_before_the_body() {
        let text = "fn f() { match x { p if c => 1, _ => 2 } }";
        let mutant = |id, change| Mutant { id, file: "f.rs".into(), source: 0, name: String::new(), change };
        let guard = 24..25;
        let all = [
            mutant(1, Change::Replace { host: guard.clone(), by: "true".into() }),
            mutant(2, Change::NeverTaken { pattern_end: 20, guard: Some(guard) }),
            mutant(3, Change::Return { at: 9, value: "()".into() }),
        ];
        let text = rewrite(text, &all.iter().collect::<Vec<_>>()).text;
        syn::parse_file(&text).expect("Rust");
        assert!(text.contains(
            "if !crate::mutant_switch::on(2) && ((if crate::mutant_switch::on(1) { true } else { c }))"
        ));
        assert!(text.starts_with("fn f() { if crate::mutant_switch::on(3) { return (); } match"));
    }
}
