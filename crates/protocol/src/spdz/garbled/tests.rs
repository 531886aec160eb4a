//! What parties see, and what never comes twice: tests that need their inner state.

use std::collections::HashSet;

use polyclave_cipher::{AnyMap, Builder, Cells, Circuit, Matrix, Table, compile};

use super::*;
use crate::evaluate::{evaluate, prepare, release};
use crate::interface::protocol::ProtocolConfig;
use crate::interface::release::Released;
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::run_parties;

/// y = (x0 x1 + k0, k1 x0): an AND in lanes, one of a wire that is the same for all, and each output bit
/// depends on all kinds of inputs.
pub(super) fn circuit() -> Circuit {
    let mut b = Builder::new("two ANDs");
    let and = b.table(&Arc::new(Table::new("AND", 2, 1, vec![0, 0, 0, 1])));
    let x = b.input("x", 2, 1);
    let k = b.uniform_input("k", 2, 1);
    let pair = b.linear(vec![(x[0], Matrix::place(2, 0)), (x[1], Matrix::place(2, 1))], 0);
    let mixed = b.linear(vec![(k[1], Matrix::place(2, 0)), (x[0], Matrix::place(2, 1))], 0);
    let (first, second) = (b.lookup(and, pair), b.lookup(and, mixed));
    let sum = b.xor(&[first, k[0]]);
    b.output("y", &[sum, second]);
    b.finish()
}

/// x = (1, 1) and k = (0, 1), of which y = (1, 1).
pub(super) const X: [u8; 2] = [1, 1];
pub(super) const K: [u8; 2] = [0, 1];
pub(super) const Y: [u8; 2] = [1, 1];

/// The same bits in all lanes.
pub(super) fn in_lanes(bits: [u8; 2], lanes: usize) -> Cells {
    let mut cells = Cells::zero(2, 1, lanes);
    bits.iter().enumerate().for_each(|(i, bit)| cells.row_mut(i).fill(*bit));
    cells
}

/// A value of the first party, checked.
pub(super) fn shared(
    protocol: &mut GarbledAuthenticated,
    port: &CompiledPort,
    cells: &Cells,
    net: &mut dyn Net,
) -> Result<Shared<Gf2_64>> {
    let own = (net.me() == Party(0)).then_some(cells);
    let arithmetic = &mut protocol.under.arithmetic;
    let value = arithmetic.share(Party(0), own, port, cells.lanes(), net)?;
    arithmetic.check(net)?;
    Ok(value)
}

const LANES: usize = 256;

/// A number that is far from the mean of so many fair coins with probability below 2^-60 only.
fn is_fair(bits: &[u8]) -> bool {
    let ones = bits.iter().filter(|bit| **bit & 1 == 1).count();
    bits.len() == LANES && ones.abs_diff(LANES / 2) < 75
}

/// All lanes have the same inputs. What is opened, what the evaluator sees of inputs, and each share of
/// outputs differ from lane to lane as coins do, for two different secrets.
#[test]
fn what_parties_see_does_not_tell_the_bits_they_lack() {
    for (secret, answer) in [(X, Y), ([0, 1], [0, 0])] {
        let seen = run_parties(2, |net| {
            let config = GarbledAuthenticatedConfig::with_evaluator(Party(1))?;
            let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
            let compiled = compile(&circuit(), &protocol);
            let x = shared(&mut protocol, &compiled.inputs()[0], &in_lanes(secret, LANES), net)?;
            let item = prepare(&mut protocol, &compiled, LANES, net)?;
            let item = protocol.give(&compiled, item, "x", &x, net)?;
            let Some(Masked::Given(given)) = item.0.as_ref().map(|item| &item.inputs[0]) else {
                return Err(spent());
            };
            let mut views: Vec<Vec<u8>> =
                given.active.chunks(LANES).map(|row| row.iter().map(|of| of.bit).collect()).collect();
            views.extend(
                given.active.chunks(LANES).map(|row| row.iter().map(|of| of.label as u8 & 1).collect()),
            );
            let key = in_lanes(K, 1);
            let inputs = [Input::Shared(&x), Input::Public(&key)];
            let y = evaluate(&mut protocol, &compiled, LANES, &inputs, item, net)?.remove(0);
            // A share of an output tells the masked value to a party that knows its share of the mask.
            views.extend(y.cells.chunks(LANES).map(<[u8]>::to_vec));
            let opened = release(&mut protocol, &y, Owner::All, net)?.expect("it is for all").accept();
            assert_eq!(opened.rows(), answer.map(|bit| [bit; LANES]).as_flattened());
            Ok(views)
        });
        for (party, views) in seen.into_iter().enumerate() {
            let views = views.expect("both are honest");
            // The garbler has outputs only.
            assert_eq!(views.len(), [2, 6][party]);
            assert!(views.iter().all(|view| is_fair(view)));
        }
    }
}

/// No label, no row of a gate and no name comes twice, in lanes and in circuits.
#[test]
fn nothing_of_a_circuit_comes_again_in_another_lane_or_circuit() {
    let made = run_parties(2, |net| {
        let config = GarbledAuthenticatedConfig::with_evaluator(Party(1))?;
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let (mut names, mut blocks) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let mut protocol = config.join(&setup, session.stream(), net.members())?;
            let compiled = compile(&circuit(), &protocol);
            for circuit in protocol.make(&compiled, 5, 3, net)? {
                let Item { name, part, .. } = circuit.0.ok_or_else(spent)?;
                names.push(name);
                match part {
                    Part::Garbler { inputs, outputs, .. } => {
                        blocks.extend(inputs.iter().flat_map(|labels| labels.iter().copied()));
                        blocks.extend(outputs.iter());
                    }
                    Part::Evaluator { gates } => blocks.extend(gates.iter().flat_map(|gate| gate.words())),
                }
            }
        }
        Ok((names, blocks))
    });
    let made: Vec<_> = made.into_iter().map(|outcome| outcome.expect("both are honest")).collect();
    let [(names, labels), (same, rows)] = &made[..] else { panic!("there are two") };
    assert_eq!(names, same);
    assert_eq!((names.len(), labels.len(), rows.len()), (6, 6 * (10 + 2 + 10), 6 * 10 * 6));
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    for blocks in [labels, rows] {
        assert_eq!(blocks.iter().collect::<HashSet<_>>().len(), blocks.len());
    }
}

/// With the same labels at all gates, and without masks: the four hashes have keys of their own, and each
/// gate has a tweak of its own.
#[test]
fn all_hashes_of_all_gates_differ() {
    let compiled = compile(&circuit(), &AnyMap);
    let plan = Plan::of(&compiled).expect("it is of bits");
    let (lanes, label, delta) = (3, 0x1234, 0x9876_5432_1000_0001);
    let mut labels = Wires::<u128>::new(&plan, lanes);
    for port in &plan.inputs {
        ahead::put(&mut labels, &port.rows, port.lanes(lanes), &vec![label; port.bits(lanes)]);
    }
    let masks = vec![Default::default(); plan.gates(lanes)];
    let table = gates::garble(&plan, (&[7; 32], delta), &masks, &mut labels);
    let mut words = Vec::new();
    for gate in table.as_chunks::<{ gates::GATE }>().0 {
        let (rows, tags) = gate.split_at(2 * LABEL);
        for (row, added) in rows.as_chunks().0.iter().zip([0, label]) {
            let row = u128::from_le_bytes(*row) ^ added;
            words.extend([row as u64, upper(row)]);
        }
        words.extend(tags.as_chunks().0.iter().map(|tag| u64::from_le_bytes(*tag)));
    }
    assert_eq!(words.len(), 6 * 7);
    assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len());
}
