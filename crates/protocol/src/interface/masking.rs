//! Masks of clients' inputs: what is the same under all protocols.

use polyclave_cipher::{Cells, CompiledPort};
use polyclave_field::Gf128;
use zeroize::Zeroizing;

use super::elements::Element;
use crate::{Error, Result};

/// The cells of a port from blocks that stand at `at` in a mask of `len` bytes. Bits of a byte that are
/// beyond a cell are dropped: in a mask they are random.
pub fn masked_cells(port: &CompiledPort, blocks: &[u8], at: usize, len: usize) -> Result<Cells> {
    if at.saturating_add(blocks.len()) > len {
        let name = &port.name;
        return Err(Error::Misuse(format!("input {name} lies beyond its mask of {len} bytes")));
    }
    cells_of(port, blocks)
}

/// Blocks as the cells of a port. Bits of a byte that are beyond a cell are dropped.
pub fn cells_of(port: &CompiledPort, blocks: &[u8]) -> Result<Cells> {
    let keep = if 8 % port.bits == 0 { 0xff } else { 0xff >> (8 - port.bits) };
    let blocks: Zeroizing<Vec<u8>> = Zeroizing::new(blocks.iter().map(|byte| byte & keep).collect());
    let cells = Cells::from_blocks(port.cells.len(), port.bits, &blocks)
        .map_err(|e| Error::Misuse(format!("input {}: {e}", port.name)))?;
    if port.uniform && cells.lanes() != 1 {
        let (name, lanes) = (&port.name, cells.lanes());
        return Err(Error::Misuse(format!("input {name} is one block for all lanes, not {lanes}")));
    }
    Ok(cells)
}

/// chi^1, chi^2 ..
pub fn powers(chi: Element, count: usize) -> Vec<Element> {
    let chi = Gf128::from_bytes(chi);
    std::iter::successors(Some(chi), |power| Some(*power * chi)).take(count).map(Gf128::to_bytes).collect()
}
