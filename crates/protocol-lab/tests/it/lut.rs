//! OP-LUT and SP-LUT against the cleartext evaluator, and what they send against the model in
//! `docs/protocols/dessouky-2017.md`.

use std::sync::Arc;

use polyclave_cipher::{
    AnyMap, Builder, Cells, Circuit, Compiled, Direction, Table, boolean, catalog, compile,
};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{mesh, run_parties};
use polyclave_protocol::metered::{Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::lut::{LutConfig, Method};
use polyclave_protocol_lab::testkit::conformance::{self, check_circuit};

use super::lookups::{narrow, one_lookup, table_of};

fn config(method: Method) -> LutConfig {
    LutConfig { method, expansion: 4 }
}

/// By both protocols: the answers are right, and rounds and operations are as predicted.
fn check(circuit: &Circuit, lanes: usize) {
    for method in Method::ALL {
        let run = check_circuit(&config(method), circuit, lanes, lanes as u8);
        let operations = run.cost.operations_per_lane * lanes as f64 + run.cost.operations_uniform;
        for tally in &run.tallies {
            let counted = (
                tally.online.rounds as f64,
                tally.online.operations() as f64,
                tally.preprocessing.rounds as f64,
            );
            let predicted = (run.cost.rounds, operations, run.cost.preprocessing_rounds);
            assert_eq!(counted, predicted, "{} by {method:?}", circuit.name());
        }
    }
}

#[test]
fn ciphers_are_right_in_both_directions() {
    for (name, lanes) in [("aes-128", 3), ("des", 5), ("present-80", 8)] {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let cipher = catalog::find(name).expect("the catalog has it");
            check(&cipher.circuit_with_key_schedule(direction).expect("it runs both ways"), lanes);
        }
    }
}

#[test]
fn tables_of_every_width_are_right_for_every_number_of_lanes() {
    for in_bits in 1..=8 {
        for lanes in [1, 2, 3, 9] {
            check(&narrow(in_bits), lanes);
        }
    }
    for out_bits in 1..=8 {
        let entries =
            (0..8_u32).map(|x| (x.wrapping_mul(0x9e37_79b9) >> 24) as u8 & (0xff >> (8 - out_bits)));
        check(&one_lookup(Table::new("a table", 3, out_bits, entries.collect())), 7);
    }
    // More than one piece of messages, and more transfers than are hashed at a time.
    check(&table_of("aes-128"), 35);
    check(&narrow(2), 1500);
}

#[test]
fn circuits_of_bits_run_with_gates_of_every_kind() {
    for lanes in [1, 8, 65] {
        check(&super::lookups::gates(), lanes);
    }
    check(&boolean::find("adder-64").expect("it is shipped"), 9);
}

/// Cells that are the same for all lanes come out of a port beside others.
#[test]
fn ports_of_cells_for_all_lanes_and_for_each_are_right() {
    let mut b = Builder::new("both");
    let x = b.input("x", 1, 8)[0];
    let k = b.uniform_input("k", 1, 8)[0];
    let table = (*catalog::find("aes-128").expect("the catalog has it").encrypt.tables()[0]).clone();
    let id = b.table(&Arc::new(table));
    let looked_up = b.lookup(id, k);
    let of_sum = b.xor(&[x, looked_up]);
    b.output("y", &[x, k, looked_up, of_sum]);
    check(&b.finish(), 3);
}

/// All bytes through the S-box: no entry of a table is confused with another.
#[test]
fn every_entry_of_a_table_is_found() {
    let cipher = catalog::find("aes-128").expect("the catalog has it");
    let circuit = table_of("aes-128");
    let mut bytes = Cells::zero(1, 8, 256);
    bytes.rows_mut().iter_mut().zip(0..=255).for_each(|(cell, x)| *cell = x);
    let zero = Cells::zero(1, 8, 256);
    for method in Method::ALL {
        let run = conformance::run(&config(method), &circuit, 256, &[bytes.clone(), zero.clone()]);
        let outputs = run.expect("honest parties finish").outputs;
        assert_eq!(outputs[0].row(0), cipher.encrypt.tables()[0].entries(), "{method:?}");
    }
}

