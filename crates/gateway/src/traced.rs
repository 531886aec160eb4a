//! Traces: a caller names its trace in the header `traceparent` (W3C Trace Context), and the gateway passes
//! it on to the nodes, in every API.
//!
//! The trace belongs to the task that answers the request, so nothing has to hand it on: where the nodes are
//! asked ([`crate::nodes`]) and where answers are counted ([`crate::counts`]), the current one is looked up.
//! If the gateway records traces itself, its request is the parent of the nodes' requests; else the caller's
//! is. A header that is not valid is as none.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use parking_lot::Mutex;
use polyclave_api::TraceContext;
use polyclave_config::TraceSettings;
use polyclave_protocol::Result;
use polyclave_protocol::versions;
use polyclave_traces::{Exporter, Recording, SpanCounts, Value};
use tracing::Instrument;

tokio::task_local! {
    static CURRENT: Option<Trace>;
}

/// Where traces go, and what they say.
#[derive(Clone, Default)]
pub(crate) struct Traces {
    exporter: Option<Arc<Exporter>>,
    /// Whether they name callers.
    names: bool,
}

/// The trace of a request.
#[derive(Clone)]
pub(crate) struct Trace {
    /// As nodes are told.
    context: TraceContext,
    recording: Option<Arc<Mutex<Recording>>>,
    names: bool,
}

impl Traces {
    /// Starts to send traces, if the settings say where to.
    pub(crate) fn start(settings: &TraceSettings) -> Result<Traces> {
        let resource = || {
            vec![
                ("service.name", "polyclave-gateway".to_owned()),
                ("service.version", versions::release().to_owned()),
            ]
        };
        let start = |collector: &String| Exporter::start(collector, resource());
        Ok(Traces { exporter: settings.collector.as_ref().map(start).transpose()?, names: settings.names })
    }

    /// What has become of the spans so far, if any are made.
    pub(crate) fn counts(&self) -> Option<SpanCounts> {
        self.exporter.as_ref().map(|exporter| exporter.counts())
    }

    /// Has requests for these pages be answered as parts of the traces that they name.
    pub(crate) fn over(&self, pages: Router) -> Router {
        pages.layer(from_fn_with_state(self.clone(), answer))
    }

    /// Answers a request with these headers as a part of the trace that they name.
    pub(crate) async fn around<T>(&self, headers: &HeaderMap, answer: impl Future<Output = T>) -> T {
        let trace = self.of(headers);
        let in_log = match &trace {
            Some(trace) if self.exporter.is_some() => {
                tracing::info_span!("request", trace = trace.context.number())
            }
            _ => tracing::Span::none(),
        };
        CURRENT.scope(trace, answer).instrument(in_log).await
    }

    fn of(&self, headers: &HeaderMap) -> Option<Trace> {
        let mut named = headers.get_all("traceparent").iter();
        let (Some(header), None) = (named.next(), named.next()) else { return None };
        let context = TraceContext::parse(header.as_bytes())?;
        // A request that is dropped halfway was perhaps a stranger's, too.
        let begin = |exporter| Recording::begin(exporter, context, "request").map(Recording::only_with_parts);
        let recording = self.exporter.as_ref().and_then(begin);
        let context = recording.as_ref().map_or(context, Recording::context);
        let recording = recording.map(|recording| Arc::new(Mutex::new(recording)));
        Some(Trace { context, recording, names: self.names })
    }
}

async fn answer(State(traces): State<Traces>, request: Request, next: Next) -> Response {
    let headers = request.headers().clone();
    traces.around(&headers, next.run(request)).await
}

/// The trace of the request that this task answers.
pub(crate) fn current() -> Option<Trace> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

/// Goes on with the answer to this task's request in another task.
pub(crate) fn carried<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    CURRENT.scope(current(), work)
}

/// Says how the request that this task answers has ended, and when its answer is a refusal.
pub(crate) fn note_outcome((api, operation): (&'static str, &'static str), outcome: &str) {
    let Some(Trace { recording: Some(recording), .. }) = current() else { return };
    let mut recording = recording.lock();
    recording.note("polyclave.api", api);
    recording.note("polyclave.operation", operation);
    recording.note("polyclave.outcome", outcome);
    if !matches!(outcome, "200" | "204" | "Ok") {
        recording.fail();
    }
}

impl Trace {
    /// What nodes are told.
    pub(crate) fn context(&self) -> TraceContext {
        self.context
    }

    /// Adds a part that has ended now.
    pub(crate) fn add(&self, name: &'static str, began: Instant) {
        if let Some(recording) = &self.recording {
            recording.lock().add(name, (began, Instant::now()));
        }
    }

    /// Says who asks, if traces name callers.
    pub(crate) fn note_caller(&self, caller: &str) {
        if let Some(recording) = self.recording.as_ref().filter(|_| self.names) {
            recording.lock().note("polyclave.caller", Value::Text(caller.into()));
        }
    }
}
