//! Additional data that consist of several parts. With the length of each part in front of it, no two lists
//! of parts give the same bytes.

/// A part, by how many bytes its length has. The caller sees to it that the length fits.
pub(crate) enum Part<'p> {
    /// At most 255 bytes.
    Short(&'p [u8]),
    /// At most 65,535 bytes.
    Long(&'p [u8]),
}

/// The parts, each behind its length (big-endian).
pub(crate) fn bound<const N: usize>(parts: [Part<'_>; N]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts {
        let bytes = match part {
            Part::Short(bytes) => {
                debug_assert!(bytes.len() <= usize::from(u8::MAX));
                all.push(bytes.len() as u8);
                bytes
            }
            Part::Long(bytes) => {
                debug_assert!(bytes.len() <= usize::from(u16::MAX));
                all.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
                bytes
            }
        };
        all.extend_from_slice(bytes);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::Part::{Long, Short};
    use super::*;

    #[test]
    fn parts_have_lengths_so_that_no_byte_moves_from_one_to_the_next() {
        assert_eq!(bound([Long(b"ab"), Short(b"c")]), b"\0\x02ab\x01c");
        assert_eq!(bound([Long(b""), Short(b"")]), b"\0\0\0");
        assert_eq!(bound([Long(&[7; 8192]), Short(b"")])[..2], [0x20, 0]);
        assert_eq!(bound([Long(b"a"), Long(b"bc")]), b"\0\x01a\0\x02bc");
        let of = |at: usize| bound([Long(&b"abc"[..at]), Long(&b"abc"[at..])]);
        for (one, other) in [(0, 1), (0, 3), (1, 2), (2, 3)] {
            assert_ne!(of(one), of(other));
        }
    }
}
