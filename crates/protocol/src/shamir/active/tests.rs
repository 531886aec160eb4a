//! Broadcast among parties that lie, and sharings that parties deal.

use std::time::Duration;

use super::super::setup::{Setup, Structure};
use super::agreement::Broadcast;
use super::code::{Symbol, interpolate};
use super::dealt::{Dealt, Order};
use super::{Active, Arithmetic};
use crate::interface::net::{Gathered, Net, Patience};
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::{Mesh, mesh_with_timeout, run_parties};
use crate::testkit::faults::run_over;
use crate::{Party, PartySet, Result};

#[test]
fn what_an_honest_party_says_is_heard_by_all() {
    for len in [1, 5, 320] {
        let outcomes = run_parties(4, |net| {
            let lens = vec![len; 4];
            let broadcast =
                Broadcast { members: PartySet::all(4), threshold: 1, lens: &lens, behind: Patience::of(0) };
            Ok(broadcast.run(&vec![net.me().0 + 1; len], net)?.messages)
        });
        for outcome in outcomes {
            let expected: Vec<_> = Party::all(4).map(|p| Some(vec![p.0 + 1; len])).collect();
            assert_eq!(outcome, Ok(expected), "{len}");
        }
    }
}

/// Changes, drops or cuts messages as a stream of noise has it.
struct Liar(Mesh, blake3::OutputReader);

impl Net for Liar {
    crate::forward_net!(self => self.0; me, parties, send, recv, exchange, fork);

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        let mut out: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        for message in out.iter_mut().filter(|message| !message.is_empty()) {
            let mut noise = [0; 4];
            self.1.fill(&mut noise);
            match noise[0] % 16 {
                0 => message.clear(),
                1 => _ = message.pop(),
                2..9 => {
                    let at = usize::from(noise[1]) * 32 % message.len();
                    message[at] ^= noise[2];
                }
                _ => {}
            }
        }
        self.0.gather(&out.iter().map(Vec::as_slice).collect::<Vec<_>>(), into, patience, enough)
    }
}

/// Honest parties hear the same of everybody, and what they said of each other.
fn check_liars(n: usize, t: usize, liars: PartySet, seed: u8) {
    let nets = mesh_with_timeout(n, Duration::from_millis(600)).into_iter().map(|net| -> Box<dyn Net> {
        match liars.contains(net.me()) {
            true => {
                let noise = blake3::Hasher::new().update(&[seed, net.me().0]).finalize_xof();
                Box::new(Liar(net, noise))
            }
            false => Box::new(net),
        }
    });
    let outcomes = run_over(nets.collect(), move |net| {
        let lens = vec![40; n];
        let broadcast =
            Broadcast { members: PartySet::all(n), threshold: t, lens: &lens, behind: Patience::of(0) };
        Ok(broadcast.run(&[net.me().0 + 1; 40], net)?.messages)
    });
    let honest: Vec<Party> = Party::all(n).filter(|p| !liars.contains(*p)).collect();
    let first = outcomes[honest[0].index()].as_ref().expect("a broadcast ends");
    for p in &honest {
        let heard = outcomes[p.index()].as_ref().expect("a broadcast ends");
        assert_eq!(heard, first, "{p} of {n} heard other things, seed {seed}");
        for sender in &honest {
            assert_eq!(heard[sender.index()], Some(vec![sender.0 + 1; 40]), "{p} of {sender}, seed {seed}");
        }
    }
}

#[test]
fn liars_below_a_third_do_not_divide_the_others() {
    for seed in 0..8 {
        check_liars(4, 1, PartySet::from_bits(1 << (seed % 4)), seed);
        check_liars(7, 2, PartySet::from_bits(0b101 << (seed % 5)), seed);
    }
}

/// Notes for how long every gathering waits, and for messages of how many bytes.
struct Watch(Mesh, Vec<(Patience, usize)>);

impl Net for Watch {
    crate::forward_net!(self => self.0; me, parties, send, recv, exchange, fork);

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        self.1.push((patience, into.iter().map(|message| message.len()).max().unwrap_or(0)));
        self.0.gather(out, into, patience, enough)
    }
}

