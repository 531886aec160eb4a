//! One of four parties cheats, falls silent, or is slow: the others' answers are right, and come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_cipher::{Cells, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{Mesh, mesh_with_timeout};
use polyclave_protocol::net::{Gathered, Net};
use polyclave_protocol::protocol::{Faults, Input, Owner, Protocol, Scheme};
use polyclave_protocol::service::ServiceScheme;
use polyclave_protocol::session::{Terms, hello};
use polyclave_protocol::shamir::{Active, Inversion, Shamir, ShamirActiveScheme, Structure, Tables};
use polyclave_protocol::testkit::faults::{LATE, QUICK_FAULTS, SOON, run_over};
use polyclave_protocol::testkit::tamper::{Fault, Tamper, Tampering};
use polyclave_protocol::{Error, Party, PartySet, Result};

const CHEATER: Party = Party(3);
const LANES: usize = 2;

fn scheme(n: usize, t: usize, inversion: Inversion) -> ShamirActiveScheme {
    let structure = Structure::new(n, t).expect("it is valid");
    ShamirActiveScheme::new(structure, inversion, Tables::Masked).expect("fewer than a third")
}

/// How far a session goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Until {
    SetUp,
    Prepared,
    Released,
}

/// What a party ends with.
type Ended = (Vec<u8>, Faults);

/// Blocks under a key that `owner` gives, from hello to output.
fn session(
    scheme: &ShamirActiveScheme,
    cipher: &str,
    owner: Party,
    until: Until,
    net: &mut dyn Net,
) -> Result<Ended> {
    let mut session = hello(&scheme.terms(Terms::new(net.parties())), net)?;
    let mut protocol = scheme.join(&scheme.set_up(net)?, session.stream(), net.members())?;
    run(&mut protocol, cipher, owner, until, net)
}

/// [`session`] from where it was joined.
fn run(
    protocol: &mut Shamir<Active>,
    cipher: &str,
    owner: Party,
    until: Until,
    net: &mut dyn Net,
) -> Result<Ended> {
    if until == Until::SetUp {
        return Ok((Vec::new(), protocol.faults()));
    }
    let circuit = catalog::find(cipher).expect("the catalog has it").encrypt;
    let compiled = compile(&circuit, protocol);
    let batch = prepare(protocol, &compiled, LANES, net)?;
    if until == Until::Prepared {
        return Ok((Vec::new(), protocol.faults()));
    }
    let [block, keys] = [0, 1].map(|i| &circuit.inputs()[i]);
    let block = Cells::zero(block.cells.len(), block.bits, LANES);
    let mut round_keys = Cells::zero(keys.cells.len(), keys.bits, 1);
    round_keys.rows_mut().fill(1);
    let key = if net.me() == owner { Input::Mine(&round_keys) } else { Input::From(owner) };
    let output = evaluate(protocol, &compiled, LANES, &[Input::Public(&block), key], batch, net)?;
    let released = release(protocol, &output[0], Owner::All, net)?.expect("it is for all");
    Ok((released.value().to_blocks(), protocol.faults()))
}

/// Four parties of which one commits a fault on one message.
fn four(
    timeout: Duration,
    (at, fault): (u64, Fault),
    party: impl Fn(&mut dyn Net) -> Result<Ended> + Send + Sync + 'static,
) -> (Vec<Result<Ended>>, Tampering) {
    let ends = mesh_with_timeout(4, timeout).into_iter();
    let ends: Vec<_> = ends.map(|net| (if net.me() == CHEATER { at } else { u64::MAX }, net)).collect();
    let ends: Vec<_> = ends.into_iter().map(|(at, net)| Tamper::new(net, at, fault)).collect();
    let tampering = ends[CHEATER.index()].tampering();
    (run_over(ends, party), tampering)
}

