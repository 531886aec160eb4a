//! One party of authenticated sharing cheats in one message: honest parties end with the right output or with
//! an error, never with a wrong one, and nothing hangs or panics. Every message from hello to output, in
//! every way and size.
//!
//! Material is from `insecure_dealer`, but for one test: what cheats here is the online phase, its inputs,
//! openings, checks and outputs. Faults in the making of material alone are in `mascot_faults.rs`. Cheaters
//! that know what they do are in `spdz_cheaters.rs` and in `spdz::check`.

use crate::lookups::{config, inverse_table_of, narrow, table_of};
use crate::sessions::{LANES, inputs, session, session_under};
use polyclave_cipher::{AnyMap, Circuit, catalog, cleartext, compile};
use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, MacField};
use polyclave_protocol::Party;
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Owner;
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, Sweep, Swept, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;

/// Every message of every party with every fault.
fn sweep<F: MacField>(
    way: LookupMethod,
    circuit: &Circuit,
    parties: usize,
    to: Owner,
    drop_every: u64,
) -> Vec<Swept> {
    let party = |circuit: &Circuit| {
        let circuit = circuit.clone();
        move |net: &mut dyn Net| session::<F>(way, &circuit, to, net)
    };
    let party = &party;
    // The same as in the clear, and not only the same as without a fault.
    let right = cleartext::run(&compile(circuit, &AnyMap), LANES, &inputs(circuit)).expect("the inputs fit");
    let honest = run_over(mesh_with_timeout(parties, LATE), party(circuit));
    for (p, output) in Party::all(parties).zip(honest) {
        let is_owner = to == Owner::All || to == Owner::Party(p);
        assert_eq!(output, Ok(is_owner.then(|| right[0].to_blocks())));
    }
    let promise = Promise::of(&config::<F>(parties, way));
    assert_eq!(promise, Promise::RightOrAborted, "a protocol that verifies");
    std::thread::scope(|scope| {
        let cheaters = Party::all(parties).map(|cheater| {
            scope.spawn(move || {
                let mut sweep = Sweep { drop_every, ..Sweep::new(parties, cheater, promise) };
                sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 6 });
                let swept = sweep.run(party(circuit));
                println!("{} to {to:?}, {cheater} of {parties} cheats: {swept:?}", way.name());
                // All but replays of what no message came before.
                assert!(swept.faults > 4 * swept.messages, "{swept:?}");
                swept
            })
        });
        let cheaters: Vec<_> = cheaters.collect();
        cheaters.into_iter().map(|thread| thread.join().expect("the promise is kept")).collect()
    })
}

/// Messages to one peer: two of the hello, setup, perhaps an input, the rounds, those of the check, the
/// output, those of its check.
fn expected(way_rounds: u64, parties: usize, me: usize) -> u64 {
    let check = if parties == 2 { 2 } else { 6 };
    (2 + 1 + u64::from(me < 2) + way_rounds + check + 1 + check) * (parties as u64 - 1)
}

fn every_message<F: MacField>(way: LookupMethod, circuit: &Circuit, rounds: u64, drop_every: u64) {
    for parties in [2, 3] {
        let swept = sweep::<F>(way, circuit, parties, Owner::All, drop_every);
        for (me, swept) in swept.iter().enumerate() {
            assert_eq!(swept.messages, expected(rounds, parties, me), "{way:?}, party {}", me + 1);
        }
    }
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_unit_vectors() {
    every_message::<Gf2_64>(LookupMethod::MaskedTables, &narrow(6), 1, 1);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_masked_rows() {
    every_message::<Gf2_64>(LookupMethod::MaskedTables, &table_of("aes-128"), 1, 1);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_bit_decomposition() {
    every_message::<Gf2_64>(LookupMethod::BitDecomposition, &table_of("aes-128"), 5, 3);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_rivain_prouff() {
    every_message::<Gf2_64>(LookupMethod::RivainProuff, &table_of("aes-128"), 7, 3);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_pulkus_vivek() {
    every_message::<Gf2_64>(LookupMethod::PulkusVivek, &table_of("des"), 5, 3);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_univariate() {
    every_message::<Gf2_42>(LookupMethod::Univariate, &table_of("des"), 63, 16);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_tower() {
    every_message::<Gf2_64>(LookupMethod::Tower, &table_of("aes-128"), 5, 1);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_tower_of_the_inverse_table() {
    every_message::<Gf2_64>(LookupMethod::Tower, &inverse_table_of("aes-128"), 5, 3);
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_output_for_one_owner() {
    for parties in [2, 3] {
        sweep::<Gf2_64>(LookupMethod::MaskedTables, &narrow(4), parties, Owner::Party(Party(1)), 3);
    }
}

/// From hello to output with material from oblivious transfer: one bit of every message of either party.
#[test]
fn no_flip_in_any_message_makes_a_wrong_output_on_real_material() {
    let circuit = narrow(2);
    let right =
        cleartext::run(&compile(&circuit, &AnyMap), LANES, &inputs(&circuit)).expect("the inputs fit");
    let party = move |net: &mut dyn Net| {
        let packing = Packing::of::<Gf2_40>(40)?;
        let real = Preprocessing::Mascot { expansion: 2 };
        let config = SpdzConfig::<Gf2_40>::new(2, LookupMethod::MaskedTables, real, packing)?;
        session_under(&config, &circuit, Owner::All, net)
    };
    let honest = run_over(mesh_with_timeout(2, LATE), party.clone());
    assert!(honest.iter().all(|output| *output == Ok(Some(right[0].to_blocks()))), "{honest:?}");
    for (cheater, byte) in Party::all(2).zip([0, usize::MAX]) {
        let promise = Promise::RightOrAborted;
        let faults = vec![Fault::FlipBit { byte, bit: 6 }];
        let sweep = Sweep { faults, drop_every: 1 << 20, ..Sweep::new(2, cheater, promise) };
        let swept = sweep.run(party.clone());
        println!("{cheater} cheats: {swept:?}");
        // On a busy machine a run can end by a time limit before it comes to its fault.
        assert!(swept.messages > 60 && swept.faults * 20 >= swept.messages * 19, "{swept:?}");
    }
}

/// Blocks of whole ciphers, of many layers; the key is party 2's.
#[test]
fn no_fault_in_any_message_makes_a_wrong_block_of_des() {
    let des = (*catalog::find("des").expect("the catalog has it").encrypt).clone();
    for swept in sweep::<Gf2_64>(LookupMethod::MaskedTables, &des, 2, Owner::All, 8) {
        assert_eq!(swept.messages, expected(16, 2, 0));
    }
}
