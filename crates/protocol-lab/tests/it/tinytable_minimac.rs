//! Scrambled tables that the parties are committed to as a whole: right answers, and the counts of
//! the module. Cheaters: `tinytable_minimac_faults.rs`.

use polyclave_cipher::{Cells, Circuit, Table, aes, boolean, catalog, compile};
use polyclave_protocol::Error;
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::tinytable::{Macs, Preprocessing, PreprocessingMethod, TinyTableConfig};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit, run};

use crate::committed::{config, evaluations, gates, join, layers, two_layers_of_aes, zeros};

fn right(circuit: &Circuit, lanes: usize) -> Run {
    check_circuit(&config(), circuit, lanes, lanes as u8)
}

fn encryption(name: &str) -> Circuit {
    (*catalog::find(name).expect("the catalog has it").encrypt).clone()
}

fn boolean_aes() -> Circuit {
    (*boolean::cipher("aes-128").expect("the catalog has it").encrypt).clone()
}

#[test]
fn gates_are_right_for_every_number_of_lanes() {
    for lanes in [1, 2, 7, 8, 9, 63, 64, 65, 200] {
        right(&gates(), lanes);
    }
}

#[test]
fn a_constant_output_is_right() {
    let mut b = boolean::BooleanBuilder::new("constants");
    let x = b.input("x", 2, false);
    let (zero, and) = (b.xor(x[0], x[0]), b.and(x[0], x[1]));
    b.output("y", &[zero, !zero, and]);
    right(&b.finish(), 9);
}

#[test]
fn tables_of_every_width_are_right() {
    for bits in 1..8 {
        let entries: Vec<u8> = (0..1u32 << bits).map(|i| (i * 5 + 3) as u8 & (0xff >> (8 - bits))).collect();
        right(&layers(Table::new("affine", bits, bits, entries), 3, 2), 5);
    }
    right(&layers(aes::s_box(), 16, 1), 3);
}

#[test]
fn ciphers_are_right() {
    right(&encryption("des"), 2);
    right(&encryption("aes-128"), 2);
    right(&boolean_aes(), 3);
}

#[test]
fn a_check_takes_five_rounds_more_than_that_of_tags() {
    let Run { tallies, cost, .. } = right(&encryption("aes-128"), 1);
    for tally in tallies {
        // 10 layers; the check of entries, and of tags; after the output is opened, of tags.
        assert_eq!((tally.online.rounds, tally.online.openings), (10 + 5 + 1 + 1, 160));
        assert_eq!((tally.input.rounds, tally.output.rounds), (1, 1));
    }
    assert_eq!((cost.rounds, cost.operations_per_lane), (10.0, 160.0));
}

/// For both parties' strings, in messages of 64 bits: 8 bytes of shares, 63 symbols of the mask, 2 * 144 of
/// MACs.
#[test]
fn material_is_linear_in_the_table_strings() {
    let committed = |bits: usize| 2 * (bits / 64) * (8 + 2 * (63 + 2 * 144));
    let mask = 1 + 2 * 16;
    let aes = scheme_cost(&encryption("aes-128"));
    // The round keys' masks are the same for all lanes.
    assert_eq!(aes, 40_960 + committed(160 * 256 * 8) + 32 * mask);
    assert_eq!(scheme_cost(&boolean_aes()), 2720 + committed(21_760) + 256 * mask);
}

fn scheme_cost(circuit: &Circuit) -> usize {
    let costs = run_parties(2, |net| {
        let protocol = join(net)?;
        Ok(protocol.cost(&compile(circuit, &protocol)).material_bytes_per_lane)
    });
    costs.into_iter().next().expect("two").expect("they agree")
}

#[test]
fn only_a_dealer_commits_and_outputs_are_checked() {
    let (macs, dealer) = (Macs::Minimac, Preprocessing::Dealt(&InsecureDealing));
    let real =
        Preprocessing::TinyOt { method: PreprocessingMethod::Demux, kappa: Kappa::Bits40, expansion: 2 };
    assert!(matches!(TinyTableConfig::<Checked<Cells>>::new(macs, real), Err(Error::Misuse(_))));
    assert!(matches!(TinyTableConfig::<Unverified<Cells>>::new(macs, dealer), Err(Error::Misuse(_))));
    assert!(!config().verifies(), "not with this dealer");
}

#[test]
fn one_check_serves_several_evaluations() {
    let expected = run(&config(), &gates(), 9, &zeros(&gates(), 9)).expect("honest parties finish").outputs;
    for outcome in run_parties(2, |net| evaluations(3, &gates(), 9, net)) {
        let (released, rounds) = outcome.expect("honest parties finish");
        assert_eq!(released, [&expected[..], &expected, &expected].concat());
        // Two layers each, and less than two checks of entries.
        assert!(rounds < 3 * 2 + 2 * 5 + 2 * 3, "{rounds}");
    }
}

#[test]
fn a_batch_that_a_check_interrupts_is_used_up() {
    let outcomes = run_parties(2, |net| {
        let mut protocol = join(net)?;
        let circuit = two_layers_of_aes();
        let compiled = compile(&circuit, &protocol);
        let mut batch = protocol.prepare(&compiled, 3, net)?;
        let mut registers = protocol.registers(&compiled, 3, &mut batch)?;
        let cells = zeros(&circuit, 3);
        protocol.inputs(compiled.inputs(), &[Input::Public(&cells[0])], &mut registers, net)?;
        let [first, second] =
            compiled.layers().iter().filter(|l| !l.lookups.is_empty()).collect::<Vec<_>>()[..]
        else {
            return Err(Error::misuse("two layers"));
        };
        protocol.linear(&first.linear, &mut registers);
        protocol.lookup(&compiled, &first.lookups, &mut registers, &mut batch, net)?;
        protocol.check(net)?;
        protocol.linear(&second.linear, &mut registers);
        let refused = protocol.lookup(&compiled, &second.lookups, &mut registers, &mut batch, net);
        Ok((refused, protocol.check(net)))
    });
    for outcome in outcomes {
        let (refused, check) = outcome.expect("what was used is right");
        assert!(matches!(refused, Err(Error::Misuse(_))), "{refused:?}");
        assert_eq!(check, Ok(()));
    }
}
