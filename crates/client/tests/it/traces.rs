//! A request that belongs to a trace: each node tells a collector how long its parts took, and nothing that
//! its operator did not ask for.

use std::collections::BTreeSet;

use polyclave_api::{Mode, TraceContext};
use polyclave_config::{NodeDir, TraceSettings};
use polyclave_harness::collector::Collector;
use serde_json::Value;

use crate::common::{TestCluster, key};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const KEY: &str = "traced-key";

fn trace(flags: &str) -> Option<TraceContext> {
    let trace = TraceContext::parse(format!("00-{TRACE}-{PARENT}-{flags}").as_bytes());
    assert!(trace.is_some());
    trace
}

/// Three nodes with a key, that tell a collector.
fn cluster(collector: &str, names: bool) -> TestCluster {
    let mut cluster = TestCluster::define(3, 1);
    for path in &cluster.local.nodes {
        let mut node = NodeDir::open(path).expect("its directory");
        let mut settings = node.settings().clone();
        settings.traces = TraceSettings { collector: Some(collector.into()), names };
        node.set_settings(settings).expect("saved");
    }
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    cluster.client().generate(key(KEY, "aes-128", &[Mode::Cmac])).expect("a key");
    cluster
}

/// The requests of a kind.
fn requests<'s>(spans: &'s [Value], kind: &str) -> Vec<&'s Value> {
    spans.iter().filter(|span| span["name"] == kind && span["kind"] == 2).collect()
}

fn text<'s>(span: &'s Value, field: &str) -> &'s str {
    span[field].as_str().unwrap_or_else(|| panic!("{field} of {span}"))
}

fn node(span: &Value) -> &str {
    span["resource"]["service.instance.id"].as_str().expect("a name")
}

#[test]
fn a_request_is_one_trace_at_all_nodes_that_says_what_took_how_long_and_names_nothing() {
    let collector = Collector::start();
    let cluster = cluster(&collector.url(), false);
    let client = cluster.client();
    let code = |client: &polyclave_client::Client| client.key(KEY)?.cmac(b"twelve boxes");
    // Neither of these is recorded.
    code(&client).expect("a code");
    code(&client.in_trace(trace("00"))).expect("a code");
    code(&client.in_trace(trace("01"))).expect("a code");
    let spans = collector.wait_for(|spans| requests(spans, "mac").len() >= 3);
    let codes = requests(&spans, "mac");
    assert_eq!(codes.len(), 3, "each node served one that is recorded");
    assert_eq!(
        codes.iter().map(|span| node(span)).collect::<BTreeSet<_>>(),
        ["node-1", "node-2", "node-3"].into()
    );
    let ids: BTreeSet<&str> = spans.iter().map(|span| text(span, "spanId")).collect();
    assert_eq!(ids.len(), spans.len(), "each span has its own number");
    for code in &codes {
        assert_eq!((text(code, "traceId"), text(code, "parentSpanId")), (TRACE, PARENT));
        assert_eq!(code["attributes"]["polyclave.request"], codes[0]["attributes"]["polyclave.request"]);
        assert_eq!(code["attributes"]["polyclave.outcome"], "done");
        let waits = code["attributes"].as_object().expect("attributes").keys();
        let waited: Vec<&str> =
            waits.filter_map(|name| name.strip_prefix("polyclave.wait.")?.strip_suffix(".sum_ms")).collect();
        assert!(!waited.is_empty() && !waited.contains(&node(code)), "{waited:?}");
        assert!(waited.iter().all(|of| ["node-1", "node-2", "node-3"].contains(of)), "{waited:?}");
    }
    let time = |span: &Value, field| text(span, field).parse::<u64>().expect("nanoseconds");
    for of_node in ["node-1", "node-2", "node-3"] {
        let own: Vec<&Value> = spans.iter().filter(|span| node(span) == of_node).collect();
        let [code] =
            requests(&spans, "mac").into_iter().filter(|span| node(span) == of_node).collect::<Vec<_>>()[..]
        else {
            panic!("one request")
        };
        let mut of_code = BTreeSet::new();
        for part in own.iter().filter(|span| span["kind"] == 1) {
            assert_eq!(text(part, "traceId"), TRACE);
            let parent = own.iter().find(|span| span["spanId"] == part["parentSpanId"]);
            let parent = parent.unwrap_or_else(|| panic!("{part} is in no request of its node"));
            assert!(time(parent, "startTimeUnixNano") <= time(part, "startTimeUnixNano"), "{part}");
            assert!(time(part, "endTimeUnixNano") <= time(parent, "endTimeUnixNano"), "{part}");
            if parent["spanId"] == code["spanId"] {
                of_code.insert(text(part, "name"));
            }
        }
        assert_eq!(of_code, ["plan", "pay", "queue", "hello", "serve"].into(), "{of_node}");
        for inner in ["evaluate", "answer", "step"] {
            assert!(own.iter().any(|span| span["name"] == inner), "{inner} at {of_node}");
        }
    }
    // No name of a key or a client, and no size.
    for span in &spans {
        assert!(!span.to_string().contains(KEY), "{span}");
        for name in ["polyclave.key", "polyclave.client", "polyclave.blocks", "polyclave.request_bytes"] {
            assert_eq!(span["attributes"].get(name), None, "{span}");
        }
    }
    // The audit log leads to the trace.
    let is_logged = |path: &std::path::PathBuf| {
        let log = std::fs::read_to_string(NodeDir::open(path).expect("its directory").audit_path());
        let lines = log.expect("it is there");
        lines.lines().any(|line| line.contains("\"mac\"") && line.contains(&format!("trace={TRACE}")))
    };
    cluster.wait_until(|| cluster.local.nodes.iter().all(is_logged));
}

