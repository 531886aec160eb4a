//! Whoever knows records first, before they are stored. It gives every node a share and is not needed any
//! more.

use anyhow::Result;
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use crate::record::{RECORD_BYTES, Record};

/// Shares of records, for each node: random bytes of which the sum (XOR) over all nodes is the records, one
/// after another. All nodes but one together know nothing.
pub fn shares(records: &[Record], nodes: usize) -> Result<Vec<Zeroizing<Vec<u8>>>> {
    let mut shares: Vec<_> =
        (0..nodes).map(|_| Zeroizing::new(vec![0; RECORD_BYTES * records.len()])).collect();
    let (last, others) = shares.split_last_mut().expect("there are nodes");
    for (record, place) in records.iter().zip(last.chunks_mut(RECORD_BYTES)) {
        place.copy_from_slice(&*record.to_bytes()?);
    }
    for share in others {
        random_bytes(share)?;
        last.iter_mut().zip(share.iter()).for_each(|(last, random)| *last ^= random);
    }
    Ok(shares)
}
