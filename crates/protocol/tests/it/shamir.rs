//! Shamir sharing against the cleartext evaluator, and its counts against the papers.

use std::sync::Arc;

use polyclave_cipher::{Builder, Circuit, Direction, Matrix, Table, boolean, catalog};
use polyclave_protocol::Error;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Inversion, ShamirConfig, Structure, Tables};
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};

fn config(structure: (usize, usize), inversion: Inversion) -> ShamirConfig {
    let structure = Structure::new(structure.0, structure.1).expect("it is valid");
    ShamirConfig { structure, inversion, tables: Tables::Masked }
}

fn check(structure: (usize, usize), inversion: Inversion, circuit: &Circuit, lanes: usize) -> Run {
    check_circuit(&config(structure, inversion), circuit, lanes, lanes as u8)
}

fn encrypt(name: &str) -> Arc<Circuit> {
    catalog::find(name).expect("the catalog has it").encrypt
}

#[test]
fn every_inversion_computes_aes_and_its_inverse_with_the_key_schedule() {
    for inversion in Inversion::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let cipher = catalog::find("aes-128").expect("the catalog has it");
            let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
            check((3, 1), inversion, &circuit, 3);
        }
    }
}

#[test]
fn every_cipher_runs_in_both_directions() {
    for cipher in catalog::all() {
        if cipher.key_bytes > 0 {
            check((3, 1), Inversion::Views, &cipher.key_schedule, 1);
        }
        // A permutation runs one way.
        for circuit in [Some(cipher.encrypt), cipher.decrypt].into_iter().flatten() {
            check((3, 1), Inversion::Views, &circuit, 2);
        }
    }
}

#[test]
fn every_structure_computes_aes() {
    for n in 3..=9 {
        for t in 1..=(n - 1) / 2 {
            check((n, t), Inversion::Views, &encrypt("aes-128"), 2);
        }
    }
    for inversion in Inversion::ALL {
        check((5, 2), inversion, &encrypt("aes-128"), 2);
    }
    check((5, 2), Inversion::Views, &encrypt("des"), 2);
}

#[test]
fn batches_longer_than_a_tile_are_right() {
    for inversion in [Inversion::Views, Inversion::Shortest, Inversion::Masking] {
        check((3, 1), inversion, &encrypt("aes-128"), 5000);
    }
    check((4, 1), Inversion::Views, &encrypt("des"), 3000);
}

/// Damgard and Keller 2010, Table 2: operations and rounds of one S-box.
#[test]
fn table_2_is_what_the_protocol_counts() {
    let mut b = Builder::new("one S-box");
    let s = b.table(&Arc::new(polyclave_cipher::aes::s_box()));
    let x = b.input("x", 1, 8)[0];
    let y = b.lookup(s, x);
    b.output("y", &[y]);
    let circuit = b.finish();
    let table = [
        (Inversion::Standard, 14, 14, 0, 0),
        (Inversion::Shortest, 12, 12, 0, 0),
        (Inversion::ShortestLeastRounds, 12, 10, 0, 0),
        (Inversion::LeastRounds, 14, 9, 0, 0),
        (Inversion::MaskedExponentiation, 8, 5, 7, 7),
        (Inversion::Views, 5, 4, 0, 0),
        (Inversion::CarriedSquares, 4, 3, 0, 0),
        (Inversion::MaskedPowers, 2, 2, 4, 2),
        (Inversion::Viff11, 12, 12, 0, 0),
        (Inversion::Viff9, 12, 10, 0, 0),
    ];
    for (inversion, operations, rounds, ahead, rounds_ahead) in table {
        let run = check((3, 1), inversion, &circuit, 1);
        for tally in run.tallies {
            assert_eq!((tally.online.operations(), tally.online.rounds), (operations, rounds), "{inversion}");
            let preprocessing = tally.preprocessing;
            assert_eq!(
                (preprocessing.operations(), preprocessing.rounds),
                (ahead, rounds_ahead),
                "{inversion}"
            );
        }
    }
}

#[test]
fn masking_takes_11_and_2_of_255_operations_in_the_mean() {
    let circuit = encrypt("aes-128");
    let lanes = 4000;
    let run = check((3, 1), Inversion::Masking, &circuit, lanes);
    let s_boxes = 160.0 * lanes as f64;
    let mean = run.tallies[0].online.operations() as f64 / s_boxes;
    // A position retries with probability 1/256; six standard deviations of the mean.
    let deviation = 6.0 * 2.0 * (1.0 / 256.0 / s_boxes).sqrt();
    let expected = 11.0 + 2.0 / 255.0;
    assert!((mean - expected).abs() < deviation, "{mean} is not {expected} within {deviation}");
    assert!(run.tallies[0].online.operations() > 11 * s_boxes as u64, "no position retried");
}

