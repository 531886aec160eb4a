//! Requests that are recorded, as a collector gets them.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_api::TraceContext;
use polyclave_harness::collector::Collector;
use serde_json::{Value as Json, json};

use polyclave_traces::{Exporter, MAX_SPANS, Recording, SpanCounts, is_recorded, note, part, record, wait};

/// How long a test waits for what the thread of an exporter does.
const PATIENCE: Duration = Duration::from_secs(60);

fn context() -> TraceContext {
    TraceContext { trace: [0xab; 16], parent: [0xcd; 8], sampled: true }
}

fn exporter(collector: &str) -> Arc<Exporter> {
    Exporter::start(collector, vec![("service.name", "a test".into())]).expect("a thread")
}

fn begin(exporter: &Arc<Exporter>) -> Option<Recording> {
    Recording::begin(exporter, context(), "encrypt")
}

fn named<'s>(spans: &'s [Json], name: &str) -> Vec<&'s Json> {
    spans.iter().filter(|span| span["name"] == name).collect()
}

fn wait_until(exporter: &Exporter, is_so: impl Fn(SpanCounts) -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so(exporter.counts()) {
        assert!(Instant::now() < until, "{:?}", exporter.counts());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn parts_are_within_each_other_and_the_request_within_that_of_its_caller() {
    let collector = Collector::start();
    let exporter = exporter(&collector.url());
    let request = record(begin(&exporter));
    {
        let _serve = part("serve");
        note("polyclave.leader", "beta");
        note("polyclave.leader", "alpha");
        for _ in 0..2 {
            let _evaluate = part("evaluate");
            drop(part("claim"));
            wait("beta", Duration::from_millis(1));
            wait("beta", Duration::from_millis(2));
        }
    }
    request.fail();
    drop(request);
    assert!(!is_recorded());
    drop(part("after the end"));
    let spans = collector.wait_for(|spans| spans.len() >= 6);
    assert_eq!(spans.len(), 6, "{spans:#?}");
    let [request] = named(&spans, "encrypt")[..] else { panic!("one request") };
    assert_eq!(request["parentSpanId"], "cd".repeat(8));
    assert_eq!((&request["kind"], &request["status"]), (&json!(2), &json!({ "code": 2 })));
    let [serve] = named(&spans, "serve")[..] else { panic!("one part") };
    assert_eq!((&serve["parentSpanId"], &serve["kind"]), (&request["spanId"], &json!(1)));
    assert_eq!(serve["attributes"], json!({ "polyclave.leader": "alpha" }));
    for (evaluate, claim) in named(&spans, "evaluate").into_iter().zip(named(&spans, "claim")) {
        assert_eq!(
            (&evaluate["parentSpanId"], &claim["parentSpanId"]),
            (&serve["spanId"], &evaluate["spanId"])
        );
        assert_eq!(evaluate["attributes"], json!({ "polyclave.wait.beta.ms": 3.0 }));
    }
    let sums = &request["attributes"];
    assert_eq!(
        (&sums["polyclave.evaluate.count"], &sums["polyclave.wait.beta.sum_ms"]),
        (&json!("2"), &json!(6.0))
    );
    for span in &spans {
        assert_eq!(
            (&span["traceId"], &span["resource"]["service.name"]),
            (&json!("ab".repeat(16)), &json!("a test"))
        );
        let time =
            |name: &str| span[name].as_str().and_then(|text| text.parse::<u64>().ok()).expect("a time");
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    wait_until(&exporter, |counts| counts == SpanCounts { sent: 6, ..SpanCounts::default() });
}

#[test]
fn what_its_caller_does_not_want_recorded_is_not() {
    let collector = Collector::start();
    let exporter = exporter(&collector.url());
    let unwanted = TraceContext { sampled: false, ..context() };
    let request = record(Recording::begin(&exporter, unwanted, "encrypt"));
    assert!(!is_recorded());
    drop(request);
    drop(exporter);
    assert_eq!(collector.spans(), [Json::Null; 0]);
}

#[test]
fn a_request_that_needs_parts_is_sent_only_with_some() {
    let collector = Collector::start();
    let exporter = exporter(&collector.url());
    let begin = || begin(&exporter).expect("it is recorded").only_with_parts();
    // As when its caller closes the connection: nothing is called, it is just dropped.
    drop(begin());
    let mut with_a_part = begin();
    with_a_part.add("ask", (Instant::now(), Instant::now()));
    drop(with_a_part);
    drop(exporter);
    let names: Vec<_> = collector.spans().iter().map(|span| span["name"].clone()).collect();
    assert_eq!(names, ["ask", "encrypt"]);
}

#[test]
fn a_request_of_many_parts_has_few_spans_and_the_sum_of_all() {
    let collector = Collector::start();
    let exporter = exporter(&collector.url());
    let request = record(begin(&exporter));
    {
        let _serve = part("serve");
        for _ in 0..3 * MAX_SPANS {
            let _evaluate = part("evaluate");
            drop(part("claim"));
        }
    }
    drop(request);
    drop(exporter);
    let spans = collector.spans();
    assert!((MAX_SPANS - 2..=MAX_SPANS).contains(&spans.len()), "{}", spans.len());
    let [request] = named(&spans, "encrypt")[..] else { panic!("the request is among them") };
    let is_there = |id: &Json| spans.iter().any(|span| span["spanId"] == *id);
    for span in spans.iter().filter(|span| span["spanId"] != request["spanId"]) {
        assert!(is_there(&span["parentSpanId"]), "without its parent: {span}");
    }
    assert_eq!(request["attributes"]["polyclave.evaluate.count"], (3 * MAX_SPANS).to_string());
}

#[test]
fn what_does_not_fit_into_the_queue_is_counted_and_nobody_waits_for_the_collector() {
    let collector = Collector::silent();
    let exporter = exporter(&collector.url());
    while exporter.counts().dropped == 0 {
        let request = record(begin(&exporter));
        (0..MAX_SPANS).for_each(|_| drop(part("evaluate")));
        drop(request);
    }
    assert_eq!(exporter.counts().sent, 0);
    // It ends, though the collector never answers.
    drop(exporter);
}

#[test]
fn a_collector_that_is_gone_costs_its_spans_alone() {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let exporter = exporter(&format!("http://127.0.0.1:{port}/v1/traces"));
    drop(begin(&exporter));
    wait_until(&exporter, |counts| counts == SpanCounts { failed: 1, ..SpanCounts::default() });
}

#[test]
fn a_refusal_of_the_collector_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 4096]);
            // A redirection is not followed: only the operator says where traces go.
            let answer =
                format!("HTTP/1.1 302 Found\r\nlocation: http://{address}/\r\ncontent-length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let exporter = exporter(&format!("http://{address}/v1/traces"));
    drop(begin(&exporter));
    wait_until(&exporter, |counts| counts.failed == 1);
    assert_eq!(exporter.counts().sent, 0);
}

/// Measures what a part costs where nothing is recorded, and a recorded request of ten parts, without the
/// thread that sends it: the shortest of many times.
#[test]
#[ignore = "it measures"]
fn what_a_part_and_a_request_cost() {
    let collector = Collector::start();
    let exporter = exporter(&collector.url());
    let shortest = |work: &dyn Fn()| {
        let times = (0..200).map(|_| {
            let began = Instant::now();
            (0..1000).for_each(|_| work());
            began.elapsed() / 1000
        });
        times.min().expect("some")
    };
    let unrecorded = shortest(&|| drop(part("evaluate")));
    let times = (0..5000).map(|_| {
        let began = Instant::now();
        let request = record(begin(&exporter));
        for _ in 0..10 {
            let _part = part("evaluate");
            wait("beta", Duration::from_millis(1));
        }
        drop(request);
        began.elapsed()
    });
    let recorded = times.min().expect("some");
    println!("a part that is not recorded: {unrecorded:?}; a recorded request of ten parts: {recorded:?}");
}
