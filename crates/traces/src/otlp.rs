//! Spans as OTLP has them in JSON (`ExportTraceServiceRequest`): ids in hexadecimal, 64-bit numbers as
//! strings.

use serde_json::{Value as Json, json};

use crate::span::{Span, Value};

/// The name of what makes these spans.
const SCOPE: &str = "polyclave";
/// `STATUS_CODE_ERROR`.
const FAILED: u32 = 2;

/// A document of spans. `resource` has texts about the process.
pub(crate) fn document(resource: &[(&'static str, String)], spans: &[Span]) -> Json {
    let resource: Vec<Json> =
        resource.iter().map(|(name, text)| attribute(name, &Value::Text(text.clone()))).collect();
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": SCOPE, "version": env!("CARGO_PKG_VERSION") }, "spans": spans }],
    }] })
}

fn span(span: &Span) -> Json {
    let attributes: Vec<Json> = span.attributes.iter().map(|(name, value)| attribute(name, value)).collect();
    let status = if span.failed { json!({ "code": FAILED }) } else { json!({}) };
    json!({
        "traceId": hex::encode(span.trace),
        "spanId": hex::encode(span.id),
        "parentSpanId": hex::encode(span.parent),
        "name": span.name,
        "kind": span.kind as u32,
        "startTimeUnixNano": span.began.to_string(),
        "endTimeUnixNano": span.ended.to_string(),
        "attributes": attributes,
        "status": status,
    })
}

fn attribute(name: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Count(count) => json!({ "intValue": count.to_string() }),
        Value::Milliseconds(milliseconds) => json!({ "doubleValue": milliseconds }),
    };
    json!({ "key": name, "value": value })
}
