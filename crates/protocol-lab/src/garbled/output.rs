//! Decoding of output labels.
//!
//! * To the evaluator the garbler sends, for each wire, hashes of the label for zero and of the label for
//!   one, 8 bytes of each. The evaluator compares them with the hash of the active label, which gives the
//!   bit. If the label is neither (some ciphertext was damaged on its way), the run ends in an error. The
//!   hash of the other label tells the evaluator nothing of it, because the wire takes a number of its own
//!   (`hash.rs`).
//! * To the garbler the evaluator sends the active label itself. It does not know the other label, whatever
//!   it does.
//!
//! One round, to both parties at once. Constant time: what is compared is secret until all of it has been
//! compared.

use polyclave_cipher::{Cells, CompiledPort};
use polyclave_kernels::label_hash::Label;
use polyclave_kernels::secret::public;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use super::{EVALUATOR, GARBLER, Garbled, Registers, Shared, Side};
use polyclave_protocol::garbling::LABEL;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Owner;
use polyclave_protocol::{Error, Party, Result};

/// Bytes of a hash that are compared.
const HASH: usize = 8;

impl Garbled {
    /// The labels of an output port.
    pub(super) fn take_out(&mut self, port: &CompiledPort, registers: &mut Registers) -> Shared {
        let (count, lanes) = (port.cells.len(), registers.labels.lanes_of(port));
        let mut labels = self.pool.take(count * lanes * LABEL);
        for (views, row) in port.cells.iter().zip(labels.as_chunks_mut().0.chunks_mut(lanes)) {
            row.copy_from_slice(registers.labels.row(views[0].1));
        }
        Shared { setup: self.setup, count, lanes, labels }
    }

    /// The value, to those who learn it. One round.
    pub(super) fn reveal(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<Cells>> {
        shared.refuse_other(&self.setup)?;
        let learns = |party: Party| to == Owner::All || to == Owner::Party(party);
        if !learns(GARBLER) && !learns(EVALUATOR) {
            return Err(Error::misuse("an output goes to one of the two parties, or to both"));
        }
        let labels = shared.labels();
        let to_evaluator = if learns(EVALUATOR) { 2 * HASH * labels.len() } else { 0 };
        let to_garbler = if learns(GARBLER) { LABEL * labels.len() } else { 0 };
        let counts = self.counts();
        counts.rounds += 1;
        counts.openings += labels.len() as u64;
        let (peer, bits) = match &self.side {
            Side::Garbler { delta, .. } => {
                let others = added(labels, delta);
                let mut hashes = Zeroizing::new(Vec::new());
                if learns(EVALUATOR) {
                    hashes = self.hashes_of_both(labels, &others);
                }
                let mut active = Zeroizing::new(vec![0; to_garbler]);
                let (out, into): (&[&[u8]], &mut [&mut [u8]]) =
                    (&[&[], &hashes], &mut [&mut [], &mut active]);
                net.exchange(out, into)?;
                let active = active.as_chunks::<LABEL>().0.iter();
                (EVALUATOR, decoded(active.zip(labels.iter().zip(others.iter()))))
            }
            Side::Evaluator => {
                let mut hashes = Zeroizing::new(vec![0; to_evaluator]);
                let active = &shared.labels[..to_garbler];
                let (out, into): (&[&[u8]], &mut [&mut [u8]]) = (&[active, &[]], &mut [&mut hashes, &mut []]);
                net.exchange(out, into)?;
                let mut own = Zeroizing::new(Vec::new());
                if learns(EVALUATOR) {
                    own = self.hashes(labels);
                }
                let (of_both, _) = hashes.as_chunks::<HASH>();
                let (pairs, _) = of_both.as_chunks::<2>();
                let own = own.iter().map(|hash| hash.first_chunk::<HASH>().expect("a hash is longer"));
                (GARBLER, decoded(own.zip(pairs.iter().map(|[zero, one]| (zero, one)))))
            }
        };
        let bits = bits.ok_or_else(|| {
            let detail = "labels of an output that are none of its wires'".into();
            Error::Peer { peer, detail }
        })?;
        if !learns(net.me()) {
            return Ok(None);
        }
        let mut cells = Cells::zero(shared.count, 1, shared.lanes);
        cells.rows_mut().copy_from_slice(&bits);
        Ok(Some(cells))
    }

    /// Hashes of the labels of both values, 8 bytes each.
    fn hashes_of_both(&mut self, zeros: &[Label], ones: &[Label]) -> Zeroizing<Vec<u8>> {
        let (mut of_zeros, mut of_ones) = (Zeroizing::new(zeros.to_vec()), Zeroizing::new(ones.to_vec()));
        let (hash, first) = self.hash.take(zeros.len());
        hash.hash(first, &mut of_zeros);
        hash.hash(first, &mut of_ones);
        self.counts().hash_calls += 2 * zeros.len() as u64;
        let both = of_zeros.iter().zip(of_ones.iter()).flat_map(|(zero, one)| [zero, one]);
        Zeroizing::new(both.flat_map(|hash| &hash[..HASH]).copied().collect())
    }

    /// Hashes of active labels.
    fn hashes(&mut self, labels: &[Label]) -> Zeroizing<Vec<Label>> {
        let mut hashes = Zeroizing::new(labels.to_vec());
        let (hash, first) = self.hash.take(labels.len());
        hash.hash(first, &mut hashes);
        self.counts().hash_calls += labels.len() as u64;
        hashes
    }
}

/// The labels for one.
fn added(zeros: &[Label], delta: &Label) -> Zeroizing<Vec<Label>> {
    let delta = u128::from_le_bytes(*delta);
    Zeroizing::new(zeros.iter().map(|zero| (u128::from_le_bytes(*zero) ^ delta).to_le_bytes()).collect())
}

/// Decodes bits: each is given by which of two values it equals. `None` if one equals neither.
fn decoded<'a, const SIZE: usize>(
    all: impl Iterator<Item = (&'a [u8; SIZE], (&'a [u8; SIZE], &'a [u8; SIZE]))>,
) -> Option<Vec<u8>> {
    let mut fits = Choice::from(1);
    let mut bits = Vec::new();
    for (active, (zero, one)) in all {
        let (is_zero, is_one) = (active[..].ct_eq(&zero[..]), active[..].ct_eq(&one[..]));
        fits &= is_zero ^ is_one;
        bits.push(is_one.unwrap_u8());
    }
    // The party that learns the output also learns whether there is one.
    public(bool::from(fits)).then_some(bits)
}
