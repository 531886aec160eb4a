//! Making material. // MERGE: replaced by stock/

use polyclave_protocol::Result;
use polyclave_protocol::net::Net;
use polyclave_protocol::session::{Stream, Terms, hello};
use polyclave_protocol::stock::Kind;
use zeroize::Zeroizing;

use super::Lots;

pub(crate) fn fill(
    lots: &Lots,
    terms: Terms,
    kind: &Kind,
    count: usize,
    net: &mut dyn Net,
    make: impl FnOnce(Stream, &mut dyn Net) -> Result<Zeroizing<Vec<u8>>>,
) -> Result<()> {
    let mut session = hello(&terms.with("items", &(count as u64).to_le_bytes()), net)?;
    let items = make(session.stream(), net)?;
    lots.add(kind, &items);
    Ok(())
}
