//! Projection gates against the cleartext evaluator, and their counts against the estimates of Pohle, Abidin
//! and Preneel 2022, table I.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Direction, Matrix, Table, boolean, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tally::Tally;
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::garbled::projection::{Labels, ProjectionConfig};
use polyclave_protocol_lab::testkit::conformance::check_circuit;
use polyclave_protocol_lab::testkit::faults::{Promise, Sweep};
use polyclave_protocol_lab::testkit::tamper::Fault;

const BOTH: [ProjectionConfig; 2] = [
    ProjectionConfig { labels: Labels::Long, expansion: 4 },
    ProjectionConfig { labels: Labels::Short, expansion: 4 },
];

fn with_key_schedule(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    cipher.circuit_with_key_schedule(direction).expect("it runs both ways")
}

#[test]
fn ciphers_are_right_in_both_directions() {
    for config in BOTH {
        for (name, lanes) in
            [("aes-128", 2), ("des", 1), ("skinny-64-128", 3), ("present-80", 1), ("gift-64", 1)]
        {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                check_circuit(&config, &with_key_schedule(name, direction), lanes, 7);
            }
        }
    }
}

#[test]
fn circuits_of_bits_are_right_for_every_number_of_lanes() {
    for config in BOTH {
        for name in ["adder-64", "comparator-64"] {
            let circuit = boolean::find(name).expect("it is shipped");
            for lanes in [1, 2, 7, 33] {
                check_circuit(&config, &circuit, lanes, lanes as u8);
            }
        }
    }
}

/// Tables between cells of all widths, maps of every kind of inputs, of narrow and of wide lookups and of
/// sums, constants, and cells that are the same for all lanes, alone and with others.
fn gates() -> Circuit {
    let mut b = Builder::new("gates");
    let (x, k) = (b.input("x", 3, 8), b.uniform_input("k", 2, 8));
    let mut outputs = Vec::new();
    let mut narrow = vec![x[0]];
    for (ins, outs) in [(8, 7), (7, 8), (8, 3), (3, 5), (5, 1), (1, 8), (8, 8)] {
        let images = (0..1_u32 << ins).map(|x| (x * x + 3 * x + 11) as u8 & (0xff >> (8 - outs))).collect();
        let table = b.table(&Arc::new(Table::new("a table", ins, outs, images)));
        narrow.push(b.lookup(table, *narrow.last().expect("there is one")));
        if outs == 8 {
            outputs.push(*narrow.last().expect("there is one"));
        }
    }
    let turned = Matrix::of(8, 8, |x| x.rotate_left(3));
    let some = Matrix::of(8, 8, |x| (x & 7) << 5);
    let all = |m: Matrix| [x[1], k[0]].map(|wire| (wire, m)).to_vec();
    for m in [turned, some] {
        outputs.push(b.linear(all(m), 0x5a));
        outputs.push(b.linear(vec![(outputs[0], m), (k[1], Matrix::identity(8))], 1));
        let sum = b.linear(vec![(outputs[1], Matrix::identity(8)), (x[2], m)], 0x80);
        outputs.push(b.linear(vec![(sum, turned), (sum, some)], 0xff));
    }
    let s = b.table(&Arc::new(polyclave_cipher::aes::s_box()));
    let of_key = b.lookup(s, k[1]);
    let mixed = b.xor(&[of_key, x[0]]);
    outputs.push(b.lookup(s, mixed));
    b.output("y", &outputs);
    let keys = b.linear(vec![(of_key, turned), (k[0], Matrix::identity(8))], 9);
    b.output("k", &[keys]);
    b.finish()
}

#[test]
fn gates_of_every_kind_are_right_for_every_number_of_lanes() {
    for config in BOTH {
        for lanes in [1, 2, 3, 7, 8, 9, 63, 300] {
            check_circuit(&config, &gates(), lanes, lanes as u8);
        }
    }
}

