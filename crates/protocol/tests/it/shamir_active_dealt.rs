//! Shamir sharing with an active adversary and triples of dealt sharings: answers, counts, and cheaters.

use std::sync::Arc;
use std::time::Duration;

use crate::shamir_cheats::{CHEATER, Habit, only, right, shares, sweep, with_habits, with_wrong_keys};
use polyclave_cipher::{Builder, Circuit, catalog};
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Inversion, Preprocessing, ShamirActiveConfig, Structure, Tables};
use polyclave_protocol::{Error, Party, PartySet, mesh};
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};
use polyclave_protocol_lab::testkit::faults::{LATE, SOON};

fn config((n, t): (usize, usize), inversion: Inversion, tables: Tables) -> ShamirActiveConfig {
    let structure = Structure::new(n, t).expect("it is valid");
    let config = ShamirActiveConfig::new(structure, inversion, tables).expect("enough parties");
    config.with_preprocessing(Preprocessing::HyperInvertible)
}

fn masked_powers(n: usize, t: usize) -> ShamirActiveConfig {
    config((n, t), Inversion::MaskedPowers, Tables::Masked)
}

/// Besides being right, it counts what it predicts: for a batch of one lane.
fn check(config: &ShamirActiveConfig, circuit: &Circuit, lanes: usize) -> Run {
    let run = check_circuit(config, circuit, lanes, lanes as u8);
    for tally in &run.tallies {
        let (per_lane, uniform) = (run.cost.operations_per_lane, run.cost.operations_uniform);
        let (online, ahead) = (tally.online, tally.preprocessing);
        assert_eq!(online.operations() as f64, per_lane * lanes as f64 + uniform, "{}", circuit.name());
        assert_eq!(online.rounds as f64, run.cost.rounds, "{}", circuit.name());
        assert_eq!(ahead.rounds as f64, run.cost.preprocessing_rounds, "{}", circuit.name());
        let triples = run.cost.triples_per_lane * lanes as f64 + run.cost.triples_uniform;
        assert_eq!(ahead.triples as f64, triples, "{}", circuit.name());
    }
    run
}

#[test]
fn every_inversion_but_masking_computes_aes_with_the_counts_that_it_predicts() {
    for inversion in Inversion::ALL.into_iter().filter(|way| *way != Inversion::Masking) {
        for structure in [(4, 1), (5, 1), (7, 2)] {
            let cipher = catalog::find("aes-128").expect("the catalog has it");
            let config = config(structure, inversion, Tables::Masked);
            for circuit in [Some(cipher.encrypt), cipher.decrypt].into_iter().flatten() {
                check(&config, &circuit, 2);
            }
            check(&config, &cipher.key_schedule, 1);
        }
    }
}

#[test]
fn masking_computes_aes() {
    for structure in [(4, 1), (7, 2)] {
        let circuit = catalog::find("aes-128").expect("the catalog has it").encrypt;
        check_circuit(&config(structure, Inversion::Masking, Tables::Masked), &circuit, 2, 3);
    }
}

#[test]
fn triple_des_runs_by_both_ways_to_look_up_its_tables() {
    for tables in Tables::ALL {
        for structure in [(4, 1), (5, 1), (7, 2)] {
            let circuit = catalog::find("3des-ede3").expect("the catalog has it").encrypt;
            check(&config(structure, Inversion::MaskedPowers, tables), &circuit, 3);
        }
    }
}

#[test]
fn batches_longer_than_a_tile_are_right() {
    let circuit = catalog::find("aes-128").expect("the catalog has it").encrypt;
    for inversion in [Inversion::Views, Inversion::MaskedPowers] {
        check(&config((4, 1), inversion, Tables::Masked), &circuit, 1000);
    }
}

