//! The alerts of Prometheus (`packaging/prometheus/alerts.yml`). That each alarm of the page has one is
//! tested beside the alarms (`ui/alarms/kind.rs`).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use polyclave_harness::{book, programs};

/// What promtool may take.
const WITHIN: Duration = Duration::from_secs(60);

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).expect("read")
}

/// What stands behind a key, in lines of YAML.
fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key)).collect()
}

fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("polyclave_")).map(str::to_owned).collect()
}

#[test]
fn rules_name_metrics_that_exist_and_there_is_one_for_each_that_an_operator_is_told_to_watch() {
    let rules = read("alerts.yml");
    let looked_at: BTreeSet<String> = values(&rules, "expr: ").into_iter().flat_map(metrics).collect();
    assert!(looked_at.len() >= 25, "{looked_at:?}");
    let known = metrics(&book::read("reference/metrics.md"));
    assert_eq!(looked_at.difference(&known).collect::<Vec<_>>(), [""; 0], "no such metrics");
    let page = book::read("operate/metrics.md");
    let (_, after) = page.split_once("| alarm | metric |").expect("a table of alarms");
    let table: String = after.lines().take_while(|line| line.starts_with('|') || line.is_empty()).collect();
    let watched = metrics(&table);
    assert!(watched.len() >= 10, "{watched:?}");
    assert_eq!(watched.difference(&looked_at).collect::<Vec<_>>(), [""; 0], "these have no rule");
}

#[test]
fn every_rule_is_tested_with_figures_for_which_it_is_quiet_and_with_some_for_which_it_fires() {
    let (rules, tests) = (read("alerts.yml"), read("alerts_test.yml"));
    let quiet = tests.lines().filter(|line| line.contains("exp_alerts: []"));
    let quiet: BTreeSet<&str> =
        quiet.filter_map(|line| line.split("alertname: ").nth(1)?.split(',').next()).collect();
    let fire: BTreeSet<&str> = values(&tests, "alertname: ").into_iter().collect();
    let all: BTreeSet<&str> = values(&rules, "alert: ").into_iter().collect();
    assert!(all.len() >= 25, "{all:?}");
    assert_eq!((&quiet, &fire), (&all, &all));
}

#[test]
fn promtool_takes_the_rules_and_their_tests_hold() {
    let promtool = |arguments: &[&str], name: &str| {
        programs::ended(Command::new("promtool").args(arguments).arg(file(name)), WITHIN)
    };
    if promtool(&["--version"], "").is_none() {
        return programs::skipped("promtool", "it is not installed (Debian: apt install prometheus)");
    }
    for (arguments, name) in [
        (["check", "rules"], "alerts.yml"),
        (["check", "rules"], "workers.yml"),
        (["test", "rules"], "alerts_test.yml"),
    ] {
        let output = promtool(&arguments, name).expect("it ends");
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{name}: {}", said.concat());
    }
}
