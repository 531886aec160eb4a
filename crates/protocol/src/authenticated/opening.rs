//! Openings, and the record of opened values that the MAC check needs.
//!
//! An opening sends shares of the value only, so it is provisional until the check has passed (Keller et al.
//! 2017, section 2; Damgard et al. 2012, "partially opened"). Until then the opened value and this party's
//! share of the MAC are kept.

use polyclave_field::{MacField, Word};
use polyclave_kernels::secret::mark_public;
use zeroize::{Zeroize, Zeroizing};

use super::packed::Packed;
use super::share::Authenticated;
use crate::interface::net::Net;
use crate::{Error, Party, Result};

/// What was opened since the last check.
pub struct Openings<F: MacField> {
    /// Opened elements.
    pub(crate) elements: Vec<F::Word>,
    pub(crate) element_macs: Zeroizing<Vec<F::Word>>,
    /// Opened cells.
    pub(crate) cells: Vec<u8>,
    pub(crate) cell_macs: Zeroizing<Vec<F::Word>>,
    /// Everything that was opened and broadcast in the session. Three parties or more compare it, because one
    /// party can send different shares to different others. With two parties there is nothing to compare.
    transcript: blake3::Hasher,
    /// Whether something was noted since the last check.
    noted: bool,
    /// What is sent, and received from every party: wiped after a check, not every round, which costs as much
    /// as all else that is done to them.
    message: Zeroizing<Vec<u8>>,
    received: Vec<Zeroizing<Vec<u8>>>,
}

impl<F: MacField> Default for Openings<F> {
    fn default() -> Self {
        Openings {
            elements: Vec::new(),
            element_macs: Zeroizing::default(),
            cells: Vec::new(),
            cell_macs: Zeroizing::default(),
            transcript: blake3::Hasher::new_derive_key("polyclave 2026 opened values"),
            noted: false,
            message: Zeroizing::default(),
            received: Vec::new(),
        }
    }
}

impl<F: MacField> Openings<F> {
    /// Opens elements, `F::BYTES` bytes each to every other party, and cells, one byte each. One round.
    ///
    /// If an element is the image of a cell, the image of its share under `F::project` is a share of the
    /// cell, and only that is sent (Keller et al. 2017, section 5, "Packing Optimization"). A party that
    /// sends something else opens another cell, and the check is about the image of that cell.
    pub fn open(
        &mut self,
        elements: &Authenticated<F>,
        cells: &[u8],
        cell_macs: &[F::Word],
        net: &mut dyn Net,
    ) -> Result<(Vec<F::Word>, Vec<u8>)> {
        assert_eq!(cells.len(), cell_macs.len(), "a MAC for every cell");
        if elements.is_empty() && cells.is_empty() {
            return Ok(Default::default());
        }
        let element_bytes = elements.len() * F::BYTES;
        make_room(&mut self.message, element_bytes + cells.len());
        let (of_elements, of_cells) = self.message.split_at_mut(element_bytes);
        F::write_row(&elements.values, of_elements);
        of_cells.copy_from_slice(cells);
        send_all(&self.message, &mut self.received, net)?;

        let mut opened = elements.values.to_vec();
        let mut opened_cells = cells.to_vec();
        let mut theirs = vec![F::Word::ZERO; elements.len()];
        for received in self.received.iter().filter(|received| !received.is_empty()) {
            let (of_elements, of_cells) = received.split_at(element_bytes);
            F::read_row(of_elements, &mut theirs);
            opened.iter_mut().zip(&theirs).for_each(|(sum, share)| *sum ^= *share);
            opened_cells.iter_mut().zip(of_cells).for_each(|(sum, share)| *sum ^= *share);
        }
        // Bits beyond a cell are a cheater's: they have no image.
        let cell = 0xff >> (8 - F::CELL_BITS);
        opened_cells.iter_mut().for_each(|x| *x &= cell);
        // Every party has all shares.
        mark_public(&opened);
        mark_public(&opened_cells);
        self.elements.extend_from_slice(&opened);
        self.element_macs.extend_from_slice(&elements.macs);
        self.cells.extend_from_slice(&opened_cells);
        self.cell_macs.extend_from_slice(cell_macs);
        if net.parties() > 2 {
            let mut all = vec![0; element_bytes + cells.len()];
            let (of_elements, of_cells) = all.split_at_mut(element_bytes);
            F::write_row(&opened, of_elements);
            of_cells.copy_from_slice(&opened_cells);
            self.note(&all);
        }
        Ok((opened, opened_cells))
    }

