//! A shared value with one byte at each party for each cell: Shamir sharing over GF(2^8), and additive
//! sharing.

use polyclave_cipher::{Cells, CompiledPort, Matrix, Slot};
use zeroize::Zeroizing;

use crate::interface::protocol::SharedValue;
use crate::stored::{Header, Reader, Shape, shape_bytes};
use crate::{Error, Result, lanes};

/// Shares of the cells of one port, and of images of them; wiped on drop.
#[derive(Clone)]
pub struct ByteShares {
    /// Bits of a cell.
    pub bits: u8,
    /// Cells.
    pub count: usize,
    /// Lanes.
    pub lanes: usize,
    /// The identity first.
    pub(crate) views: Vec<Matrix>,
    /// View by view, cell by cell.
    pub(crate) rows: Zeroizing<Vec<u8>>,
}

impl SharedValue for ByteShares {
    fn reveal_own_shares(&self) -> &[u8] {
        &self.rows[..self.count * self.lanes]
    }
}

impl ByteShares {
    /// From an output port. `row` gives the row of each slot, in `lanes` lanes.
    pub fn of_port<'a>(port: &CompiledPort, lanes: usize, row: impl Fn(Slot) -> &'a [u8]) -> Self {
        let views: Vec<Matrix> = port.cells[0].iter().map(|(m, _)| *m).collect();
        let lanes = if port.uniform { 1 } else { lanes };
        let mut rows = Zeroizing::new(vec![0; views.len() * port.cells.len() * lanes]);
        for (k, chunk) in rows.chunks_mut(port.cells.len() * lanes).enumerate() {
            for (to, cell) in chunk.chunks_mut(lanes).zip(&port.cells) {
                match row(cell[k].1) {
                    // A uniform cell among others.
                    [one] => to.fill(*one),
                    lanes => to.copy_from_slice(lanes),
                }
            }
        }
        ByteShares { bits: port.bits, count: port.cells.len(), lanes, views, rows }
    }

    /// Bytes of the blocks that people write.
    pub fn block_bytes(&self) -> usize {
        Cells::block_bytes(self.count, self.bits) * self.lanes
    }

    /// The shares of cells.
    pub fn of_cells(cells: &Cells) -> Self {
        let (bits, count, lanes) = (cells.bits(), cells.count(), cells.lanes());
        let rows = Zeroizing::new(cells.rows().to_vec());
        ByteShares { bits, count, lanes, views: vec![Matrix::identity(bits)], rows }
    }

    /// Whether it is a value for this input port.
    pub fn check_port(&self, port: &CompiledPort, lanes: usize) -> Result<()> {
        let lanes = if port.uniform { 1 } else { lanes };
        match (self.count, self.bits, self.lanes) == (port.cells.len(), port.bits, lanes) {
            true => Ok(()),
            false => Err(Error::Misuse(format!("the shared value does not fit input {}", port.name))),
        }
    }

    /// The shares of an image of one cell that an input port needs.
    pub fn image(&self, port: &CompiledPort, cell: usize, image: &Matrix) -> Result<&[u8]> {
        let missing = || {
            let name = &port.name;
            Error::Misuse(format!("the shared value lacks an image of it that input {name} needs"))
        };
        Ok(self.row(cell, self.views.iter().position(|view| view == image).ok_or_else(missing)?))
    }

    /// One cell in all lanes, in one of the views.
    pub fn row(&self, cell: usize, view: usize) -> &[u8] {
        &self.rows[(view * self.count + cell) * self.lanes..][..self.lanes]
    }

    /// The shares of the value itself as cells.
    pub fn cells(&self) -> Cells {
        let mut cells = Cells::zero(self.count, self.bits, self.lanes);
        cells.rows_mut().copy_from_slice(self.reveal_own_shares());
        cells
    }

    /// The lanes of these numbers.
    pub fn select(&self, selected: &[usize]) -> Self {
        let rows = Zeroizing::new(lanes::select(&self.rows, self.lanes, selected));
        ByteShares { lanes: selected.len(), views: self.views.clone(), rows, ..*self }
    }

    /// Whether its lanes and those of another value can be lanes of one.
    pub fn is_alike(&self, other: &Self) -> bool {
        (self.bits, self.count, &self.views) == (other.bits, other.count, &other.views)
    }

    /// The lanes of all parts, which are values of one port.
    pub fn join(parts: &[&Self]) -> Self {
        let (views, first) = (parts[0].views.clone(), parts[0]);
        let rows: Vec<_> = parts.iter().map(|part| (&part.rows[..], part.lanes)).collect();
        let rows = Zeroizing::new(lanes::join(&rows));
        ByteShares { lanes: parts.iter().map(|part| part.lanes).sum(), views, rows, ..*first }
    }

    /// What a party stores: this header, the shape ([`shape_bytes`]), and the shares, view by view.
    pub fn save(&self, header: Header) -> Zeroizing<Vec<u8>> {
        let shape = shape_bytes(self.bits, self.count, self.lanes, &self.views);
        let mut bytes = Zeroizing::new(Vec::with_capacity(header.len() + shape.len() + self.rows.len()));
        bytes.extend(header);
        bytes.extend(shape);
        bytes.extend_from_slice(&self.rows);
        bytes
    }

    /// Reads what [`save`](ByteShares::save) wrote under the same header.
    pub fn restore(bytes: &[u8], protocol: &'static str, header: Header) -> Result<Self> {
        let mut reader = Reader::new(bytes, protocol, header)?;
        let Shape { bits, count, lanes, views, shares } = reader.shape()?;
        let rows = Zeroizing::new(reader.take(shares)?.to_vec());
        reader.finish()?;
        Ok(ByteShares { bits, count, lanes, views, rows })
    }
}