/// Else a cheater who keeps one honest party waiting could have the others give that one up, and divide them.
#[test]
fn verdicts_and_openings_wait_for_those_who_had_to_wait_before() {
    for (n, t) in [(4, 1), (7, 2)] {
        let setups = run_parties(n, |net| Setup::agree(Structure::new(n, t)?, net));
        let parties =
            mesh_with_timeout(n, Duration::from_secs(10)).into_iter().zip(setups).map(|(net, setup)| {
                std::thread::spawn(move || {
                    let mut net = Watch(net, Vec::new());
                    let stream = hello(&HandshakeParameters::new(n), &mut net)?.stream();
                    let mut arithmetic = Arithmetic::<Active>::new(&setup?, stream, net.members())?;
                    let dealt =
                        arithmetic.deal(Order { singles: 1, doubles: 1, columns: 1 << 20 }, &mut net)?;
                    arithmetic.open_apart(
                        Symbol::Byte,
                        &dealt.shares(2, 1 << 20, &arithmetic),
                        &mut vec![0; 1 << 20],
                        &mut net,
                    )?;
                    assert!(arithmetic.is_accepted(&mut net)?);
                    arithmetic.open_corrected(
                        Symbol::Byte,
                        &dealt.shares(0, 8, &arithmetic),
                        &mut [0; 8],
                        &mut net,
                    )?;
                    Ok(net.1)
                })
            });
        for party in parties.collect::<Vec<_>>() {
            let waited: Result<Vec<(Patience, usize)>> = party.join().expect("no panic");
            let waited = waited.expect("all are honest");
            let limit = Duration::from_secs(1);
            // From the last round ahead on: of the verdict those in which a cheater is waited for, t of them;
            // its last two rounds wait alike, and the opening not less.
            let from = waited.len() - 1 - (t + 2) - 1;
            for round in from..from + 1 + t {
                let ((before, bytes), (now, _)) = (waited[round], waited[round + 1]);
                assert!(now.to_begin(limit) >= before.to_end(limit, bytes) + limit, "{n}: {waited:?}");
            }
            let enough = waited[from + 1 + t].0.to_begin(limit);
            assert!(
                waited[from + t + 2..].iter().all(|(now, _)| now.to_begin(limit) >= enough),
                "{n}: {waited:?}"
            );
        }
    }
}

/// What every party holds of a run that deals one single and one double sharing a column: row by row.
fn dealt(n: usize, t: usize, count: usize) -> Vec<[Vec<u8>; 3]> {
    let outcomes = run_parties(n, |net| {
        let setup = Setup::agree(Structure::new(n, t)?, net)?;
        let stream = hello(&HandshakeParameters::new(n), net)?.stream();
        let mut arithmetic = Arithmetic::<Active>::new(&setup, stream, net.members())?;
        let columns = count.div_ceil(Dealt::kept(n, t));
        let dealt = arithmetic.deal(Order { singles: 1, doubles: 1, columns }, net)?;
        assert!(arithmetic.is_accepted(net)?);
        Ok([0, 1, 2].map(|row| dealt.shares(row, count, &arithmetic).to_vec()))
    });
    outcomes.into_iter().map(|outcome| outcome.expect("honest parties finish")).collect()
}

#[test]
fn what_is_kept_are_sharings_of_uniform_values() {
    let count = 40_000;
    for (n, t) in [(4, 1), (5, 1), (7, 2)] {
        let shares = dealt(n, t, count);
        let values = [(0, t), (1, t), (2, 2 * t)].map(|(row, degree)| {
            let words: Vec<_> = Party::all(n).zip(&shares).map(|(p, rows)| (p, &rows[row][..])).collect();
            let mut values = vec![0; count];
            assert!(interpolate(Symbol::Byte, degree, &words, &mut values), "{n} {t} {row}");
            values
        });
        assert_ne!(values[0], values[1]);
        assert_eq!(values[1], values[2], "a double sharing is of one value");
        for values in &values[..2] {
            let mut histogram = [0u32; 256];
            values.iter().for_each(|value| histogram[usize::from(*value)] += 1);
            let expected = count as f64 / 256.0;
            let chi_squared: f64 =
                histogram.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
            assert!(chi_squared < 255.0 + 9.0 * 22.6, "{n} {t}: {chi_squared}");
        }
    }
}
