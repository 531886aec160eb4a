//! Fuzz target: arbitrary bytes for the reader of circuits in Bristol Fashion.

use polyclave_harness::{fuzz, within_memory};

use super::{BitOrder, read, write};
use crate::{AnyMap, Cells, Circuit, cleartext, compile};

const EVERY_GATE: &str = "7 13\n2 3 1\n2 2 3\n\n2 1 0 2 4 AND\n2 1 1 3 5 AND\n2 1 4 5 6 XOR\n1 1 6 7 INV\n1 1 1 8 EQ\n1 1 7 9 EQW\n\
                          2 1 7 8 10 AND\n4 2 10 2 2 3 11 12 MAND\n";

const WORDS: [&str; 17] = [
    "2 1 ",
    "1 1 ",
    "XOR\n",
    "AND\n",
    "INV\n",
    "EQ\n",
    "EQW\n",
    "MAND\n",
    "4 2 ",
    " ",
    "\n",
    "1000",
    "1048577",
    "20000001",
    "18446744073709551616",
    "-1",
    "0",
];

/// A circuit on zeros.
fn outputs(circuit: &Circuit) -> Vec<Vec<u8>> {
    let inputs: Vec<Cells> =
        circuit.inputs().iter().map(|port| Cells::zero(port.cells.len(), port.bits, 1)).collect();
    let outputs = cleartext::run(&compile(circuit, &AnyMap), 1, &inputs).expect("the inputs fit");
    outputs.iter().map(Cells::to_blocks).collect()
}

/// The first byte is the order of bits. What is read is written and read again as a circuit that computes the
/// same.
#[test]
fn no_file_panics_or_takes_memory_on_its_word_and_what_is_read_comes_back() {
    let old = "2 5\n2 1 1\n\n2 1 0 1 3 AND\n2 1 2 3 4 XOR\n";
    let valid = [("0", EVERY_GATE), ("1", EVERY_GATE), ("1", old)]
        .map(|(order, text)| [order, text].concat().into_bytes());
    fuzz!("bristol", &WORDS, valid.to_vec(), |bytes: &[u8]| {
        let Some((first, bytes)) = bytes.split_first() else { return };
        let order = if first % 2 == 0 { BitOrder::Numbers } else { BitOrder::Cells };
        let Ok(text) = str::from_utf8(bytes) else { return };
        // A number says how many bits the inputs have, and nothing has to come for them: up to the limit of a
        // file.
        let least = 512 * super::MAX_INPUT_BITS;
        within_memory(least + 4096 * bytes.len(), || {
            let Ok(circuit) = read("foreign", text, order, &[]) else { return };
            // Large ones are no other code, and slow.
            if circuit.inputs().iter().map(|port| port.cells.len()).sum::<usize>() > 4096 {
                return;
            }
            let written = write(&circuit, order).expect("it is Boolean");
            let again = read("foreign", &written, order, &[]).expect("it was written here");
            assert_eq!(outputs(&again), outputs(&circuit));
        });
    });
}
