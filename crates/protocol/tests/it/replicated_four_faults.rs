//! One of four parties of replicated sharing cheats, once or all the time, or is gone: the others end with
//! the right output. With one gone and another that cheats they end with the right output or with an error.
//! Nothing hangs or panics. Agreeing on keys and on a session takes all parties, and comes before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use parking_lot::Mutex;
use polyclave_cipher::{AnyMap, Cells, Circuit, cleartext, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::protocol::{Faults, Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::replicated::ReplicatedFourConfig;
use polyclave_protocol::service::ServiceSession;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Party, PartySet, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, SOON, run_over};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper};

use crate::scrambled::{LANES, cells, gates, inputs, small, table_of};

/// What a party ends with: two outputs, and an opened element.
type Ended = ([Option<Vec<u8>>; 2], [u8; 16]);

/// Agrees on keys and a session, in peace.
fn joined(net: &mut dyn Net) -> Result<<ReplicatedFourConfig as ProtocolConfig>::Session> {
    let config = ReplicatedFourConfig;
    let mut session = hello(&config.handshake(HandshakeParameters::new(4)), net)?;
    config.join(&config.setup(net)?, session.stream(), net.members())
}

/// Two evaluations, of which the second goes on with the output of the first, a product of elements, and
/// three openings.
fn session(
    circuit: &Circuit,
    mut protocol: <ReplicatedFourConfig as ProtocolConfig>::Session,
    net: &mut dyn Net,
) -> Result<(Ended, Faults)> {
    let compiled = compile(circuit, &protocol);
    let cells = inputs(circuit);
    // Inputs of parties that cheat may be missing: those of others stand for them.
    let public = |i: usize| Input::Public(&cells[i]);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let first =
        evaluate(&mut protocol, &compiled, LANES, &[public(0), public(1), public(2)], batch, net)?.remove(0);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let second = evaluate(
        &mut protocol,
        &compiled,
        LANES,
        &[public(0), public(1), Input::Shared(&first)],
        batch,
        net,
    )?
    .remove(0);
    let arithmetic = protocol.arithmetic();
    let zero = arithmetic.random_elements(1, net)?;
    let zero = zero.add(&zero);
    let factor = arithmetic.add_public(&zero, &[[7; 16]]);
    let product = arithmetic.multiply_elements(&factor, &factor, net)?;
    let opened = arithmetic.open_elements(&product, net)?;
    let mut revealed = |shared, to| -> Result<_> {
        Ok(release(&mut protocol, shared, to, net)?.map(|released| released.accept().to_blocks()))
    };
    let outputs = [revealed(&second, Owner::All)?, revealed(&first, Owner::Party(Party(1)))?];
    Ok(((outputs, opened[0]), protocol.faults()))
}

/// The two outputs.
fn right(circuit: &Circuit) -> [Vec<u8>; 2] {
    let compiled = compile(circuit, &AnyMap);
    let mut cells: Vec<Cells> = inputs(circuit);
    let first = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    cells[2] = first.clone();
    let second = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    [second.to_blocks(), first.to_blocks()]
}

fn square_of_sevens() -> [u8; 16] {
    let seven = polyclave_field::Gf128::from_bytes([7; 16]);
    (seven * seven).to_bytes()
}

/// Every honest party has the right outputs.
#[track_caller]
fn check_right(circuit: &Circuit, cheaters: PartySet, outcomes: &[Result<(Ended, Faults)>], case: &str) {
    check_not_wrong(circuit, cheaters, outcomes, case);
    let honest = Party::all(4).zip(outcomes).filter(|(party, _)| !cheaters.contains(*party));
    honest.for_each(|(party, outcome)| assert!(outcome.is_ok(), "{case}: {party}: {outcome:?}"));
}

fn only(party: Party) -> PartySet {
    [party].into_iter().collect()
}

/// Every message of every party after the agreement, with every fault. Faults that cost a time limit are
/// committed on one message of [`LOSSY_EVERY`], beginning with this one.
fn sweep(circuit: Circuit, first_lossy: u64) {
    let circuit = Arc::new(circuit);
    std::thread::scope(|scope| {
        for cheater in Party::all(4) {
            let circuit = circuit.clone();
            scope.spawn(move || sweep_of(&circuit, cheater, first_lossy));
        }
    });
}

const LOSSY_EVERY: u64 = 5;
/// Threads of a sweep: most of the time they wait.
const AT_ONCE: u64 = 4;

