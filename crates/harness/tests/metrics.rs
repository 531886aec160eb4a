//! Metrics of nodes and gateways: each that the code exports has help and a name that `promtool check metrics` takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use polyclave_harness::metrics::{faults, faults_of_text};

/// The metrics that a folder of source code exports, with their kinds, and the help that it gives to each.
#[derive(Default)]
struct Code {
    exported: BTreeMap<String, &'static str>,
    help: BTreeMap<String, (&'static str, String)>,
}

impl Code {
    fn of(folder: &Path) -> Code {
        let mut code = Code::default();
        for file in sources(folder) {
            code.read(&fs::read_to_string(&file).expect("it is text"));
        }
        code
    }

    fn read(&mut self, text: &str) {
        for kind in ["counter", "gauge", "histogram"] {
            for (at, found) in text.match_indices(&format!("{kind}!(")) {
                let rest = &text[at + found.len()..];
                let Some((name, rest)) = string(rest) else { continue };
                match text[..at].ends_with("describe_") {
                    false => drop(self.exported.insert(name, kind)),
                    true => {
                        let help = string(rest.trim_start_matches(',')).map(|(help, _)| help);
                        self.help.insert(name, (kind, help.unwrap_or_default()));
                    }
                }
            }
        }
    }
}

/// The string that a text begins with, and what follows.
fn string(text: &str) -> Option<(String, &str)> {
    let (inside, rest) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    Some((inside.into(), rest))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it can be read").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

#[test]
fn every_metric_has_help_and_a_name_that_promtool_takes() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (folder, least) in [("node/src", 25), ("gateway/src", 5)] {
        let Code { exported, help } = Code::of(&crates.join(folder));
        assert!(exported.len() >= least, "{folder}: {exported:?}");
        for (name, kind) in &exported {
            let (of, words) = help.get(name).cloned().unwrap_or((kind, String::new()));
            assert_eq!(faults(name, kind, &words), [""; 0], "in {folder}");
            assert_eq!(of, *kind, "{name} is described as another kind");
        }
        let unused: Vec<_> = help.keys().filter(|name| !exported.contains_key(*name)).collect();
        assert_eq!(unused, [""; 0], "{folder} describes what it does not export");
    }
}

#[test]
fn what_promtool_refuses_is_found() {
    for (name, kind, fault) in [
        ("polyclave_keys", "counter", "_total"),
        ("polyclave_keys_total", "gauge", "_total"),
        ("polyclave_key_count", "gauge", "part of one"),
        ("polyclave_gauge", "gauge", "kind"),
        ("polyclave_wait_ms", "gauge", "abbreviates"),
        ("polyclave_age_days", "gauge", "base unit"),
        ("polyclaveKeys", "gauge", "snake_case"),
    ] {
        let told = faults(name, kind, "Keys.");
        assert!(told.len() == 1 && told[0].contains(fault), "{told:?}");
    }
    assert_eq!(faults("polyclave_request_seconds", "histogram", "Time."), [""; 0]);
    let text = "# HELP a_total Help.\n# TYPE a_total counter\na_total{of=\"x\",aName=\"y\"} 1\n# TYPE keys gauge\nkeys 1\n";
    assert_eq!(faults_of_text(text), ["keys has no help", "the label aName is not snake_case"]);
}
