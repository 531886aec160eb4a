//! What parties see, and what they do after an error: tests that need their inner state.

use polyclave_cipher::{Builder, Cells, Circuit, Matrix, Table, compile};
use zeroize::Zeroizing;

use super::super::ring::next;
use super::item::Part;
use super::seed::number;
use super::*;
use crate::Party;
use crate::evaluate::{evaluate, prepare, release};
use crate::interface::protocol::ProtocolConfig;
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::run_parties;
use crate::testkit::tamper::{Fault, Tamper};
use crate::unchecked::Unchecked;

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

/// A party's shares of the same bits in all lanes, from their three components. Party 1 is the first garbler.
pub(super) fn shared(components: [&[u8]; 3], lanes: usize, me: Party) -> Shared {
    let mut rows = Zeroizing::new(Vec::new());
    for component in [me, next(me)] {
        let bits = components[component.index()];
        rows.extend(bits.iter().flat_map(|bit| std::iter::repeat_n(*bit, lanes)));
    }
    Shared { bits: 1, count: components[0].len(), lanes, rows, unchecked: Unchecked::default() }
}

/// x = (1, 1), of which each component alone says nothing.
pub(super) const X: [&[u8]; 3] = [&[1, 0], &[0, 0], &[0, 1]];
/// k = (0, 1), of which y = (1, 1).
pub(super) const K: [u8; 2] = [0, 1];
pub(super) const Y: [u8; 2] = [1, 1];

pub(super) fn key() -> Cells {
    let mut cells = Cells::zero(2, 1, 1);
    cells.rows_mut().copy_from_slice(&K);
    cells
}

const LANES: usize = 256;

/// A number that is far from the mean of so many fair coins with probability below 2^-60 only.
fn is_fair(ones: usize) -> bool {
    ones.abs_diff(LANES / 2) < 75
}

/// All lanes have the same inputs. What the first garbler is told, and the colours and commitments that the
/// evaluator sees, differ from lane to lane as coins do.
#[test]
fn what_parties_see_does_not_tell_the_bits_they_lack() {
    let seen = run_parties(3, |net| {
        let config = GarbledThreeConfig::default();
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(&circuit(), &protocol);
        let x = shared(X, LANES, net.me());
        let item = prepare(&mut protocol, &compiled, LANES, net)?;
        let item = protocol.give(&compiled, item, "x", &x, net)?;
        let mut colours = vec![Vec::new(); 2];
        let given = item.0.as_ref().and_then(|item| item.given[0].as_ref()).expect("it was given");
        for (i, label) in given.labels().iter().enumerate() {
            colours[i % 2].push(number(label) as u8 & 1);
        }
        let key = key();
        let inputs = [Input::Shared(&x), Input::Public(&key)];
        let y = evaluate(&mut protocol, &compiled, LANES, &inputs, item, net)?.remove(0);
        let opened = release(&mut protocol, &y, Owner::All, net)?.expect("it is for all").value();
        assert_eq!(opened.rows(), Y.map(|bit| [bit; LANES]).as_flattened());
        Ok((colours, [0, 1].map(|share| y.share(share).to_vec())))
    });
    let ones = |bits: &[u8]| bits.iter().map(|bit| usize::from(*bit)).sum::<usize>();
    let seen: Vec<_> = seen.into_iter().map(|outcome| outcome.expect("all are honest")).collect();
    let (colours, _) = &seen[2];
    for bits in colours {
        assert!(bits.len() == LANES && is_fair(ones(bits)), "{}", ones(bits));
    }
    // Each component of the output is uniform: e, which the first garbler is told, and both masks.
    for (_, shares) in &seen {
        for share in shares.iter().flat_map(|share| share.chunks(LANES)) {
            assert!(is_fair(ones(share)), "{}", ones(share));
        }
    }
    // No two parties' components are alike, and the two that have one have the same.
    assert_eq!(seen[0].1[0], seen[2].1[1]);
    assert_eq!(seen[0].1[1], seen[1].1[0]);
    assert_eq!(seen[1].1[1], seen[2].1[0]);
}

/// The same for a sum that is opened: colours of what is added, and the bits that decode the sums, differ
/// from lane to lane as coins do, though each lane has the same sum.
#[test]
fn what_the_evaluator_sees_of_a_sum_does_not_tell_the_summands() {
    let seen = run_parties(3, |net| {
        let config = GarbledThreeConfig::default();
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(&circuit(), &protocol);
        let (x, key) = (shared(X, LANES, net.me()), key());
        let mut item = prepare(&mut protocol, &compiled, LANES, net)?;
        let mut registers = protocol.registers(&compiled, LANES, &mut item)?;
        let inputs = [Input::Shared(&x), Input::Public(&key)];
        protocol.put_in_with_addend(&compiled, &inputs, &x, &mut registers, net)?;
        protocol.evaluate_layers(&compiled, &mut registers)?;
        let seen = registers.addend.as_ref().map(Addend::seen);
        assert_eq!(protocol.open_sum(&compiled, &mut registers, net)?, [0; 2 * LANES]);
        Ok(seen)
    });
    let evaluator = seen.into_iter().nth(2).expect("three parties").expect("all are honest");
    for bits in evaluator.expect("it has labels of what is added") {
        assert_eq!(bits.len(), 2 * LANES);
        for wire in 0..2 {
            let ones: usize = bits.iter().skip(wire).step_by(2).map(|bit| usize::from(*bit)).sum();
            assert!(is_fair(ones), "{ones}");
        }
    }
}

