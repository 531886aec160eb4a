//! Scrambled tables with a cheater, to which both parties are committed as a whole: wrong entries, wrong
//! openings, and any fault in any message.

use std::ops::Range;

use polyclave_cipher::{Cells, Circuit, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{Mesh, mesh};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::{EARLIER_CHECK, Error, Party, Result};
use polyclave_protocol_lab::testkit::faults::{Promise, QUICK_FAULTS, Sweep, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;

use crate::committed::{config, evaluations, gates, join, two_layers_of_aes, zeros};

/// Two of the hello, seed and inputs; two layers; products, a coin and sums of tags, two messages each; tags;
/// the output, and tags.
const MESSAGES: u64 = 4 + 2 + 5 + 1 + 2;
const LAYERS: Range<u64> = 4..6;
const PRODUCTS: u64 = LAYERS.end;

/// What a check says.
const ENTRIES: &str = "the entries that were opened, by the committed tables";
const MACS: &str = "the MACs of opened bits of a committed string";

/// A bit of a message that is opened by both parties.
#[derive(Clone, Copy, Debug)]
struct Lie {
    message: u64,
    bit: usize,
}

/// A party that opens something else and goes on with it: what it adds to its own share it adds to its peer's
/// as well, so both know the same sum.
struct Liar {
    net: Mesh,
    exchanges: u64,
    lies: Vec<Lie>,
}

impl Net for Liar {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let peer = 1 - self.me().index();
        let bits: Vec<_> = self.lies.iter().filter(|l| l.message == self.exchanges).map(|l| l.bit).collect();
        let flip = |bytes: &mut [u8]| bits.iter().for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
        self.exchanges += 1;
        let mut message = out[peer].to_vec();
        flip(&mut message);
        let mut all = out.to_vec();
        all[peer] = &message;
        self.net.exchange(&all, into)?;
        flip(into[peer]);
        Ok(())
    }
}

/// What the honest party ends with. After a check has failed it refuses to go on.
fn honest_outcome(cheater: Party, lies: &[Lie], circuit: &Circuit, lanes: usize) -> Result<Cells> {
    let wrapped = |net: Mesh| {
        let lies = if net.me() == cheater { lies.to_vec() } else { Vec::new() };
        Liar { net, exchanges: 0, lies }
    };
    let circuit = circuit.clone();
    let outcomes = run_over(mesh(2).into_iter().map(wrapped).collect(), move |net| {
        let mut protocol = join(net)?;
        let compiled = compile(&circuit, &protocol);
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        let cells = zeros(&circuit, lanes);
        let inputs: Vec<_> = cells.iter().map(Input::Public).collect();
        let shared = evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?;
        let released = release(&mut protocol, &shared[0], Owner::All, net);
        if released.is_err() {
            let earlier = Error::CheckFailed { what: EARLIER_CHECK };
            assert_eq!(protocol.check(net), Err(earlier.clone()), "a failure is not forgotten");
            assert_eq!(prepare(&mut protocol, &compiled, lanes, net).map(|_| ()), Err(earlier));
        }
        Ok(released?.ok_or_else(|| Error::misuse("it is for all"))?.accept())
    });
    outcomes.into_iter().nth(1 - cheater.index()).expect("two parties")
}

#[test]
fn a_wrong_entry_differs_from_the_committed_one() {
    // Cells of eight bits, and gates: one for all lanes, and one of nine.
    for (circuit, lanes, bits) in [(two_layers_of_aes(), 2, 64), (gates(), 9, 9)] {
        for cheater in [Party(0), Party(1)] {
            assert!(honest_outcome(cheater, &[], &circuit, lanes).is_ok());
            for message in LAYERS {
                for bit in (0..bits).step_by(3) {
                    let outcome = honest_outcome(cheater, &[Lie { message, bit }], &circuit, lanes);
                    assert_eq!(outcome, Err(Error::CheckFailed { what: ENTRIES }), "{message}, {bit}");
                }
            }
        }
    }
}

/// The first party's string comes first in an opening, with the bits in the order in which they were sent.
#[test]
fn a_wrong_entry_is_not_opened_as_it_was_sent() {
    for (layer, of_opening) in [(LAYERS.start, 0), (LAYERS.start + 1, 64)] {
        for bit in [0, 13, 63] {
            let lies =
                [(layer, bit), (PRODUCTS, of_opening + bit)].map(|(message, bit)| Lie { message, bit });
            let outcome = honest_outcome(Party(0), &lies, &two_layers_of_aes(), 2);
            assert_eq!(outcome, Err(Error::CheckFailed { what: MACS }), "{layer}, {bit}");
        }
    }
}

#[test]
fn every_fault_ends_in_an_error_or_the_right_output() {
    for cheater in [Party(0), Party(1)] {
        let flips = (0..4).map(|i| Fault::FlipBit { byte: 7 * i + 1, bit: 2 * i as u32 });
        let faults = QUICK_FAULTS.into_iter().chain(flips).collect();
        let sweep = Sweep { faults, ..Sweep::new(2, cheater, Promise::of(&config())) };
        let swept = sweep.run(|net| evaluations(1, &two_layers_of_aes(), 3, net));
        assert_eq!(swept.messages, MESSAGES);
        assert!(swept.faults > 100, "{swept:?}");
    }
}