/// What a party sends to prepare an evaluation, and from its first layer to its last.
fn sent(config: LutConfig, circuit: &Circuit, lanes: usize) -> Vec<[Traffic; 2]> {
    let party = |net: &mut Metered<_>| -> Result<[Traffic; 2]> {
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(circuit, &protocol);
        let cells = compiled
            .inputs()
            .iter()
            .map(|port| Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes }));
        let cells: Vec<Cells> = cells.collect();
        // Inputs send nothing, whoever gives them.
        let owner = |i: usize| Party(i as u8 % 2);
        let given =
            |(i, cells)| if owner(i) == net.me() { Input::Mine(cells) } else { Input::From(owner(i)) };
        let inputs: Vec<_> = cells.iter().enumerate().map(given).collect();
        let begin = net.meter().snapshot();
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        let prepared = net.meter().snapshot();
        evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?;
        Ok([prepared - begin, net.meter().snapshot() - prepared])
    };
    let (party, ends) = (&party, mesh(2).into_iter().map(Metered::new));
    std::thread::scope(|scope| {
        let threads: Vec<_> = ends
            .map(|mut net| scope.spawn(move || party(&mut net).expect("honest parties finish")))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// The model: what one party sends ahead and online, if each party is the sender for half of the lookups of
/// each table in each layer.
fn modelled(config: LutConfig, compiled: &Compiled, lanes: usize) -> [u64; 2] {
    let tables = compiled.tables();
    let shape = |table: usize| {
        (
            u64::from(tables[table].in_bits()),
            tables[table].entries().len() as u64,
            u64::from(tables[table].out_bits()),
        )
    };
    let bytes = |bits: u64| bits.div_ceil(8);
    let (mut choices, mut ahead, mut online) = (0, 0, 0);
    for table in 0..tables.len() {
        let (d, n, b) = shape(table);
        let lookups = compiled.lookups().filter(|lookup| lookup.table == table);
        let half: u64 =
            lookups.map(|lookup| if lookup.is_uniform() { 1 } else { lanes as u64 }).sum::<u64>() / 2;
        choices += bytes(d * half);
        ahead += if config.method == Method::Op { bytes(n * n * b * half) } else { 0 };
        for layer in compiled.layers() {
            let lookups = layer.lookups.iter().filter(|lookup| lookup.table == table);
            let cells: u64 = lookups.map(|lookup| if lookup.is_uniform() { 1 } else { lanes as u64 }).sum();
            online += match config.method {
                Method::Op => bytes(d * cells),
                Method::Sp => bytes(d * cells / 2) + bytes(n * b * cells / 2),
            };
        }
    }
    // A correction of each tree for all choices and for the mask of the check; the coins of the check,
    // committed to and opened; the answer.
    let trees = 128 / config.expansion as u64;
    let extension = trees * (choices.next_multiple_of(16) + 16) + 32 + 96 + (128 + 1) * 16;
    [extension + ahead, online]
}

#[test]
fn messages_have_the_bytes_of_the_model() {
    let circuits = ["aes-128", "des", "present-80"].map(|name| {
        let circuit = catalog::find(name).expect("the catalog has it").encrypt;
        // An even number of lanes: halves are even.
        (circuit, if name == "aes-128" { 2 } else { 16 })
    });
    let gates = (boolean::cipher("aes-128").expect("it has a Boolean circuit").encrypt, 16);
    for (circuit, lanes) in circuits.into_iter().chain([gates]) {
        for method in Method::ALL {
            for expansion in [4, 8] {
                let config = LutConfig { method, expansion };
                let expected = modelled(config, &compile(&circuit, &AnyMap), lanes);
                for traffic in sent(config, &circuit, lanes) {
                    let bytes = traffic.map(|traffic| traffic.payload_sent);
                    assert_eq!(bytes, expected, "{} by {config:?}", circuit.name());
                }
            }
        }
    }
}

/// The paper's costs of a lookup of 8 bits, here by both parties together: two bytes online by OP-LUT, a byte
/// and the table by SP-LUT.
#[test]
fn a_block_of_aes_sends_what_160_lookups_cost() {
    let circuit = catalog::find("aes-128").expect("the catalog has it").encrypt;
    for (method, a_lookup, exchanges) in [(Method::Op, 2, 10), (Method::Sp, 1 + 256, 20)] {
        let parties = sent(config(method), &circuit, 8);
        let online: u64 = parties.iter().map(|[_, online]| online.payload_sent).sum();
        assert_eq!(online, 160 * 8 * a_lookup, "{method:?}");
        assert!(parties.iter().all(|[_, online]| online.exchanges == exchanges), "{method:?}");
    }
}

#[test]
fn outputs_go_to_their_owner_alone_and_values_from_stream_to_stream() {
    let x = Cells::from_blocks(1, 8, b"abcde").expect("five blocks");
    let key = Cells::from_blocks(1, 8, b"vwxyz").expect("five blocks");
    let circuit = table_of("aes-128");
    for method in Method::ALL {
        let config = config(method);
        for owner in [Owner::All, Owner::Party(Party(0)), Owner::Party(Party(1))] {
            let outcomes = run_parties(2, |net| {
                let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
                let setup = config.setup(net)?;
                let mut streams = [
                    config.join(&setup, session.stream(), net.members())?,
                    config.join(&setup, session.stream(), net.members())?,
                ];
                let compiled = compile(&circuit, &streams[0]);
                let given = match net.me() {
                    Party(0) => [Input::Mine(&x), Input::From(Party(1))],
                    _ => [Input::From(Party(0)), Input::Mine(&key)],
                };
                let batch = prepare(&mut streams[0], &compiled, 5, net)?;
                let first = evaluate(&mut streams[0], &compiled, 5, &given, batch, net)?.remove(0);
                let batch = prepare(&mut streams[1], &compiled, 5, net)?;
                let inputs = [Input::Shared(&first), Input::Public(&key)];
                let second = evaluate(&mut streams[1], &compiled, 5, &inputs, batch, net)?.remove(0);
                let released = release(&mut streams[1], &second, owner, net)?;
                Ok((net.me(), released.map(Released::accept)))
            });
            let table = &circuit.tables()[0];
            let apply = |x: u8, k: u8| table.entries()[usize::from(x ^ k)] ^ k;
            let twice = |(x, k): (&u8, &u8)| apply(apply(*x, *k), *k);
            let right: Vec<u8> = x.row(0).iter().zip(key.row(0)).map(twice).collect();
            for outcome in outcomes {
                let (party, learned) = outcome.expect("honest parties finish");
                let learns = owner == Owner::All || owner == Owner::Party(party);
                assert_eq!(learned.map(|cells| cells.row(0).to_vec()), learns.then(|| right.clone()));
            }
        }
    }
}

#[test]
fn a_batch_serves_only_the_stream_circuit_and_lanes_that_it_was_made_for() {
    for method in Method::ALL {
        let config = config(method);
        let outcomes = run_parties(2, |net| {
            let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            let setup = config.setup(net)?;
            let mut streams = [
                config.join(&setup, session.stream(), net.members())?,
                config.join(&setup, session.stream(), net.members())?,
            ];
            let circuits = [table_of("aes-128"), narrow(8)].map(|circuit| compile(&circuit, &streams[0]));
            let mut refused = Vec::new();
            for (stream, circuit, lanes) in [(1, 0, 2), (0, 1, 2), (0, 0, 3)] {
                let mut batch = prepare(&mut streams[0], &circuits[0], 2, net)?;
                refused.push(streams[stream].registers(&circuits[circuit], lanes, &mut batch).err());
            }
            Ok(refused)
        });
        for refused in outcomes {
            let refused = refused.expect("honest parties finish");
            assert!(refused.iter().all(|error| matches!(error, Some(Error::Misuse(_)))), "{method:?}");
        }
    }
}
