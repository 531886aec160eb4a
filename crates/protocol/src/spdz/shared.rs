//! Shared values outside of an evaluation: inputs, outputs, and values that are kept.

use std::array::from_fn;

use polyclave_cipher::{Cells, CompiledPort, Matrix};
use polyclave_field::{MacField, Word};
use zeroize::Zeroizing;

use super::arithmetic::Arithmetic;
use super::proofs::Proofs;
use super::registers::{Registers, Row};
use crate::authenticated::{Authenticated, MacKey};
use crate::interface::net::Net;
use crate::interface::protocol::{Owner, SharedValue};
use crate::unchecked::Unchecked;
use crate::{Error, Party, Result, lanes};

/// Shares of the cells of one port, and of images of them.
#[derive(Clone)]
pub struct Shared<F: MacField> {
    pub(super) bits: u8,
    pub(super) count: usize,
    pub(super) lanes: usize,
    /// The identity first.
    pub(super) views: Vec<Matrix>,
    /// View by view, cell by cell.
    pub(super) cells: Zeroizing<Vec<u8>>,
    pub(super) macs: Zeroizing<Vec<F::Word>>,
    pub(super) unchecked: Unchecked,
    /// What proves it to a client.
    pub(super) proofs: Proofs,
    /// The bits of its cells, if they are there: the lowest of all cells, then the next ..
    pub(super) known_bits: Option<Authenticated<F>>,
}

impl<F: MacField> SharedValue for Shared<F> {
    fn reveal_own_shares(&self) -> &[u8] {
        &self.cells[..self.count * self.lanes]
    }
}

impl<F: MacField> Shared<F> {
    fn zero(bits: u8, count: usize, lanes: usize, views: Vec<Matrix>) -> Self {
        let len = views.len() * count * lanes;
        let (cells, macs) = (Zeroizing::new(vec![0; len]), Zeroizing::new(vec![F::Word::ZERO; len]));
        let (unchecked, proofs) = (Unchecked::default(), Proofs::default());
        Shared { bits, count, lanes, views, cells, macs, unchecked, proofs, known_bits: None }
    }

    /// Bytes of the blocks that people write.
    pub(super) fn block_bytes(&self) -> usize {
        Cells::block_bytes(self.count, self.bits) * self.lanes
    }

    /// Cells that everybody knows, and these images of them.
    pub(super) fn public(cells: &Cells, views: &[Matrix], key: &MacKey<F>) -> Self {
        let mut shared = Self::zero(cells.bits(), cells.count(), cells.lanes(), views.to_vec());
        shared.add_public(cells, key);
        shared
    }

    pub(super) fn add_public(&mut self, cells: &Cells, key: &MacKey<F>) {
        let len = self.count * self.lanes;
        // They are of the value that it was.
        (self.proofs, self.known_bits) = (Proofs::default(), None);
        let alpha = key.reveal_own_share();
        let places: Zeroizing<[F::Word; 8]> =
            Zeroizing::new(from_fn(|i| match i < usize::from(F::CELL_BITS) {
                true => F::multiply(alpha, F::embed(1 << i)),
                false => F::Word::ZERO,
            }));
        let mac = |image: u8| {
            (0..8).fold(F::Word::ZERO, |sum, i| match image >> i & 1 {
                1 => sum ^ places[i],
                _ => sum,
            })
        };
        for (k, view) in self.views.iter().enumerate() {
            let range = k * len..(k + 1) * len;
            // By cell, which is public, its image and what that adds to the MAC.
            let images: [u8; 256] = from_fn(|cell| view.apply(cell as u8));
            let image_macs: Zeroizing<Vec<F::Word>> =
                Zeroizing::new(images.iter().map(|x| mac(*x)).collect());
            let shares = self.cells[range.clone()].iter_mut().zip(&mut self.macs[range]);
            for ((share, mac), cell) in shares.zip(cells.rows()) {
                if key.is_first() {
                    *share ^= images[usize::from(*cell)];
                }
                *mac ^= image_macs[usize::from(*cell)];
            }
        }
    }

    /// Cells from their bits: the lowest of all cells, then the next ..
    pub(super) fn of_bits(port: &CompiledPort, lanes: usize, bits: &Authenticated<F>) -> Self {
        let len = port.cells.len() * lanes;
        let mut shared = Self::zero(port.bits, port.cells.len(), lanes, port.views());
        for (k, view) in shared.views.clone().iter().enumerate() {
            let image = image_of_bits(bits, view, len);
            F::project_row(&mut shared.cells[k * len..(k + 1) * len], &image.values);
            shared.macs[k * len..(k + 1) * len].copy_from_slice(&image.macs);
        }
        shared
    }

