//! The commitment to a file and its header: BLAKE3 in key derivation mode of file, header, their lengths, and
//! 32 random bytes.
//!
//! * **Binding:** the lengths are last and have fixed places, so different files and headers are different
//!   inputs, and two that gave the same commitment would be a collision of BLAKE3.
//! * **Hiding:** the random bytes are in the last chunk of the input, so the hash is that of an input that
//!   nobody can guess. With BLAKE3 as a random oracle (its tree mode is indifferentiable from one: O'Connor,
//!   Aumasson, Neves and Wilcox-O'Hearn, BLAKE3, 2020, section 5) it says nothing about the file. The file
//!   comes first, so that its chunks begin where BLAKE3's do, which is faster.

/// Bytes of the random value.
pub(super) const RHO: usize = 32;

/// A commitment that is being computed.
pub(super) struct Commitment {
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Commitment {
    pub(super) fn new() -> Commitment {
        Commitment {
            hasher: blake3::Hasher::new_derive_key("polyclave 2026 commitment of an envelope"),
            bytes: 0,
        }
    }

    /// Takes the next bytes of the file.
    pub(super) fn update(&mut self, data: &[u8]) {
        self.hasher.update(data);
        self.bytes += data.len() as u64;
    }

    /// Bytes of the file so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn finish(&mut self, header: &[u8], rho: &[u8; RHO]) -> [u8; 32] {
        let lengths = [self.bytes, header.len() as u64].map(u64::to_le_bytes);
        self.hasher.update(header).update(rho).update(&lengths.concat());
        self.hasher.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit of 64 GiB depends on it.
    #[test]
    fn all_bytes_of_a_file_count() {
        let mut commitment = Commitment::new();
        [0, 3, 4].iter().for_each(|len| commitment.update(&vec![7; *len]));
        assert_eq!(commitment.bytes(), 7);
    }
}