fn sweep_of(circuit: &Arc<Circuit>, cheater: Party, first_lossy: u64) {
    let (messages, honest) = one_fault(circuit, LATE, (cheater, u64::MAX, Fault::Drop));
    check_right(circuit, PartySet::default(), &honest, "nobody cheats");
    assert!(honest.iter().flatten().all(|(_, faults)| *faults == Faults::default()), "{honest:?}");
    assert!(messages > 40, "{cheater} sends {messages} messages");
    std::thread::scope(|scope| {
        for thread in 0..AT_ONCE {
            let at = (0..messages).filter(move |at| at % AT_ONCE == thread);
            scope.spawn(move || at.for_each(|at| faults_of(circuit, cheater, at, first_lossy)));
        }
    });
}

/// All faults in one message.
fn faults_of(circuit: &Arc<Circuit>, cheater: Party, at: u64, first_lossy: u64) {
    let mut faults = vec![Fault::FlipBit { byte: 0, bit: 0 }, Fault::Garbage { seed: 1 }];
    if at % LOSSY_EVERY == first_lossy {
        faults.extend([Fault::Replay, Fault::Truncate, Fault::Drop]);
    }
    for fault in faults {
        let case = format!("{cheater}, message {at}, {fault:?}");
        let (_, outcomes) = one_fault(circuit, SOON, (cheater, at, fault));
        check_not_wrong(circuit, only(cheater), &outcomes, &case);
        let mut honest = Party::all(4).zip(&outcomes).filter(|(party, _)| *party != cheater);
        if honest.any(|(_, outcome)| outcome.is_err()) {
            // The machine may be busy: parties that follow the protocol may have lost each other.
            let (_, outcomes) = one_fault(circuit, PATIENT, (cheater, at, fault));
            check_right(circuit, only(cheater), &outcomes, &case);
        }
    }
}

/// A time limit that a busy machine keeps.
const PATIENT: Duration = Duration::from_secs(4);

/// One run in which a party commits a fault on a message. Also returns how many messages it sends.
fn one_fault(
    circuit: &Arc<Circuit>,
    timeout: Duration,
    (cheater, at, fault): (Party, u64, Fault),
) -> (u64, Vec<Result<(Ended, Faults)>>) {
    let count = Arc::new(AtomicU64::new(0));
    let (circuit, counted) = (circuit.clone(), count.clone());
    let outcomes = run_over(mesh_with_timeout(4, timeout), move |net| {
        let protocol = joined(net)?;
        let is_cheater = net.me() == cheater;
        let mut net = Tamper::new(net.fork()?, if is_cheater { at } else { u64::MAX }, fault);
        let tampering = net.tampering();
        let outcome = session(&circuit, protocol, &mut net);
        if is_cheater {
            counted.store(tampering.messages(), SeqCst);
        }
        outcome
    });
    (count.load(SeqCst), outcomes)
}

/// No honest party has a wrong output.
#[track_caller]
fn check_not_wrong(circuit: &Circuit, cheaters: PartySet, outcomes: &[Result<(Ended, Faults)>], case: &str) {
    let [second, first] = right(circuit);
    for (party, outcome) in Party::all(4).zip(outcomes).filter(|(party, _)| !cheaters.contains(*party)) {
        if let Ok(((outputs, element), _)) = outcome {
            assert_eq!(outputs[0].as_ref(), Some(&second), "{case}: {party}");
            assert_eq!(outputs[1].as_ref(), (party == Party(1)).then_some(&first), "{case}: {party}");
            assert_eq!(element, &square_of_sevens(), "{case}: {party}");
        }
    }
}

#[test]
fn no_fault_in_any_message_stops_the_tower_or_makes_it_wrong() {
    sweep(cells(table_of("aes-128")), 0);
}

#[test]
fn no_fault_in_any_message_stops_gates_of_a_table_or_makes_them_wrong() {
    sweep(cells(small(6, 4)), 1);
}

#[test]
fn no_fault_in_any_message_stops_gates_or_makes_them_wrong() {
    sweep(gates(), 2);
}

/// What a party does from some round on, on all its connections.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// It tells these parties something else than it should.
    Lies(PartySet),
    /// The same once. From then on it sends zeros, as a party does that has stopped.
    LiesAndStops(PartySet),
    /// It sends zeros.
    Stopped,
    /// It says nothing to these parties.
    Withholds(PartySet),
}

struct Habitual<N> {
    net: N,
    habit: Option<Habit>,
    /// So many rounds pass before it begins.
    left: usize,
}

impl<N: Net> Habitual<N> {
    fn changed(&mut self, out: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut out: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        if self.left > 0 {
            self.left -= 1;
            return out;
        }
        for (party, message) in Party::all(out.len()).zip(&mut out) {
            match self.habit {
                Some(Habit::Lies(to) | Habit::LiesAndStops(to)) if to.contains(party) => {
                    message.iter_mut().take(1).for_each(|byte| *byte ^= 4);
                }
                Some(Habit::Withholds(from)) if from.contains(party) => message.clear(),
                Some(Habit::Stopped) => message.fill(0),
                _ => {}
            }
        }
        if let Some(Habit::LiesAndStops(_)) = self.habit {
            self.habit = Some(Habit::Stopped);
        }
        out
    }
}

