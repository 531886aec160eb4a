//! Reads what a node stored. Malformed bytes are an error and never a panic, and memory is allocated only for
//! bytes that were read.

use polyclave_cipher::Matrix;

use crate::{Error, Result};

/// Bytes in front of what a party stored: kind, version, and what it was made for.
pub type Header = [u8; 5];

/// Takes stored bytes apart from the front.
pub struct Reader<'a> {
    bytes: &'a [u8],
    protocol: &'static str,
}

impl<'a> Reader<'a> {
    /// Behind the header, which must be this one.
    pub fn new(bytes: &'a [u8], protocol: &'static str, header: Header) -> Result<Reader<'a>> {
        let mut reader = Reader::bare(bytes, protocol);
        let found: Header = reader.array()?;
        if found[..2] != header[..2] {
            return Err(reader.damaged("they are of another kind or version"));
        }
        if found[2..] != header[2..] {
            return Err(
                reader.damaged("they belong to another party, or were made for other parties or parameters")
            );
        }
        Ok(reader)
    }

    /// A reader of bytes without a header.
    pub fn bare(bytes: &'a [u8], protocol: &'static str) -> Reader<'a> {
        Reader { bytes, protocol }
    }

    /// The next bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.bytes.split_at_checked(len).ok_or_else(|| self.damaged("they end too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.damaged("they end too early"))
    }

    /// What [`shape_bytes`] wrote.
    pub fn shape(&mut self) -> Result<Shape> {
        let [bits] = self.array()?;
        let [count, lanes] = [self.array()?, self.array()?].map(|n| u32::from_le_bytes(n) as usize);
        let view_count = usize::from(u16::from_le_bytes(self.array()?));
        if !(1..=8).contains(&bits) || count == 0 || lanes == 0 {
            return Err(self.damaged("they hold no cells"));
        }
        let mut views = Vec::new();
        for _ in 0..view_count {
            views.push(self.view(bits)?);
        }
        if views.first() != Some(&Matrix::identity(bits)) {
            return Err(self.damaged("the first view is not the value itself"));
        }
        let shares = count.checked_mul(lanes).and_then(|len| len.checked_mul(view_count));
        let shares = shares.ok_or_else(|| self.damaged("the number of shares overflows"))?;
        Ok(Shape { bits, count, lanes, views, shares })
    }

    fn view(&mut self, bits: u8) -> Result<Matrix> {
        let [ins, outs] = self.array()?;
        let columns = self.take(usize::from(ins))?;
        let fits =
            ins == bits && (1..=8).contains(&outs) && columns.iter().all(|c| u16::from(*c) < 1 << outs);
        match fits {
            true => Ok(Matrix::from_columns(columns, outs)),
            false => Err(self.damaged("a view is no map of the cells")),
        }
    }

    /// All that is left, for another reader.
    pub fn rest(self) -> &'a [u8] {
        self.bytes
    }

    /// Nothing may be left.
    pub fn finish(self) -> Result<()> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.damaged("they are too long")) }
    }

    /// The error that says so.
    pub fn damaged(&self, why: &str) -> Error {
        Error::Misuse(format!("stored bytes of {} do not fit: {why}", self.protocol))
    }
}

/// What a stored value is made of.
pub struct Shape {
    /// Bits of a cell.
    pub bits: u8,
    /// Cells.
    pub count: usize,
    /// Lanes.
    pub lanes: usize,
    /// The identity first.
    pub views: Vec<Matrix>,
    /// Shares of all cells, in all views and lanes.
    pub shares: usize,
}

/// Bits of a cell (1), cells (4), lanes (4), views (2); for every view its numbers of bits, and a column
/// each. Numbers are little-endian.
pub fn shape_bytes(bits: u8, count: usize, lanes: usize, views: &[Matrix]) -> Vec<u8> {
    let mut bytes = vec![bits];
    bytes.extend((count as u32).to_le_bytes());
    bytes.extend((lanes as u32).to_le_bytes());
    bytes.extend((views.len() as u16).to_le_bytes());
    for m in views {
        bytes.extend([m.ins(), m.outs()]);
        bytes.extend_from_slice(&m.columns()[..usize::from(m.ins())]);
    }
    bytes
}
