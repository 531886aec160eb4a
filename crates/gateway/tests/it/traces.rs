//! The trace of a caller goes through the gateway to all nodes.

use std::collections::BTreeSet;

use polyclave_config::{NodeDir, TraceSettings};
use polyclave_harness::collector::Collector;
use serde_json::{Value, json};

use crate::common::{Ask, World, logged};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Nodes and a gateway that tell a collector, and a key.
fn world(collector: &Collector) -> World {
    let mut world = World::define();
    for path in &world.local.nodes {
        let mut node = NodeDir::open(path).expect("its directory");
        let mut settings = node.settings().clone();
        settings.traces = TraceSettings { collector: Some(collector.url()), names: false };
        node.set_settings(settings).expect("saved");
    }
    world.root = world.write_settings(&format!("[traces]\ncollector = {:?}\n", collector.url()));
    world.start_nodes();
    world.make_kms_key();
    world.start_gateway();
    world.done("POST", "/v1/transit/keys/traced", Value::Null);
    world
}

fn encrypt(world: &World, token: &str, traceparent: &[&str]) -> u16 {
    let asked = Ask::new("POST", "/v1/transit/encrypt/traced").token(token);
    let asked = traceparent.iter().fold(asked, |asked, value| asked.header("traceparent", value));
    asked.body(json!({ "plaintext": "aGVsbG8=" }).to_string().as_bytes()).of(world.address()).status
}

fn of<'s>(spans: &'s [Value], service: &str, name: &str) -> Vec<&'s Value> {
    spans.iter().filter(|s| s["resource"]["service.name"] == service && s["name"] == name).collect()
}

#[test]
fn the_trace_of_a_caller_goes_through_the_gateway_to_all_nodes() {
    let collector = Collector::start();
    let world = world(&collector);
    let good = format!("00-{TRACE}-{PARENT}-01");
    // None of these is recorded, and all are answered: no trace, one that is not valid, two, and no token.
    assert_eq!(encrypt(&world, &world.root, &[]), 200);
    assert_eq!(encrypt(&world, &world.root, &["00-nonsense"]), 200);
    assert_eq!(encrypt(&world, &world.root, &[&"x".repeat(4000)]), 200);
    assert_eq!(encrypt(&world, &world.root, &[&good, &good]), 200);
    assert_eq!(encrypt(&world, "no-token", &[&good]), 403);
    assert_eq!(encrypt(&world, &world.root, &[&good]), 200);
    let is_enough = |spans: &[Value]| {
        of(spans, "polyclave-node", "encrypt").len() >= 3
            && !of(spans, "polyclave-gateway", "request").is_empty()
    };
    let spans = collector.wait_for(is_enough);
    let [request] = of(&spans, "polyclave-gateway", "request")[..] else { panic!("one request: {spans:#?}") };
    assert_eq!((&request["traceId"], &request["parentSpanId"]), (&json!(TRACE), &json!(PARENT)));
    let about =
        json!({ "polyclave.api": "transit", "polyclave.operation": "encrypt", "polyclave.outcome": "200" });
    for (name, value) in about.as_object().expect("an object") {
        assert_eq!(&request["attributes"][name], value);
    }
    for part in ["queue", "nodes"] {
        let parts = of(&spans, "polyclave-gateway", part);
        assert!(!parts.is_empty() && parts.iter().all(|p| p["parentSpanId"] == request["spanId"]), "{part}");
    }
    let at_nodes = of(&spans, "polyclave-node", "encrypt");
    let nodes: BTreeSet<&str> =
        at_nodes.iter().filter_map(|span| span["resource"]["service.instance.id"].as_str()).collect();
    assert_eq!((at_nodes.len(), nodes.len()), (3, 3), "{spans:#?}");
    for span in at_nodes {
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(TRACE), &request["spanId"]));
    }
    for span in &spans {
        for name in ["traced", "root"] {
            assert!(!span.to_string().contains(&format!("\"{name}\"")), "{span}");
        }
    }
    assert!(logged().contains(&format!("request{{trace=\"{TRACE}\"}}")), "{}", logged());
    let metrics = || Ask::new("GET", "/metrics").of(world.http_address()).text;
    world.wait_until("spans are counted", |_| {
        metrics().contains("polyclave_gateway_trace_spans_total{outcome=\"sent\"}")
    });
}
