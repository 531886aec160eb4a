//! What the gateway counts, for Prometheus. The counts say nothing of keys or messages, and tokens are named
//! in the log only.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::{describe_counter, describe_gauge, describe_histogram, with_local_recorder};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use parking_lot::Mutex;
use polyclave_traces::SpanCounts;

use crate::{connections, traced};

/// Upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 11] = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 2.0, 10.0, 60.0];

/// A recorder of its own, since a process can have nodes and other gateways, too.
pub(crate) struct Counts {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    /// The same for the operator's page.
    requests: Mutex<BTreeMap<Answered, u64>>,
}

/// API, operation and outcome of requests. There are few: what callers name is not among them.
type Answered = (&'static str, &'static str, String);

/// What the operator's page shows.
pub(crate) struct RequestCounts {
    pub(crate) requests: BTreeMap<Answered, u64>,
    pub(crate) with_nodes: usize,
    pub(crate) waiting: usize,
}

/// What is the case now.
pub(crate) struct Now {
    /// Requests with the nodes, and those that wait.
    pub(crate) queue: (usize, usize),
    pub(crate) can_serve: bool,
    /// Bytes that long requests hold.
    pub(crate) memory: usize,
    /// How many long requests there were.
    pub(crate) long: u64,
    /// The connections of each API.
    pub(crate) connections: [(&'static str, connections::ConnectionCounts); 3],
    /// What has become of the spans of traces, if any are made.
    pub(crate) spans: Option<SpanCounts>,
}

impl Counts {
    pub(crate) fn new() -> Result<Counts, BuildError> {
        let recorder = PrometheusBuilder::new().set_buckets(&BUCKETS)?.build_recorder();
        let handle = recorder.handle();
        with_local_recorder(&recorder, describe);
        Ok(Counts { recorder, handle, requests: Mutex::default() })
    }

    /// Counts a request that was answered.
    pub(crate) fn request(
        &self,
        (api, operation): (&'static str, &'static str),
        outcome: String,
        took: Duration,
    ) {
        traced::note_outcome((api, operation), &outcome);
        *self.requests.lock().entry((api, operation, outcome.clone())).or_default() += 1;
        with_local_recorder(&self.recorder, || {
            metrics::counter!("polyclave_gateway_requests_total", "api" => api, "operation" => operation, "outcome" => outcome)
                .increment(1);
            metrics::histogram!("polyclave_gateway_request_seconds", "api" => api, "operation" => operation)
                .record(took.as_secs_f64());
        });
    }

    /// All counts as text, with what is the case now.
    pub(crate) fn text(&self, now: &Now) -> String {
        let Now { queue: (asking, waiting), can_serve, memory, long, connections, spans } = *now;
        with_local_recorder(&self.recorder, || {
            for (api, counts) in connections {
                metrics::gauge!("polyclave_gateway_connections", "api" => api, "of" => "tokens")
                    .set(counts.known as f64);
                metrics::gauge!("polyclave_gateway_connections", "api" => api, "of" => "strangers")
                    .set(counts.strangers as f64);
                metrics::counter!("polyclave_gateway_connections_refused_total", "api" => api)
                    .absolute(counts.refused);
            }
            if let Some(SpanCounts { sent, dropped, failed }) = spans {
                for (outcome, count) in [("sent", sent), ("dropped", dropped), ("failed", failed)] {
                    metrics::counter!("polyclave_gateway_trace_spans_total", "outcome" => outcome)
                        .absolute(count);
                }
            }
            metrics::gauge!("polyclave_gateway_memory_bytes").set(memory as f64);
            metrics::counter!("polyclave_gateway_long_requests_total").absolute(long);
            metrics::gauge!("polyclave_gateway_requests_with_nodes").set(asking as f64);
            metrics::gauge!("polyclave_gateway_requests_waiting").set(waiting as f64);
            metrics::gauge!("polyclave_gateway_nodes_ready").set(f64::from(u8::from(can_serve)));
        });
        self.handle.run_upkeep();
        self.handle.render()
    }

    /// For the operator's page.
    pub(crate) fn counts(&self, (with_nodes, waiting): (usize, usize)) -> RequestCounts {
        RequestCounts { requests: self.requests.lock().clone(), with_nodes, waiting }
    }

    /// Sorts samples into their buckets. They accumulate until this is called.
    pub(crate) fn sort(&self) {
        self.handle.run_upkeep();
    }
}

/// What each count means. One that is not described here fails a test.
fn describe() {
    describe_counter!("polyclave_gateway_requests_total", "Requests that were answered.");
    describe_histogram!("polyclave_gateway_request_seconds", "Time to the answer.");
    describe_gauge!("polyclave_gateway_requests_with_nodes", "Requests with the nodes.");
    describe_gauge!("polyclave_gateway_requests_waiting", "Requests that wait for the nodes.");
    describe_gauge!("polyclave_gateway_nodes_ready", "1 if the nodes can serve.");
    describe_gauge!(
        "polyclave_gateway_connections",
        "Open connections, of tokens and of callers that have shown none."
    );
    describe_counter!(
        "polyclave_gateway_connections_refused_total",
        "Connections refused, or closed to make room or because their caller was silent."
    );
    describe_counter!(
        "polyclave_gateway_trace_spans_total",
        "Parts of traces, by what became of them: sent, dropped because the queue was full, or failed at the collector."
    );
    describe_gauge!("polyclave_gateway_memory_bytes", "Memory that long requests hold.");
    describe_counter!(
        "polyclave_gateway_long_requests_total",
        "Requests with a body of more than 64 KiB, or a batch of more than 64 items: they have threads of less priority."
    );
}