/// Every fault on every message of the cheater. Where it is one of set-up, honest parties end right or with an error; where it
/// is ahead of inputs, too, and with the right answer if a message comes at all; and online always with the right answer.
fn sweep(scheme: ShamirActiveScheme, cipher: &'static str) {
    let run = move |until: Until| move |net: &mut dyn Net| session(&scheme, cipher, Party(0), until, net);
    let messages = |until| {
        let (outcomes, tampering) = four(LATE, (u64::MAX, Fault::Drop), run(until));
        outcomes.iter().for_each(|outcome| assert!(outcome.is_ok(), "{outcome:?}"));
        (tampering.messages(), outcomes)
    };
    let (set_up, _) = messages(Until::SetUp);
    let (prepared, _) = messages(Until::Prepared);
    let (all, honest) = messages(Until::Released);
    let right = honest[0].as_ref().expect("asserted").0.clone();
    assert!(prepared > set_up && all > prepared + 40, "{set_up} {prepared} {all}");
    let mut online = 0;
    for at in 0..all {
        for fault in QUICK_FAULTS.into_iter().chain([Fault::Drop]) {
            let (outcomes, tampering) = four(SOON, (at, fault), run(Until::Released));
            if !tampering.fired() {
                continue;
            }
            // A message of another length, as an old one may be, is as good as none.
            let missed = matches!(fault, Fault::Drop | Fault::Truncate | Fault::Replay);
            for outcome in &outcomes[..3] {
                match outcome {
                    Ok((output, _)) => assert_eq!(*output, right, "message {at}, {fault:?}: a wrong output"),
                    Err(e) => assert!(
                        at < set_up || at < prepared && missed,
                        "message {at} of {set_up}, {prepared}, {all}, {fault:?} stopped an honest party: {e}"
                    ),
                }
            }
            online += u64::from(at >= prepared);
        }
    }
    assert!(online > 4 * (all - prepared) - 20, "{online} faults online");
}

#[test]
fn one_cheater_never_makes_an_answer_wrong_nor_stops_it_online_masked_powers() {
    sweep(scheme(4, 1, Inversion::MaskedPowers), "aes-128");
}

#[test]
fn one_cheater_never_makes_an_answer_wrong_nor_stops_it_online_masking() {
    sweep(scheme(4, 1, Inversion::Masking), "aes-128");
}

#[test]
fn one_cheater_never_makes_an_answer_wrong_nor_stops_it_online_masked_tables() {
    sweep(scheme(4, 1, Inversion::Views), "des");
}

/// What a party does with all its messages in gatherings, from the n-th on.
#[derive(Clone, Copy, Debug)]
enum Habit {
    Honest,
    /// Flips a bit of the shares that it tells some.
    Lie(PartySet),
    /// And of what it says that others said.
    LieInAll,
    Silent,
    /// Sends everything late by so much.
    Slow(Duration),
}

/// Lengths of a verdict and of the relayed digests of four and of seven parties. No shares of this circuit are so long.
const OF_AGREEMENT: [usize; 4] = [1, 96, 192, 960];

struct Habitual {
    net: Mesh,
    habit: Habit,
    from: usize,
    gatherings: usize,
}

impl Net for Habitual {
    fn me(&self) -> Party {
        self.net.me()
    }
    fn parties(&self) -> usize {
        self.net.parties()
    }
    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.net.send(to, message)
    }
    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.net.recv(from, into)
    }
    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.net.exchange(out, into)
    }
    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: u32,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        self.gatherings += 1;
        let mut out: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        if self.gatherings > self.from {
            match self.habit {
                Habit::Honest => {}
                Habit::Lie(_) | Habit::LieInAll => {
                    let of = |p: Party, message: &[u8]| match self.habit {
                        Habit::Lie(to) => to.contains(p) && !OF_AGREEMENT.contains(&message.len()),
                        _ => true,
                    };
                    let told = Party::all(out.len()).zip(&mut out).filter(|(p, message)| of(*p, message));
                    told.for_each(|(_, message)| message.iter_mut().take(1).for_each(|byte| *byte ^= 4));
                }
                Habit::Silent => out.iter_mut().for_each(Vec::clear),
                Habit::Slow(time) => std::thread::sleep(time),
            }
        }
        let out: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
        self.net.gather(&out, into, patience, enough)
    }
    fn fork(&mut self) -> Result<Box<dyn Net>> {
        self.net.fork()
    }
}

/// `n` parties of which some have a habit; the outcomes of the others.
fn with_habits(
    scheme: ShamirActiveScheme,
    timeout: Duration,
    from: usize,
    habit: impl Fn(Party) -> Habit,
) -> Vec<Result<Ended>> {
    let ends = mesh_with_timeout(scheme.parties(), timeout).into_iter();
    let ends = ends.map(|net| Habitual { habit: habit(net.me()), net, from, gatherings: 0 });
    run_over(ends.collect(), move |net| session(&scheme, "aes-128", Party(0), Until::Released, net))
}