/// One block, of which the evaluator gives the named inputs: what both did while labels were made and gates
/// run.
fn counted(circuit: &Circuit, of_evaluator: &[&str]) -> [Tally; 2] {
    let config = BOTH[1];
    let outcomes = run_parties(2, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(circuit, &protocol);
        let zeros: Vec<Cells> =
            compiled.inputs().iter().map(|port| Cells::zero(port.cells.len(), port.bits, 1)).collect();
        let owner = |name: &str| Party(u8::from(of_evaluator.contains(&name)));
        let me = net.me();
        let input = |(port, cells)| {
            let owner = owner(&polyclave_cipher::CompiledPort::clone(port).name);
            if owner == me { Input::Mine(cells) } else { Input::From(owner) }
        };
        let inputs: Vec<Input<'_, _>> = compiled.inputs().iter().zip(&zeros).map(input).collect();
        let batch = prepare(&mut protocol, &compiled, 1, net)?;
        let shared = evaluate(&mut protocol, &compiled, 1, &inputs, batch, net)?.remove(0);
        let tally = protocol.tally();
        release(&mut protocol, &shared, Owner::All, net)?;
        Ok(tally)
    });
    let all: Vec<Tally> = outcomes.into_iter().collect::<Result<_>>().expect("both are honest");
    [all[0], all[1]]
}

/// Garbled calls, ciphertexts and evaluated calls of P projections of n bits and of E conversions.
fn expected(projections: u64, bits: u32, conversions: u64) -> [u64; 3] {
    let values = 1 << bits;
    [
        values * projections + 2 * conversions,
        (values - 1) * projections + conversions,
        projections + conversions,
    ]
}

fn calls(circuit: &Circuit, of_evaluator: &[&str]) -> [u64; 3] {
    let [garbler, evaluator] = counted(circuit, of_evaluator);
    let sum = |f: fn(&Tally) -> u64, tally: &Tally| f(tally);
    let hashes = |t: &Tally| t.input.hash_calls + t.online.hash_calls;
    let ciphertexts = |t: &Tally| t.input.ciphertexts + t.online.ciphertexts;
    assert_eq!(sum(ciphertexts, &garbler), sum(ciphertexts, &evaluator));
    [sum(hashes, &garbler), sum(ciphertexts, &garbler), sum(hashes, &evaluator)]
}

#[test]
fn counts_are_those_of_the_estimates() {
    let encrypt = |name| with_key_schedule(name, Direction::Encrypt);
    assert_eq!(calls(&catalog::find("aes-128").expect("known").encrypt, &[]), expected(304, 8, 0));
    assert_eq!(calls(&encrypt("midori64"), &["key"]), expected(256, 4, 128));
    // The estimate leaves out that k0' takes conversions of its own.
    assert_eq!(calls(&encrypt("mantis6"), &["key", "tweak"]), expected(224, 4, 192 + 65));
    assert_eq!(calls(&encrypt("piccolo-128"), &["key"]), expected(496 + 248, 4, 128));
    // The estimate has 280 maps of key cells, one for each use; the map has order 15, and what was made
    // before serves again.
    assert_eq!(calls(&encrypt("skinny-64-128"), &["key"]), expected(576 + 14 * 16, 4, 128));
}

