//! The dashboard for Grafana shows figures that nodes and gateways have.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::common::{Ask, World};

/// Figures of events that do not happen in this test, with the code that exports each.
const OF_RARE_EVENTS: [(&str, &str); 2] = [
    ("polyclave_faults_total", include_str!("../../../../node/src/operator/faults.rs")),
    ("polyclave_stock_blocks", include_str!("../../../../node/src/material/stock.rs")),
];

#[test]
fn every_figure_of_the_dashboard_is_one_that_nodes_or_gateways_export() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway/grafana/polyclave.json");
    let document: Value = serde_json::from_slice(&std::fs::read(file).expect("read")).expect("JSON");
    let mut named = BTreeSet::new();
    expressions(&document, &mut |expression| named.extend(figures(expression)));
    assert!(named.len() >= 12, "{named:?}");
    let exported = exported();
    for name in named {
        let of_event = OF_RARE_EVENTS.iter().find(|(rare, _)| *rare == name);
        let base =
            ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        let is_known = exported.contains(base) || of_event.is_some_and(|(_, code)| code.contains(&name));
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

/// The names that a running node and a running gateway export.
fn exported() -> BTreeSet<String> {
    let mut world = World::define();
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|s| s.local_addr()).expect("a port");
    let mut dir = polyclave_config::NodeDir::open(&world.local.nodes[0]).expect("its directory");
    let mut settings = dir.settings().clone();
    settings.http_listen = Some(port.to_string());
    dir.set_settings(settings).expect("saved");
    world.start_nodes();
    world.make_kms_key();
    world.start_gateway();
    world.done("POST", "/v1/transit/keys/counted", Value::Null);
    world.done("POST", "/v1/transit/encrypt/counted", serde_json::json!({ "plaintext": "AAAA" }));
    let mut names = BTreeSet::new();
    world.wait_until("the figures of the node are there", |_| {
        Ask::new("GET", "/metrics").of(port).text.contains("polyclave_ready")
    });
    for address in [port, world.http_address()] {
        let text = Ask::new("GET", "/metrics").of(address).text;
        let of = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        names.extend(of.map(str::to_owned));
    }
    names
}