fn only(party: Party) -> PartySet {
    [party].into_iter().collect()
}

fn right() -> Vec<u8> {
    let outcomes = with_habits(scheme(4, 1, Inversion::MaskedPowers), LATE, 0, |_| Habit::Honest);
    let (output, faults) = outcomes[0].clone().expect("honest parties finish");
    assert_eq!(faults, Faults::default());
    output
}

/// Outvoted online, by each for itself. Ahead, a party that says other things than it computes with gets out of step with itself.
#[test]
fn who_lies_all_the_time_is_outvoted() {
    let right = right();
    for from in [0, 1, 2, 5, 9, 14] {
        let lies = |p| if p == CHEATER { Habit::Lie(PartySet::all(4)) } else { Habit::Honest };
        let outcomes = with_habits(scheme(4, 1, Inversion::MaskedPowers), LATE, from, lies);
        for outcome in &outcomes[..3] {
            match outcome {
                // Whoever had three shares that agree before the fourth came has not looked at it.
                Ok((output, faults)) => {
                    assert_eq!(*output, right, "from gathering {from}");
                    assert!(faults.outvoted.without(only(CHEATER)).is_empty(), "{faults:?}");
                }
                Err(e) => {
                    assert!(from < 6 && matches!(e, Error::Missing { .. }), "from gathering {from}: {e}")
                }
            }
        }
    }
}

/// Parties with other keys than the rest make wrong shares of everything, and stand by them.
fn with_wrong_keys((n, t): (usize, usize), wrong: PartySet) {
    let scheme = scheme(n, t, Inversion::MaskedPowers);
    let right = right();
    let outcomes = run_over(mesh_with_timeout(n, LATE), move |net| {
        let mut session = hello(&scheme.terms(Terms::new(net.parties())), net)?;
        let mut setup = scheme.set_up(net)?;
        if wrong.contains(net.me()) {
            let mut bytes = scheme.save_setup(&setup);
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            setup = scheme.restore_setup(net.me(), &bytes)?;
        }
        let mut protocol = scheme.join(&setup, session.stream(), net.members())?;
        run(&mut protocol, "aes-128", Party(0), Until::Released, net)
    });
    for (p, outcome) in Party::all(n).zip(&outcomes) {
        match outcome {
            Err(e) => assert!(wrong.contains(p) && matches!(e, Error::System(_)), "{p}: {e}"),
            Ok((output, faults)) => {
                assert_eq!((output, faults.outvoted), (&right, wrong), "{p}");
                assert!(!wrong.contains(p), "{p} was not told");
            }
        }
    }
}

#[test]
fn who_makes_wrong_shares_ahead_is_convicted_before_all_and_the_others_go_on() {
    for party in Party::all(4).skip(1) {
        with_wrong_keys((4, 1), only(party));
    }
    with_wrong_keys((7, 2), [Party(2), Party(6)].into_iter().collect());
}

/// Then honest parties supply it with what it claims to lack, and it may as well have fallen silent.
#[test]
fn who_lies_about_what_others_said_gains_nothing() {
    let right = right();
    for from in [0, 1, 2, 5, 9, 14] {
        let lies = |p| if p == CHEATER { Habit::LieInAll } else { Habit::Honest };
        let outcomes = with_habits(scheme(4, 1, Inversion::MaskedPowers), SOON, from, lies);
        for outcome in &outcomes[..3] {
            match outcome {
                Ok((output, _)) => assert_eq!(*output, right, "from gathering {from}"),
                Err(e) => assert!(from < 14, "from gathering {from}: {e}"),
            }
        }
    }
}

#[test]
fn who_lies_to_one_party_only_does_not_divide_the_others() {
    let right = right();
    for victim in Party::all(3) {
        for from in [0, 3, 7] {
            let lies = |p| if p == CHEATER { Habit::Lie(only(victim)) } else { Habit::Honest };
            let outcomes = with_habits(scheme(4, 1, Inversion::MaskedPowers), LATE, from, lies);
            for outcome in &outcomes[..3] {
                assert_eq!(outcome.as_ref().expect("the others go on").0, right, "{victim}, {from}");
            }
        }
    }
}

