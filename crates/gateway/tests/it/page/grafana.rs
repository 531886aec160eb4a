//! The dashboard for Grafana, and the rules for Prometheus, show figures that nodes and gateways have.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;

use polyclave_config::{NodeDir, NodeSettings};
use polyclave_harness::metrics::faults_of_text;
use polyclave_node::Running as Node;
use polyclave_node::local::create;
use serde_json::Value;

use crate::common::{Ask, World};

/// Figures of events that do not happen in this test, and the code that exports each.
const OF_EVENTS: [(&str, &str); 2] = [
    ("polyclave_faults_total", include_str!("../../../../node/src/audit/faults.rs")),
    ("polyclave_quarantined", include_str!("../../../../node/src/material/quarantine.rs")),
];

#[test]
fn every_figure_of_the_dashboard_and_the_rules_is_one_that_nodes_or_gateways_export() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway/grafana/polyclave.json");
    let document: Value = serde_json::from_slice(&std::fs::read(file).expect("read")).expect("JSON");
    let mut named = BTreeSet::new();
    expressions(&document, &mut |expression| named.extend(figures(expression)));
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus/workers.yml");
    let rules = std::fs::read_to_string(rules).expect("read");
    let summed = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    named.extend(summed.flat_map(figures));
    assert!(named.len() >= 16, "{named:?}");
    let exported = exported();
    for name in named {
        let base =
            ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        let is_of_event = OF_EVENTS.iter().any(|(event, code)| name == *event && code.contains(event));
        let is_known = exported.contains(base) || is_of_event;
        assert!(is_known, "{name} is exported by nobody: {exported:?}");
    }
}

/// Calls for each expression of each panel.
fn expressions(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| match value.as_str() {
            Some(text) if name == "expr" || name == "query" => take(text),
            _ => expressions(value, take),
        }),
        Value::Array(all) => all.iter().for_each(|value| expressions(value, take)),
        _ => {}
    }
}

fn figures(expression: &str) -> Vec<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("polyclave_")).map(str::to_owned).collect()
}

/// The names that running nodes and a running gateway export. The nodes have a protocol that makes material
/// ahead.
fn exported() -> BTreeSet<String> {
    let files = tempfile::tempdir().expect("a directory");
    let local = create(&files.path().join("cluster"), "shamir-active", 4, 1).expect("a cluster");
    let of_node = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let mut first = NodeDir::open(&local.nodes[0]).expect("its directory");
    let settings = NodeSettings { http_listen: Some(of_node.to_string()), ..first.settings().clone() };
    first.set_settings(settings).expect("saved");
    let node = |path| Node::start(NodeDir::open(path).expect("its directory")).expect("it starts");
    let nodes: Vec<Node> = local.nodes.iter().map(|path| node(path)).collect();
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/counted", Value::Null);
    let names = |address| {
        let text = Ask::new("GET", "/metrics").of(address).text;
        assert_eq!(faults_of_text(&text), [""; 0], "{text}");
        let of = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        of.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    world.wait_until("nodes have material", |_| {
        ["polyclave_stock_blocks", "polyclave_ready"].iter().all(|name| names(of_node).contains(*name))
    });
    let all = names(of_node).into_iter().chain(names(world.http_address())).collect();
    drop(nodes);
    all
}
