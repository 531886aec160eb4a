//! Traces of requests: how long each part of a request took at a node or a gateway, told to a collector of
//! OpenTelemetry.
//!
//! ```text
//! current.rs (the request that this thread serves) -> recording.rs (its parts, as span.rs has them)
//!     -> exporter.rs (queue, thread) -> otlp.rs (bytes)
//! ```
//!
//! A request is recorded only if whoever asks has begun a trace and wants it recorded
//! ([`TraceContext::sampled`](polyclave_api::TraceContext)), and only where an operator has named a
//! collector. An exporter never delays a request: what does not fit into its queue is counted and lost.
//!
//! # Why not the crates of OpenTelemetry
//!
//! They bring an asynchronous runtime into each process, a second implementation of gRPC or HTTP, and a
//! global registry of providers, of which two nodes in one process could not each have their own. What is
//! needed here is one document of JSON (OTLP/HTTP 1.x, JSON encoding of `ExportTraceServiceRequest`), sent
//! once a second by a thread that waits. Every collector of OpenTelemetry takes it.

mod current;
mod exporter;
mod otlp;
mod recording;
mod span;

pub use current::{Part, Request, is_recorded, note, part, record, wait};
pub use exporter::{Exporter, Resource, SpanCounts};
pub use recording::{MAX_SPANS, Recording};
pub use span::Value;
