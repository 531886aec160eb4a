//! PKCS#7 padding (RFC 5652, section 6.3): n bytes of value n, 1 <= n <= block.
//!
//! Whether padding is right, and how long it is, becomes public by its purpose: the caller gets an error or
//! so many bytes. Nothing else of a block does: all of it is looked at, whatever it holds, and no branch
//! depends on which byte was wrong.

use polyclave_kernels::secret::public;
use subtle::{Choice, ConstantTimeEq, ConstantTimeGreater};

use crate::{Error, Result};

/// Fills the last, partial (or missing) block.
pub fn fill(data: &mut Vec<u8>, block: usize) {
    let count = block - data.len() % block;
    data.resize(data.len() + count, count as u8);
}

/// The length of a last block without its padding. One error covers every cause: a wrong key, a change,
/// another mode.
pub fn unfilled(last: &[u8]) -> Result<usize> {
    let count = last.last().copied().unwrap_or(0);
    let mut good = !count.ct_eq(&0) & !count.ct_gt(&(last.len() as u8));
    for (from_end, byte) in last.iter().rev().enumerate() {
        let beyond: Choice = !count.ct_gt(&(from_end as u8));
        good &= beyond | byte.ct_eq(&count);
    }
    // The caller learns whether the padding is right, and the length.
    match public(good.unwrap_u8()) == 1 {
        true => Ok(last.len() - usize::from(public(count))),
        false => Err(garbage()),
    }
}

/// The error for input that cannot be decrypted.
pub(crate) fn garbage() -> Error {
    let message =
        "this does not decrypt: it was altered or cut, or it belongs to another key, mode or initial block";
    Error::Unauthentic(message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_comes_back() {
        for len in 0..=32 {
            let mut data = vec![9; len];
            fill(&mut data, 16);
            let last = &data[data.len() - 16..];
            assert_eq!(data.len() - 16 + unfilled(last).expect("it is good"), len);
        }
    }

    mod fuzz {
        use polyclave_harness::fuzz;

        use super::*;

        #[test]
        fn no_padding_panics_and_what_is_taken_off_is_what_would_be_put_on() {
            let valid = (1..=16).map(|count| [vec![9; 16 - count], vec![count as u8; count]].concat());
            fuzz!("paddings", &[], valid.collect(), |bytes: &[u8]| {
                let last = &bytes[..bytes.len().min(16)];
                if let Ok(len) = unfilled(last) {
                    let mut again = last[..len].to_vec();
                    fill(&mut again, last.len());
                    assert_eq!(again, last);
                }
            });
        }
    }

    #[test]
    fn bad_padding_is_refused() {
        for last in [[0; 16], [17; 16], [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]] {
            assert!(unfilled(&last).is_err(), "{last:?}");
        }
    }
}
