//! Spans: what is told of a request, or of a part of it.

use std::borrow::Cow;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Count(u64),
    /// Milliseconds.
    Milliseconds(f64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.into())
    }
}

/// An attribute of a span.
pub(crate) type Attribute = (Cow<'static, str>, Value);

/// What OpenTelemetry calls the kind of a span, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A part of a request.
    Internal = 1,
    /// A request, at the side that answers it.
    Server = 2,
}

/// A request or a part of it that has ended. Times are in nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) trace: [u8; 16],
    pub(crate) id: [u8; 8],
    pub(crate) parent: [u8; 8],
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) failed: bool,
}