    /// The sum of two values of one shape, without further images of it.
    pub(super) fn plus(&self, other: &Self) -> Result<Self> {
        let shape = |value: &Self| (value.bits, value.count, value.lanes);
        if shape(self) != shape(other) {
            return Err(Error::misuse("values of different shapes are to be added"));
        }
        let mut sum = Self::zero(self.bits, self.count, self.lanes, vec![Matrix::identity(self.bits)]);
        for ((sum, a), b) in sum.cells.iter_mut().zip(self.cells.iter()).zip(other.cells.iter()) {
            *sum = a ^ b;
        }
        for ((sum, a), b) in sum.macs.iter_mut().zip(self.macs.iter()).zip(other.macs.iter()) {
            *sum = *a ^ *b;
        }
        sum.unchecked = Unchecked::join([&self.unchecked, &other.unchecked]);
        Ok(sum)
    }

    /// Some cells of a value that fits a port, without further images of them.
    pub(super) fn cells(&self, port: &CompiledPort, cells: &[usize]) -> Result<Self> {
        if (self.count, self.bits) != (port.cells.len(), port.bits) {
            return Err(Error::Misuse(format!("the shared value does not fit input {}", port.name)));
        }
        let mut some = Self::zero(self.bits, cells.len(), self.lanes, vec![Matrix::identity(self.bits)]);
        for (to, from) in cells.iter().enumerate() {
            let [to, from] = [to, *from].map(|cell| cell * self.lanes..(cell + 1) * self.lanes);
            some.cells[to.clone()].copy_from_slice(&self.cells[from.clone()]);
            some.macs[to].copy_from_slice(&self.macs[from]);
        }
        some.unchecked = self.unchecked.clone();
        Ok(some)
    }

    /// The lanes of these numbers.
    ///
    /// # Panics
    /// If there is no such lane.
    pub(super) fn select(&self, selected: &[usize]) -> Self {
        Shared {
            lanes: selected.len(),
            views: self.views.clone(),
            cells: Zeroizing::new(lanes::select(&self.cells, self.lanes, selected)),
            macs: Zeroizing::new(lanes::select(&self.macs, self.lanes, selected)),
            unchecked: self.unchecked.clone(),
            proofs: self.proofs.select(selected),
            known_bits: self.known_bits.as_ref().map(|bits| Authenticated {
                values: Zeroizing::new(lanes::select(&bits.values, self.lanes, selected)),
                macs: Zeroizing::new(lanes::select(&bits.macs, self.lanes, selected)),
            }),
            ..*self
        }
    }

    /// Whether its lanes and those of another value can be lanes of one.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        (self.bits, self.count, &self.views) == (other.bits, other.count, &other.views)
    }

    /// The lanes of all parts, which are values of one port and session.
    pub(super) fn join(parts: &[&Self]) -> Self {
        let first = parts[0];
        let cells: Vec<_> = parts.iter().map(|part| (&part.cells[..], part.lanes)).collect();
        let macs: Vec<_> = parts.iter().map(|part| (&part.macs[..], part.lanes)).collect();
        Shared {
            lanes: parts.iter().map(|part| part.lanes).sum(),
            views: first.views.clone(),
            cells: Zeroizing::new(lanes::join(&cells)),
            macs: Zeroizing::new(lanes::join(&macs)),
            unchecked: Unchecked::join(parts.iter().map(|part| &part.unchecked)),
            proofs: Proofs::join(parts.iter().map(|part| &part.proofs)),
            known_bits: Self::joined_bits(parts),
            ..*first
        }
    }

    /// The bits of all parts, if all have some.
    fn joined_bits(parts: &[&Self]) -> Option<Authenticated<F>> {
        let bits = parts.iter().map(|part| Some((part.known_bits.as_ref()?, part.lanes)));
        let bits: Vec<_> = bits.collect::<Option<_>>()?;
        let rows = |row: fn(&Authenticated<F>) -> &[F::Word]| {
            let rows: Vec<_> = bits.iter().map(|(bits, lanes)| (row(bits), *lanes)).collect();
            Zeroizing::new(lanes::join(&rows))
        };
        Some(Authenticated { values: rows(|bits| &bits.values), macs: rows(|bits| &bits.macs) })
    }

    /// From an output port; it rests on this.
    pub(super) fn of(port: &CompiledPort, registers: &Registers<F>, unchecked: Unchecked) -> Self {
        let views: Vec<Matrix> = port.cells[0].iter().map(|(m, _)| *m).collect();
        let lanes = if port.uniform { 1 } else { registers.lanes() };
        let mut shared = Self::zero(port.bits, port.cells.len(), lanes, views);
        shared.unchecked = unchecked;
        let slots = (0..shared.views.len()).flat_map(|k| port.cells.iter().map(move |cell| cell[k].1));
        let rows = shared.cells.chunks_mut(lanes).zip(shared.macs.chunks_mut(lanes));
        for (slot, (cells, macs)) in slots.zip(rows) {
            let row = registers.row(slot);
            if row.cells.len() == lanes {
                cells.copy_from_slice(&row.cells);
                macs.copy_from_slice(&row.macs);
            } else {
                // A uniform cell among others.
                cells.fill(row.cells[0]);
                macs.fill(row.macs[0]);
            }
        }
        shared
    }

    /// Into the slots of an input port.
    pub(super) fn put(&self, port: &CompiledPort, lanes: usize, registers: &mut Registers<F>) -> Result<()> {
        if (self.count, self.bits, self.lanes) != (port.cells.len(), port.bits, lanes) {
            return Err(Error::Misuse(format!("the shared value does not fit input {}", port.name)));
        }
        for (i, views) in port.cells.iter().enumerate() {
            for (m, slot) in views {
                let missing = || {
                    let name = &port.name;
                    Error::Misuse(format!("the shared value lacks an image of it that input {name} needs"))
                };
                let view = self.views.iter().position(|v| v == m).ok_or_else(missing)?;
                let at = (view * self.count + i) * lanes;
                let row: &mut Row<F> = registers.row_mut(*slot);
                row.cells.copy_from_slice(&self.cells[at..at + lanes]);
                row.macs.copy_from_slice(&self.macs[at..at + lanes]);
            }
        }
        Ok(())
    }
}