/// No label and no ciphertext comes twice, in lanes, in what is the same for all, and in lots.
#[test]
fn nothing_of_a_lot_comes_again_in_another_lane_or_lot() {
    let kept = run_parties(3, |net| {
        let config = GarbledThreeConfig::default();
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let setup = config.setup(net)?;
        let mut blocks = Vec::new();
        for _ in 0..2 {
            let mut protocol = config.join(&setup, session.stream(), net.members())?;
            let compiled = compile(&circuit(), &protocol);
            for _ in 0..2 {
                let item = prepare(&mut protocol, &compiled, 20, net)?.0.expect("it is new");
                blocks.push(item.name.lot[..16].to_vec());
                match item.part {
                    Part::First { seed, outputs } | Part::Second { seed, outputs, .. } => {
                        blocks.push(seed.delta().to_le_bytes().to_vec());
                        blocks.extend(outputs.chunks(16).map(<[u8]>::to_vec));
                    }
                    Part::Evaluator { tables, mask_labels, .. } => {
                        blocks.extend(tables.chunks(16).chain(mask_labels.chunks(16)).map(<[u8]>::to_vec));
                    }
                }
            }
        }
        Ok(blocks)
    });
    for (blocks, count) in kept.into_iter().zip([4 * (2 + 40), 4 * (2 + 40), 4 * (1 + 80 + 40)]) {
        let mut blocks = blocks.expect("all are honest");
        assert_eq!(blocks.len(), count);
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), count);
    }
}

/// Where a fault is found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Garbling,
    LabelsAhead,
    Labels,
    Outputs,
}

/// Whoever has found a fault computes and releases nothing more in the session.
#[test]
fn after_an_error_nothing_is_released_or_computed() {
    for at in [At::Garbling, At::LabelsAhead, At::Labels, At::Outputs] {
        let (cheater, finder) = if at == At::Outputs { (Party(2), Party(0)) } else { (Party(0), Party(2)) };
        let outcomes = run_parties(3, |net| {
            let is_cheater = net.me() == cheater;
            let outcome = until_found(at, is_cheater, net);
            Ok(net.me() != finder || outcome?)
        });
        assert_eq!(outcomes[finder.index()], Ok(true), "{at:?}");
    }
}

/// At who finds the fault: whether everything is refused from then on.
fn until_found(at: At, is_cheater: bool, net: &mut dyn Net) -> Result<bool> {
    let config = GarbledThreeConfig::default();
    let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(&circuit(), &protocol);
    let (x, key) = (shared(X, 1, net.me()), key());
    let kept = prepare(&mut protocol, &compiled, 1, net)?;
    let here = |place: At| if is_cheater && at == place { 0 } else { u64::MAX };
    let mut run = || -> Result<()> {
        let item = prepare(&mut protocol, &compiled, 1, &mut faulty(net, here(At::Garbling)))?;
        let mut item = protocol.give(&compiled, item, "x", &x, &mut faulty(net, here(At::LabelsAhead)))?;
        let mut registers = protocol.registers(&compiled, 1, &mut item)?;
        let inputs = [Input::Shared(&x), Input::Public(&key)];
        let labels = &mut faulty(net, here(At::Labels));
        protocol.inputs(compiled.inputs(), &inputs, &mut registers, labels)?;
        for layer in compiled.layers() {
            protocol.linear(&layer.linear, &mut registers);
            protocol.lookup(&compiled, &layer.lookups, &mut registers, &mut item, net)?;
        }
        protocol.settle(&compiled, &mut registers, &mut faulty(net, here(At::Outputs))).map(|_| ())
    };
    let found = matches!(run(), Err(Error::OneOfTwo { .. } | Error::Peer { .. }));
    let refused = |error: Option<Error>| matches!(error, Some(Error::CheckFailed { .. }));
    let public = Cells::zero(2, 1, 1);
    let inputs = [Input::Public(&public), Input::Public(&key)];
    Ok(found
        && refused(evaluate(&mut protocol, &compiled, 1, &inputs, kept, net).err())
        && refused(prepare(&mut protocol, &compiled, 1, net).err())
        && refused(release(&mut protocol, &x, Owner::All, net).err()))
}

/// A network that flips a bit of the message with this number.
fn faulty(net: &mut dyn Net, message: u64) -> Tamper<&mut dyn Net> {
    Tamper::new(net, message, Fault::FlipBit { byte: 0, bit: 0 })
}
