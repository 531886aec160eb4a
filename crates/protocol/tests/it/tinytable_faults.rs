//! One party of scrambled tables cheats in one message: the other ends with the right output or with an
//! error, never with a wrong one, and nothing hangs or panics. Every message from hello to output, in every
//! way.
//!
//! Tables are the dealer's, but for two tests: what cheats is the online phase. Faults in the making of
//! authenticated bits alone are in `tinyot_faults.rs`. Cheaters that know what they do are in
//! `tinytable_cheaters.rs` and in `tinytable::cheaters`.

use crate::scrambled::{ACTIVE, active, cells, gates, right, session, small, table_of};
use polyclave_cipher::{Cells, Circuit};
use polyclave_protocol::Party;
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::release::Unverified;
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::tinytable::{Macs, Preprocessing, PreprocessingMethod, TinyTableConfig, Worth};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, QUICK_FAULTS, Sweep, Swept, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;

/// Every message of every party, with every fault.
fn sweep<R: Worth>(config: impl Fn() -> TinyTableConfig<R>, circuit: &Circuit) -> Vec<Swept> {
    let promise = Promise::of(&config());
    std::thread::scope(|scope| {
        let cheaters = Party::all(2).map(|cheater| {
            let (config, circuit, honest) = (config(), circuit.clone(), Party(1 - cheater.0));
            // What goes to one party alone goes to the honest one.
            let expected = right(&circuit, honest).map(Ok);
            let party = move |net: &mut dyn Net| session(&config, &circuit, honest, net);
            scope.spawn(move || {
                let party = std::sync::Arc::new(party);
                let run = party.clone();
                // The same as in the clear, and not only the same as without a fault.
                assert_eq!(run_over(mesh_with_timeout(2, LATE), move |net| run(net)), expected);
                let mut sweep = Sweep { drop_every: 2, ..Sweep::new(2, cheater, promise) };
                sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 2 });
                let swept = sweep.run(move |net| party(net));
                println!("{cheater} cheats: {swept:?}");
                // All but replays of what no message came before.
                assert!(swept.faults > 4 * swept.messages, "{swept:?}");
                swept
            })
        });
        let cheaters: Vec<_> = cheaters.collect();
        cheaters.into_iter().map(|thread| thread.join().expect("the promise is kept")).collect()
    })
}

const DEALER: Preprocessing = Preprocessing::Dealt(&InsecureDealing);

/// Two of the hello, and setup; twice the inputs and the layers; two outputs, each behind a check and before
/// one. With linear verification alone there is nothing to check between the first output's second check and
/// the second output.
fn messages(macs: Macs, layers: u64) -> u64 {
    let of_outputs = match macs {
        Macs::None => 2,
        Macs::Linear64 => 5,
        Macs::Lookup32 | Macs::Lookup64 => 6,
        Macs::Minimac => unreachable!("its sweep is in tinytable_minimac_faults.rs"),
    };
    3 + 2 * (1 + layers) + of_outputs
}

fn every_message(circuit: &Circuit, layers: u64) {
    std::thread::scope(|scope| {
        for macs in ACTIVE {
            scope.spawn(move || {
                for swept in sweep(|| active(macs, DEALER), circuit) {
                    assert_eq!(swept.messages, messages(macs, layers), "{macs:?}");
                    // Flips beyond a cell are none.
                    assert!(swept.survived * 4 < swept.faults, "{macs:?}: {swept:?}");
                }
            });
        }
    });
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_small_tables() {
    every_message(&cells(small(3, 3)), 2);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_of_an_s_box_of_aes() {
    every_message(&cells(table_of("aes-128")), 2);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_of_an_s_box_of_des() {
    every_message(&cells(table_of("des")), 1);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_of_gates() {
    every_message(&gates(), 2);
}

#[test]
fn without_verification_nothing_hangs_or_panics() {
    let passive = || TinyTableConfig::<Unverified<Cells>>::new(Macs::None, DEALER).expect("it is passive");
    for (circuit, layers) in [(cells(small(3, 3)), 2), (cells(table_of("aes-128")), 2), (gates(), 2)] {
        for swept in sweep(passive, &circuit) {
            assert_eq!(swept.messages, messages(Macs::None, layers));
        }
    }
}

/// From hello to output, with tables that the parties make themselves.
fn real(cheater: Party, macs: Macs, circuit: Circuit, faults: Vec<Fault>) {
    let real =
        Preprocessing::TinyOt { method: PreprocessingMethod::Demux, kappa: Kappa::Bits40, expansion: 4 };
    let (config, honest, count) = (active(macs, real), Party(1 - cheater.0), faults.len() as u64);
    let party = move |net: &mut dyn Net| session(&config, &circuit, honest, net);
    let sweep = Sweep { faults, drop_every: 1 << 20, ..Sweep::new(2, cheater, Promise::RightOrAborted) };
    let swept = sweep.run(party);
    println!("{cheater} cheats: {swept:?}");
    // On a busy machine a run can end by a time limit before it comes to its fault.
    assert!(swept.messages > 40 && swept.faults * 10 >= swept.messages * count * 9, "{swept:?}");
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_of_real_cells() {
    real(Party(0), Macs::Linear64, cells(small(2, 2)), QUICK_FAULTS.to_vec());
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_of_real_gates() {
    let faults = vec![Fault::FlipBit { byte: usize::MAX, bit: 6 }, Fault::Garbage { seed: 2 }];
    real(Party(1), Macs::Lookup32, gates(), faults);
}
