//! What a request will take of the stock first: the same as one like it before. The leading node claims it
//! while the nodes still agree on the request, so the claim takes no time of its own.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::material::stock::bounded::Ahead;

/// So many requests that are not alike are remembered.
const MOST: usize = 4096;

/// What requests took first, by what makes them alike ([`Plan::likeness`]). Only the leading node asks for
/// it.
///
/// [`Plan::likeness`]: super::plan::Plan::likeness
#[derive(Default)]
pub(crate) struct Foresight(Mutex<HashMap<[u8; 32], Ahead>>);

impl Foresight {
    /// What a request will take first, as far as this node can tell.
    pub(crate) fn of(&self, likeness: &[u8; 32]) -> Ahead {
        self.0.lock().get(likeness).copied().unwrap_or_default()
    }

    /// A request took this first.
    pub(crate) fn note(&self, likeness: [u8; 32], took: Ahead) {
        let mut seen = self.0.lock();
        if seen.len() >= MOST && !seen.contains_key(&likeness) {
            seen.clear();
        }
        seen.insert(likeness, took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_expected_to_take_what_one_like_it_took_last() {
        let (foresight, two) = (Foresight::default(), Ahead { kind: 3, count: 2 });
        assert_eq!(foresight.of(&[1; 32]), Ahead::default());
        foresight.note([1; 32], two);
        assert_eq!((foresight.of(&[1; 32]), foresight.of(&[2; 32])), (two, Ahead::default()));
        foresight.note([1; 32], Ahead::default());
        assert_eq!(foresight.of(&[1; 32]), Ahead::default());
        assert_eq!(Ahead::of(two.bytes()), two);
    }

    #[test]
    fn no_more_than_so_many_are_remembered() {
        let foresight = Foresight::default();
        for number in 0..2 * MOST as u64 {
            let mut likeness = [0; 32];
            likeness[..8].copy_from_slice(&number.to_le_bytes());
            foresight.note(likeness, Ahead { kind: 0, count: 1 });
            assert!(foresight.0.lock().len() <= MOST);
            assert_eq!(foresight.of(&likeness).count, 1);
        }
    }
}
