//! What `promtool check metrics` finds wrong with the names of metrics and their help.

use std::collections::BTreeMap;

/// Units that are written out, and multiples of base units.
const ABBREVIATED: [&str; 14] =
    ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"];
const NOT_BASE: [&str; 11] = [
    "minutes",
    "hours",
    "days",
    "weeks",
    "milliseconds",
    "microseconds",
    "nanoseconds",
    "kilobytes",
    "megabytes",
    "gigabytes",
    "percent",
];
/// Ends of names that the format itself gives to the parts of a histogram.
const OF_HISTOGRAMS: [&str; 3] = ["_bucket", "_count", "_sum"];

/// The faults of metrics in the text format of Prometheus.
pub fn faults_of_text(text: &str) -> Vec<String> {
    let mut help: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, words)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help.insert(name, words);
        }
    }
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut faults: Vec<String> = types
        .flat_map(|(name, kind)| faults(name, kind, help.get(name).copied().unwrap_or_default()))
        .collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let labels = line.split_once('{').map_or("", |(_, rest)| rest.split('}').next().unwrap_or_default());
        let names =
            labels.split(',').filter_map(|label| label.split_once("=\"")).map(|(name, _)| name.trim());
        faults.extend(
            names.filter(|name| !is_snake(name)).map(|name| format!("the label {name} is not snake_case")),
        );
    }
    faults.sort();
    faults.dedup();
    faults
}

/// The faults of a metric of a kind: `counter`, `gauge` or `histogram`.
pub fn faults(name: &str, kind: &str, help: &str) -> Vec<String> {
    let words: Vec<&str> = name.split('_').collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let is_counter = kind == "counter";
    let of_histogram = kind != "histogram" && OF_HISTOGRAMS.iter().any(|end| name.ends_with(end));
    let checks = [
        (help.trim().is_empty(), "has no help"),
        (is_counter && !name.ends_with("_total"), "is a counter, and does not end with _total"),
        (!is_counter && name.ends_with("_total"), "is no counter, and ends with _total"),
        (of_histogram, "is no histogram, and ends like a part of one"),
        (has(&["counter", "gauge", "histogram", "summary"]), "has its kind in its name"),
        (has(&ABBREVIATED), "abbreviates a unit"),
        (has(&NOT_BASE), "is not in a base unit (seconds, bytes, ratio)"),
        (!is_snake(name), "is not snake_case"),
    ];
    checks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| format!("{name} {what}")).collect()
}

fn is_snake(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}