/// Damgard and Keller 2010, Table 2: operations and rounds of one S-box, online, for the ways of the papers;
/// one of both more for every product of which ours want other images than multiples. Ahead, besides: three
/// rounds for triples and two for the verdict.
#[test]
fn table_2_holds_online() {
    let mut b = Builder::new("one S-box");
    let s = b.table(&Arc::new(polyclave_cipher::aes::s_box()));
    let x = b.input("x", 1, 8)[0];
    let y = b.lookup(s, x);
    b.output("y", &[y]);
    let circuit = b.finish();
    let table = [
        (Inversion::Standard, (14, 14), (0, 5), 13),
        (Inversion::Shortest, (12, 12), (0, 5), 11),
        (Inversion::ShortestLeastRounds, (12, 10), (0, 5), 11),
        (Inversion::LeastRounds, (14, 9), (0, 5), 13),
        (Inversion::MaskedExponentiation, (8, 5), (7, 12), 6),
        (Inversion::Viff11, (12, 12), (0, 5), 11),
        (Inversion::Viff9, (12, 10), (0, 5), 11),
        (Inversion::Views, (5 + 3, 4 + 3), (0, 5), 4),
        (Inversion::CarriedSquares, (4 + 3, 3 + 3), (0, 5), 4),
        (Inversion::MaskedPowers, (2 + 1, 2 + 1), (4, 7), 1),
    ];
    for (inversion, online, ahead, triples) in table {
        for tally in check(&config((4, 1), inversion, Tables::Masked), &circuit, 1).tallies {
            assert_eq!((tally.online.operations(), tally.online.rounds), online, "{inversion}");
            let preprocessing = tally.preprocessing;
            assert_eq!((preprocessing.operations(), preprocessing.rounds), ahead, "{inversion}");
            assert_eq!(preprocessing.triples, triples, "{inversion}");
        }
    }
}

#[test]
fn parties_that_make_triples_in_different_ways_do_not_start() {
    let outcomes = mesh::run_parties(4, |net| {
        let mut config = masked_powers(4, 1);
        if net.me() == Party(2) {
            config = config.with_preprocessing(Preprocessing::Pseudorandom);
        }
        hello(&config.handshake(HandshakeParameters::new(4)), net).map(|_| ())
    });
    let differs = |outcome: &Result<(), Error>| {
        matches!(outcome, Err(Error::Disagreement { field: "preprocessing", .. }))
    };
    assert!(outcomes.iter().any(differs), "{outcomes:?}");
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
}

#[test]
fn nodes_keep_dealt_triples_in_stock() {
    let kinds = masked_powers(4, 1).kinds(Party(0));
    let dealt = *kinds.iter().find(|kind| kind.name == "dealt triples").expect("it is among them");
    let outcomes = mesh::run_parties(4, |net| {
        let config = masked_powers(4, 1);
        let stream = hello(&config.handshake(HandshakeParameters::new(4)), net)?.stream();
        config.make_material(&config.setup(net)?, stream, &dealt, 1001, net)
    });
    for outcome in outcomes {
        assert_eq!(outcome.expect("honest parties finish").len(), 1001 * dealt.item_bytes);
    }
}

#[test]
fn one_cheater_never_makes_an_answer_wrong_nor_stops_it_online() {
    sweep(masked_powers(4, 1), "aes-128");
}

#[test]
fn one_cheater_never_makes_an_answer_wrong_nor_stops_it_online_by_polynomials() {
    sweep(config((4, 1), Inversion::Views, Tables::Polynomial), "des");
}

/// Contributions: what else is so long goes to all alike, or to two.
fn dealt(out: &[Vec<u8>]) -> bool {
    // For AES in two lanes 320 triples, two a column among four parties and three among seven, of four
    // shares.
    let messages: Vec<_> = out.iter().filter(|message| [640, 428].contains(&message.len())).collect();
    messages.len() == out.len() - 1 && messages.iter().any(|message| *message != messages[0])
}