impl<N: Net> Net for Habitual<N> {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, recv, lost, fork);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        let mut out = vec![&[][..]; self.parties()];
        out[to.index()] = message;
        let changed = self.changed(&out);
        if changed[to.index()].is_empty() { Ok(()) } else { self.net.send(to, &changed[to.index()]) }
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let changed = self.changed(out);
        self.net.exchange(&changed.iter().map(Vec::as_slice).collect::<Vec<_>>(), into)
    }

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        let changed = self.changed(out);
        self.net.gather(&changed.iter().map(Vec::as_slice).collect::<Vec<_>>(), into, patience, enough)
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        let net = self.net.fork_among(members, name)?;
        Ok(Box::new(Habitual { net, habit: self.habit, left: self.left }))
    }
}

fn with_habit(
    circuit: &Circuit,
    (cheater, habit, left): (Party, Habit, usize),
) -> Vec<Result<(Ended, Faults)>> {
    let run = |timeout| {
        let circuit = circuit.clone();
        run_over(mesh_with_timeout(4, timeout), move |net| {
            let protocol = joined(net)?;
            let habit = (net.me() == cheater).then_some(habit);
            session(&circuit, protocol, &mut Habitual { net: net.fork()?, habit, left })
        })
    };
    let outcomes = run(SOON);
    let mut honest = Party::all(4).zip(&outcomes).filter(|(party, _)| *party != cheater);
    match honest.all(|(_, outcome)| outcome.is_ok()) {
        true => outcomes,
        // The machine may be busy.
        false => run(PATIENT),
    }
}

/// A party that goes on cheating, whom it likes, also among three: it is left out in the end.
#[test]
fn a_party_that_lies_in_everything_stops_nothing() {
    let circuit = cells(table_of("aes-128"));
    for cheater in Party::all(4) {
        let all = PartySet::all(4).without(only(cheater));
        let victims = all.iter().map(only).chain([all]);
        for (victims, left) in victims.flat_map(|victims| [0, 3, 9].map(|left| (victims, left))) {
            let habit = Habit::Lies(victims);
            let outcomes = with_habit(&circuit, (cheater, habit, left));
            check_right(&circuit, only(cheater), &outcomes, &format!("{cheater} {habit:?} after {left}"));
            for (party, outcome) in Party::all(4).zip(&outcomes).filter(|(party, _)| *party != cheater) {
                let (_, faults) = outcome.as_ref().expect("it is right");
                let wrongly = faults.outvoted.and(faults.silent).without(only(cheater));
                assert!(wrongly.is_empty(), "{cheater} cheats, and {party} blames {wrongly}");
                let noticed = faults.disputed.and(faults.outvoted).and(faults.silent);
                assert!(noticed.contains(cheater), "{cheater} cheats, and {party} has noticed {noticed}");
            }
        }
    }
}

#[test]
fn a_party_that_falls_silent_stops_nothing() {
    let circuit = cells(table_of("aes-128"));
    for cheater in Party::all(4) {
        let all = PartySet::all(4).without(only(cheater));
        let victims = all.iter().map(only).chain([all]);
        for (victims, left) in victims.flat_map(|victims| [0, 5].map(|left| (victims, left))) {
            let habit = Habit::Withholds(victims);
            let outcomes = with_habit(&circuit, (cheater, habit, left));
            check_right(&circuit, only(cheater), &outcomes, &format!("{cheater} {habit:?} after {left}"));
        }
    }
}

/// Sessions of three parties, with keys that four have agreed on.
fn three_serve(
    circuit: &Circuit,
    absent: Party,
    cheat: Option<(Party, Habit)>,
) -> Vec<Result<(Ended, Faults)>> {
    let circuit = circuit.clone();
    run_over(mesh_with_timeout(4, SOON), move |net| {
        let config = ReplicatedFourConfig;
        let setup = config.setup(net)?;
        let serving = PartySet::all(4).without(only(absent));
        if net.me() == absent {
            return Ok((([None, None], [0; 16]), Faults::default()));
        }
        let mut net = net.fork_among(serving, b"three serve")?;
        let mut session_of = hello(&config.handshake(HandshakeParameters::new(4)), &mut *net)?;
        let protocol = config.join(&setup, session_of.stream(), serving)?;
        let habit = cheat.filter(|(cheater, _)| *cheater == net.me()).map(|(_, habit)| habit);
        session(&circuit, protocol, &mut Habitual { net, habit, left: 0 })
    })
}

