//! What a program gives in parts, until all of it is there.

use zeroize::Zeroizing;

/// Bytes that are wiped, also at their earlier places in memory: a vector that grows by itself leaves copies
/// of its content behind.
#[derive(Default)]
pub(crate) struct Gathered(Zeroizing<Vec<u8>>);

impl Gathered {
    pub(crate) fn extend(&mut self, data: &[u8]) {
        let total = self.0.len() + data.len();
        if total > self.0.capacity() {
            let mut grown = Zeroizing::new(Vec::with_capacity(total.max(2 * self.0.capacity())));
            grown.extend_from_slice(&self.0);
            // The old one is wiped here.
            self.0 = grown;
        }
        self.0.extend_from_slice(data);
    }

    /// Takes the first bytes away.
    pub(crate) fn split_off_first(&mut self, bytes: usize) -> Zeroizing<Vec<u8>> {
        let rest = Gathered(Zeroizing::new(self.0[bytes..].to_vec()));
        let mut first = std::mem::replace(self, rest).0;
        first.truncate(bytes);
        first
    }
}

impl std::ops::Deref for Gathered {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_memory_grows_seldom() {
        let (mut gathered, mut moves, mut last) = (Gathered::default(), 0, 0);
        for part in 0..1000u32 {
            gathered.extend(&part.to_be_bytes());
            moves += usize::from(gathered.0.capacity() != last);
            last = gathered.0.capacity();
        }
        assert!(moves < 20, "{moves} times");
        let expected: Vec<u8> = (0..1000).flat_map(u32::to_be_bytes).collect();
        let first = gathered.split_off_first(7);
        assert_eq!((&first[..], &gathered[..]), expected.split_at(7));
    }
}
