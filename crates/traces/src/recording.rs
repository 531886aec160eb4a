//! The parts of one request, while it is served.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use polyclave_api::TraceContext;
use polyclave_protocol::session::random_bytes;

use crate::exporter::Exporter;
use crate::span::{Attribute, Kind, Span, Value};

/// The most spans of one request. A long file has thousands of parts: the time of the others is in the sums
/// only.
pub const MAX_SPANS: usize = 128;

/// A part that has begun.
struct Open {
    id: u64,
    name: &'static str,
    began: Instant,
    attributes: Vec<Attribute>,
}

/// A request that is being recorded. When it is dropped, its spans go to the exporter.
pub struct Recording {
    exporter: Arc<Exporter>,
    context: TraceContext,
    /// The first moment, by both clocks.
    began: (Instant, u64),
    /// The request, and the parts of it that have begun, each within the one before.
    open: Vec<Open>,
    ended: Vec<Span>,
    /// The id of the last span.
    last: u64,
    /// By name of a part: how often, and how many milliseconds in all.
    sums: Vec<(&'static str, u64, f64)>,
    /// By name of a node: how many milliseconds were waited for it in all.
    waits: Vec<(String, f64)>,
    failed: bool,
    /// Whether it is sent only if it had parts.
    needs_parts: bool,
}

impl Recording {
    /// Begins to record a request. `None` if the caller does not want it recorded.
    pub fn begin(exporter: &Arc<Exporter>, context: TraceContext, name: &'static str) -> Option<Recording> {
        if !context.sampled {
            return None;
        }
        // Spans of one process have numbers that follow each other, from a random one on.
        let mut id = [0; 8];
        random_bytes(&mut id).ok()?;
        let id = u64::from_be_bytes(id);
        let (now, since_1970) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).ok()?);
        let mut recording = Recording {
            exporter: exporter.clone(),
            context,
            began: (now, since_1970.as_nanos().try_into().ok()?),
            open: Vec::with_capacity(4),
            ended: Vec::with_capacity(16),
            last: id,
            sums: Vec::new(),
            waits: Vec::new(),
            failed: false,
            needs_parts: false,
        };
        recording.begin_part_at(name, now);
        Some(recording)
    }

    /// What is told to those who serve parts of this request: this request is the parent of theirs.
    pub fn context(&self) -> TraceContext {
        let parent = self.open.first().map_or(self.context.parent, |request| request.id.to_be_bytes());
        TraceContext { parent, ..self.context }
    }

    /// Begins a part. Returns how many there are then, one within the other.
    pub(crate) fn begin_part(&mut self, name: &'static str) -> usize {
        self.begin_part_at(name, Instant::now());
        self.open.len()
    }

    fn begin_part_at(&mut self, name: &'static str, began: Instant) {
        // No span has the number 0, which stands for none.
        self.last = match self.last.wrapping_add(1) {
            0 => 1,
            next => next,
        };
        self.open.push(Open { id: self.last, name, began, attributes: Vec::new() });
    }

    /// Ends the innermost part, unless fewer than `depth` are left.
    pub(crate) fn end_part(&mut self, depth: usize) {
        while self.open.len() >= depth.max(2) {
            let Some(open) = self.open.pop() else { return };
            let ended = Instant::now();
            self.sum(open.name, open.began, ended);
            self.keep(open, ended, Kind::Internal);
        }
    }

    /// Adds a part of the request that has ended.
    pub fn add(&mut self, name: &'static str, (began, ended): (Instant, Instant)) {
        self.begin_part_at(name, began);
        if let Some(open) = self.open.pop() {
            self.sum(name, began, ended);
            self.keep(open, ended, Kind::Internal);
        }
    }

    /// Says something about the innermost part, in place of what was said under this name before. So a batch
    /// of many items says it once.
    pub fn note(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
        let Some(open) = self.open.last_mut() else { return };
        let (name, value) = (name.into(), value.into());
        match open.attributes.iter_mut().find(|(of, _)| *of == name) {
            Some((_, before)) => *before = value,
            None => open.attributes.push((name, value)),
        }
    }

    /// Says that the innermost part has waited for a node.
    pub(crate) fn wait(&mut self, node: &str, waited: Duration) {
        let milliseconds = waited.as_secs_f64() * 1e3;
        let name = format!("polyclave.wait.{node}.ms");
        let attributes = self.open.last().map_or(&[][..], |open| &open.attributes);
        let before = match attributes.iter().find(|(of, _)| *of == name) {
            Some((_, Value::Milliseconds(before))) => *before,
            _ => 0.0,
        };
        self.note(name, Value::Milliseconds(before + milliseconds));
        match self.waits.iter_mut().find(|(of, _)| of == node) {
            Some((_, sum)) => *sum += milliseconds,
            None => self.waits.push((node.into(), milliseconds)),
        }
    }

    /// Has the request be sent only if one of its parts has ended, however the request itself ends: a caller
    /// that may ask nothing fills no collector.
    pub fn only_with_parts(mut self) -> Recording {
        self.needs_parts = true;
        self
    }

    /// Notes that the request was refused or failed.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    fn sum(&mut self, name: &'static str, began: Instant, ended: Instant) {
        let took = ended.saturating_duration_since(began).as_secs_f64() * 1e3;
        match self.sums.iter_mut().find(|(of, ..)| *of == name) {
            Some((_, parts, sum)) => (*parts, *sum) = (*parts + 1, *sum + took),
            None => self.sums.push((name, 1, took)),
        }
    }

    /// Keeps a span that has ended, if room is left for all that are around it: the parent of each span that
    /// is kept is kept as well.
    fn keep(&mut self, open: Open, ended: Instant, kind: Kind) {
        if kind == Kind::Internal && self.ended.len() + self.open.len() >= MAX_SPANS {
            return;
        }
        let parent = self.open.last().map_or(self.context.parent, |around| around.id.to_be_bytes());
        let Open { id, name, began, attributes } = open;
        let span = Span {
            trace: self.context.trace,
            id: id.to_be_bytes(),
            parent,
            kind,
            name,
            began: self.since_1970(began),
            ended: self.since_1970(ended),
            attributes,
            failed: self.failed && kind == Kind::Server,
        };
        self.ended.push(span);
    }

    fn since_1970(&self, moment: Instant) -> u64 {
        let (at, since_1970) = self.began;
        since_1970.saturating_add(moment.saturating_duration_since(at).as_nanos() as u64)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end_part(2);
        let Some(mut request) = self.open.pop() else { return };
        if self.needs_parts && self.ended.is_empty() {
            return;
        }
        for (name, parts, milliseconds) in std::mem::take(&mut self.sums) {
            let sum = (format!("polyclave.{name}.sum_ms").into(), Value::Milliseconds(milliseconds));
            let count = (format!("polyclave.{name}.count").into(), Value::Count(parts));
            request.attributes.extend([sum, count]);
        }
        for (node, milliseconds) in std::mem::take(&mut self.waits) {
            let name = format!("polyclave.wait.{node}.sum_ms");
            request.attributes.push((name.into(), Value::Milliseconds(milliseconds)));
        }
        self.keep(request, Instant::now(), Kind::Server);
        self.exporter.offer(std::mem::take(&mut self.ended));
    }
}