#[test]
fn a_shared_value_goes_from_circuit_to_circuit_with_the_images_it_needs() {
    let cipher = catalog::find("aes-128").expect("known");
    let whole = with_key_schedule("aes-128", Direction::Encrypt);
    let config = BOTH[0];
    let outcomes = run_parties(2, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let setup = config.setup(net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let encrypt = compile(&cipher.encrypt, &protocol);
        let schedule = polyclave_cipher::compile_with_views(&cipher.key_schedule, &protocol, |_| {
            encrypt.inputs()[1].views()
        });
        let key = Cells::from_blocks(16, 8, &[7; 16]).expect("a key");
        let block = Cells::from_blocks(16, 8, &[9; 32]).expect("two blocks");
        let of_key = if net.me() == Party(1) { Input::Mine(&key) } else { Input::From(Party(1)) };
        let batch = prepare(&mut protocol, &schedule, 1, net)?;
        let round_keys = evaluate(&mut protocol, &schedule, 1, &[of_key], batch, net)?.remove(0);
        // In another stream of the same setup.
        let mut other = config.join(&setup, session.stream(), net.members())?;
        let batch = prepare(&mut other, &encrypt, 2, net)?;
        let inputs = [Input::Public(&block), Input::Shared(&round_keys)];
        let shared = evaluate(&mut other, &encrypt, 2, &inputs, batch, net)?.remove(0);
        let fresh = config.setup(net)?;
        let mut foreign = config.join(&fresh, session.stream(), net.members())?;
        let batch = prepare(&mut foreign, &encrypt, 2, net)?;
        let refused = evaluate(&mut foreign, &encrypt, 2, &inputs, batch, net).map(|_| ());
        assert!(matches!(refused, Err(Error::Misuse(_))), "{refused:?}");
        use polyclave_protocol::release::Released;
        let opened = release(&mut other, &shared, Owner::Party(Party(1)), net)?;
        Ok(opened.map(|opened| opened.accept().to_blocks().to_vec()))
    });
    let clear = compile(&whole, &polyclave_cipher::AnyMap);
    let cells = [&[9; 16], &[7; 16]].map(|bytes| Cells::from_blocks(16, 8, bytes).expect("a block"));
    let right =
        polyclave_cipher::cleartext::run(&clear, 1, &cells).expect("they fit")[0].to_blocks().to_vec();
    assert_eq!(outcomes, [Ok(None), Ok(Some([right.clone(), right].concat()))]);
}

/// Small, with every kind of message: transfers, conversions, gates of wide and of narrow cells, labels that
/// are kept, both ways of opening.
fn session(config: ProjectionConfig, net: &mut dyn Net) -> Result<Vec<u8>> {
    use polyclave_protocol::release::Released;
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let mut b = Builder::new("small");
    let (x, k) = (b.input("x", 2, 5), b.uniform_input("k", 1, 5));
    let table = b.table(&Arc::new(Table::new("s", 5, 8, (0..32).map(|x| (x * 37) ^ 11).collect())));
    let sum = b.xor(&[x[0], k[0]]);
    let y = [b.lookup(table, sum), b.lookup(table, x[1])];
    b.output("y", &y);
    let first = compile(&b.finish(), &protocol);
    let mut b = Builder::new("again");
    let y = b.input("y", 2, 8);
    let turned =
        b.linear(vec![(y[0], Matrix::of(8, 8, |x| x.rotate_left(3))), (y[1], Matrix::identity(8))], 1);
    b.output("z", &[turned]);
    let second = compile(&b.finish(), &protocol);
    let (x, k) = (Cells::from_blocks(2, 5, &[3, 12, 17, 30]), Cells::from_blocks(1, 5, &[9]));
    let (x, k) = (x.expect("two"), k.expect("one"));
    let inputs = match net.me() {
        Party(0) => [Input::From(Party(1)), Input::Mine(&k)],
        _ => [Input::Mine(&x), Input::From(Party(0))],
    };
    let batch = prepare(&mut protocol, &first, 2, net)?;
    let y = evaluate(&mut protocol, &first, 2, &inputs, batch, net)?.remove(0);
    let batch = prepare(&mut protocol, &second, 2, net)?;
    let z = evaluate(&mut protocol, &second, 2, &[Input::Shared(&y)], batch, net)?.remove(0);
    let mut out = Vec::new();
    for (shared, to) in [(&z, Owner::All), (&y, Owner::Party(Party(0))), (&y, Owner::Party(Party(1)))] {
        let opened = release(&mut protocol, shared, to, net)?;
        out.extend(opened.map(|opened| opened.accept().to_blocks().to_vec()).unwrap_or_default());
    }
    Ok(out)
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output() {
    for (config, cheater) in BOTH.into_iter().flat_map(|config| [0, 1].map(|p| (config, Party(p)))) {
        let mut sweep = Sweep { drop_every: 8, ..Sweep::new(2, cheater, Promise::RightOrAborted) };
        let flips = [(3, 1), (40, 7), (200, 2), (usize::MAX, 6)];
        sweep.faults.extend(flips.map(|(byte, bit)| Fault::FlipBit { byte, bit }));
        let swept = sweep.run(move |net| session(config, net));
        println!("{config:?}, {cheater}: {swept:?}");
        assert!(swept.faults > 6 * swept.messages, "{swept:?}");
    }
}
