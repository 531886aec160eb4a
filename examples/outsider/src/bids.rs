//! What the nodes' owners put in: sealed bids, as text that a person can read. The lowest one is what the
//! outsider is to get.

use anyhow::{Result, ensure};
use zeroize::Zeroizing;

/// Bytes of a bid: whole blocks of AES.
pub const BID_BYTES: usize = 48;
/// A bid begins with its amount, in so many digits of ASCII, which compare as numbers do.
pub const AMOUNT_DIGITS: usize = 8;

/// A bid in text, of an owner who is known by a number.
pub fn bid(owner: usize, amount: u32) -> Result<Zeroizing<Vec<u8>>> {
    let text = Zeroizing::new(format!("{amount:0AMOUNT_DIGITS$} is the bid of owner {owner}"));
    ensure!(amount < 10u32.pow(AMOUNT_DIGITS as u32), "a bid has at most {AMOUNT_DIGITS} digits");
    let mut bytes = Zeroizing::new(vec![b' '; BID_BYTES]);
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes[BID_BYTES - 1] = b'\n';
    Ok(bytes)
}
