//! Requests: the header, and the items of the batch, each with its operation and what it is given.

use super::codes::{self, VERSIONS, Version, tag};
use super::fields::Fields;
use super::refused::{Reason, Result, missing};
use super::ttlv::{self, Item, Value};

/// The most items of a batch.
pub(super) const MOST_BATCH: usize = 32;

/// Items of a header that change nothing: items of a batch are done in their order here.
const PASSED_OVER: [u32; 5] = [
    tag::TIME_STAMP,
    tag::BATCH_ORDER_OPTION,
    tag::ATTESTATION_CAPABLE,
    tag::CLIENT_CORRELATION_VALUE,
    tag::SERVER_CORRELATION_VALUE,
];

/// A request, of which each item of the batch is judged by itself.
pub(super) struct Request<'m> {
    pub(super) version: Version,
    /// The most bytes of the response that its caller takes.
    pub(super) most_response: Option<usize>,
    /// Whether the items after one that fails are done.
    pub(super) continues: bool,
    pub(super) batch: Vec<BatchItem<'m>>,
}

/// An item of a batch.
pub(super) struct BatchItem<'m> {
    pub(super) operation: u32,
    pub(super) id: Option<&'m [u8]>,
    pub(super) payload: Fields<'m>,
}

impl Request<'_> {
    /// Reads a message.
    pub(super) fn read(message: &[u8]) -> Result<Request<'_>> {
        let item = ttlv::read(message).map_err(|why| Reason::InvalidMessage.because(why))?;
        let mut fields = match item {
            Item { tag: tag::REQUEST_MESSAGE, value: Value::Structure(items) } => Fields(items),
            _ => return Err(Reason::InvalidMessage.because("this is no request")),
        };
        let mut header = fields.structure(tag::REQUEST_HEADER)?.ok_or_else(|| missing("request header"))?;
        let version = header.structure(tag::PROTOCOL_VERSION)?.ok_or_else(|| missing("protocol version"))?;
        let version = read_version(version)?;
        if !VERSIONS.contains(&version) {
            return Err(Reason::InvalidMessage.because("this version of KMIP is not spoken; take 1.2 to 2.1"));
        }
        if header.take(tag::AUTHENTICATION)?.is_some() {
            let why = "clients are known by their certificates; send no credentials";
            return Err(Reason::FeatureNotSupported.because(why));
        }
        refuse_asynchronous(&mut header)?;
        let continues = match header.enumeration(tag::BATCH_ERROR_CONTINUATION)? {
            None | Some(codes::STOP) => false,
            Some(codes::CONTINUE) => true,
            Some(_) => return Err(Reason::FeatureNotSupported.because("nothing is undone; take stop")),
        };
        let most_response = header.count(tag::MAXIMUM_RESPONSE_SIZE)?;
        let count = header.count(tag::BATCH_COUNT)?.ok_or_else(|| missing("batch count"))?;
        for passed_over in PASSED_OVER {
            header.take(passed_over)?;
        }
        header.end()?;
        let batch = fields.0.into_iter().map(BatchItem::read).collect::<Result<Vec<_>>>()?;
        if batch.is_empty() || batch.len() > MOST_BATCH || count != batch.len() {
            let why = format!("a batch has 1 to {MOST_BATCH} items, and as many as its count says");
            return Err(Reason::InvalidMessage.because(why));
        }
        Ok(Request { version, most_response, continues, batch })
    }
}

impl<'m> BatchItem<'m> {
    fn read(item: Item<'m>) -> Result<BatchItem<'m>> {
        let mut fields = match item {
            Item { tag: tag::BATCH_ITEM, value: Value::Structure(items) } => Fields(items),
            _ => return Err(Reason::InvalidMessage.because("something else stands among the batch items")),
        };
        let operation = fields.enumeration(tag::OPERATION)?.ok_or_else(|| missing("operation"))?;
        let id = fields.bytes(tag::UNIQUE_BATCH_ITEM_ID)?;
        let payload = fields.structure(tag::REQUEST_PAYLOAD)?.ok_or_else(|| missing("request payload"))?;
        // Also not an extension, which may be one that has to be understood.
        fields.end()?;
        Ok(BatchItem { operation, id, payload })
    }
}

/// It is a truth value in versions 1, and an enumeration in versions 2: 1 is mandatory, 2 optional, 3
/// prohibited.
fn refuse_asynchronous(header: &mut Fields<'_>) -> Result<()> {
    match header.take(tag::ASYNCHRONOUS)? {
        None | Some(Value::Boolean(false) | Value::Enumeration(2 | 3)) => Ok(()),
        _ => Err(Reason::FeatureNotSupported.because("requests are answered at once or not at all")),
    }
}

/// A structure with a version of the protocol.
pub(super) fn read_version(mut of: Fields<'_>) -> Result<Version> {
    let major = of.integer(tag::MAJOR)?.ok_or_else(|| missing("major version"))?;
    let minor = of.integer(tag::MINOR)?.ok_or_else(|| missing("minor version"))?;
    of.end()?;
    Ok((major, minor))
}