/// Damgard and Keller 2010, section 6.
#[test]
fn totals_of_section_6_are_what_the_protocol_counts() {
    let cipher = catalog::find("aes-128").expect("the catalog has it");
    let alone = check((3, 1), Inversion::ShortestLeastRounds, &cipher.encrypt, 1).tallies[0].online;
    assert_eq!((alone.operations(), alone.rounds), (1920, 100));
    let circuit = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
    let whole = check((3, 1), Inversion::ShortestLeastRounds, &circuit, 1).tallies[0].online;
    assert_eq!((whole.operations(), whole.rounds), (2400, 100));
}

#[test]
fn predicted_cost_is_what_is_counted() {
    for name in ["aes-128", "aes-256", "des", "3des-ede3"] {
        let cipher = catalog::find(name).expect("the catalog has it");
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
            let exact = Inversion::ALL.into_iter().filter(|v| *v != Inversion::Masking);
            for inversion in exact.filter(|v| name != "3des-ede3" || *v == Inversion::Views) {
                let lanes = 2;
                let run = check((3, 1), inversion, &circuit, lanes);
                let (cost, tally) = (run.cost, run.tallies[0]);
                let operations = cost.operations_per_lane * lanes as f64 + cost.operations_uniform;
                assert_eq!(operations, tally.online.operations() as f64, "{name} {inversion}");
                assert_eq!(cost.rounds, tally.online.rounds as f64, "{name} {inversion}");
                let ahead = cost.preprocessing_per_lane * lanes as f64 + cost.preprocessing_uniform;
                assert_eq!(ahead, tally.preprocessing.operations() as f64, "{name} {inversion}");
                assert_eq!(
                    cost.preprocessing_rounds, tally.preprocessing.rounds as f64,
                    "{name} {inversion}"
                );
            }
        }
    }
}

/// Keller et al. 2017, Table 1, k = 8, and 46 layers.
#[test]
fn masked_tables_cost_nine_products_ahead_and_one_opening() {
    let run = check((3, 1), Inversion::Views, &encrypt("3des-ede3"), 1);
    let tally = run.tallies[0];
    assert_eq!((tally.online.operations(), tally.online.rounds), (384, 46));
    assert_eq!((tally.preprocessing.operations(), tally.preprocessing.rounds), (384 * 9, 5));
}

fn polynomials(structure: (usize, usize)) -> ShamirConfig {
    ShamirConfig { tables: Tables::Polynomial, ..config(structure, Inversion::Views) }
}

#[test]
fn polynomials_compute_des_and_triple_des_in_both_directions() {
    for name in ["des", "3des-ede2", "3des-ede3"] {
        let cipher = catalog::find(name).expect("the catalog has it");
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
            check_circuit(&polynomials((3, 1)), &circuit, 3, 1);
        }
    }
    for n in 3..=9 {
        for t in 1..=(n - 1) / 2 {
            check_circuit(&polynomials((n, t)), &encrypt("des"), 2, 2);
        }
    }
    check_circuit(&polynomials((4, 1)), &encrypt("des"), 3000, 3);
}

/// The three products of Keller et al. 2017, Table 2, 3DES-PV; in three rounds a layer instead of five, and
/// with nothing made ahead.
#[test]
fn polynomials_cost_three_products_in_three_rounds_and_nothing_ahead() {
    for (name, s_boxes, layers) in [("des", 128, 16), ("3des-ede2", 384, 46), ("3des-ede3", 384, 46)] {
        for lanes in [1, 7] {
            let run = check_circuit(&polynomials((3, 1)), &encrypt(name), lanes, 4);
            for tally in run.tallies {
                let online = tally.online;
                assert_eq!((online.multiplications, online.openings), (s_boxes * 3 * lanes as u64, 0));
                assert_eq!(online.rounds, layers * 3, "{name}");
                assert_eq!((tally.preprocessing.operations(), tally.preprocessing.rounds), (0, 0), "{name}");
            }
            assert_eq!(run.cost.operations_per_lane, (s_boxes * 3) as f64, "{name}");
            assert_eq!((run.cost.rounds, run.cost.preprocessing_rounds), ((layers * 3) as f64, 0.0));
            assert_eq!((run.cost.preprocessing_per_lane, run.cost.material_bytes_per_lane), (0.0, 0));
        }
    }
}

