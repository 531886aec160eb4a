//! Lanes wait for each other within a stream only: on streams of their own a slow peer or a retry holds up
//! those it concerns (Damgard and Keller 2010, section 7, run everything as soon as its inputs are there).

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_cipher::{Cells, Compiled, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Inversion, ShamirActiveConfig, ShamirConfig, Structure, Tables};
use polyclave_protocol::{Party, PartySet, Result};

fn passive(inversion: Inversion) -> ShamirConfig {
    let structure = Structure::new(3, 1).expect("it is valid");
    ShamirConfig { structure, inversion, tables: Tables::Masked }
}

/// One part of a batch is done.
struct Done {
    part: usize,
    rounds: u64,
    at: Instant,
}

/// Encrypts with AES-128 in parts of so many lanes, each on a stream of its own over what `wrap` makes of its
/// network; when each part was done at each party.
fn in_parts<S: ProtocolConfig>(
    config: &S,
    parts: &[usize],
    wrap: impl Fn(Party, usize, Box<dyn Net>) -> Box<dyn Net> + Sync,
) -> Vec<Vec<Done>> {
    let outcomes = run_parties(config.parties(), |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(net.parties())), net)?;
        let setup = config.setup(net)?;
        let circuit = catalog::find("aes-128").expect("the catalog has it").encrypt;
        let me = net.me();
        let mut streams = Vec::new();
        for (part, lanes) in parts.iter().enumerate() {
            let protocol = config.join(&setup, session.stream(), net.members())?;
            streams.push((part, *lanes, protocol, wrap(me, part, net.fork()?)));
        }
        let done = Mutex::new(Vec::new());
        let run = |part: usize, lanes: usize, protocol: &mut S::Session, net: &mut dyn Net| -> Result<()> {
            let compiled: Compiled = compile(&circuit, protocol);
            let batch = prepare(protocol, &compiled, lanes, net)?;
            let inputs = [Cells::zero(16, 8, lanes), Cells::zero(176, 8, 1)];
            let inputs = inputs.each_ref().map(Input::Public);
            evaluate(protocol, &compiled, lanes, &inputs, batch, net)?;
            let rounds = protocol.tally().online.rounds;
            done.lock().push(Done { part, rounds, at: Instant::now() });
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = streams
                .iter_mut()
                .map(|(part, lanes, protocol, net)| scope.spawn(|| run(*part, *lanes, protocol, &mut **net)))
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        Ok(done.into_inner())
    });
    outcomes.into_iter().map(|outcome| outcome.expect("honest parties finish")).collect()
}

/// A masked value is zero with probability 1/256, and another mask takes two rounds more.
#[test]
fn a_retry_of_masking_holds_up_no_lane_on_another_stream() {
    let config = passive(Inversion::Masking);
    let plain = |_: Party, _: usize, net| net;
    let together = in_parts(&config, &[24], plain).remove(0).remove(0).rounds;
    let apart = in_parts(&config, &[1; 24], plain).remove(0);
    let rounds: Vec<u64> = apart.iter().map(|done| done.rounds).collect();
    let mean = rounds.iter().sum::<u64>() as f64 / 24.0;
    // A block alone has 0.6 retries in the mean; one of 24 that has none takes 70 rounds but with probability
    // 10^-8. Together a layer of 384 S-boxes retries more often than not.
    assert_eq!(rounds.iter().min(), Some(&70), "{rounds:?}");
    assert!(mean + 4.0 < together as f64, "{mean} rounds apart, {together} together");
    assert!(rounds.iter().any(|rounds| *rounds > 70), "no block retried: {rounds:?}");
}

/// Sends late.
struct Slow(Box<dyn Net>, Duration);

impl Net for Slow {
    polyclave_protocol::forward_net!(self => self.0; me, parties, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        std::thread::sleep(self.1);
        self.0.exchange(out, into)
    }
    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        std::thread::sleep(self.1);
        self.0.gather(out, into, patience, enough)
    }
}

const LATE: Duration = Duration::from_millis(50);

/// In the first stream party 3 sends late.
fn slow_at_times(me: Party, part: usize, net: Box<dyn Net>) -> Box<dyn Net> {
    if (me, part) == (Party(2), 0) { Box::new(Slow(net, LATE)) } else { net }
}

fn done(parts: &[Done], part: usize) -> Instant {
    parts.iter().find(|done| done.part == part).expect("all parts are done").at
}

#[test]
fn lanes_on_other_streams_do_not_wait_for_a_slow_one() {
    for parts in in_parts(&passive(Inversion::CarriedSquares), &[1; 4], slow_at_times) {
        for quick in 1..4 {
            let ahead = done(&parts, 0).duration_since(done(&parts, quick));
            // 30 rounds, all of them late.
            assert!(ahead > 20 * LATE, "a quick stream was {ahead:?} ahead");
        }
    }
}

/// Where one may cheat, nobody is waited for whom the others do not need: not even its own lanes wait for a
/// slow peer online.
#[test]
fn with_one_to_spare_a_slow_party_holds_up_itself_alone() {
    let structure = Structure::new(4, 1).expect("it is valid");
    let config =
        ShamirActiveConfig::new(structure, Inversion::CarriedSquares, Tables::Masked).expect("t < n/3");
    let all = in_parts(&config, &[1; 2], slow_at_times);
    for (p, parts) in Party::all(4).zip(&all).filter(|(p, _)| *p != Party(2)) {
        let behind = done(&all[2], 0).duration_since(done(parts, 0));
        assert!(behind > 20 * LATE, "{p} was only {behind:?} ahead of the slow party");
    }
}
