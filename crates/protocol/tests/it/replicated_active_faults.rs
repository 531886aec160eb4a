//! One of three parties of replicated sharing cheats in one message: the others end with the right output or
//! with an error, never with a wrong one, and nothing hangs or panics. Every message from hello to output, in
//! every way: keys, inputs, products, what proofs are made of, coins, verdicts, shares of outputs.

use polyclave_cipher::{AnyMap, Cells, Circuit, cleartext, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::Released;
use polyclave_protocol::replicated::ReplicatedActiveConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, SOON, Sweep, Swept, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;

use crate::scrambled::{LANES, cells, gates, inputs, small, table_of};

/// Two evaluations, from hello to outputs. In the first z is party 3's, in the second it is the first one's
/// output. Then the second output is for all, and the first for party 2.
fn session(circuit: &Circuit, net: &mut dyn Net) -> Result<[Option<Vec<u8>>; 2]> {
    let config = ReplicatedActiveConfig::default();
    let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(circuit, &protocol);
    let cells = inputs(circuit);
    let me = net.me();
    let given =
        |by: u8, i: usize| if me == Party(by) { Input::Mine(&cells[i]) } else { Input::From(Party(by)) };
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let sources = [given(0, 0), given(1, 1), given(2, 2)];
    let first = evaluate(&mut protocol, &compiled, LANES, &sources, batch, net)?.remove(0);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let sources = [given(1, 0), Input::Public(&cells[1]), Input::Shared(&first)];
    let second = evaluate(&mut protocol, &compiled, LANES, &sources, batch, net)?.remove(0);
    let mut revealed = |shared, to| -> Result<_> {
        Ok(release(&mut protocol, shared, to, net)?.map(|released| released.accept().to_blocks()))
    };
    Ok([revealed(&second, Owner::All)?, revealed(&first, Owner::Party(Party(1)))?])
}

/// What every party should end with.
fn right(circuit: &Circuit) -> Vec<Result<[Option<Vec<u8>>; 2]>> {
    let compiled = compile(circuit, &AnyMap);
    let mut cells: Vec<Cells> = inputs(circuit);
    let first = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    cells[2] = first.clone();
    let second = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    let outputs = |p| [Some(second.to_blocks()), (p == Party(1)).then(|| first.to_blocks())];
    Party::all(3).map(|p| Ok(outputs(p))).collect()
}

/// Every message of every party, with every fault.
fn sweep(circuit: &Circuit) -> Vec<Swept> {
    let run = circuit.clone();
    assert_eq!(run_over(mesh_with_timeout(3, LATE), move |net| session(&run, net)), right(circuit));
    std::thread::scope(|scope| {
        let cheaters: Vec<_> = Party::all(3)
            .map(|cheater| {
                let circuit = circuit.clone();
                scope.spawn(move || {
                    let promise = Promise::of(&ReplicatedActiveConfig::default());
                    let mut sweep = Sweep { drop_every: 8, ..Sweep::new(3, cheater, promise) };
                    sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 1 });
                    let swept = sweep.run(move |net| session(&circuit, net));
                    println!("{cheater} cheats: {swept:?}");
                    swept
                })
            })
            .collect();
        cheaters.into_iter().map(|thread| thread.join().expect("the promise is kept")).collect()
    })
}

