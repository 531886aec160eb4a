//! Tags of joint messages: a polynomial in a key, over GF(2^128).
//!
//! The tag of elements m_1 .. m_n (the message, with zeros behind it) under k is k^(n+1) and the sum of all
//! m_i k^i. Messages on a line have the same length in a round. So for another message than the right one the
//! two tags are equal for at most n of 2^128 keys: the difference is a polynomial of degree n in k, and is
//! not 0. The key is used for one message, and the teller, which may cheat, does not have it. So if a cheater
//! alters messages of N elements in all, one of them passes with probability N 2^-128 at most: 2^-88 for 16
//! TB.
//!
//! **No message has the tag 0**, but for n + 1 keys. A party that has stopped sends zeros, as a message and
//! as a tag. In each round it is the second of one message to each other party. So all others stop in that
//! round, whatever the teller sends: a cheating teller lacks the key, and zeros do not have the tag 0.
//! Without the term k^(n+1) a party would take zeros of two that have stopped for right.

use polyclave_field::Gf128;
use polyclave_kernels::gf128;

use crate::interface::service::ELEMENT_BYTES;

pub(super) const TAG_BYTES: usize = ELEMENT_BYTES;
pub(super) type Tag = [u8; TAG_BYTES];

/// Elements whose sum is one inner product.
const GROUP: usize = 128;
/// The element 1.
const ONE: Tag = Gf128::ONE.to_bytes();

/// The tag of a message.
pub(super) fn tag(key: &Tag, message: &[u8]) -> Tag {
    // For a group, and one more for what follows the last element.
    let powers = powers(key, message.len().div_ceil(ELEMENT_BYTES).min(GROUP) + 1);
    let (groups, rest) = message.split_at(message.len() - message.len() % (GROUP * ELEMENT_BYTES));
    let mut sums = vec![0; groups.len() / GROUP];
    if !groups.is_empty() {
        gf128::weighted_sums(&mut sums, groups, &powers[..GROUP * ELEMENT_BYTES]);
    }
    let mut last = vec![0; rest.len().next_multiple_of(ELEMENT_BYTES)];
    last[..rest.len()].copy_from_slice(rest);
    last.extend_from_slice(&ONE);
    let mut tag = [0; TAG_BYTES];
    gf128::weighted_sums(&mut tag, &last, &powers[..last.len()]);
    // From the last group to the first: its sum, and the others times the power of a group.
    for sum in sums.chunks(ELEMENT_BYTES).rev() {
        let behind = tag;
        gf128::multiply(&mut tag, &behind, &powers[(GROUP - 1) * ELEMENT_BYTES..][..ELEMENT_BYTES]);
        tag.iter_mut().zip(sum).for_each(|(tag, sum)| *tag ^= sum);
    }
    tag
}

/// k, k^2 .. Each step doubles how many are known.
fn powers(key: &Tag, count: usize) -> Vec<u8> {
    let mut powers = Vec::with_capacity(2 * count * ELEMENT_BYTES);
    powers.extend_from_slice(key);
    while powers.len() < count * ELEMENT_BYTES {
        let len = powers.len();
        let last = powers[len - ELEMENT_BYTES..].repeat(len / ELEMENT_BYTES);
        powers.resize(2 * len, 0);
        let (known, next) = powers.split_at_mut(len);
        gf128::multiply(next, known, &last);
    }
    powers.truncate(count * ELEMENT_BYTES);
    powers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_the_polynomial_of_the_message_whatever_its_length() {
        let key: Tag = std::array::from_fn(|i| 17 * i as u8 + 3);
        for len in [0, 1, 15, 16, 17, 2047, 2048, 2049, 4096, 5000, 10 * 2048 + 16] {
            let message: Vec<u8> = (0..len).map(|i| (i * i + 7 * i) as u8).collect();
            let element = |bytes: &[u8]| {
                let mut element = [0; ELEMENT_BYTES];
                element[..bytes.len()].copy_from_slice(bytes);
                Gf128::from_bytes(element)
            };
            let k = Gf128::from_bytes(key);
            let last_first = message.chunks(ELEMENT_BYTES).rev();
            let expected = last_first.fold(Gf128::ONE * k, |sum, m| (sum + element(m)) * k);
            assert_eq!(tag(&key, &message), expected.to_bytes(), "{len} bytes");
        }
    }

    /// A party that has stopped sends zeros as a message and as a tag.
    #[test]
    fn zeros_do_not_vouch_for_zeros() {
        for len in [0, 1, 16, 100, 2048, 5000] {
            assert_ne!(tag(&[3; TAG_BYTES], &vec![0; len]), [0; TAG_BYTES], "{len} bytes");
        }
    }
}
