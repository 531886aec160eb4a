//! Scrambled tables against the cleartext evaluator, and their counts against Damgard et al. 2016, section 5
//! and table 1.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Direction, Matrix, Table, boolean, catalog};
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::tinytable::{Macs, Preprocessing, PreprocessingMethod, TinyTableConfig};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};

const ACTIVE: [Macs; 4] = [Macs::Lookup32, Macs::Lookup64, Macs::Linear64, Macs::Minimac];
/// Whose tables the parties can make.
const MADE: [Macs; 4] = [Macs::None, Macs::Lookup32, Macs::Lookup64, Macs::Linear64];
const DIRECTIONS: [Direction; 2] = [Direction::Encrypt, Direction::Decrypt];

fn run(macs: Macs, circuit: &Circuit, lanes: usize, seed: u8) -> Run {
    run_with(Preprocessing::Dealt(&InsecureDealing), macs, circuit, lanes, seed)
}

fn run_with(from: Preprocessing, macs: Macs, circuit: &Circuit, lanes: usize, seed: u8) -> Run {
    match macs {
        Macs::None => {
            let config = TinyTableConfig::<Unverified<Cells>>::new(macs, from).expect("it is passive");
            check_circuit(&config, circuit, lanes, seed)
        }
        _ => {
            let config = TinyTableConfig::<Checked<Cells>>::new(macs, from).expect("it is active");
            check_circuit(&config, circuit, lanes, seed)
        }
    }
}

fn circuit(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    (*cipher.circuit(direction).expect("it runs both ways")).clone()
}

fn with_key_schedule(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    cipher.circuit_with_key_schedule(direction).expect("it runs both ways")
}

#[test]
fn ciphers_of_tables_are_right() {
    for macs in [Macs::None, Macs::Linear64] {
        for name in ["aes-128", "aes-192", "aes-256", "3des-ede3"] {
            for direction in DIRECTIONS {
                run(macs, &with_key_schedule(name, direction), 3, 7);
            }
        }
    }
    // Strings for tables of 8 bits take half a megabyte a lookup.
    run(Macs::Lookup32, &circuit("aes-128", Direction::Encrypt), 1, 8);
    run(Macs::Lookup64, &circuit("des", Direction::Decrypt), 2, 9);
}

/// x and y and z, with gates in two layers, a NOT and a uniform input.
fn gates() -> Circuit {
    let and = Arc::new(Table::new("AND", 2, 1, vec![0, 0, 0, 1]));
    let mut b = Builder::new("gates");
    let x = b.input("x", 2, 1);
    let k = b.uniform_input("k", 2, 1);
    let and = b.table(&and);
    let place = |i| Matrix::place(2, i);
    let pair = b.linear(vec![(x[0], place(0)), (x[1], place(1))], 0b10);
    let first = b.lookup(and, pair);
    let keys = b.linear(vec![(k[0], place(0)), (k[1], place(1))], 0);
    let uniform = b.lookup(and, keys);
    let pair = b.linear(vec![(first, place(0)), (uniform, place(1))], 0b01);
    let second = b.lookup(and, pair);
    let not = b.linear(vec![(second, Matrix::identity(1)), (x[0], Matrix::identity(1))], 1);
    b.output("y", &[second, not, first]);
    b.output("k", &[uniform]);
    b.finish()
}

#[test]
fn gates_of_bits_are_right_for_every_number_of_lanes() {
    for &macs in Macs::ALL {
        for lanes in [1, 2, 7, 8, 9, 63, 64, 65, 200] {
            run(macs, &gates(), lanes, lanes as u8);
        }
    }
}

/// x and x, 0 and 1: outputs of which two depend on nothing.
fn constants(bits: u8) -> Circuit {
    let zero = Matrix::of(bits, bits, |_| 0);
    let entries = (0..1 << (2 * bits)).map(|x| (x & x >> bits) & ((1 << bits) - 1)).collect();
    let mut b = Builder::new("constants");
    let x = b.input("x", 1, bits)[0];
    let and = b.table(&Arc::new(Table::new("AND", 2 * bits, bits, entries)));
    let both = Matrix::of(bits, 2 * bits, |x| x | x << bits);
    let pair = b.linear(vec![(x, both)], 0);
    let y = b.lookup(and, pair);
    let constants = [b.linear(vec![(x, zero)], 0), b.linear(vec![(x, zero)], 1)];
    b.output("y", &[y, constants[0], constants[1]]);
    b.finish()
}

#[test]
fn constants_are_right() {
    for macs in [Macs::None, Macs::Lookup32, Macs::Lookup64, Macs::Linear64] {
        for bits in [1, 2] {
            for lanes in [1, 65] {
                run(macs, &constants(bits), lanes, 1);
            }
            run_with(real(PreprocessingMethod::Demux), macs, &constants(bits), 3, 2);
        }
    }
}

