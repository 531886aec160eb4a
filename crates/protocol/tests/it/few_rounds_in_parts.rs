//! Computations around circuits of the stock, such as wrapping a key: each kept circuit inside goes through a
//! garbled one, and clients learn what they learn in rounds.

use polyclave_cipher::key_wrap::{self, Padding};
use polyclave_cipher::{Builder, Circuit, Matrix, Table, aes, catalog as ciphers, ff1, key_block, modes};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::mesh::{mesh_with_timeout, run_parties};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::{Party, Result, catalog};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, Sweep, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;
use std::sync::Arc;

use crate::few_rounds::{computed, expected, joined, session, shelf};

const AES: &str = "garbled circuits of AES-128";

fn config(parties: usize) -> AnyServiceConfig {
    let name = if parties == 2 { "spdz-tower" } else { "replicated-active" };
    catalog::service(name, parties, 1).expect("nodes serve with it")
}

/// Names of material, with how much of it there is.
type Stocked = Vec<(&'static str, usize)>;

/// What nodes compute around blocks: the names of the material, how many circuits one lane takes, how many of
/// them wait for each other, and the circuit.
fn circuits() -> Vec<(Stocked, u64, Circuit)> {
    let [short, long, des, two_keys, single] = ["aes-128", "aes-256", "3des-ede3", "3des-ede2", "des"]
        .map(|name| ciphers::find(name).expect("listed"));
    let unwrap = key_wrap::unwrap(&long, Padding::Zeros, 20).expect("AES decrypts");
    vec![
        (vec![(AES, 12)], 12, key_wrap::wrap(&short, Padding::None, 16, (16, 8))),
        (vec![("garbled circuits of AES-256 decryption", 18)], 18, unwrap),
        (vec![(AES, 1)], 1, ff1::round(&short, 3, 8)),
        (vec![(AES, 1)], 1, modes::subkeys(&short)),
        (vec![("garbled circuits of Triple DES", 2)], 2, modes::check_value(&des)),
        (vec![("garbled circuits of Triple DES", 2)], 2, modes::check_value(&two_keys)),
        (
            vec![("garbled circuits of AES-128 decryption", 1)],
            1,
            key_block::decrypt(&short).expect("AES decrypts"),
        ),
        (vec![(AES, 3)], 2, of_two_keys()),
        (vec![(AES, 2), ("garbled key schedules of AES-128", 1)], 3, of_a_derived_key()),
        (vec![("garbled key schedules of AES-128", 1)], 1, short.key_schedule.as_ref().clone()),
        (vec![("garbled key schedules of AES-256", 1)], 1, long.key_schedule.as_ref().clone()),
        (
            vec![("garbled circuits of Triple DES decryption", 1)],
            1,
            single.decrypt.expect("DES decrypts").as_ref().clone(),
        ),
    ]
}

/// A block under a key that is a block under another key.
fn of_a_derived_key() -> Circuit {
    let aes = ciphers::find("aes-128").expect("listed");
    let (block, keys) = (&aes.encrypt.inputs()[0], &aes.encrypt.inputs()[1]);
    let mut b = Builder::new("of a derived key");
    let x = b.input("x", block.cells.len(), block.bits);
    let round_keys = b.uniform_input("round_keys", keys.cells.len(), keys.bits);
    let key = b.call(&aes.encrypt, &[&x, &round_keys]).remove(0);
    let derived = b.call(&aes.key_schedule, &[&key]).remove(0);
    let z = b.call(&aes.encrypt, &[&x, &derived]).remove(0);
    b.output("z", &z);
    b.finish()
}

/// Blocks under two keys, one block of all lanes, and their sum once more: E(E(x) + E'(y)).
fn of_two_keys() -> Circuit {
    let aes = ciphers::find("aes-128").expect("listed");
    let (block, keys) = (&aes.encrypt.inputs()[0], &aes.encrypt.inputs()[1]);
    let mut b = Builder::new("of two keys");
    let x = b.input("x", block.cells.len(), block.bits);
    let y = b.uniform_input("y", block.cells.len(), block.bits);
    let [first, second] =
        ["round_keys 1", "round_keys 2"].map(|name| b.uniform_input(name, keys.cells.len(), keys.bits));
    let x = b.call(&aes.encrypt, &[&x, &first]).remove(0);
    let y = b.call(&aes.encrypt, &[&y, &second]).remove(0);
    let sum = b.xor_each(&x, &y);
    let z = b.call(&aes.encrypt, &[&sum, &first]).remove(0);
    b.output("z", &z);
    b.finish()
}

/// A block, its bytes through the S-box, and a block again. Something is looked up between circuits.
fn with_lookups_between() -> Circuit {
    let aes = ciphers::find("aes-128").expect("listed");
    let (block, keys) = (&aes.encrypt.inputs()[0], &aes.encrypt.inputs()[1]);
    let mut b = Builder::new("with lookups between");
    let x = b.input("x", block.cells.len(), block.bits);
    let round_keys = b.uniform_input("round_keys", keys.cells.len(), keys.bits);
    let y = b.call(&aes.encrypt, &[&x, &round_keys]).remove(0);
    let table = b.table(&Arc::new(aes::s_box()));
    let y = b.lookup_each(table, &y);
    let z = b.call(&aes.encrypt, &[&y, &round_keys]).remove(0);
    b.output("z", &z);
    b.finish()
}

/// A block of Triple DES, four bits of it through a table, and a block again.
fn with_a_narrow_lookup_between() -> Circuit {
    let des = ciphers::find("3des-ede3").expect("listed");
    let (block, keys) = (&des.encrypt.inputs()[0], &des.encrypt.inputs()[1]);
    let mut b = Builder::new("with a narrow lookup between");
    let x = b.input("x", block.cells.len(), block.bits);
    let round_keys = b.uniform_input("round_keys", keys.cells.len(), keys.bits);
    let mut y = b.call(&des.encrypt, &[&x, &round_keys]).remove(0);
    let table =
        b.table(&Arc::new(Table::new("of a nibble", 4, 1, (0..16).map(|x| u8::from(x > 9)).collect())));
    let places = y[..4].iter().zip(0..).map(|(bit, i)| (*bit, Matrix::place(4, 3 - i)));
    let nibble = b.linear(places.collect(), 0);
    let bit = b.lookup(table, nibble);
    y[63] = b.xor(&[y[63], bit]);
    let z = b.call(&des.encrypt, &[&y, &round_keys]).remove(0);
    b.output("z", &z);
    b.finish()
}

/// Rounds of one circuit after the other, each lane of which counts its own outputs.
fn rounds_of(parties: usize, in_a_row: u64, circuits: usize) -> u64 {
    match parties {
        2 => 2 * in_a_row + circuits as u64,
        _ => 2 * circuits as u64,
    }
}

#[test]
fn each_kept_circuit_inside_takes_its_messages_and_nothing_else_does() {
    for parties in [2, 3] {
        let outcomes = run_parties(parties, |net| {
            let config = config(parties);
            let setup = config.setup(net)?;
            let mut all = Vec::new();
            for (stock, in_a_row, circuit) in circuits() {
                let count = stock.iter().map(|(_, count)| count).sum();
                let mut protocol = joined(&config, &setup, &stock, net)?;
                let (answer, rounds) = computed(&config, &mut protocol, &circuit, 1, net)?;
                all.push((circuit, answer, rounds, rounds_of(parties, in_a_row, count)));
            }
            Ok(all)
        });
        for outcome in outcomes {
            for (circuit, answer, rounds, right) in outcome.expect("honest nodes finish") {
                assert_eq!(answer, expected(&circuit, 1), "{}", circuit.name());
                assert_eq!(rounds, right, "{} of {parties} parties", circuit.name());
            }
        }
    }
}

/// What two parties learn of a circuit in so many lanes, the rounds, and the messages that each one sends.
/// They have four circuits of Triple DES in stock, and unit vectors for its tables.
fn with_wide_vectors(circuit: &Circuit, lanes: usize) -> Vec<(Vec<u8>, u64, u64)> {
    let ends: Vec<_> = mesh_with_timeout(2, LATE).into_iter().map(Metered::new).collect();
    let meters: Vec<_> = ends.iter().map(Metered::meter).collect();
    let circuit = circuit.clone();
    let outcomes = run_over(ends, move |net| {
        let config = config(2);
        let setup = config.setup(net)?;
        let mut protocol = joined(&config, &setup, &[("garbled circuits of Triple DES", 4)], net)?;
        let meter = &meters[net.me().index()];
        let before = meter.snapshot().messages_sent;
        let (answer, rounds) = computed(&config, &mut protocol, &circuit, lanes, net)?;
        Ok((answer, rounds, meter.snapshot().messages_sent - before))
    });
    outcomes.into_iter().map(|outcome| outcome.expect("honest nodes finish")).collect()
}

/// Making vectors takes more messages than this.
const IF_NONE_ARE_MADE: u64 = 40;

/// The stock of two nodes has unit vectors for tables of six bits. Making some for four takes many rounds.
#[test]
fn narrow_tables_between_circuits_take_wide_vectors_of_the_stock() {
    let circuit = with_a_narrow_lookup_between();
    for (answer, rounds, messages) in with_wide_vectors(&circuit, 2) {
        assert_eq!((answer, rounds), (expected(&circuit, 2), rounds_of(2, 2, 4) + 1));
        assert!(messages < IF_NONE_ARE_MADE, "{messages} messages");
    }
}

/// More would leave nothing for blocks of Triple DES.
#[test]
fn no_more_than_few_narrow_tables_take_wide_vectors_of_the_stock() {
    const FEW: usize = 128;
    let mut b = Builder::new("a narrow lookup");
    let x = b.input("x", 2, 4);
    let table =
        b.table(&Arc::new(Table::new("of a nibble", 4, 4, (0..16).map(|x| (5 * x + 3) % 16).collect())));
    let y = b.lookup_each(table, &x);
    b.output("y", &y);
    let circuit = b.finish();
    for (lanes, takes) in [(FEW / 2, true), (FEW / 2 + 1, false)] {
        for (answer, _, messages) in with_wide_vectors(&circuit, lanes) {
            assert_eq!(answer, expected(&circuit, lanes), "{lanes} lanes");
            assert_eq!(messages < IF_NONE_ARE_MADE, takes, "{lanes} lanes: {messages} messages");
        }
    }
}

/// What is the same in all lanes is computed once.
#[test]
fn lanes_go_together() {
    let circuit = of_two_keys();
    for parties in [2, 3] {
        let outcomes = run_parties(parties, |net| {
            let config = config(parties);
            let setup = config.setup(net)?;
            let mut protocol = joined(&config, &setup, &[(AES, 5)], net)?;
            computed(&config, &mut protocol, &circuit, 2, net)
        });
        for outcome in outcomes {
            let (answer, rounds) = outcome.expect("honest nodes finish");
            assert_eq!((answer, rounds), (expected(&circuit, 2), rounds_of(parties, 2, 5)));
        }
    }
}

#[test]
fn with_one_circuit_too_few_all_goes_in_rounds() {
    for parties in [2, 3] {
        let outcomes = run_parties(parties, |net| {
            let config = config(parties);
            let setup = config.setup(net)?;
            let mut protocol = joined(&config, &setup, &[(AES, 2)], net)?;
            computed(&config, &mut protocol, &of_two_keys(), 1, net)
        });
        for outcome in outcomes {
            let (answer, rounds) = outcome.expect("honest nodes finish");
            assert!(answer == expected(&of_two_keys(), 1) && rounds >= 60, "{rounds}");
        }
    }
}

/// Making circuits, an evaluation around two of them, and the answer.
fn request(parties: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
    let config = config(parties);
    let setup = config.setup(net)?;
    let shelf = Arc::new(shelf(&config, &setup, &[(AES, 2)], true, net)?);
    let stream = session(&config, net)?.stream();
    let mut protocol = config.join_stocked(&setup, stream, net.members(), shelf)?;
    let (answer, rounds) = computed(&config, &mut protocol, &with_lookups_between(), 1, net)?;
    assert!(rounds < 30, "only the lookups go in rounds: {rounds}");
    Ok(answer)
}

/// Messages of each party before the request. What was made ahead has sweeps of its own.
fn messages_before(parties: usize) -> Vec<u64> {
    let ends: Vec<_> = mesh_with_timeout(parties, LATE).into_iter().map(Metered::new).collect();
    let meters: Vec<_> = ends.iter().map(Metered::meter).collect();
    let outcomes = run_over(ends, move |net| {
        let (config, name) = (config(parties), (AES, 2));
        let setup = config.setup(net)?;
        shelf(&config, &setup, &[name], true, net).map(|_| ())
    });
    assert!(outcomes.into_iter().all(|outcome| outcome == Ok(())));
    meters.iter().map(|meter| meter.snapshot().messages_sent).collect()
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_answer_at_a_client() {
    let right = expected(&with_lookups_between(), 1);
    for parties in [2, 3] {
        let run = move |net: &mut dyn Net| request(parties, net);
        let honest = run_over(mesh_with_timeout(parties, LATE), run);
        assert!(honest.into_iter().all(|outcome| outcome == Ok(right.clone())));
        for (cheater, first) in Party::all(parties).zip(messages_before(parties)) {
            let new = Sweep::new(parties, cheater, Promise::RightOrAborted);
            let mut sweep = Sweep { first, drop_every: 8, ..new };
            sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 6 });
            let swept = sweep.run(run);
            println!("{cheater} of {parties} cheats from message {first} on: {swept:?}");
            assert!(swept.messages >= first + 12 && swept.faults > 48, "{swept:?}");
        }
    }
}