    /// Opens `count` cells of a field that is packed: only their coordinates are sent. One round.
    ///
    /// Both rows are as long as whole bytes need, and zero behind the cells. `macs` computes this party's
    /// shares of the MACs, into the place where the check finds them, after the cells are sent.
    pub(crate) fn open_packed(
        &mut self,
        packed: &Packed,
        cells: &[u8],
        opened: &mut [u8],
        count: usize,
        macs: impl FnOnce(&mut [F::Word]),
        net: &mut dyn Net,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        make_room(&mut self.message, packed.bytes(count));
        packed.pack(&mut self.message, cells);
        send_all(&self.message, &mut self.received, net)?;

        let sum = &mut self.message;
        for received in self.received.iter().filter(|received| !received.is_empty()) {
            sum.iter_mut().zip(received.iter()).for_each(|(sum, share)| *sum ^= share);
        }
        // Every party has all shares.
        mark_public(sum);
        packed.unpack(opened, sum);
        if opened[count..].iter().any(|spare| *spare != 0) {
            return Err(Error::CheckFailed { what: "the bits of an opening that are of no cell" });
        }
        let before = self.cells.len();
        self.reserve_cells(count);
        self.cells.extend_from_slice(&opened[..count]);
        self.cell_macs.resize(before + count, F::Word::ZERO);
        macs(&mut self.cell_macs[before..]);
        if net.parties() > 2 {
            let sum = std::mem::take(&mut self.message);
            self.note(&sum);
            self.message = sum;
        }
        Ok(())
    }

    /// Makes room for this many more opened cells.
    pub(crate) fn reserve_cells(&mut self, count: usize) {
        self.cells.reserve(count);
        let needed = self.cell_macs.len() + count;
        if self.cell_macs.capacity() < needed {
            // Growing in place would leave a copy behind.
            let mut larger = Zeroizing::new(Vec::with_capacity(needed.max(2 * self.cell_macs.capacity())));
            larger.extend_from_slice(&self.cell_macs);
            self.cell_macs = larger;
        }
    }

    /// Claims that elements are zero, given this party's shares of their MACs. The check finds whether they
    /// are. Nothing is sent.
    pub(crate) fn claim_zero(&mut self, macs: &[F::Word]) {
        self.elements.resize(self.elements.len() + macs.len(), F::Word::ZERO);
        self.element_macs.extend_from_slice(macs);
    }

    /// Notes what a party told all others, so that the check finds whether all heard the same.
    pub fn note(&mut self, public: &[u8]) {
        self.noted = true;
        self.transcript.update(&(public.len() as u64).to_le_bytes()).update(public);
    }

    /// Whether there is anything to be checked.
    pub fn is_empty(&self) -> bool {
        !self.noted && self.elements.is_empty() && self.cells.is_empty()
    }

    /// A digest of everything that all parties should have seen.
    pub(crate) fn transcript(&self) -> [u8; 32] {
        *self.transcript.finalize().as_bytes()
    }

    /// Forgets what has been checked.
    pub(crate) fn clear(&mut self) {
        self.noted = false;
        self.elements.clear();
        self.element_macs.clear();
        self.cells.clear();
        self.cell_macs.clear();
        self.message = Zeroizing::default();
        self.received.clear();
    }
}

/// Sends a message to every peer and receives theirs, that of this party empty.
fn send_all(message: &[u8], received: &mut Vec<Zeroizing<Vec<u8>>>, net: &mut dyn Net) -> Result<()> {
    let (me, n) = (net.me(), net.parties());
    let out: Vec<&[u8]> = Party::all(n).map(|p| if p == me { &[] } else { message }).collect();
    received.resize_with(n, Zeroizing::default);
    received.iter_mut().zip(&out).for_each(|(received, out)| make_room(received, out.len()));
    net.exchange(&out, &mut received.iter_mut().map(|m| m.as_mut_slice()).collect::<Vec<_>>())
}

/// Gives the buffer `len` elements, with unspecified contents. If the buffer moves, its old memory is wiped.
pub(crate) fn make_room<T: Zeroize + Default + Clone>(buffer: &mut Zeroizing<Vec<T>>, len: usize) {
    if buffer.capacity() < len {
        *buffer = Zeroizing::new(Vec::with_capacity(len));
    }
    buffer.resize(len, T::default());
}