#[test]
fn rounds_and_openings_are_those_of_the_paper() {
    for macs in MADE {
        let lanes = if matches!(macs, Macs::None | Macs::Linear64) { 5 } else { 1 };
        let Run { tallies, cost, .. } = run(macs, &circuit("aes-128", Direction::Encrypt), lanes, 1);
        for tally in tallies {
            // 10 layers, and a check before and after the result is opened.
            assert_eq!(tally.online.rounds, if macs == Macs::None { 10 } else { 12 }, "{macs:?}");
            assert_eq!(tally.online.openings, 160 * lanes as u64);
            assert_eq!((tally.input.rounds, tally.output.rounds), (1, 1));
        }
        assert_eq!((cost.rounds, cost.operations_per_lane), (10.0, 160.0));
    }
}

#[test]
fn sizes_of_table_1_are_exact() {
    // Bytes of the tables alone: what is given for a block is that, and the masks of its input and output.
    let masks = |macs| if macs == Macs::None { 32 } else { 32 * 33 };
    let sizes = [
        (Macs::None, 40_960),
        (Macs::Linear64, 778_240),
        (Macs::Lookup64, 84_254_720),
        (Macs::Lookup32, 42_147_840),
    ];
    for (macs, bytes) in sizes {
        let Run { cost, .. } = run(macs, &circuit("aes-128", Direction::Encrypt), 1, 1);
        assert_eq!(cost.material_bytes_per_lane, bytes + masks(macs), "{macs:?}");
    }
}

#[test]
fn sizes_of_table_1_are_exact_for_gates() {
    let cipher = boolean::cipher("aes-128").expect("it has a Boolean circuit");
    // Of 256 bits of input and output.
    let masks = |macs| if macs == Macs::None { 256 } else { 256 * 33 };
    let sizes = [
        (Macs::None, 2_720),
        (Macs::Linear64, 350_880),
        (Macs::Lookup64, 524_960),
        (Macs::Lookup32, 263_840),
    ];
    for (macs, bytes) in sizes {
        let Run { cost, tallies, .. } = run(macs, &cipher.encrypt, 1, 1);
        assert_eq!(cost.material_bytes_per_lane, bytes + masks(macs), "{macs:?}");
        assert_eq!(tallies[0].online.openings, 5440);
    }
}

#[test]
fn verification_says_what_outputs_are_worth() {
    let dealer = Preprocessing::Dealt(&InsecureDealing);
    assert!(TinyTableConfig::<Checked<Cells>>::new(Macs::None, dealer).is_err());
    assert!(ACTIVE.into_iter().all(|macs| TinyTableConfig::<Unverified<Cells>>::new(macs, dealer).is_err()));
}

const fn real(way: PreprocessingMethod) -> Preprocessing {
    Preprocessing::TinyOt { method: way, kappa: Kappa::Bits40, expansion: 2 }
}

#[test]
fn tables_that_the_parties_make_are_right() {
    for macs in MADE {
        run_with(real(PreprocessingMethod::Demux), macs, &gates(), 70, 3);
    }
    for (macs, lanes) in [(Macs::None, 3), (Macs::Linear64, 2)] {
        run_with(real(PreprocessingMethod::Demux), macs, &circuit("des", Direction::Encrypt), lanes, 4);
        run_with(real(PreprocessingMethod::Demux), macs, &circuit("aes-128", Direction::Decrypt), lanes, 5);
    }
    run_with(real(PreprocessingMethod::Demux), Macs::Lookup32, &circuit("des", Direction::Encrypt), 1, 6);
}

#[test]
fn tables_made_by_circuits_are_right() {
    run_with(real(PreprocessingMethod::Circuit), Macs::Linear64, &circuit("des", Direction::Encrypt), 2, 7);
    let Run { tallies, .. } = run_with(real(PreprocessingMethod::Circuit), Macs::None, &sub_bytes(), 1, 8);
    // The paper's way: 34 ANDs for each of 256 entries.
    assert_eq!(tallies[0].preprocessing.triples, 16 * 34 * 256);
    let Run { tallies, .. } = run_with(real(PreprocessingMethod::Demux), Macs::None, &sub_bytes(), 1, 8);
    // One product fewer than 2^j for each bit j but the first.
    assert_eq!(tallies[0].preprocessing.triples, 16 * (254 - 7));
}

/// One layer of AES.
fn sub_bytes() -> Circuit {
    let s_box = Arc::new(polyclave_cipher::aes::s_box());
    let mut b = Builder::new("SubBytes");
    let x = b.input("x", 16, 8);
    let s_box = b.table(&s_box);
    let y: Vec<_> = x.iter().map(|x| b.lookup(s_box, *x)).collect();
    b.output("y", &y);
    b.finish()
}
