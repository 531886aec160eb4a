//! Metrics of nodes and gateways: each that the code exports has help and a name that `promtool check
//! metrics` takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use polyclave_harness::metrics::{faults, faults_of_text};
use polyclave_harness::sources::string;
use polyclave_harness::{book, sources};

/// The metrics that a folder of source code exports, with their kinds and labels, and the help that it gives
/// to each.
#[derive(Default)]
struct Code {
    exported: BTreeMap<String, &'static str>,
    labels: BTreeMap<String, BTreeSet<String>>,
    help: BTreeMap<String, (&'static str, String)>,
}

impl Code {
    fn of(folder: &str) -> Code {
        let mut code = Code::default();
        sources::of(folder).iter().for_each(|text| code.read(text));
        code
    }

    fn read(&mut self, text: &str) {
        for kind in ["counter", "gauge", "histogram"] {
            for (at, found) in text.match_indices(&format!("{kind}!(")) {
                let rest = &text[at + found.len()..];
                let Some((name, rest)) = string(rest) else { continue };
                match text[..at].ends_with("describe_") {
                    false => {
                        let arguments = rest.split(')').next().unwrap_or_default();
                        let labels = arguments.split("=>").filter_map(|before| before.rsplit('"').nth(1));
                        let named = arguments.matches("=>").count();
                        self.labels
                            .entry(name.clone())
                            .or_default()
                            .extend(labels.take(named).map(str::to_owned));
                        self.exported.insert(name, kind);
                    }
                    true => {
                        let help = string(rest.trim_start_matches(',')).map(|(help, _)| help);
                        self.help.insert(name, (kind, help.unwrap_or_default()));
                    }
                }
            }
        }
    }
}

#[test]
fn every_metric_has_help_and_a_name_that_promtool_takes() {
    for (folder, least) in [("node/src", 25), ("gateway/src", 5)] {
        let Code { exported, help, .. } = Code::of(folder);
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
fn the_page_of_metrics_has_every_metric() {
    let mut page = String::from(
        "<!-- A test writes this page: see CONTRIBUTING.md. -->\n\n# Metrics\n\n\
         Nodes and gateways export these at `/metrics`, for Prometheus. [Metrics and \
         alarms](../operate/metrics.md) says for which to set an alarm. \
         Names in braces are labels. Outcomes are `done` or the code of a [refusal](errors.md#reasons). The \
         metrics of a node of several workers have \
         the label `worker`, too.\n",
    );
    for (folder, title) in [("node/src", "Nodes"), ("gateway/src", "Gateways")] {
        let code = Code::of(folder);
        write!(page, "\n## {title}\n\n| metric | kind | |\n|---|---|---|\n").expect("written");
        for (name, kind) in &code.exported {
            let labels: Vec<&str> = code.labels[name].iter().map(String::as_str).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let help = code.help.get(name).map_or("", |(_, help)| help);
            writeln!(page, "| `{name}{labels}` | {kind} | {help} |").expect("written");
        }
    }
    book::compare("reference/metrics.md", &page, "-p polyclave-harness --test metrics");
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
        let message = faults(name, kind, "Keys.");
        assert!(message.len() == 1 && message[0].contains(fault), "{message:?}");
    }
    assert_eq!(faults("polyclave_request_seconds", "histogram", "Time."), [""; 0]);
    let text = "# HELP a_total Help.\n# TYPE a_total counter\na_total{of=\"x\",aName=\"y\"} 1\n# TYPE keys \
        gauge\nkeys 1\n";
    assert_eq!(faults_of_text(text), ["keys has no help", "the label aName is not snake_case"]);
}