#[test]
fn names_are_told_if_the_operator_wants_that_and_refusals_have_their_reason() {
    let collector = Collector::start();
    let cluster = cluster(&collector.url(), true);
    let client = cluster.client().in_trace(trace("01"));
    client.key(KEY).expect("shown").cmac(b"twelve boxes").expect("a code");
    client.info("nothing-of-this-name").expect_err("there is no such key");
    let refused = |spans: &[Value]| -> Vec<Value> {
        let shown = requests(spans, "show").into_iter();
        shown.filter(|span| span["attributes"]["polyclave.key"] == "nothing-of-this-name").cloned().collect()
    };
    let is_enough = |spans: &[Value]| requests(spans, "mac").len() >= 3 && !refused(spans).is_empty();
    let spans = collector.wait_for(is_enough);
    for code in requests(&spans, "mac") {
        assert_eq!(code["attributes"]["polyclave.key"], KEY);
        assert_eq!(code["attributes"]["polyclave.client"], client.name());
        assert!(code["attributes"]["polyclave.request_bytes"].is_string(), "{code}");
        assert_eq!(code["status"], serde_json::json!({}));
    }
    for refused in refused(&spans) {
        assert_ne!(refused["attributes"]["polyclave.outcome"], "done");
        assert_eq!(refused["status"], serde_json::json!({ "code": 2 }));
    }
}

#[test]
fn a_collector_that_never_answers_keeps_nobody_waiting() {
    let collector = Collector::silent();
    let cluster = cluster(&collector.url(), false);
    let client = cluster.client().in_trace(trace("01"));
    for _ in 0..20 {
        client.key(KEY).expect("shown").cmac(b"twelve boxes").expect("a code");
    }
}

/// Measures what traces cost: the processor time of three nodes, client and exporters for requests that are
/// recorded, and for others, by turns. The collector is in another process, and is told by its address.
#[test]
#[ignore = "it measures; POLYCLAVE_COLLECTOR=http://127.0.0.1:4318/v1/traces names a collector"]
fn what_traces_cost() {
    let Ok(collector) = std::env::var("POLYCLAVE_COLLECTOR") else { return };
    let cluster = cluster(&collector, false);
    cluster.client().generate(key("measured", "aes-128", &[Mode::Ctr])).expect("a key");
    let client = cluster.client();
    let traced = client.in_trace(trace("01"));
    for (bytes, requests) in [(16, 60), (64 << 10, 5)] {
        let message = vec![7; bytes];
        let mut spent = [0; 2];
        for turn in 0..2 * TURNS {
            let key = [&client, &traced][turn % 2].key("measured").expect("shown");
            let began = ticks();
            for _ in 0..requests {
                key.ctr().encrypt(&message).expect("encrypted");
            }
            spent[turn % 2] += ticks() - began;
        }
        let [without, with] = spent.map(|ticks| ticks as f64 * 10.0 / (TURNS * requests) as f64);
        println!("{bytes} bytes: {with:.3} ms with a trace, {without:.3} ms without: {:.4}", with / without);
    }
}

/// How often each kind has its turn.
const TURNS: usize = 8;

/// Processor time of this process, in hundredths of a second.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, after) = stat.rsplit_once(')').expect("a name");
    after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}
