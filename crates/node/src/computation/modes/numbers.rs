//! The numbers of consecutive blocks of a message: counters, and the tweaks of ciphers that take one.
//!
//! The client or the session sets the first. Every block after it has the next number, big-endian, and none
//! wraps around.

use polyclave_api::{Reason, Refusal};

/// The numbers of the blocks that are still to come.
pub(crate) struct Numbers {
    bytes: usize,
    next: u128,
    /// The first number that no block may have.
    end: u128,
}

impl Numbers {
    /// Numbers from `first`, which has at most 16 bytes. Any number that fits into as many bytes may follow,
    /// except the highest.
    pub(crate) fn from(first: &[u8]) -> Numbers {
        let end = 1u128.checked_shl(8 * first.len() as u32).map_or(u128::MAX, |end| end - 1);
        Numbers::until(first, end)
    }

    /// Numbers from `first` up to, but not including, `end`.
    pub(crate) fn until(first: &[u8], end: u128) -> Numbers {
        Numbers { bytes: first.len(), next: number(first), end }
    }

    /// Refuses blocks whose numbers would wrap around. `what` names the numbers.
    pub(crate) fn admit(&self, count: u64, what: &str) -> Result<(), Refusal> {
        match self.next.checked_add(u128::from(count)) {
            Some(after) if after <= self.end => Ok(()),
            _ => {
                let message = format!("the {what} would wrap around; start a new message");
                Err(Refusal::new(Reason::Malformed, message))
            }
        }
    }

    /// The next numbers, one after another.
    pub(crate) fn take(&mut self, count: u64) -> Vec<u8> {
        let mut numbers = Vec::with_capacity(count as usize * self.bytes);
        for i in 0..u128::from(count) {
            numbers.extend_from_slice(&(self.next + i).to_be_bytes()[16 - self.bytes..]);
        }
        self.next += u128::from(count);
        numbers
    }
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |n, byte| n << 8 | u128::from(*byte))
}

/// The tweaks of blocks that are encrypted independently. The client sends the tweak of the first block, as
/// an address. A cipher without a tweak has none.
pub(crate) struct Tweaks(Option<Numbers>);

impl Tweaks {
    /// For a cipher whose tweak has `bytes` bytes, 0 if it takes none.
    pub(crate) fn new(bytes: usize, first: &[u8]) -> Result<Tweaks, Refusal> {
        if first.len() != bytes {
            let message = match bytes {
                0 => "this key's cipher takes no tweak".to_owned(),
                _ => format!(
                    "a first tweak of {} bytes; this key's cipher takes one of {bytes} bytes with each block",
                    first.len()
                ),
            };
            return Err(Refusal::new(Reason::Malformed, message));
        }
        // The highest tweak is one like any other: a client may name it.
        let end = 1u128.checked_shl(8 * bytes as u32).unwrap_or(u128::MAX);
        Ok(Tweaks((bytes > 0).then(|| Numbers::until(first, end))))
    }

    /// Refuses blocks whose tweaks would wrap around.
    pub(crate) fn admit(&self, count: u64) -> Result<(), Refusal> {
        self.0.as_ref().map_or(Ok(()), |numbers| numbers.admit(count, "tweak"))
    }

    /// The tweaks of the next blocks; empty if the cipher takes none.
    pub(crate) fn take(&mut self, count: u64) -> Vec<u8> {
        self.0.as_mut().map_or_else(Vec::new, |numbers| numbers.take(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_over_byte_borders() {
        let mut numbers = Numbers::from(&[0, 0, 0, 0, 0, 0, 1, 255]);
        assert_eq!(numbers.take(2), [0, 0, 0, 0, 0, 0, 1, 255, 0, 0, 0, 0, 0, 0, 2, 0]);
        assert_eq!(numbers.take(1), [0, 0, 0, 0, 0, 0, 2, 1]);
    }

    #[test]
    fn tweaks_have_the_ciphers_length_and_never_wrap() {
        assert!(Tweaks::new(8, &[0; 7]).is_err() && Tweaks::new(0, &[0; 8]).is_err());
        let mut tweaks = Tweaks::new(8, &[255, 255, 255, 255, 255, 255, 255, 252]).expect("it fits");
        assert!(tweaks.admit(4).is_ok() && tweaks.admit(5).is_err());
        assert_eq!(tweaks.take(2)[8..], [255, 255, 255, 255, 255, 255, 255, 253]);
        assert!(tweaks.admit(2).is_ok() && tweaks.admit(3).is_err());
        let mut none = Tweaks::new(0, &[]).expect("it takes none");
        assert!(none.admit(u64::MAX).is_ok() && none.take(5).is_empty());
    }
}