/// Products that are opened for these triples.
fn products(out: &[Vec<u8>]) -> bool {
    out.iter().any(|message| message.len() == 320)
}

#[test]
fn who_deals_inconsistent_sharings_to_all_is_convicted_and_the_others_go_on() {
    let right = right();
    for (n, t, liars) in [(4, 1, only(CHEATER)), (7, 2, [Party(2), Party(6)].into_iter().collect())] {
        let lies = |p| if liars.contains(p) { Habit::Lie(PartySet::all(n), dealt) } else { Habit::Honest };
        let outcomes = with_habits(masked_powers(n, t), LATE, 0, lies);
        for (p, outcome) in Party::all(n).zip(&outcomes) {
            if liars.contains(p) {
                assert!(matches!(outcome, Err(Error::System(_))), "{p} was not told: {outcome:?}");
                continue;
            }
            let (output, faults) = outcome.as_ref().unwrap_or_else(|e| panic!("{p}: {e}"));
            assert_eq!((output, faults.outvoted), (&right, liars), "{p}");
        }
    }
}

#[test]
fn who_deals_a_wrong_share_to_one_party_is_named_with_it_before_all() {
    for victim in Party::all(3) {
        let lies = |p| if p == CHEATER { Habit::Lie(only(victim), dealt) } else { Habit::Honest };
        for outcome in &with_habits(masked_powers(4, 1), LATE, 0, lies)[..3] {
            let error = outcome.as_ref().expect_err("no material is made");
            assert_eq!(*error, Error::Disputed { dealer: CHEATER, receiver: victim });
            assert!(error.to_string().contains("one of these two cheats"), "{error}");
        }
    }
}

/// Found by that party; the next time all hear of it.
#[test]
fn who_opens_wrong_products_to_one_party_gains_nothing() {
    let right = right();
    for victim in Party::all(3) {
        let lies = |p| if p == CHEATER { Habit::Lie(only(victim), products) } else { Habit::Honest };
        for outcome in &with_habits(masked_powers(4, 1), LATE, 0, lies)[..3] {
            assert_eq!(outcome.as_ref().expect("the others go on").0, right);
        }
    }
}

/// Then triples are made among three of four, or five of seven, none of whom cheats any more: nothing is left
/// to check.
#[test]
fn those_left_after_a_conviction_deal_among_themselves() {
    for party in Party::all(4).skip(1) {
        with_wrong_keys(masked_powers(4, 1), only(party));
    }
    with_wrong_keys(masked_powers(7, 2), [Party(2), Party(6)].into_iter().collect());
    with_wrong_keys(masked_powers(7, 2), only(Party(3)));
}

#[test]
fn who_lies_about_everything_never_makes_an_answer_wrong() {
    let right = right();
    for habit in [Habit::LieInAll, Habit::Lie(PartySet::all(4), shares), Habit::Lie(only(Party(1)), shares)] {
        for from in 0..9 {
            let lies = |p| if p == CHEATER { habit } else { Habit::Honest };
            let outcomes = with_habits(masked_powers(4, 1), SOON, from, lies);
            for (output, _) in outcomes[..3].iter().flatten() {
                assert_eq!(*output, right, "{habit:?} from gathering {from}");
            }
        }
    }
}

#[test]
fn a_silent_dealer_ends_it_and_a_slow_one_is_waited_for() {
    let silent = |p| if p == CHEATER { Habit::Silent } else { Habit::Honest };
    for outcome in &with_habits(masked_powers(4, 1), SOON, 0, silent)[..3] {
        let expected = matches!(outcome, Err(Error::Missing { purpose: "make material", .. }));
        assert!(expected, "{outcome:?}");
    }
    let slow = |p| if p == CHEATER { Habit::Slow(Duration::from_millis(20)) } else { Habit::Honest };
    for outcome in with_habits(masked_powers(4, 1), LATE, 0, slow) {
        assert_eq!(outcome.expect("all finish").0, right());
    }
}
