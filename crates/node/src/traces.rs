//! Traces of the requests that this node serves: whether one is recorded, and what is said of it.
//!
//! A span says which node it is of, the kind of operation, the outcome, and the request's id, by which the
//! lines of the audit logs are found. It names no key and no client, and says nothing of the size of a
//! message, unless the operator wants that (`names` under `[traces]`).

use std::sync::Arc;

use polyclave_api::{Request, TraceContext};
use polyclave_config::NodeSettings;
use polyclave_protocol::versions;
use polyclave_traces::{Exporter, Recording, SpanCounts, Value, note, record};

use crate::Result;
use crate::audit::Event;

/// Where traces go, and what they say.
#[derive(Clone)]
pub(crate) struct Traces {
    exporter: Arc<Exporter>,
    /// Whether they name keys and clients, and say how long messages are.
    names: bool,
}

/// A request of a trace, until it is answered.
pub(crate) struct Traced {
    /// The number of the trace, for the log.
    pub(crate) number: String,
    recorded: polyclave_traces::Request,
    names: bool,
}

impl Traces {
    /// Starts to send traces, if the settings say where to.
    pub(crate) fn start(settings: &NodeSettings) -> Result<Option<Traces>> {
        let Some(collector) = &settings.traces.collector else { return Ok(None) };
        let mut resource = vec![
            ("service.name", "polyclave-node".to_owned()),
            ("service.version", versions::release().to_owned()),
            ("service.instance.id", settings.name.clone()),
        ];
        if settings.worker > 0 || !settings.workers.is_empty() {
            resource.push(("polyclave.worker", settings.worker.to_string()));
        }
        let exporter = Exporter::start(collector, resource)?;
        Ok(Some(Traces { exporter, names: settings.traces.names }))
    }

    /// Begins to record a request in this thread, if it belongs to a trace.
    pub(crate) fn begin(&self, request: &Request) -> Option<Traced> {
        let trace = request.trace.filter(TraceContext::is_valid)?;
        let kind = request.operation.describe().kind();
        let recorded = record(Recording::begin(&self.exporter, trace, kind));
        note("polyclave.request", hex::encode(request.id).as_str());
        Some(Traced { number: trace.number(), recorded, names: self.names })
    }

    /// What has become of the spans so far.
    pub(crate) fn counts(&self) -> SpanCounts {
        self.exporter.counts()
    }
}

impl Traced {
    /// Says how the request ended. `bytes` is how long it was.
    pub(crate) fn end(&self, event: &Event<'_>, bytes: usize) {
        note("polyclave.outcome", event.outcome);
        if event.outcome != "done" {
            self.recorded.fail();
        }
        if self.names {
            note("polyclave.client", event.client);
            note("polyclave.key", event.key);
            note("polyclave.blocks", Value::Count(event.blocks));
            note("polyclave.request_bytes", Value::Count(bytes as u64));
        }
    }
}
