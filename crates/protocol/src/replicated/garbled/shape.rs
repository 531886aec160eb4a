//! Shares of bytes as shares of bits, and back: circuits here have cells of one bit, and those of
//! `replicated-active` have wider ones. Local, and each share for itself.

use polyclave_cipher::Cells;
use zeroize::Zeroizing;

use super::super::shared::Shared;
use crate::{Error, Result};

/// The same value in cells of so many bits, as the blocks that people write have it: cells that share a byte
/// are whole parts of it.
pub(super) fn in_cells(value: &Shared, bits: u8) -> Result<Shared> {
    if bits == value.bits {
        return Ok(value.clone());
    }
    let total = value.count * usize::from(value.bits);
    let is_part = |bits: u8| [1, 2, 4, 8].contains(&bits);
    if !is_part(bits) || !is_part(value.bits) || !total.is_multiple_of(usize::from(bits)) {
        let (count, own) = (value.count, value.bits);
        return Err(Error::Misuse(format!("{count} cells of {own} bits are no cells of {bits} bits")));
    }
    let count = total / usize::from(bits);
    let mut rows = Zeroizing::new(Vec::with_capacity(2 * count * value.lanes));
    for share in 0..2 {
        let cells = Cells::from_blocks(count, bits, &value.blocks(share));
        let cells = cells.map_err(|error| Error::Misuse(error.to_string()))?;
        rows.extend_from_slice(cells.rows());
    }
    Ok(Shared { bits, count, lanes: value.lanes, rows, unchecked: value.unchecked.clone() })
}

/// The cells of each lane after those of the one before.
pub(super) fn by_lane(rows: &[u8], lanes: usize) -> Zeroizing<Vec<u8>> {
    let count = rows.len() / lanes.max(1);
    let of_lane = |lane| (0..count).map(move |cell| rows[cell * lanes + lane]);
    Zeroizing::new((0..lanes).flat_map(of_lane).collect())
}

/// The other way round: all lanes of a cell after those of the one before.
pub(super) fn by_cell(rows: &[u8], lanes: usize) -> Zeroizing<Vec<u8>> {
    by_lane(rows, rows.len() / lanes.max(1))
}

/// Bits, eight in a byte.
pub(super) fn pack(bits: &[u8]) -> Vec<u8> {
    let byte = |bits: &[u8]| bits.iter().enumerate().fold(0, |byte, (i, bit)| byte | bit << i);
    bits.chunks(8).map(byte).collect()
}

/// So many bits of a message.
pub(super) fn unpack(bytes: &[u8], count: usize) -> Zeroizing<Vec<u8>> {
    Zeroizing::new((0..count).map(|i| bytes[i / 8] >> (i % 8) & 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unchecked::Unchecked;

    #[test]
    fn bits_come_back_from_every_form() {
        let rows = Zeroizing::new((0..2 * 3 * 5_u8).map(|i| i.wrapping_mul(37)).collect::<Vec<u8>>());
        let value = Shared { bits: 8, count: 3, lanes: 5, rows, unchecked: Unchecked::default() };
        let bits = in_cells(&value, 1).expect("bytes are bits");
        assert_eq!((bits.bits, bits.count, bits.lanes), (1, 24, 5));
        assert_eq!(bits.blocks(0), value.blocks(0));
        assert_eq!(in_cells(&bits, 8).expect("and back").rows, value.rows);
        assert_eq!(in_cells(&bits, 1).expect("as it is").rows, bits.rows);
        assert!([0, 3, 7, 16].into_iter().all(|width| in_cells(&bits, width).is_err()));
        let odd = Shared { bits: 1, count: 12, ..bits.clone() };
        assert!(in_cells(&odd, 8).is_err(), "half a byte is left");
        let lanes = by_lane(bits.share(0), 5);
        assert_eq!(lanes[24], bits.share(0)[1], "the first cell of the second lane");
        assert_eq!(&**by_cell(&lanes, 5), bits.share(0));
        assert_eq!(&**unpack(&pack(&lanes), lanes.len()), &**lanes);
    }
}
