//! Parties of scrambled tables that cheat in a particular way, over a network. (Cheaters that guess what
//! proves a wrong entry: `tinytable::cheaters`.)

use std::sync::atomic::Ordering::SeqCst;

use crate::cheat::{Act, Cheat};
use crate::scrambled::{ACTIVE, LANES, active, cells, gates, inputs, right, session, small, table_of};
use polyclave_cipher::{Cells, Circuit, Compiled, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{mesh_with_timeout, run_parties};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::tinytable::{
    Macs, Preprocessing, PreprocessingMethod, Setup, TinyTable, TinyTableConfig,
};
use polyclave_protocol::{EARLIER_CHECK, Error, Party, PartySet, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::faults::{LATE, run_over};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper};

/// Exchanges of a session of two evaluations of one layer each (`scrambled::session`).
const FIRST_LOOKUP: usize = 4;
/// Of party 1, which gives k only, its share of the mask of x comes first.
const SECOND_INPUT: usize = 5;
const SECOND_LOOKUP: usize = 6;
const CHECK: usize = 7;
const OUTPUT: usize = 8;
const CHECK_OF_OUTPUT: usize = 9;

const DEALER: Preprocessing = Preprocessing::Dealt(&InsecureDealing);
const FAILED: Error = Error::CheckFailed { what: "the tags of what was opened" };
const RETIRED: Error = Error::CheckFailed { what: EARLIER_CHECK };
const CHEATER: Party = Party(0);
const HONEST: Party = Party(1);

/// A bit of the first byte, to the peer, and as if it had been so.
fn shift() -> Act {
    Act::Shift { to: PartySet::all(2), bit: 0 }
}

type Outcome = Result<[Option<Vec<u8>>; 2]>;

/// One layer.
fn narrow() -> Circuit {
    cells(small(3, 4))
}

/// Sends again in one exchange what it sent in another.
struct Repeat<N> {
    net: N,
    exchanges: usize,
    /// Which, and when again.
    repeated: [usize; 2],
    kept: Vec<Vec<u8>>,
}

impl<N: Net> Net for Repeat<N> {
    polyclave_protocol::forward_net!(self => self.net; me, parties, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let at = self.exchanges;
        self.exchanges += 1;
        if at == self.repeated[0] {
            self.kept = out.iter().map(|message| message.to_vec()).collect();
        }
        if at == self.repeated[1] {
            let kept: Vec<&[u8]> = self.kept.iter().map(Vec::as_slice).collect();
            return self.net.exchange(&kept, into);
        }
        self.net.exchange(out, into)
    }
}

const NEVER: [usize; 2] = [usize::MAX; 2];

/// What the honest party ends with while party 1 acts in some exchange and repeats itself in another, and how
/// many messages it sent.
fn honest(macs: Macs, circuit: &Circuit, act: Act, at: usize, repeated: [usize; 2]) -> (Outcome, usize) {
    let ends = mesh_with_timeout(2, LATE).into_iter().map(|net| {
        let is_honest = net.me() == HONEST;
        let act = if is_honest { Act::Honest } else { act };
        let repeated = if is_honest { NEVER } else { repeated };
        Repeat { net: Cheat::new(net, act, at..at + 1), exchanges: 0, repeated, kept: Vec::new() }
    });
    let ends: Vec<_> = ends.collect();
    let sent = ends[HONEST.index()].net.sent.clone();
    let circuit = circuit.clone();
    let mut outcomes = run_over(ends, move |net| session(&active(macs, DEALER), &circuit, HONEST, net));
    (outcomes.remove(HONEST.index()), sent.load(SeqCst))
}

#[test]
fn what_is_opened_wrongly_is_caught_before_any_output_is_opened() {
    for macs in ACTIVE {
        for circuit in [narrow(), cells(table_of("des"))] {
            let (finished, _) = honest(macs, &circuit, Act::Honest, 0, NEVER);
            assert_eq!(finished.as_ref(), Ok(&right(&circuit, HONEST)[HONEST.index()]));
            for at in [FIRST_LOOKUP, SECOND_INPUT, SECOND_LOOKUP] {
                let (caught, sent) = honest(macs, &circuit, shift(), at, NEVER);
                assert_eq!((caught, sent), (Err(FAILED), CHECK + 1), "{macs:?}, {at}");
            }
        }
    }
    // Gates have two layers.
    for at in [4, 5, 6, 7, 8] {
        let (caught, sent) = honest(Macs::Linear64, &gates(), shift(), at, NEVER);
        assert_eq!((caught, sent), (Err(FAILED), CHECK + 3), "{at}");
    }
}

#[test]
fn a_wrong_share_of_an_output_is_not_released() {
    for macs in ACTIVE {
        let (caught, sent) = honest(macs, &narrow(), shift(), OUTPUT, NEVER);
        assert_eq!((caught, sent), (Err(FAILED), CHECK_OF_OUTPUT + 1));
        // To the honest party alone. Where strings are compared the first output's check is followed by
        // another.
        let to_one = if macs == Macs::Linear64 { 10 } else { 11 };
        let (caught, sent) = honest(macs, &narrow(), shift(), to_one, NEVER);
        assert_eq!((caught, sent), (Err(FAILED), to_one + 2));
    }
}

#[test]
fn the_proof_of_an_earlier_check_proves_nothing_later() {
    for macs in ACTIVE {
        for act in [Act::Honest, shift()] {
            let (caught, _) = honest(macs, &narrow(), act, OUTPUT, [CHECK, CHECK_OF_OUTPUT]);
            assert_eq!(caught, Err(FAILED));
        }
        let (caught, _) = honest(macs, &narrow(), Act::Honest, 0, [FIRST_LOOKUP, SECOND_LOOKUP]);
        assert_eq!(caught, Err(FAILED));
    }
}

#[test]
fn who_repeats_what_the_peer_shows_is_caught() {
    for macs in ACTIVE {
        for at in [CHECK, CHECK_OF_OUTPUT] {
            assert_eq!(honest(macs, &narrow(), Act::Mirror, at, NEVER), (Err(FAILED), at + 1));
        }
    }
}

#[test]
fn who_waits_and_chooses_what_is_opened_is_caught() {
    for macs in ACTIVE {
        // That all lanes have this value by chance happens once in 2^36 times.
        for at in [FIRST_LOOKUP, SECOND_INPUT] {
            assert_eq!(honest(macs, &narrow(), Act::Choose(0x55), at, NEVER).0, Err(FAILED));
        }
    }
}

type Joined = (AgreedSession, TinyTableConfig<Checked<Cells>>, Setup);

fn setup(macs: Macs, net: &mut dyn Net) -> Result<Joined> {
    let config = active(macs, DEALER);
    let session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let setup = config.setup(net)?;
    Ok((session, config, setup))
}

fn join((session, config, setup): &mut Joined, net: &dyn Net) -> Result<TinyTable<Checked<Cells>>> {
    config.join(setup, session.stream(), net.members())
}

/// Party 1 opens wrongly in one exchange; what the other says of `party`.
fn against<T: Send + 'static>(
    at: usize,
    party: impl Fn(&mut dyn Net) -> Result<T> + Send + Sync + 'static,
) -> (Result<T>, usize) {
    let ends = mesh_with_timeout(2, LATE).into_iter().map(|net| {
        let act = if net.me() == CHEATER { shift() } else { Act::Honest };
        Cheat::new(net, act, at..at + 1)
    });
    let ends: Vec<_> = ends.collect();
    let sent = ends[HONEST.index()].sent.clone();
    let mut outcomes = run_over(ends, party);
    (outcomes.remove(HONEST.index()), sent.load(SeqCst))
}