fn check(circuit: &Circuit) {
    for swept in sweep(circuit) {
        assert!(swept.messages > 20 && swept.faults > 4 * swept.messages, "{swept:?}");
    }
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_of_the_tower() {
    check(&cells(table_of("aes-128")));
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_of_gates_of_a_table() {
    check(&cells(small(6, 4)));
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_of_gates() {
    check(&gates());
}

/// An error in a product is found by the proof, whatever it is a product of, and every honest party ends with
/// that error.
#[test]
fn an_error_in_a_product_is_found_by_the_proof_at_all_parties() {
    errors_are_found(1);
}

/// The same error in two lanes would add up to nothing if both had the same weight.
#[test]
fn errors_that_cancel_each_other_are_found_by_the_proof_at_all_parties() {
    errors_are_found(0b11);
}

fn errors_are_found(flipped: u8) {
    let circuit = cells(table_of("aes-128"));
    // Messages with the lengths of the products of 4, 2, 4 and 8 bits of a lookup of 9 lanes, twice a layer.
    for (round, bits) in [4, 2, 4, 8].into_iter().enumerate() {
        for cheater in Party::all(3) {
            let circuit = circuit.clone();
            let ends = mesh_with_timeout(3, LATE).into_iter().map(|net| InRound {
                left: if net.me() == cheater { Some(round) } else { None },
                len: bits * LANES.div_ceil(8),
                change: Change::Flip(flipped),
                net,
            });
            let outcomes = run_over(ends.collect(), move |net| session(&circuit, net));
            for (party, outcome) in Party::all(3).zip(outcomes).filter(|(party, _)| *party != cheater) {
                let is_found = matches!(&outcome, Err(Error::OneOfTwo { what, .. }) if what.contains("proof of the products"));
                assert!(is_found, "{cheater} in round {round}, {party}: {outcome:?}");
            }
        }
    }
}

/// A party whose last product never came proves nothing, whatever it is asked: the others remember one
/// product more, and the proof would tell the third party something of a share.
#[test]
fn a_party_that_missed_a_product_proves_nothing_any_more() {
    let config = ReplicatedActiveConfig::default();
    let circuit = cells(table_of("aes-128"));
    // Two layers of four rounds an evaluation.
    let ends = mesh_with_timeout(3, SOON).into_iter().map(|net| InRound {
        left: (net.me() == Party(1)).then_some(15),
        len: LANES.div_ceil(8) * 8,
        change: Change::Drop,
        net,
    });
    let outcomes = run_over(ends.collect(), move |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(&circuit, &protocol);
        let cells = inputs(&circuit);
        let public = [0, 1, 2].map(|i| Input::Public(&cells[i]));
        let batch = prepare(&mut protocol, &compiled, LANES, net)?;
        let first = evaluate(&mut protocol, &compiled, LANES, &public, batch, net)?.remove(0);
        let batch = prepare(&mut protocol, &compiled, LANES, net)?;
        // The products of this one do not all come to party 1.
        let second = evaluate(&mut protocol, &compiled, LANES, &public, batch, &mut *net);
        Ok((
            second.is_ok(),
            release(&mut protocol, &first, Owner::All, net).map(|_| ()).map_err(|e| e.to_string()),
        ))
    });
    let [first, ..] = &outcomes[..] else { panic!("three parties") };
    let (came, released) = first.as_ref().expect("the first evaluation is right");
    assert!(!came);
    assert!(released.as_ref().is_err_and(|message| message.contains("ended with an error")), "{released:?}");
    assert!(
        outcomes[1..].iter().all(|outcome| outcome.as_ref().is_ok_and(|(_, released)| released.is_err()))
    );
}

/// What happens to a message.
#[derive(Clone, Copy)]
enum Change {
    /// These bits of its first byte are flipped.
    Flip(u8),
    /// It is not sent.
    Drop,
}

/// Changes one of the messages round the ring, which are the first that go to one peer alone.
struct InRound<N> {
    net: N,
    /// Rounds until then.
    left: Option<usize>,
    len: usize,
    change: Change,
}

impl<N: Net> Net for InRound<N> {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let is_of_ring = out.iter().filter(|message| !message.is_empty()).count() == 1
            && into.iter().filter(|message| !message.is_empty()).count() == 1
            // Set-up passes keys.
            && out.iter().all(|message| message.len() % 32 != 0 || message.is_empty());
        match self.left {
            Some(0) if is_of_ring => {
                self.left = None;
                let mut changed: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
                let message = changed.iter_mut().find(|message| !message.is_empty()).expect("there is one");
                assert_eq!(message.len(), self.len, "it is the round that was meant");
                match self.change {
                    Change::Flip(bits) => message[0] ^= bits,
                    Change::Drop => message.clear(),
                }
                let changed: Vec<&[u8]> = changed.iter().map(Vec::as_slice).collect();
                self.net.exchange(&changed, into)
            }
            left => {
                self.left = left.map(|left| left - usize::from(is_of_ring));
                self.net.exchange(out, into)
            }
        }
    }
}
