//! What a garbler says of what the other one sends: a digest of the same bytes. The evaluator computes it of
//! what it received, and compares.
//!
//! One of the two garblers follows the protocol, so the digest is that of the right bytes or the bytes are
//! the right ones. In both cases they fit only if both are right (the hash is collision resistant). Nothing
//! in a digest is secret from the evaluator, which has received all of it.

use polyclave_kernels::secret::ct_eq;

use super::item::Name;

/// Bytes of a digest.
pub(super) const BYTES: usize = 32;

/// What a digest is about.
#[derive(Clone, Copy)]
pub(super) enum What {
    /// Tables and the decoding of outputs, by the second garbler.
    Circuit = 0,
    /// Labels of the masks of outputs, by the first garbler.
    Masks = 1,
    /// Labels of inputs that the first garbler sends, by the second garbler.
    SentByFirst = 2,
    /// Labels of inputs that the second garbler sends, by the first garbler.
    SentBySecond = 3,
    /// Active labels of outputs, by the evaluator.
    Outputs = 4,
    /// The decoding of sums that are opened, by the second garbler.
    Decoding = 5,
    /// Active labels of sums that are opened, by the evaluator.
    Opened = 6,
}

/// A digest in the making.
pub(super) struct Claim(blake3::Hasher);

impl Claim {
    /// Of these lanes of a lot.
    pub(super) fn new(what: What, name: &Name) -> Claim {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 garbled-three: a digest");
        hasher.update(&[what as u8]).update(&name.lot);
        hasher.update(&name.lanes.start.to_le_bytes()).update(&name.lanes.end.to_le_bytes());
        Claim(hasher)
    }

    /// More bytes, as many as all parties expect here.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest.
    pub(super) fn digest(&self) -> [u8; BYTES] {
        *self.0.finalize().as_bytes()
    }

    /// Whether it is this digest. That is public: it depends on what a party that cheats has changed, and on
    /// nothing else.
    pub(super) fn is(&self, digest: &[u8]) -> bool {
        ct_eq(&self.digest(), digest)
    }
}