/// Inputs that are whole cells, lookups of lookups, tables that are constant, and those too large for
/// polynomials.
#[test]
fn tables_of_every_width_run_by_polynomials_or_else_masked_as_predicted() {
    for (ins, outs) in (1..=8).flat_map(|ins| (1..=8).map(move |outs| (ins, outs))) {
        let arbitrary = |x: u32| (x.wrapping_mul(2_654_435_761) >> 7) as u8 & (0xff >> (8 - outs));
        let mut b = Builder::new("two tables");
        let first = Table::new("arbitrary", ins, outs, (0..1 << ins).map(arbitrary).collect());
        let second = Table::new("reversed", outs, outs, (0..=0xff >> (8 - outs)).rev().collect());
        let constant = Table::new("constant", outs, outs, vec![1; 1 << outs]);
        let [first, second, constant] = [first, second, constant].map(|t| b.table(&Arc::new(t)));
        let x = b.input("x", 2, ins);
        let key = b.uniform_input("key", 1, ins)[0];
        let y = [x[0], x[1], key].map(|x| b.lookup(first, x));
        let sum = b.xor(&y);
        let z = [b.lookup(second, sum), b.lookup(constant, y[0]), b.lookup(second, y[2])];
        let lowest = b.linear(vec![(z[0], Matrix::bit(outs, 0)), (y[1], Matrix::bit(outs, 0))], 1);
        b.output("z", &z);
        b.output("y", &y);
        b.output("lowest", &[lowest]);
        let lanes = 5;
        let run = check_circuit(&polynomials((3, 1)), &b.finish(), lanes, 5);
        let (cost, tally) = (run.cost, run.tallies[0]);
        let operations = cost.operations_per_lane * lanes as f64 + cost.operations_uniform;
        let ahead = cost.preprocessing_per_lane * lanes as f64 + cost.preprocessing_uniform;
        let predicted = [operations, cost.rounds, ahead, cost.preprocessing_rounds];
        let preprocessing = tally.preprocessing;
        let online = [tally.online.operations(), tally.online.rounds];
        let counted = [online, [preprocessing.operations(), preprocessing.rounds]];
        assert_eq!(predicted.to_vec(), counted.as_flattened().iter().map(|n| *n as f64).collect::<Vec<_>>());
        assert_eq!(preprocessing.operations() == 0, ins <= 6 && outs <= 4, "{ins} to {outs}");
    }
}

#[test]
fn tables_of_two_bits_cost_one_product_and_nothing_ahead() {
    let adder = boolean::adder(16);
    let (ands, levels) = (adder.lookups() as u64, adder.layers() as u64);
    for tables in Tables::ALL {
        for lanes in [1, 7] {
            let config = ShamirConfig { tables, ..config((3, 1), Inversion::Views) };
            let run = check_circuit(&config, &adder, lanes, 3);
            for tally in run.tallies {
                let online = tally.online;
                let products = ands * lanes as u64;
                assert_eq!((online.multiplications, online.openings, online.rounds), (products, 0, levels));
                assert_eq!((tally.preprocessing.operations(), tally.preprocessing.rounds), (0, 0));
            }
            assert_eq!((run.cost.operations_per_lane, run.cost.rounds), (ands as f64, levels as f64));
            assert_eq!((run.cost.preprocessing_per_lane, run.cost.material_bytes_per_lane), (0.0, 0));
        }
    }
}

#[test]
fn any_table_of_any_width_can_be_looked_up() {
    for (ins, outs) in [(1, 1), (2, 1), (2, 8), (3, 5), (4, 4), (5, 2), (7, 7), (8, 8)] {
        let entries =
            (0..1u32 << ins).map(|x| (x.wrapping_mul(2_654_435_761) >> 7) as u8 & (0xff >> (8 - outs)));
        let mut b = Builder::new("one table");
        let table = b.table(&Arc::new(Table::new("arbitrary", ins, outs, entries.collect())));
        let x = b.input("x", 1, ins)[0];
        let y = b.lookup(table, x);
        let lowest = b.linear(vec![(y, Matrix::bit(outs, 0))], 1);
        b.output("y", &[y]);
        b.output("not its lowest bit", &[lowest]);
        check((3, 1), Inversion::Views, &b.finish(), 700);
    }
}

