//! Circuits without any protocol.

use polyclave_cipher::{AnyMap, Cells, Circuit, cleartext, compile};

/// The first output of a circuit on blocks.
pub fn in_the_clear(circuit: &Circuit, inputs: &[&[u8]]) -> Vec<u8> {
    let compiled = compile(circuit, &AnyMap);
    let cells = circuit.inputs().iter().zip(inputs).map(|(port, bytes)| {
        Cells::from_blocks(port.cells.len(), port.bits, bytes).expect("whole blocks of narrow cells")
    });
    let cells: Vec<Cells> = cells.collect();
    let lanes = cells[0].lanes();
    cleartext::run(&compiled, lanes, &cells).expect("the inputs fit")[0].to_blocks()
}
