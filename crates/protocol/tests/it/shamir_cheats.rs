//! One or two parties of several that cheat, fall silent, or are slow, for tests of what the others make of
//! it.

use std::time::Duration;

use polyclave_cipher::{Cells, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{Mesh, mesh_with_timeout};
use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::protocol::{Faults, Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Active, Inversion, Shamir, ShamirActiveConfig, Structure, Tables};
use polyclave_protocol::{Error, Party, PartySet, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, QUICK_FAULTS, SOON, run_over};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper, Tampering};

pub const CHEATER: Party = Party(3);
pub const LANES: usize = 2;

pub fn config(n: usize, t: usize, inversion: Inversion) -> ShamirActiveConfig {
    let structure = Structure::new(n, t).expect("it is valid");
    ShamirActiveConfig::new(structure, inversion, Tables::Masked).expect("fewer than a third")
}

/// How far a session goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Until {
    Setup,
    Prepared,
    Released,
}

/// What a party ends with.
pub type Ended = (Vec<u8>, Faults);

/// Blocks under a key that `owner` gives, from hello to output.
pub fn session(
    config: &ShamirActiveConfig,
    cipher: &str,
    owner: Party,
    until: Until,
    net: &mut dyn Net,
) -> Result<Ended> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(net.parties())), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    run(&mut protocol, cipher, owner, until, net)
}

/// [`session`] from where it was joined.
pub fn run(
    protocol: &mut Shamir<Active>,
    cipher: &str,
    owner: Party,
    until: Until,
    net: &mut dyn Net,
) -> Result<Ended> {
    if until == Until::Setup {
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
pub fn four(
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

/// Every fault on every message of the cheater. Where it is one of setup, honest parties end right or with an
/// error; where it is ahead of inputs, too, and with the right answer if a message comes at all; and online
/// always with the right answer.
pub fn sweep(config: ShamirActiveConfig, cipher: &'static str) {
    let run = move |until: Until| move |net: &mut dyn Net| session(&config, cipher, Party(0), until, net);
    let messages = |until| {
        let (outcomes, tampering) = four(LATE, (u64::MAX, Fault::Drop), run(until));
        outcomes.iter().for_each(|outcome| assert!(outcome.is_ok(), "{outcome:?}"));
        (tampering.messages(), outcomes)
    };
    let (setup, _) = messages(Until::Setup);
    let (prepared, _) = messages(Until::Prepared);
    let (all, honest) = messages(Until::Released);
    let right = honest[0].as_ref().expect("asserted").0.clone();
    assert!(prepared > setup && all > prepared + 40, "{setup} {prepared} {all}");
    let mut online = 0;
    for at in 0..all {
        for fault in QUICK_FAULTS.into_iter().chain([Fault::Drop]) {
            // A message of another length, as an old one may be, is as good as none.
            let missed = matches!(fault, Fault::Drop | Fault::Truncate | Fault::Replay);
            let limit = if missed { SOON } else { LATE };
            let (outcomes, tampering) = four(limit, (at, fault), run(Until::Released));
            if !tampering.fired() {
                continue;
            }
            for outcome in &outcomes[..3] {
                match outcome {
                    Ok((output, _)) => assert_eq!(*output, right, "message {at}, {fault:?}: a wrong output"),
                    Err(e) => assert!(
                        at < setup || at < prepared && missed,
                        "message {at} of {setup}, {prepared}, {all}, {fault:?} stopped an honest party: {e}"
                    ),
                }
            }
            online += u64::from(at >= prepared);
        }
    }
    assert!(online > 4 * (all - prepared) - 20, "{online} faults online");
}

/// What a party does with all its messages in gatherings, from the n-th on.
#[derive(Clone, Copy, Debug)]
pub enum Habit {
    Honest,
    /// Flips a bit of what it tells some, when all that it sends at once is such.
    Lie(PartySet, Which),
    /// And of what it says that others said.
    LieInAll,
    Silent,
    /// Keeps from one party what it sends in one gathering, counted from 1; later, silent to all.
    Withholds(Party, usize),
    /// Sends everything late by so much.
    Slow(Duration),
}

/// Which messages to all parties.
pub type Which = fn(&[Vec<u8>]) -> bool;

/// Shares: no verdict, nor relayed digests of four and of seven parties. No shares of this circuit are so
/// long as those.
pub fn shares(out: &[Vec<u8>]) -> bool {
    !out.iter().any(|message| [1, 4, 7, 96, 192, 960].contains(&message.len()))
}

pub struct Habitual {
    pub net: Mesh,
    pub habit: Habit,
    pub from: usize,
    pub gatherings: usize,
}

impl Net for Habitual {
    polyclave_protocol::forward_net!(self => self.net; me, parties, send, recv, exchange, fork);

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        self.gatherings += 1;
        let mut out: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        if let Habit::Withholds(victim, at) = self.habit
            && self.gatherings == at
        {
            out[victim.index()].clear();
        }
        if self.gatherings > self.from {
            match self.habit {
                Habit::Honest => {}
                Habit::Lie(..) | Habit::LieInAll => {
                    let to = match self.habit {
                        Habit::Lie(to, which) if which(&out) => to,
                        Habit::LieInAll => PartySet::all(out.len()),
                        _ => PartySet::default(),
                    };
                    let text = Party::all(out.len()).zip(&mut out).filter(|(p, _)| to.contains(*p));
                    text.for_each(|(_, message)| message.iter_mut().take(1).for_each(|byte| *byte ^= 4));
                }
                Habit::Silent | Habit::Withholds(..) => out.iter_mut().for_each(Vec::clear),
                Habit::Slow(time) => std::thread::sleep(time),
            }
        }
        let out: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
        self.net.gather(&out, into, patience, enough)
    }
}

/// `n` parties of which some have a habit; the outcomes of the others.
pub fn with_habits(
    config: ShamirActiveConfig,
    timeout: Duration,
    from: usize,
    habit: impl Fn(Party) -> Habit,
) -> Vec<Result<Ended>> {
    let ends = mesh_with_timeout(config.parties(), timeout).into_iter();
    let ends = ends.map(|net| Habitual { habit: habit(net.me()), net, from, gatherings: 0 });
    run_over(ends.collect(), move |net| session(&config, "aes-128", Party(0), Until::Released, net))
}

pub fn only(party: Party) -> PartySet {
    [party].into_iter().collect()
}

pub fn right() -> Vec<u8> {
    let outcomes = with_habits(config(4, 1, Inversion::MaskedPowers), LATE, 0, |_| Habit::Honest);
    let (output, faults) = outcomes[0].clone().expect("honest parties finish");
    assert_eq!(faults, Faults::default());
    output
}

/// Parties with other keys than the rest make wrong shares of everything, and stand by them.
pub fn with_wrong_keys(config: ShamirActiveConfig, wrong: PartySet) {
    let n = config.parties();
    let right = right();
    let outcomes = run_over(mesh_with_timeout(n, LATE), move |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(net.parties())), net)?;
        let mut setup = config.setup(net)?;
        if wrong.contains(net.me()) {
            let mut bytes = config.save_setup(&setup);
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            setup = config.restore_setup(net.me(), &bytes)?;
        }
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
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
