//! Cuts a stream into pieces of equal length and marks the last one.

use std::io::Read;

use crate::{Error, Result};

/// Part of a stream.
pub(crate) struct Piece {
    pub(crate) data: Vec<u8>,
    /// Whether the stream ends with it.
    pub(crate) last: bool,
}

/// Reads one piece ahead. An empty stream is one empty piece.
pub(crate) struct Pieces<'r> {
    input: &'r mut dyn Read,
    bytes: usize,
    ahead: Option<Vec<u8>>,
}

impl<'r> Pieces<'r> {
    pub(crate) fn new(input: &'r mut dyn Read, bytes: usize) -> Result<Self> {
        let first = read(input, bytes)?;
        Ok(Pieces { input, bytes, ahead: Some(first) })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Piece>> {
        let Some(data) = self.ahead.take() else { return Ok(None) };
        if data.len() == self.bytes {
            self.ahead = Some(read(self.input, self.bytes)?).filter(|after| !after.is_empty());
        }
        let last = self.ahead.is_none();
        Ok(Some(Piece { data, last }))
    }
}

fn read(input: &mut dyn Read, bytes: usize) -> Result<Vec<u8>> {
    let mut data = Vec::with_capacity(bytes);
    input.take(bytes as u64).read_to_end(&mut data).map_err(Error::reading)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_piece_is_last() {
        for (len, expected) in [(0, vec![0]), (1, vec![1]), (4, vec![4]), (5, vec![4, 1]), (8, vec![4, 4])] {
            let data = vec![7; len];
            let mut input = &data[..];
            let mut pieces = Pieces::new(&mut input, 4).expect("memory can be read");
            let mut lengths = Vec::new();
            while let Some(piece) = pieces.next().expect("memory can be read") {
                lengths.push(piece.data.len());
                assert_eq!(piece.last, lengths.len() == expected.len(), "{len}");
            }
            assert_eq!(lengths, expected);
        }
    }
}
