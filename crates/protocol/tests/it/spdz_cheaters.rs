//! Parties of authenticated sharing that cheat in a particular way, over a network: shifted and contradictory
//! openings, a word that waits for the others', another session's material, other settings. (Cheating inside
//! the check: `spdz::check`.)

use std::ops::Range;
use std::sync::atomic::Ordering::SeqCst;

use crate::cheat::{Act, Cheat};
use crate::lookups::{config, narrow, one_lookup, table_of};
use crate::sessions::{LANES, inputs, session};
use polyclave_cipher::{Compiled, Table, compile};
use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, Gf2_128, MacField};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{mesh_with_timeout, run_parties};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig};
use polyclave_protocol::{EARLIER_CHECK, Error, Party, PartySet, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::faults::{LATE, run_over};

/// Exchanges of party 1 in a session of one lookup by a masked table.
const INPUT: usize = 3;
const OPENING: usize = 4;
const CHECK: usize = 5;
/// Among three; two ask and answer.
const COINS: usize = CHECK;
const D: usize = 7;
const Z: usize = 9;

/// Exchanges of a check.
fn of_check(n: usize) -> usize {
    if n == 2 { 2 } else { 6 }
}

/// The exchange in which the output is opened.
fn output(n: usize) -> Range<usize> {
    CHECK + of_check(n)..CHECK + of_check(n) + 1
}

/// What honest parties end with while party 1 cheats, and how many messages each of them has sent.
fn honest(n: usize, act: Act, at: Range<usize>) -> Vec<(Result<Option<Vec<u8>>>, usize)> {
    let ends = mesh_with_timeout(n, LATE).into_iter().map(|net| {
        let act = if net.me() == Party(0) { act } else { Act::Honest };
        Cheat::new(net, act, at.clone())
    });
    let ends: Vec<_> = ends.collect();
    let sent: Vec<_> = ends.iter().map(|net| net.sent.clone()).collect();
    let circuit = narrow(6);
    let outcomes =
        run_over(ends, move |net| session::<Gf2_64>(LookupMethod::MaskedTables, &circuit, Owner::All, net));
    let sent = sent.iter().map(|sent| sent.load(SeqCst));
    outcomes.into_iter().zip(sent).skip(1).collect()
}

fn everybody() -> PartySet {
    PartySet::all(PartySet::MAX)
}

const FAILED: Error = Error::CheckFailed { what: "the MACs of opened values" };

#[test]
fn a_value_shifted_for_everybody_is_caught_before_the_output_is_opened() {
    for n in [2, 3] {
        let finished = honest(n, Act::Honest, 0..0);
        let caught = honest(n, Act::Shift { to: everybody(), bit: 0 }, OPENING..OPENING + 1);
        for ((right, all), (outcome, sent)) in finished.into_iter().zip(caught) {
            assert!(right.is_ok());
            assert_eq!(outcome, Err(FAILED.clone()));
            // Neither the output nor its check went out.
            assert_eq!(sent, all - (1 + of_check(n)) * (n - 1));
        }
    }
}

#[test]
fn an_output_shifted_for_everybody_is_not_released() {
    for n in [2, 3] {
        for (outcome, _) in honest(n, Act::Shift { to: everybody(), bit: 0 }, output(n)) {
            assert_eq!(outcome, Err(FAILED.clone()));
        }
    }
}

/// The comparison of what was seen, before the check could go on.
fn assert_compared(outcomes: Vec<(Result<Option<Vec<u8>>>, usize)>) {
    for (outcome, _) in outcomes {
        // Each honest party is contradicted by the other, and names nobody.
        assert_eq!(outcome, Err(Error::Equivocation { what: "values or commitments" }));
    }
}

#[test]
fn different_openings_to_two_peers_are_found_by_comparison() {
    for to in [Party(1), Party(2)] {
        let to = PartySet::from_iter([to]);
        assert_compared(honest(3, Act::Shift { to, bit: 0 }, OPENING..OPENING + 1));
        assert_compared(honest(3, Act::Shift { to, bit: 0 }, output(3)));
    }
}

#[test]
fn an_input_that_differs_from_peer_to_peer_is_found_by_comparison() {
    for to in [Party(1), Party(2)] {
        assert_compared(honest(3, Act::Shift { to: PartySet::from_iter([to]), bit: 0 }, INPUT..INPUT + 1));
    }
}

/// Whatever the owner of an input tells all, bits beyond a cell included, is an input.
#[test]
fn an_input_beyond_its_cell_is_one_within() {
    let right = honest(3, Act::Honest, 0..0);
    let shifted = honest(3, Act::Shift { to: everybody(), bit: 7 }, INPUT..INPUT + 1);
    // Its own party 1 believes it sent something else, and for all others nothing has changed.
    assert!(right.iter().zip(&shifted).all(|(right, shifted)| right.0 == shifted.0));
}

#[test]
fn an_index_beyond_the_table_is_an_error() {
    for n in [2, 3] {
        for bit in [6, 7] {
            for (outcome, _) in honest(n, Act::Shift { to: everybody(), bit }, OPENING..OPENING + 1) {
                assert_eq!(outcome, Err(Error::CheckFailed { what: "the range of an opened index" }));
            }
        }
    }
}

#[test]
fn a_party_that_waits_and_chooses_what_is_opened_is_caught() {
    for n in [2, 3] {
        for chosen in [0, 1, 63] {
            let outcomes = honest(n, Act::Choose(chosen), OPENING..OPENING + 1);
            // That all lanes have this value by chance happens once in 2^24 times.
            let caught = outcomes.iter().filter(|(outcome, _)| *outcome == Err(FAILED)).count();
            assert_eq!(caught, n - 1, "{outcomes:?}");
        }
    }
}

#[test]
fn a_party_that_waits_and_repeats_the_word_of_another_gains_nothing() {
    for word in [COINS, D, Z] {
        for at in [word..word + 1, word + 1..word + 2, word..word + 2] {
            for (outcome, _) in honest(3, Act::Mirror, at.clone()) {
                let found = matches!(outcome, Err(Error::Peer { .. } | Error::Equivocation { .. }));
                assert!(found, "{at:?}: {outcome:?}");
            }
        }
    }
    // Between two it asks what it is asked, and learns nothing; or it answers as it is answered.
    let (asks, answers) = (CHECK..CHECK + 1, CHECK + 1..CHECK + 2);
    let outcome = |at: Range<usize>| honest(2, Act::Mirror, at).remove(0).0;
    assert!(matches!(outcome(asks.clone()), Err(Error::Closed { .. })), "it ends by its own test");
    assert_eq!(outcome(answers.clone()), Err(FAILED));
    assert_eq!(outcome(asks.start..answers.end), Err(FAILED));
}

#[test]
fn after_a_failed_check_other_streams_of_the_setup_release_nothing() {
    let ends = mesh_with_timeout(2, LATE).into_iter().map(|net| {
        let act = if net.me() == Party(0) { Act::Shift { to: everybody(), bit: 0 } } else { Act::Honest };
        // Hello (two), setup, the openings of two lookups: the second is shifted.
        Cheat::new(net, act, 4..5)
    });
    let outcomes = run_over(ends.collect(), |net| {
        let config = config::<Gf2_64>(2, LookupMethod::MaskedTables);
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let setup = config.setup(net)?;
        let [mut first, mut second] = [
            config.join(&setup, session.stream(), net.members())?,
            config.join(&setup, session.stream(), net.members())?,
        ];
        let circuit = narrow(6);
        let compiled = compile(&circuit, &first);
        let cells = inputs(&circuit);
        let public = || cells.iter().map(Input::Public).collect::<Vec<_>>();
        let batch = prepare(&mut first, &compiled, LANES, net)?;
        let honest = evaluate(&mut first, &compiled, LANES, &public(), batch, net)?.remove(0);
        let batch = prepare(&mut second, &compiled, LANES, net)?;
        let shifted = evaluate(&mut second, &compiled, LANES, &public(), batch, net)?.remove(0);
        let failed = release(&mut second, &shifted, Owner::All, net).err();
        let refused = release(&mut first, &honest, Owner::All, net).err();
        // A session that begins later, and has opened nothing yet.
        let mut third = config.join(&setup, session.stream(), net.members())?;
        let unborn = prepare(&mut third, &compiled, LANES, net).err();
        Ok([failed, refused, unborn])
    });
    let retired = Some(Error::CheckFailed { what: EARLIER_CHECK });
    assert_eq!(outcomes[1], Ok([Some(FAILED), retired.clone(), retired]));
}

/// Though the caller has not asked for a check.
#[test]
fn an_output_is_not_opened_before_the_lookups_are_checked() {
    let ends = mesh_with_timeout(2, LATE).into_iter().map(|net| {
        let act = if net.me() == Party(0) { Act::Shift { to: everybody(), bit: 0 } } else { Act::Honest };
        Cheat::new(net, act, 3..4)
    });
    let ends: Vec<_> = ends.collect();
    let sent = ends[1].sent.clone();
    let outcomes = run_over(ends, |net| {
        let config = config::<Gf2_64>(2, LookupMethod::MaskedTables);
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let circuit = narrow(6);
        let compiled = compile(&circuit, &protocol);
        let cells = inputs(&circuit);
        let public: Vec<_> = cells.iter().map(Input::Public).collect();
        let batch = prepare(&mut protocol, &compiled, LANES, net)?;
        let shifted = evaluate(&mut protocol, &compiled, LANES, &public, batch, net)?.remove(0);
        protocol.release(&shifted, Owner::All, net).map(|_| ())
    });
    assert_eq!(outcomes[1], Err(FAILED));
    // Hello (two), setup, the lookup and a check.
    assert_eq!(sent.load(SeqCst), 4 + of_check(2));
}

/// What one session opened wrongly, the check of another does not see.
#[test]
fn a_value_serves_other_sessions_only_after_a_check_in_its_own() {
    for cheats in [false, true] {
        let ends = mesh_with_timeout(2, LATE).into_iter().map(|net| {
            let cheats = cheats && net.me() == Party(0);
            Cheat::new(net, if cheats { Act::Shift { to: everybody(), bit: 0 } } else { Act::Honest }, 3..4)
        });
        let outcomes = run_over(ends.collect(), move |net| {
            let config = config::<Gf2_64>(2, LookupMethod::MaskedTables);
            let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            let setup = config.setup(net)?;
            let mut first = config.join(&setup, session.stream(), net.members())?;
            let mut second = config.join(&setup, session.stream(), net.members())?;
            let circuit = narrow(4);
            let compiled = compile(&circuit, &first);
            let cells = inputs(&circuit);
            let public: Vec<_> = cells.iter().map(Input::Public).collect();
            let batch = prepare(&mut first, &compiled, LANES, net)?;
            let value = evaluate(&mut first, &compiled, LANES, &public, batch, net)?.remove(0);

            let again = [Input::Shared(&value), Input::Public(&cells[1])];
            let batch = prepare(&mut second, &compiled, LANES, net)?;
            let unchecked = evaluate(&mut second, &compiled, LANES, &again, batch, net).err();
            assert!(matches!(unchecked, Some(Error::Misuse(_))), "{unchecked:?}");
            let unchecked = second.release(&value, Owner::All, net).err();
            assert!(matches!(unchecked, Some(Error::Misuse(_))), "{unchecked:?}");

            first.check(net)?;
            let batch = prepare(&mut second, &compiled, LANES, net)?;
            let output = evaluate(&mut second, &compiled, LANES, &again, batch, net)?.remove(0);
            release(&mut second, &output, Owner::All, net).map(|_| ())
        });
        assert_eq!(outcomes[1], if cheats { Err(FAILED) } else { Ok(()) });
    }
}

#[test]
fn material_is_used_once_and_for_what_it_was_made() {
    for way in [LookupMethod::MaskedTables, LookupMethod::PulkusVivek] {
        let outcomes = run_parties(2, |net| {
            let config = config::<Gf2_64>(2, way);
            let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            let setup = config.setup(net)?;
            let mut protocol = config.join(&setup, session.stream(), net.members())?;
            let mut other = config.join(&setup, session.stream(), net.members())?;
            let circuit = match way {
                LookupMethod::MaskedTables => narrow(6),
                _ => table_of("des"),
            };
            let compiled = compile(&circuit, &protocol);
            let another = compile(&one_lookup(Table::new("x", 1, 1, vec![1, 0])), &protocol);
            let mut batch = prepare(&mut protocol, &compiled, LANES, net)?;
            let mut refused = vec![
                look_up(&mut other, &compiled, LANES, &mut batch, net),
                look_up(&mut protocol, &another, LANES, &mut batch, net),
                look_up(&mut protocol, &compiled, LANES + 1, &mut batch, net),
                look_up(&mut protocol, &compiled, LANES - 1, &mut batch, net),
            ];
            look_up(&mut protocol, &compiled, LANES, &mut batch, net)?;
            refused.push(look_up(&mut protocol, &compiled, LANES, &mut batch, net));
            Ok(refused)
        });
        for refused in outcomes {
            let refused = refused.expect("what it was made for");
            assert!(refused.iter().all(|outcome| matches!(outcome, Err(Error::Misuse(_)))), "{refused:?}");
        }
    }
}

/// The lookups of a circuit, on cells of which all shares are zero.
fn look_up<P: Session>(
    protocol: &mut P,
    compiled: &Compiled,
    lanes: usize,
    batch: &mut P::Batch,
    net: &mut dyn Net,
) -> Result<()> {
    let mut registers = protocol.registers(compiled, lanes, batch)?;
    let layers = compiled.layers().iter().filter(|layer| !layer.lookups.is_empty());
    layers
        .into_iter()
        .try_for_each(|layer| protocol.lookup(compiled, &layer.lookups, &mut registers, batch, net))
}

#[test]
fn parties_with_other_settings_end_at_the_hello_with_its_name() {
    fn terms<F: MacField>(parties: usize, way: LookupMethod, k: usize) -> HandshakeParameters {
        let packing = Packing::of::<F>(k).expect("the field has this packing");
        let config = SpdzConfig::<F>::new(parties, way, Preprocessing::Dealt(&InsecureDealing), packing);
        config.expect("it is valid").handshake(HandshakeParameters::new(parties)).with("circuit", b"a cipher")
    }
    let ours = terms::<Gf2_64>(2, LookupMethod::MaskedTables, 64);
    let mut others = vec![
        (terms::<Gf2_64>(3, LookupMethod::MaskedTables, 64), "number of parties"),
        (terms::<Gf2_64>(2, LookupMethod::MaskedTables, 8), "demux field"),
        (terms::<Gf2_64>(2, LookupMethod::MaskedTables, 1), "demux field"),
        (terms::<Gf2_40>(2, LookupMethod::MaskedTables, 40), "field"),
        (terms::<Gf2_128>(2, LookupMethod::MaskedTables, 128), "field"),
        (terms::<Gf2_42>(2, LookupMethod::Univariate, 42), "protocol"),
    ];
    for way in [LookupMethod::BitDecomposition, LookupMethod::RivainProuff, LookupMethod::PulkusVivek] {
        others.push((terms::<Gf2_64>(2, way, 64), "protocol"));
    }
    let packing = Packing::of::<Gf2_64>(64).expect("the field has this packing");
    let same = SpdzConfig::<Gf2_64>::new(
        2,
        LookupMethod::MaskedTables,
        Preprocessing::Dealt(&InsecureDealing),
        packing,
    );
    let cipher =
        same.expect("it is valid").handshake(HandshakeParameters::new(2)).with("circuit", b"another cipher");
    others.push((cipher, "circuit"));
    for (theirs, field) in others {
        let outcomes = run_parties(2, |net| {
            hello(if net.me() == Party(0) { &ours } else { &theirs }, net).map(|session| session.id())
        });
        assert_eq!(outcomes[0], Err(Error::Disagreement { peer: Party(1), field }));
        assert_eq!(outcomes[1], Err(Error::Disagreement { peer: Party(0), field }));
    }
}