#[test]
fn three_are_enough_whoever_is_gone() {
    let circuit = cells(table_of("aes-128"));
    for absent in Party::all(4) {
        let mut outcomes = three_serve(&circuit, absent, None);
        if absent == Party(1) {
            // The owner of the second output is not there: that is an error, and the only one.
            assert!(
                outcomes.iter().all(|o| o.as_ref().is_ok_and(|((o, _), _)| o[0].is_none()) || o.is_err())
            );
            continue;
        }
        outcomes[absent.index()] = Err(polyclave_protocol::Error::misuse("it is gone"));
        check_right(&circuit, only(absent), &outcomes, &format!("{absent} is gone"));
    }
}

#[test]
fn with_one_gone_and_another_that_cheats_nothing_is_wrong() {
    let circuit = cells(table_of("aes-128"));
    let [second, first] = right(&circuit);
    for absent in [Party(0), Party(3)] {
        for cheater in Party::all(4).filter(|party| *party != absent) {
            let habit = Habit::Lies(PartySet::all(4));
            let outcomes = three_serve(&circuit, absent, Some((cheater, habit)));
            for (party, outcome) in
                Party::all(4).zip(outcomes).filter(|(p, _)| ![absent, cheater].contains(p))
            {
                if let Ok(((outputs, element), _)) = outcome {
                    assert_eq!(outputs[0].as_ref(), Some(&second), "{party}");
                    assert!(outputs[1].is_none() || outputs[1].as_ref() == Some(&first), "{party}");
                    assert_eq!(element, square_of_sevens(), "{party}");
                }
            }
        }
    }
}

/// What a party sends in each of its rounds.
struct Watched<N> {
    net: N,
    sent: Arc<Mutex<Vec<Vec<Vec<u8>>>>>,
}

impl<N: Net> Net for Watched<N> {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, send, recv, exchange, lost, fork, fork_among);

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        self.sent.lock().push(out.iter().map(|message| message.to_vec()).collect());
        self.net.gather(out, into, patience, enough)
    }
}

/// Whether a party sent zeros alone in a round.
fn is_silent(messages: &[Vec<u8>]) -> bool {
    messages.iter().flatten().all(|byte| *byte == 0)
}

/// Otherwise it would tell the party that cheats a product of the error with a component that this one lacks.
#[test]
fn a_party_that_was_told_something_wrong_sends_zeros_until_the_verdict() {
    let circuit = Arc::new(cells(table_of("aes-128")));
    // Two layers of four products.
    const ROUNDS: usize = 8;
    for cheater in Party::all(4) {
        for victim in cheater.peers(4) {
            for round in 0..ROUNDS - 1 {
                let sent = Arc::new(Mutex::new(Vec::new()));
                let (circuit, seen) = (circuit.clone(), sent.clone());
                run_over(mesh_with_timeout(4, LATE), move |net| {
                    let protocol = joined(net)?;
                    let me = net.me();
                    let sent = if me == victim { seen.clone() } else { Arc::default() };
                    let habit = (me == cheater).then_some(Habit::Lies(only(victim)));
                    let net = Habitual { net: net.fork()?, habit, left: round };
                    session(&circuit, protocol, &mut Watched { net, sent })
                });
                let sent = sent.lock();
                assert!(
                    !sent[..=round].iter().any(|messages| is_silent(messages)),
                    "{victim} had no reason to stop before {round}"
                );
                assert!(
                    sent[round + 1..ROUNDS].iter().all(|messages| is_silent(messages)),
                    "{cheater} lied in round {round} to {victim}"
                );
            }
        }
    }
}

/// Zeros do not vouch for zeros. Otherwise it would compute with zeros that two others send because they have
/// stopped, and tell the party that cheats products of the error.
#[test]
fn a_party_that_only_hears_zeros_of_parties_that_have_stopped_stops_too() {
    let circuit = Arc::new(cells(table_of("aes-128")));
    const ROUNDS: usize = 8;
    for cheater in Party::all(4) {
        for third in cheater.peers(4) {
            let victims = PartySet::all(4).without([cheater, third].into_iter().collect());
            for round in 0..ROUNDS - 2 {
                let sent = Arc::new(Mutex::new(Vec::new()));
                let (circuit, seen) = (circuit.clone(), sent.clone());
                run_over(mesh_with_timeout(4, LATE), move |net| {
                    let protocol = joined(net)?;
                    let me = net.me();
                    let sent = if me == third { seen.clone() } else { Arc::default() };
                    let habit = (me == cheater).then_some(Habit::LiesAndStops(victims));
                    let net = Habitual { net: net.fork()?, habit, left: round };
                    session(&circuit, protocol, &mut Watched { net, sent })
                });
                let sent = sent.lock();
                assert!(
                    sent[round + 2..ROUNDS].iter().all(|messages| is_silent(messages)),
                    "{cheater} made all but {third} stop in round {round}"
                );
            }
        }
    }
}
