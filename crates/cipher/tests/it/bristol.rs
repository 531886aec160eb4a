//! Files in Bristol Fashion: those that are shipped, round trips, what is refused, and rubbish.

use std::path::PathBuf;

use polyclave_cipher::bristol::{self, BitOrder, BristolError, Problem, WriteError};
use polyclave_cipher::{AnyMap, Cells, Circuit, boolean, catalog, cleartext, compile};
use proptest::prelude::*;

fn shipped(name: &str) -> String {
    let path =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../circuits")).join(format!("{name}.txt"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Runs a circuit on one block per input.
fn run(circuit: &Circuit, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    let ports = circuit.inputs().iter().zip(inputs);
    let cells: Vec<Cells> =
        ports.map(|(p, x)| Cells::from_blocks(p.cells.len(), p.bits, x).expect("whole blocks")).collect();
    let outputs = cleartext::run(&compile(circuit, &AnyMap), 1, &cells).expect("the inputs fit");
    outputs.iter().map(Cells::to_blocks).collect()
}

fn problem(text: &str) -> (usize, Problem) {
    let BristolError { line, problem } =
        bristol::read("file", text, BitOrder::Numbers, &[]).expect_err("it is refused");
    (line, problem)
}

#[test]
fn shipped_files_are_what_the_generators_write() {
    let mut names: Vec<String> = boolean::circuits().iter().map(|(name, _)| format!("{name}.txt")).collect();
    for (name, make) in boolean::circuits() {
        let written = bristol::write(&make(), BitOrder::Numbers).expect("it is Boolean");
        let again = "cargo run --release -p polyclave-cipher --example bristol_circuits";
        assert!(
            written == shipped(name),
            "circuits/{name}.txt is of another version; write it anew: {again}"
        );
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../circuits");
    let files = std::fs::read_dir(folder).expect("the folder is shipped");
    let files = files.map(|f| f.expect("it is readable").file_name().into_string().expect("a plain name"));
    let mut found: Vec<String> = files.filter(|name| name.ends_with(".txt")).collect();
    names.sort();
    found.sort();
    assert_eq!(found, names);
}

/// What [circuits/README.md](../../../circuits/README.md) says of wires: those of a value are those of a
/// number, from its end.
#[test]
fn the_last_wires_of_block_and_round_keys_are_the_first_bits_of_their_first_bytes() {
    let text = shipped("aes-128");
    let (block, round_keys) = (0..128, 128..128 + 1408);
    let gate = format!("2 1 {} {} ", block.end - 1, round_keys.end - 1);
    let first_addition = text.lines().any(|line| line.starts_with(&gate) && line.ends_with("XOR"));
    assert!(first_addition, "the round key w[0] is added to the first word of the block");
    let circuit = bristol::read("aes-128", &text, BitOrder::Numbers, &[]).expect("as shipped");
    let output = |first_of_key: u8, first_of_block: u8| {
        let (mut keys, mut block) = ([0; 176], [0; 16]);
        (keys[0], block[0]) = (first_of_key, first_of_block);
        run(&circuit, &[&block, &keys])
    };
    // The most significant bit of w[0] makes up for that of the block, and no other of its bits does.
    assert_eq!(output(0x80, 0x80), output(0, 0));
    assert_ne!(output(0x01, 0x80), output(0, 0));
}

#[test]
fn shipped_files_are_read_as_the_circuits_they_were_written_from() {
    for (name, make) in boolean::circuits() {
        let circuit = make();
        let uniform: Vec<usize> =
            (0..).zip(circuit.inputs()).filter(|(_, p)| p.uniform).map(|(i, _)| i).collect();
        let read =
            bristol::read(name, &shipped(name), BitOrder::Numbers, &uniform).expect("it is well-formed");
        assert_eq!((read.lookups(), read.layers()), (circuit.lookups(), circuit.layers()), "{name}");
        let shape = |circuit: &Circuit| -> Vec<(usize, bool)> {
            let ports = circuit.inputs().iter().chain(circuit.outputs());
            ports.map(|p| (p.cells.len(), p.uniform)).collect()
        };
        assert_eq!(shape(&read), shape(&circuit), "{name}");
        let inputs: Vec<Vec<u8>> = (0..)
            .zip(circuit.inputs())
            .map(|(k, p)| (0..p.cells.len() / 8).map(|i| (i * 29 + k * 91 + 5) as u8).collect())
            .collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        assert_eq!(run(&read, &inputs), run(&circuit, &inputs), "{name}");
        // What was read is written with no more gates than it had.
        let written = bristol::write(&read, BitOrder::Numbers).expect("it is Boolean");
        assert!(written.lines().count() <= shipped(name).lines().count(), "{name}");
    }
}

const EVERY_GATE: &str = "7 13
2 3 1
2 2 3

4 2 0 1 2 3 4 5 MAND
2 1 4 5 6 XOR
1 1 6 7 INV
1 1 1 8 EQ
1 1 7 9 EQW
2 1 7 8 10 AND
4 2 10 2 2 3 11 12 MAND
";

#[test]
fn every_gate_is_understood_in_both_orders() {
    for x in 0..16u8 {
        let bit = |i: u8| x >> i & 1;
        let (w4, w5) = (bit(0) & bit(2), bit(1) & bit(3));
        let w7 = w4 ^ w5 ^ 1;
        // Wires 8 to 12: two of the first output, three of the second.
        let wires = [1, w7, w7, w7 & bit(2), bit(2) & bit(3)];
        let number = |bits: &[u8]| bits.iter().rev().fold(0, |n, bit| n << 1 | bit);

        let read = bristol::read("gates", EVERY_GATE, BitOrder::Numbers, &[1]).expect("it is well-formed");
        assert!(read.inputs()[1].uniform && !read.inputs()[0].uniform);
        let inputs = [number(&[bit(0), bit(1), bit(2)]) << 5, bit(3) << 7];
        let found = run(&read, &[&inputs[..1], &inputs[1..]]);
        assert_eq!(found, [[number(&wires[..2]) << 6], [number(&wires[2..]) << 5]]);

        let read = bristol::read("gates", EVERY_GATE, BitOrder::Cells, &[]).expect("it is well-formed");
        let inputs = [bit(0) << 7 | bit(1) << 6 | bit(2) << 5, bit(3) << 7];
        let found = run(&read, &[&inputs[..1], &inputs[1..]]);
        let bits = |bits: &[u8]| bits.iter().zip((0..8).rev()).fold(0, |n, (bit, at)| n | bit << at);
        assert_eq!(found, [[bits(&wires[..2])], [bits(&wires[2..])]]);
    }
}

#[test]
fn old_format_is_told_apart() {
    let text = "2 5\n2 1 1\n\n2 1 0 1 3 AND\n2 1 2 3 4 XOR\n";
    let read = bristol::read("old", text, BitOrder::Numbers, &[]).expect("it is well-formed");
    assert_eq!(read.inputs().iter().map(|p| p.cells.len()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(run(&read, &[&[0xc0], &[0x00]]), [[0x80]]);
    assert_eq!(run(&read, &[&[0xc0], &[0x80]]), [[0x00]]);
    let text = "1 3\n2 0 1\n\n2 1 0 1 2 AND\n";
    let read = bristol::read("old", text, BitOrder::Numbers, &[]).expect("it is well-formed");
    assert_eq!(read.inputs().len(), 1);
}

#[test]
fn inputs_constants_and_repetitions_can_be_outputs() {
    let mut b = boolean::BooleanBuilder::new("outputs");
    let x = b.input("x", 2, false);
    let both = b.and(x[0], x[1]);
    let bits = [
        x[1],
        x[1],
        !x[1],
        !x[1],
        both,
        both,
        !both,
        boolean::Bit::ONE,
        boolean::Bit::ZERO,
        boolean::Bit::ONE,
    ];
    b.output("y", &bits);
    let circuit = b.finish();
    for order in [BitOrder::Numbers, BitOrder::Cells] {
        let text = bristol::write(&circuit, order).expect("it is Boolean");
        let read = bristol::read("outputs", &text, order, &[]).expect("it is well-formed");
        for x in [0u8, 0x40, 0x80, 0xc0] {
            assert_eq!(run(&read, &[&[x]]), run(&circuit, &[&[x]]), "{text}");
        }
    }
}

#[test]
fn errors_say_which_line_and_what() {
    assert_eq!(problem(""), (1, Problem::Ends("the numbers of gates and wires")));
    assert_eq!(problem("1 3\n"), (1, Problem::Ends("the numbers of bits of the inputs")));
    assert_eq!(problem("1 3\n2 1 1\n"), (2, Problem::Ends("the numbers of bits of the outputs")));
    assert_eq!(problem("1 3\n2 1 1\n1 1\n"), (3, Problem::Ends("a gate")));
    assert_eq!(problem("1\n"), (1, Problem::Header { expected: 2, found: 1 }));
    assert_eq!(problem("1 -3\n"), (1, Problem::Number("-3".into())));
    assert_eq!(problem("1 4294967296\n"), (1, Problem::Number("4294967296".into())));
    assert_eq!(problem("1 3\n2 1\n1 1\n"), (2, Problem::Header { expected: 3, found: 2 }));
    assert_eq!(problem("1 3\n2 1 1 1 1\n2 1 0 1 2 AND"), (2, Problem::Header { expected: 3, found: 5 }));
    assert_eq!(problem("1 3\n2 2 0\n1 1\n"), (3, Problem::Empty));
    assert_eq!(problem("1 3\n0\n1 1\n"), (3, Problem::Empty));
    assert_eq!(problem("1 3\n2 1 1\n1 4\n"), (3, Problem::Outputs(3)));
    assert_eq!(problem("1 1\n2 1 1\n1 1\n"), (3, Problem::Wires { announced: 1, made: 2 }));
    let many = Problem::TooMany { what: "gates", found: 20_000_001, limit: bristol::MAX_GATES };
    assert_eq!(problem("20000001 20000003\n"), (1, many));
    let many = Problem::TooMany { what: "bits of inputs", found: 3_000_000, limit: bristol::MAX_INPUT_BITS };
    assert_eq!(problem("1 3000001\n1 3000000\n1 1\n"), (3, many));
    assert!(matches!(problem("9 4000000000\n1 2\n1 1\n"), (3, Problem::TooMany { what: "wires", .. })));

    let gate = |gate: &str| problem(&format!("1 3\n2 1 1\n1 1\n\n{gate}\n"));
    assert_eq!(gate("2 1 0 1 2 OR"), (5, Problem::Gate("OR".into())));
    assert_eq!(gate("2 1 0 1 2"), (5, Problem::Gate("2".into())));
    assert_eq!(gate("2 1 0 1 2 AND and more"), (5, Problem::Gate("more".into())));
    assert_eq!(gate("2 1 0 1 AND"), (5, Problem::Arity("AND")));
    assert_eq!(gate("2 1 0 1 1 2 AND"), (5, Problem::Arity("AND")));
    assert_eq!(gate("1 1 0 2 XOR"), (5, Problem::Arity("XOR")));
    assert_eq!(gate("AND"), (5, Problem::Arity("AND")));
    assert_eq!(gate("4294967295 4294967295 0 MAND"), (5, Problem::Arity("MAND")));
    assert_eq!(gate("0 0 MAND"), (5, Problem::Arity("MAND")));
    assert_eq!(gate("1 1 2 2 EQ"), (5, Problem::Constant(2)));
    assert_eq!(gate("2 1 0 x 2 AND"), (5, Problem::Number("x".into())));
    assert_eq!(gate("2 1 0 3 2 AND"), (5, Problem::Unknown { wire: 3, wires: 3 }));
    assert_eq!(gate("2 1 0 1 3 AND"), (5, Problem::Unknown { wire: 3, wires: 3 }));
    assert_eq!(gate("2 1 0 2 2 AND"), (5, Problem::Unset(2)));
    assert_eq!(gate("2 1 0 1 1 AND"), (5, Problem::SetTwice(1)));
    assert_eq!(gate("2 1 0 1 2 AND\n1 1 0 2 INV"), (6, Problem::Trailing(1)));
    let wires = Problem::Wires { announced: 4, made: 3 };
    assert_eq!(problem("1 4\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n"), (1, wires));

    let text = "1 3\n2 1 1\n1 1\n2 1 0 1 2 AND\n";
    let error = bristol::read("file", text, BitOrder::Numbers, &[2]).expect_err("there are two inputs");
    assert_eq!(error.problem, Problem::NoSuchInput { input: 2, inputs: 2 });
}

#[test]
fn circuits_over_cells_are_not_written() {
    let aes = catalog::find("aes-128").expect("the catalog has it").encrypt;
    let wide = WriteError::WideCells { port: "block".into(), bits: 8 };
    assert_eq!(bristol::write(&aes, BitOrder::Numbers), Err(wide));
    let des = catalog::find("des").expect("the catalog has it").encrypt;
    assert_eq!(bristol::write(&des, BitOrder::Numbers), Err(WriteError::Table("DES S1".into())));
}

/// Reads, and on success runs what was read on zeros.
fn survives(text: &str) {
    for order in [BitOrder::Numbers, BitOrder::Cells] {
        if let Ok(circuit) = bristol::read("rubbish", text, order, &[]) {
            let blocks = circuit.inputs().iter().map(|p| vec![0; Cells::block_bytes(p.cells.len(), 1)]);
            let blocks: Vec<Vec<u8>> = blocks.collect();
            let outputs = run(&circuit, &blocks.iter().map(Vec::as_slice).collect::<Vec<_>>());
            assert_eq!(outputs.len(), circuit.outputs().len());
            let written = bristol::write(&circuit, order).expect("it is Boolean");
            let again = bristol::read("rubbish", &written, order, &[]).expect("it is well-formed");
            assert_eq!(run(&again, &blocks.iter().map(Vec::as_slice).collect::<Vec<_>>()), outputs);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn altered_bytes_never_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = EVERY_GATE.as_bytes().to_vec();
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = byte & 0x7f;
        }
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn altered_numbers_never_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..24), 1..4)) {
        let mut tokens: Vec<String> =
            EVERY_GATE.replace('\n', " \n ").split(' ').map(String::from).filter(|t| !t.is_empty()).collect();
        for (at, value) in &changes {
            let words = ["", "0 0", "\n", "EQ", "XOR", "MAND", "4294967295", "99999999999999999999", "20000000"];
            let replaced = words.get(value.wrapping_sub(15)).map_or(value.to_string(), |word| word.to_string());
            let at = at.index(tokens.len());
            tokens[at] = replaced;
        }
        survives(&tokens.join(" "));
    }

    #[test]
    fn cut_files_never_panic(at in 0..EVERY_GATE.len()) {
        survives(&EVERY_GATE[..at]);
    }

    #[test]
    fn any_text_never_panics(text in "[0-9 \nA-Z]{0,80}") {
        survives(&text);
    }

    #[test]
    fn gates_at_random_come_back(gates in proptest::collection::vec((0usize..3, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40), x in any::<u8>()) {
        let mut b = boolean::BooleanBuilder::new("random");
        let mut bits = b.input("x", 8, false);
        for (kind, a, c) in gates {
            let (a, c) = (bits[a.index(bits.len())], bits[c.index(bits.len())]);
            bits.push(match kind {
                0 => b.xor(a, c),
                1 => b.and(a, c),
                _ => !a,
            });
        }
        b.output("all", &bits);
        b.output("last", &bits[bits.len() - 1..]);
        let circuit = b.finish();
        let text = bristol::write(&circuit, BitOrder::Cells).expect("it is Boolean");
        let read = bristol::read("random", &text, BitOrder::Cells, &[]).expect("it is well-formed");
        prop_assert_eq!(run(&read, &[&[x]]), run(&circuit, &[&[x]]));
    }
}