impl<F: MacField> Arithmetic<F> {
    /// A party's secret cells: under a mask of random bits that only it knows, x + r is public, so that x is
    /// a cell for any message of the party, and every image of x follows from the bits. What it told others
    /// is compared at the next check. One round.
    pub(super) fn share(
        &mut self,
        owner: Party,
        cells: Option<&Cells>,
        port: &CompiledPort,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared<F>> {
        self.refuse_over()?;
        let len = port.cells.len() * lanes;
        let (bits, known) = self.source.bits_of(owner, len * usize::from(port.bits), net)?;
        let mut shared = Shared::of_bits(port, lanes, &bits);
        let mut masked = Cells::zero(port.cells.len(), port.bits, lanes);
        if let (Some(cells), Some(known)) = (cells, &known) {
            masked.rows_mut().copy_from_slice(cells.rows());
            for (i, row) in known.chunks(len.max(1)).enumerate() {
                masked.rows_mut().iter_mut().zip(row).for_each(|(x, bit)| *x ^= (bit & 1) << i);
            }
            let everyone = Party::all(net.parties());
            let out: Vec<&[u8]> = everyone.map(|p| if p == owner { &[] } else { masked.rows() }).collect();
            let mut nothing: Vec<&mut [u8]> = Party::all(net.parties()).map(|_| &mut [][..]).collect();
            net.exchange(&out, &mut nothing)?;
        } else {
            net.recv(owner, masked.rows_mut())?;
            let cell = 0xff >> (8 - port.bits);
            masked.rows_mut().iter_mut().for_each(|x| *x &= cell);
        }
        self.openings.note(masked.rows());
        self.tally.of(self.phase).rounds += 1;
        shared.add_public(&masked, &self.key);
        Ok(shared)
    }

    /// Opens a value to its owner: to one party under a mask of random bits that only it knows. The caller
    /// checks before and after. One round.
    pub(super) fn reveal(
        &mut self,
        shared: &Shared<F>,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Cells>> {
        let len = shared.count * shared.lanes;
        let mut cells = Zeroizing::new(shared.cells[..len].to_vec());
        let mut macs = Zeroizing::new(shared.macs[..len].to_vec());
        let mut known = None;
        if let Owner::Party(owner) = to {
            let bits;
            (bits, known) = self.source.bits_of(owner, len * usize::from(shared.bits), net)?;
            let mask = image_of_bits(&bits, &Matrix::identity(shared.bits), len);
            let mut mask_cells = Zeroizing::new(vec![0; len]);
            F::project_row(&mut mask_cells, &mask.values);
            cells.iter_mut().zip(mask_cells.iter()).for_each(|(x, mask)| *x ^= mask);
            macs.iter_mut().zip(mask.macs.iter()).for_each(|(x, mask)| *x ^= *mask);
        }
        let (_, public) = self.open(&Authenticated::zero(0), &cells, &macs, net)?;
        let mut opened = Cells::zero(shared.count, shared.bits, shared.lanes);
        opened.rows_mut().copy_from_slice(&public);
        match (to, known) {
            (Owner::All, _) => Ok(Some(opened)),
            (Owner::Party(_), None) => Ok(None),
            (Owner::Party(_), Some(known)) => {
                for (i, row) in known.chunks(len.max(1)).enumerate() {
                    opened.rows_mut().iter_mut().zip(row).for_each(|(x, bit)| *x ^= (bit & 1) << i);
                }
                Ok(Some(opened))
            }
        }
    }
}

/// The image of cells, given their bits: the lowest of all cells, then the next ..
pub(super) fn image_of_bits<F: MacField>(
    bits: &Authenticated<F>,
    view: &Matrix,
    len: usize,
) -> Authenticated<F> {
    let mut image = Authenticated::zero(len);
    let columns = || (0..usize::from(view.ins())).map(|i| F::embed(view.columns()[i]));
    let values: Vec<_> = bits.values.chunks(len.max(1)).zip(columns()).collect();
    let macs: Vec<_> = bits.macs.chunks(len.max(1)).zip(columns()).collect();
    F::combine(&mut image.values, &values, F::Word::ZERO);
    F::combine(&mut image.macs, &macs, F::Word::ZERO);
    image
}