#[test]
fn a_retired_key_refuses_everything_in_all_sessions() {
    for macs in ACTIVE {
        // Hello (two), setup, inputs and lookup of one evaluation, and of another: that is where the cheater
        // opens wrongly.
        let (outcome, sent) = against(6, move |net| {
            let mut joined = setup(macs, net)?;
            let (mut first, mut second) = (join(&mut joined, net)?, join(&mut joined, net)?);
            let circuit = narrow();
            let compiled = compile(&circuit, &first);
            let cells = inputs(&circuit);
            let public: Vec<_> = cells.iter().map(Input::Public).collect();
            let batch = prepare(&mut first, &compiled, LANES, net)?;
            let honest = evaluate(&mut first, &compiled, LANES, &public, batch, net)?.remove(0);
            let mut ready = prepare(&mut first, &compiled, LANES, net)?;
            let mut registers = first.registers(&compiled, LANES, &mut ready)?;
            let batch = prepare(&mut second, &compiled, LANES, net)?;
            let shifted = evaluate(&mut second, &compiled, LANES, &public, batch, net)?.remove(0);
            let failed = release(&mut second, &shifted, Owner::All, net).err();
            // The others' turn: without a word to the peer.
            let mut third = join(&mut joined, net)?;
            let lookups = &compiled.layers()[0].lookups;
            let refused = [
                release(&mut second, &shifted, Owner::All, net).err(),
                second.release(&shifted, Owner::Party(HONEST), net).err(),
                release(&mut first, &honest, Owner::All, net).err(),
                first.release(&honest, Owner::All, net).err(),
                first.check(net).err(),
                first.inputs(compiled.inputs(), &public, &mut registers, net).err(),
                first.lookup(&compiled, lookups, &mut registers, &mut ready, net).err(),
                prepare(&mut third, &compiled, LANES, net).err(),
            ];
            Ok((failed, refused))
        });
        let (failed, refused) = outcome.expect("it goes on to the end");
        assert_eq!(failed, Some(FAILED));
        assert!(refused.iter().all(|refused| *refused == Some(RETIRED)), "{refused:?}");
        assert_eq!(sent, 8, "nothing after the check that failed");
    }
}