/// Lookups of a layer that go different ways, uniform and not, with outputs that are inputs, and one port of
/// both kinds.
#[test]
fn odd_circuits_are_right_and_cost_what_is_predicted() {
    let mut b = Builder::new("odd");
    let [s, inverse] = [polyclave_cipher::aes::s_box(), polyclave_cipher::aes::inverse_s_box()].map(Arc::new);
    let [s, inverse] = [s, inverse].map(|t| b.table(&t));
    let mixed = b.table(&Arc::new(Table::new("reversed", 8, 8, (0..=255).rev().collect())));
    let small = b.table(&Arc::new(polyclave_cipher::des::s_box(0)));
    let x = b.input("x", 2, 8);
    let key = b.uniform_input("key", 2, 8);
    let six = b.input("six bits", 1, 6)[0];
    b.input("unused", 1, 3);
    let outputs = [(s, x[0]), (inverse, x[1]), (s, key[0]), (mixed, x[0]), (inverse, key[1])];
    let looked_up: Vec<_> = outputs.into_iter().map(|(table, wire)| b.lookup(table, wire)).collect();
    let zero = b.linear(vec![(x[0], Matrix::identity(8)), (x[0], Matrix::identity(8))], 0x5a);
    let again = b.lookup(s, zero);
    b.output("mixed widths", &[looked_up[0], looked_up[2], key[1], x[0], again]);
    b.output("uniform", &[looked_up[4], key[0]]);
    b.output("others", &[looked_up[1], looked_up[3]]);
    let four = b.lookup(small, six);
    b.output("four bits", &[four]);
    let circuit = b.finish();
    for inversion in Inversion::ALL {
        for (lanes, tables) in [(1, Tables::Masked), (5, Tables::Masked), (5, Tables::Polynomial)] {
            let config = ShamirConfig { tables, ..config((3, 1), inversion) };
            let run = check_circuit(&config, &circuit, lanes, lanes as u8);
            if inversion != Inversion::Masking {
                let operations = run.cost.operations_per_lane * lanes as f64 + run.cost.operations_uniform;
                assert_eq!(operations, run.tallies[0].online.operations() as f64, "{inversion}");
                assert_eq!(run.cost.rounds, run.tallies[0].online.rounds as f64, "{inversion}");
            }
        }
    }
}

#[test]
fn no_lanes_are_refused() {
    let config = config((3, 1), Inversion::Views);
    let outcomes = polyclave_protocol::mesh::run_parties(3, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let circuit = polyclave_cipher::compile(&encrypt("aes-128"), &protocol);
        polyclave_protocol::evaluate::prepare(&mut protocol, &circuit, 0, net).map(drop)
    });
    assert!(outcomes.iter().all(|o| matches!(o, Err(Error::Misuse(_)))));
}

#[test]
fn a_batch_for_another_circuit_is_refused() {
    let config = config((3, 1), Inversion::Views);
    let outcomes = polyclave_protocol::mesh::run_parties(3, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let [aes, des] = ["aes-128", "des"].map(|n| polyclave_cipher::compile(&encrypt(n), &protocol));
        let batch = polyclave_protocol::evaluate::prepare(&mut protocol, &des, 1, net)?;
        let zeros: Vec<_> =
            aes.inputs().iter().map(|p| polyclave_cipher::Cells::zero(p.cells.len(), 8, 1)).collect();
        let inputs: Vec<_> = zeros.iter().map(polyclave_protocol::protocol::Input::Public).collect();
        polyclave_protocol::evaluate::evaluate(&mut protocol, &aes, 1, &inputs, batch, net).map(drop)
    });
    assert!(outcomes.iter().all(|o| matches!(o, Err(Error::Misuse(_)))));
}

/// What nodes use: which way a table goes depends on the number of lanes, what comes of it does not.
#[test]
fn polynomials_or_masked_tables_by_the_number_of_lanes_compute_every_cipher() {
    let by_lanes = ShamirConfig { tables: Tables::ByLanes, ..config((3, 1), Inversion::CarriedSquares) };
    let rounds = |lanes| {
        let tally = check_circuit(&by_lanes, &encrypt("3des-ede3"), lanes, 6).tallies[0];
        (tally.online.rounds, tally.preprocessing.rounds)
    };
    assert_eq!((rounds(1), rounds(16), rounds(17)), ((46, 5), (46, 5), (3 * 46, 0)));
    // Nodes run those with larger tables by their ANDs.
    let has_polynomials = |table: &Arc<Table>| table.inversion().is_some() || table.pulkus_vivek().is_some();
    for cipher in catalog::all().into_iter().filter(|c| c.encrypt.tables().iter().all(has_polynomials)) {
        for circuit in [Some(cipher.encrypt), cipher.decrypt].into_iter().flatten() {
            for lanes in [2, 17] {
                check_circuit(&by_lanes, &circuit, lanes, 7);
            }
        }
    }
}