#[test]
fn two_liars_of_seven_are_outvoted() {
    let right = right();
    let liars: PartySet = [Party(2), Party(6)].into_iter().collect();
    let lies = |p| if liars.contains(p) { Habit::Lie(PartySet::all(7)) } else { Habit::Honest };
    let outcomes = with_habits(scheme(7, 2, Inversion::MaskedPowers), LATE, 14, lies);
    for (p, outcome) in Party::all(7).zip(&outcomes).filter(|(p, _)| !liars.contains(*p)) {
        let (output, faults) = outcome.as_ref().unwrap_or_else(|e| panic!("{p}: {e}"));
        assert_eq!(*output, right, "{p}");
        assert!(faults.outvoted.without(liars).is_empty(), "{p}: {faults:?}");
    }
}

#[test]
fn two_liars_of_four_are_too_many_and_nothing_comes_of_it() {
    let lies = |p: Party| if p.0 >= 2 { Habit::Lie(PartySet::all(4)) } else { Habit::Honest };
    for from in [0, 20] {
        let outcomes = with_habits(scheme(4, 1, Inversion::MaskedPowers), SOON, from, lies);
        for outcome in &outcomes[..2] {
            assert!(outcome.is_err(), "{outcome:?}");
        }
    }
}

/// Security notes, M.
#[test]
fn with_one_silent_the_others_finish_what_was_prepared_and_make_nothing_new() {
    let right = right();
    let silent = |p| if p == CHEATER { Habit::Silent } else { Habit::Honest };
    let began = Instant::now();
    let outcomes = with_habits(scheme(4, 1, Inversion::MaskedPowers), LATE, 16, silent);
    for outcome in &outcomes[..3] {
        assert_eq!(outcome.as_ref().expect("material is there").0, right);
    }
    assert!(began.elapsed() < LATE, "somebody waited for the silent party");
    for outcome in &with_habits(scheme(4, 1, Inversion::MaskedPowers), SOON, 0, silent)[..3] {
        let expected = matches!(outcome, Err(Error::Missing { purpose: "make material", .. }));
        assert!(expected, "{outcome:?}");
    }
}

#[test]
fn a_slow_party_holds_nobody_up_online() {
    let right = right();
    let slow = |p| if p == CHEATER { Habit::Slow(Duration::from_millis(100)) } else { Habit::Honest };
    let scheme = scheme(4, 1, Inversion::MaskedPowers);
    let ends = mesh_with_timeout(4, LATE).into_iter();
    let ends = ends.map(|net| Habitual { habit: slow(net.me()), net, from: 16, gatherings: 0 });
    let times = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = times.clone();
    let outcomes = run_over(ends.collect(), move |net| {
        let outcome = session(&scheme, "aes-128", Party(0), Until::Released, net);
        seen.lock().expect("no panic").push((net.me(), Instant::now()));
        outcome
    });
    outcomes.iter().for_each(|outcome| assert_eq!(outcome.as_ref().expect("all finish").0, right));
    let times = times.lock().expect("no panic");
    let ended = |p: Party| times.iter().find(|(q, _)| *q == p).expect("it ended").1;
    // The slow one takes a tenth of a second for each of twenty rounds; the others need not be through as soon as they could.
    for p in Party::all(3) {
        assert!(ended(CHEATER).duration_since(ended(p)) > Duration::from_secs(1), "{p} waited");
    }
}

/// The owner of an input that cheats gives some input, the same for all, or none.
#[test]
fn a_cheating_owner_of_an_input_does_not_divide_the_others() {
    let scheme = scheme(4, 1, Inversion::MaskedPowers);
    let run = move |until: Until| move |net: &mut dyn Net| session(&scheme, "aes-128", CHEATER, until, net);
    let (_, tampering) = four(LATE, (u64::MAX, Fault::Drop), run(Until::Prepared));
    let prepared = tampering.messages();
    for at in prepared..prepared + 12 {
        for fault in QUICK_FAULTS.into_iter().chain([Fault::Drop]) {
            let (outcomes, _) = four(SOON, (at, fault), run(Until::Released));
            let outputs: Vec<Option<&Vec<u8>>> =
                outcomes[..3].iter().map(|outcome| outcome.as_ref().ok().map(|(output, _)| output)).collect();
            assert!(outputs.iter().all(|output| *output == outputs[0]), "{at} {fault:?}: {outcomes:?}");
        }
    }
}