/// Though the caller has not asked for a check.
#[test]
fn an_output_is_not_opened_before_the_lookups_are_checked() {
    for macs in ACTIVE {
        let (outcome, sent) = against(4, move |net| {
            let mut joined = setup(macs, net)?;
            let mut protocol = join(&mut joined, net)?;
            let circuit = narrow();
            let compiled = compile(&circuit, &protocol);
            let cells = inputs(&circuit);
            let public: Vec<_> = cells.iter().map(Input::Public).collect();
            let batch = prepare(&mut protocol, &compiled, LANES, net)?;
            let shifted = evaluate(&mut protocol, &compiled, LANES, &public, batch, net)?.remove(0);
            protocol.release(&shifted, Owner::All, net).map(|_| ())
        });
        // Hello (two), setup, inputs, the lookup and the check.
        assert_eq!((outcome, sent), (Err(FAILED), 6));
    }
}

/// What one session opened wrongly, the check of another does not see.
#[test]
fn a_value_serves_other_sessions_only_after_a_check_in_its_own() {
    for (at, expected) in [(usize::MAX - 1, Ok(())), (4, Err(FAILED))] {
        let (outcome, _) = against(at, |net| {
            let mut joined = setup(Macs::Linear64, net)?;
            let (mut first, mut second) = (join(&mut joined, net)?, join(&mut joined, net)?);
            let circuit = narrow();
            let compiled = compile(&circuit, &first);
            let cells = inputs(&circuit);
            let public = || cells.iter().map(Input::Public);
            let batch = prepare(&mut first, &compiled, LANES, net)?;
            let value =
                evaluate(&mut first, &compiled, LANES, &public().collect::<Vec<_>>(), batch, net)?.remove(0);

            let again: Vec<_> = public().take(2).chain([Input::Shared(&value)]).collect();
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
        assert_eq!(outcome, expected);
    }
}

#[test]
fn a_value_without_tags_is_never_released_as_checked() {
    for outcome in run_parties(2, |net| {
        let config = TinyTableConfig::<Unverified<Cells>>::new(Macs::None, DEALER)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let mut passive = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let circuit = narrow();
        let compiled = compile(&circuit, &passive);
        let cells = inputs(&circuit);
        let public = || cells.iter().map(Input::Public);
        let batch = prepare(&mut passive, &compiled, LANES, net)?;
        let value =
            evaluate(&mut passive, &compiled, LANES, &public().collect::<Vec<_>>(), batch, net)?.remove(0);
        let mut joined = setup(Macs::Linear64, net)?;
        let mut verifying = join(&mut joined, net)?;
        let again: Vec<_> = public().take(2).chain([Input::Shared(&value)]).collect();
        let batch = prepare(&mut verifying, &compiled, LANES, net)?;
        Ok([
            release(&mut verifying, &value, Owner::All, net).err(),
            evaluate(&mut verifying, &compiled, LANES, &again, batch, net).err(),
        ])
    }) {
        let refused = outcome.expect("the sessions go on");
        assert!(refused.iter().all(|refused| matches!(refused, Some(Error::Misuse(_)))), "{refused:?}");
    }
}

#[test]
fn material_is_used_once_and_for_what_it_was_made() {
    for macs in ACTIVE {
        // Nobody cheats, and what is refused is refused without a word: the tables are not read.
        let (outcome, sent) = against(usize::MAX - 1, move |net| {
            let mut joined = setup(macs, net)?;
            let (mut protocol, mut other) = (join(&mut joined, net)?, join(&mut joined, net)?);
            let compiled = compile(&narrow(), &protocol);
            let another = compile(&cells(small(3, 3)), &protocol);
            let mut batch = prepare(&mut protocol, &compiled, LANES, net)?;
            // Before an input is opened under its masks.
            let mut refused = vec![
                other.registers(&compiled, LANES, &mut batch).map(|_| ()),
                protocol.registers(&another, LANES, &mut batch).map(|_| ()),
                protocol.registers(&compiled, LANES + 1, &mut batch).map(|_| ()),
                protocol.registers(&compiled, LANES - 1, &mut batch).map(|_| ()),
            ];
            let mut registers = protocol.registers(&compiled, LANES, &mut batch)?;
            refused.extend([
                look_up(&mut other, &compiled, LANES, &mut batch, net),
                look_up(&mut protocol, &another, LANES, &mut batch, net),
                look_up(&mut protocol, &compiled, LANES + 1, &mut batch, net),
                look_up(&mut protocol, &compiled, LANES - 1, &mut batch, net),
            ]);
            // Nor are its masks used again.
            let cells = inputs(&narrow());
            let public: Vec<_> = cells.iter().map(Input::Public).collect();
            protocol.inputs(compiled.inputs(), &public, &mut registers, net)?;
            refused.push(protocol.inputs(compiled.inputs(), &public, &mut registers, net));
            protocol.linear(&compiled.layers()[0].linear, &mut registers);
            let lookups = &compiled.layers()[0].lookups;
            refused.push(other.lookup(&compiled, lookups, &mut registers, &mut batch, net));
            protocol.lookup(&compiled, lookups, &mut registers, &mut batch, net)?;
            refused.push(protocol.lookup(&compiled, lookups, &mut registers, &mut batch, net));
            let mut again = protocol.registers(&compiled, LANES, &mut batch)?;
            refused.push(protocol.inputs(compiled.inputs(), &public, &mut again, net));
            Ok(refused)
        });
        let refused = outcome.expect("what it was made for");
        assert!(refused.iter().all(|outcome| matches!(outcome, Err(Error::Misuse(_)))), "{refused:?}");
        // Hello (two), setup, inputs and one lookup.
        assert_eq!(sent, 5);
    }
}

/// A bank for the material, and the first layer's lookups.
fn look_up<P: Session>(
    protocol: &mut P,
    compiled: &Compiled,
    lanes: usize,
    batch: &mut P::Batch,
    net: &mut dyn Net,
) -> Result<()> {
    let mut registers = protocol.registers(compiled, lanes, batch)?;
    protocol.lookup(compiled, &compiled.layers()[0].lookups, &mut registers, batch, net)
}

/// Wherever in a message of the preprocessing something is wrong, the error is the same: no gate has a name.
#[test]
fn errors_of_preprocessing_do_not_tell_where() {
    let run = |at: u64, byte: usize| {
        let ends = mesh_with_timeout(2, LATE).into_iter().map(|net| {
            let at = if net.me() == CHEATER { at } else { u64::MAX };
            Tamper::new(net, at, Fault::FlipBit { byte, bit: 0 })
        });
        let ends: Vec<_> = ends.collect();
        let tampering = ends[0].tampering();
        let mut outcomes = run_over(ends, |net| {
            let real = Preprocessing::TinyOt {
                method: PreprocessingMethod::Demux,
                kappa: Kappa::Bits40,
                expansion: 4,
            };
            let config = active(Macs::Lookup32, real);
            let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            let setup = config.setup(net)?;
            let mut protocol = config.join(&setup, session.stream(), net.members())?;
            let compiled = compile(&gates(), &protocol);
            prepare(&mut protocol, &compiled, LANES, net).map(|_| ())
        });
        (outcomes.remove(HONEST.index()), tampering)
    };
    let (right, tampering) = run(u64::MAX, 0);
    assert_eq!(right, Ok(()));
    let mut failed = 0;
    for at in 0..tampering.messages() {
        let errors: Vec<_> = [0, 1, 2].map(|byte| run(at, byte).0.err()).into_iter().flatten().collect();
        let checks: Vec<_> = errors.iter().filter(|e| matches!(e, Error::CheckFailed { .. })).collect();
        assert!(checks.windows(2).all(|pair| pair[0] == pair[1]), "message {at}: {errors:?}");
        failed += usize::from(checks.len() > 1);
    }
    println!("{failed} messages failed checks");
    // Of some it is a matter of chance: a wrong guess at a bit.
    assert!(failed >= 3, "{failed} messages failed checks");
}
