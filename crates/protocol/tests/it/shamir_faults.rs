//! What a faulty network or party does to Shamir sharing: errors, never a hang or a panic. (Right answers are
//! not promised: the protocol is passive, and a flipped share goes unnoticed.) And what a party sees: nothing
//! that depends on the key.

use std::time::Duration;

use polyclave_cipher::{Cells, catalog, compile};
use polyclave_field::Gf256;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{Mesh, mesh_with_timeout};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Inversion, ShamirConfig, Structure, Tables};
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, SOON, Sweep, run_over};
use polyclave_protocol_lab::testkit::record::{Direction, Record};

fn config(parties: usize, threshold: usize, inversion: Inversion) -> ShamirConfig {
    let structure = Structure::new(parties, threshold).expect("it is valid");
    ShamirConfig { structure, inversion, tables: Tables::Masked }
}

fn polynomials() -> ShamirConfig {
    ShamirConfig { tables: Tables::Polynomial, ..config(3, 1, Inversion::Views) }
}

/// Three blocks from hello to output, under a key of equal cells that party 1 gives.
fn session(config: &ShamirConfig, cipher: &str, key: u8, net: &mut dyn Net) -> Result<Vec<u8>> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(net.parties())), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let circuit = catalog::find(cipher).expect("the catalog has it").encrypt;
    let compiled = compile(&circuit, &protocol);
    let batch = prepare(&mut protocol, &compiled, 3, net)?;
    let [block, keys] = [0, 1].map(|i| &circuit.inputs()[i]);
    let block = Cells::zero(block.cells.len(), block.bits, 3);
    let mut round_keys = Cells::zero(keys.cells.len(), keys.bits, 1);
    round_keys.rows_mut().fill(key);
    let own = if net.me() == Party(0) { Input::Mine(&round_keys) } else { Input::From(Party(0)) };
    let output = evaluate(&mut protocol, &compiled, 3, &[Input::Public(&block), own], batch, net)?.remove(0);
    let released = release(&mut protocol, &output, Owner::All, net)?.expect("it is for all");
    Ok(released.trust_all_parties().to_blocks())
}

/// Runs three parties, each over what `wrap` makes of its end of the mesh.
fn three<N: Net + 'static>(
    timeout: Duration,
    wrap: impl Fn(Mesh) -> N,
    party: impl Fn(&mut dyn Net) -> Result<Vec<u8>> + Send + Sync + 'static,
) -> Vec<Result<Vec<u8>>> {
    run_over(mesh_with_timeout(3, timeout).into_iter().map(wrap).collect(), party)
}

/// Every message of party 1 with every fault. Whatever lacks bytes is an error at somebody; nothing hangs or
/// panics.
fn check_faults(config: ShamirConfig, cipher: &'static str) {
    let sweep = Sweep { drop_every: 16, ..Sweep::new(3, Party(0), Promise::of(&config)) };
    let swept = sweep.run(move |net| session(&config, cipher, 1, net));
    assert!(swept.messages >= 50 && swept.faults > 3 * swept.messages, "{cipher}: {swept:?}");
}

#[test]
fn no_fault_in_any_message_hangs_or_panics_masked_tables() {
    check_faults(config(3, 1, Inversion::Views), "des");
}

#[test]
fn no_fault_in_any_message_hangs_or_panics_polynomials() {
    check_faults(polynomials(), "des");
}

#[test]
fn no_fault_in_any_message_hangs_or_panics_views() {
    check_faults(config(3, 1, Inversion::Views), "aes-128");
}

#[test]
fn no_fault_in_any_message_hangs_or_panics_masking() {
    check_faults(config(3, 1, Inversion::Masking), "aes-128");
}

/// A party that makes every masked value zero would have the others draw masks for ever.
#[test]
fn masking_does_not_retry_for_ever() {
    let config = config(3, 1, Inversion::Masking);
    let outcomes = three(SOON, Rushing, move |net| session(&config, "aes-128", 1, net));
    assert!(outcomes[0].is_err() && outcomes[1].is_err(), "{outcomes:?}");
}

/// Party 3 waits for the others' shares and answers with what makes the sum zero, whenever all are sent the
/// same.
struct Rushing<N>(N);

impl<N: Net> Net for Rushing<N> {
    polyclave_protocol::forward_net!(self => self.0; me, parties, members, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let same = out.first() == out.get(1) && !is_of_hello(out[0].len()) && !out[0].is_empty();
        if self.me() != Party(2) || !same {
            return self.0.exchange(out, into);
        }
        self.0.recv(Party(0), into[0])?;
        self.0.recv(Party(1), into[1])?;
        // The recombination of three shares at 0 has coefficients 1 for the points 1, 2 and 3.
        let zero: Vec<u8> = into[0].iter().zip(into[1].iter()).map(|(a, b)| a ^ b).collect();
        self.0.send(Party(0), &zero)?;
        self.0.send(Party(1), &zero)
    }
}

#[test]
fn a_silent_party_is_named_within_the_limit() {
    let config = config(3, 1, Inversion::Views);
    let outcomes = three(
        SOON,
        |net| net,
        move |net| {
            if net.me() == Party(2) {
                // Takes part until the lookups, then falls silent for longer than anybody waits.
                let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
                config.join(&config.setup(net)?, session.stream(), net.members())?;
                std::thread::sleep(Duration::from_secs(2));
                return Ok(Vec::new());
            }
            session(&config, "aes-128", 1, net)
        },
    );
    for outcome in &outcomes[..2] {
        assert!(matches!(outcome, Err(Error::Timeout { .. } | Error::Closed { .. })), "{outcome:?}");
    }
    assert!(outcomes.iter().any(|o| matches!(o, Err(Error::Timeout { peer: Party(2), .. }))));
}

#[test]
fn parties_with_other_parameters_do_not_start() {
    let ours = config(5, 2, Inversion::Views);
    let others = [
        (config(5, 1, Inversion::Views), "threshold"),
        (config(5, 2, Inversion::Masking), "inversion"),
        (config(4, 1, Inversion::Views), "number of parties"),
        (ShamirConfig { tables: Tables::Polynomial, ..ours }, "tables"),
    ];
    for (theirs, field) in others {
        let outcomes = three(
            LATE,
            |net| net,
            move |net| {
                let config = if net.me() == Party(1) { &theirs } else { &ours };
                hello(&config.handshake(HandshakeParameters::new(config.parties())), net).map(|_| Vec::new())
            },
        );
        assert_eq!(outcomes[0], Err(Error::Disagreement { peer: Party(1), field }));
        assert_eq!(outcomes[1], Err(Error::Disagreement { peer: Party(0), field }));
    }
}

/// Messages of a hello to each peer.
const OF_HELLO: usize = 2;

/// A commitment, the serving set and two digests; or one byte and what has room for the digests of all
/// settings. Nothing that is opened here is as long.
fn is_of_hello(len: usize) -> bool {
    len == 98 || len > 64 && len % 32 == 1
}

/// What all parties sent in several sessions under one key, after the hello: by session, party and peer, the
/// messages in order.
fn transcripts(config: &ShamirConfig, cipher: &str, key: u8) -> Vec<Vec<Vec<Vec<Vec<u8>>>>> {
    let n = config.structure.parties();
    let sessions = (0..8).map(|_| {
        let transcripts = parking_lot::Mutex::new(vec![None; n]);
        let ends = mesh_with_timeout(n, LATE).into_iter().map(|net| {
            let (me, net) = (net.me(), Record::new(net));
            transcripts.lock()[me.index()] = Some(net.transcript());
            net
        });
        let ends: Vec<_> = ends.collect();
        std::thread::scope(|scope| {
            ends.into_iter().for_each(|mut net| {
                scope.spawn(move || session(config, cipher, key, &mut net).expect("honest parties finish"));
            });
        });
        let sent_to = |from: usize, to: usize| {
            let messages = transcripts.lock()[from].as_ref().expect("recorded").messages();
            let to_peer =
                messages.into_iter().filter(|m| m.direction == Direction::Sent && m.peer.index() == to);
            to_peer.skip(OF_HELLO).map(|m| m.bytes).collect()
        };
        (0..n).map(|from| (0..n).map(|to| sent_to(from, to)).collect()).collect()
    });
    sessions.collect()
}

/// How often each value was opened: what the parties together learn. An opening is an exchange in which every
/// party sends all others the same. The last one is the output; before the keys nothing is opened.
fn opened_values(config: &ShamirConfig, cipher: &str, key: u8) -> [u32; 256] {
    let n = config.structure.parties();
    let points: Vec<Gf256> = (1..=n as u8).map(Gf256).collect();
    let lagrange = Gf256::lagrange(&points, Gf256::ZERO);
    let mut histogram = [0; 256];
    for session in transcripts(config, cipher, key) {
        // Aligned from the end: what comes first (keys, inputs) differs in number from peer to peer.
        let to_first = |p: usize| &session[p][if p == 0 { 1 } else { 0 }];
        let exchanges = (0..n).map(|p| to_first(p).len()).min().expect("there are parties");
        for back in 2..exchanges {
            let message = |p: usize, to: usize| session[p][to].iter().rev().nth(back - 1);
            let same = |p: usize| {
                let peers = (0..n).filter(|to| *to != p);
                let mut messages = peers.map(|to| message(p, to));
                let first = messages.next().expect("there are peers");
                messages.all(|m| m == first)
            };
            let shares: Vec<_> = (0..n).filter_map(|p| to_first(p).iter().rev().nth(back - 1)).collect();
            let len = shares[0].len();
            if !(0..n).all(same) || shares.iter().any(|s| s.len() != len) {
                continue;
            }
            for i in 0..len {
                let value: Gf256 = lagrange.iter().zip(&shares).map(|(l, share)| *l * Gf256(share[i])).sum();
                histogram[usize::from(value.0)] += 1;
            }
        }
    }
    histogram
}

/// Bytes that party 2 receives, by value.
fn received_bytes(config: &ShamirConfig, cipher: &str, key: u8) -> [u32; 256] {
    let mut histogram = [0; 256];
    for session in transcripts(config, cipher, key) {
        let messages = session.iter().flat_map(|from| &from[1]);
        messages.flatten().for_each(|b| histogram[usize::from(*b)] += 1);
    }
    histogram
}

/// Chi-squared against the same number of each of the first so many values.
fn against_uniform(histogram: &[u32; 256], values: usize) -> f64 {
    let total: u32 = histogram.iter().sum();
    assert!(total > 3000 && histogram[values..].iter().all(|n| *n == 0), "{total} values");
    let expected = f64::from(total) / values as f64;
    histogram[..values].iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum()
}

/// Chi-squared at 255 degrees of freedom, nine standard deviations above its mean.
const BOUND: f64 = 255.0 + 9.0 * 22.6;

/// Every opened value is uniform, though data and key are the same in every session: the masks do their work.
/// (That the other coefficients of an opened polynomial are uniform too is tested in `opening`.)
#[test]
fn every_opened_value_is_uniform() {
    for (structure, inversion) in [
        ((3, 1), Inversion::Views),
        ((3, 1), Inversion::CarriedSquares),
        ((3, 1), Inversion::Shortest),
        ((3, 1), Inversion::MaskedExponentiation),
        ((3, 1), Inversion::Masking),
        ((5, 2), Inversion::Views),
        ((5, 2), Inversion::MaskedExponentiation),
    ] {
        let config = config(structure.0, structure.1, inversion);
        let chi_squared = against_uniform(&opened_values(&config, "aes-128", 1), 256);
        assert!(chi_squared < BOUND, "{structure:?} {inversion}: {chi_squared}");
    }
    // The results of polynomials have bits above those of the table: opened whole, they are masked whole.
    let chi_squared = against_uniform(&opened_values(&polynomials(), "des", 1), 256);
    assert!(chi_squared < BOUND, "polynomials: {chi_squared}");
}

/// The single bytes that one party receives are uniform under every key.
#[test]
fn what_a_party_receives_is_uniform_for_every_key() {
    for inversion in [Inversion::Views, Inversion::CarriedSquares, Inversion::Shortest] {
        for key in [0, 1] {
            let histogram = received_bytes(&config(3, 1, inversion), "aes-128", key);
            let chi_squared = against_uniform(&histogram, 256);
            assert!(chi_squared < BOUND, "{inversion}, key {key}: {chi_squared}");
        }
    }
}

/// Masks of 6-bit cells are uniform over 6 bits only, so bytes are not; but what is opened and what is
/// received are the same under any two keys.
#[test]
fn openings_of_narrow_cells_do_not_depend_on_the_key() {
    let config = config(3, 1, Inversion::Views);
    for look in [opened_values, received_bytes] {
        let [zeros, ones] = [0, 1].map(|key| look(&config, "des", key));
        let term = |(a, b): (&u32, &u32)| match f64::from(a + b) {
            0.0 => 0.0,
            sum => (f64::from(*a) - f64::from(*b)).powi(2) / sum,
        };
        let chi_squared: f64 = zeros.iter().zip(&ones).map(term).sum();
        assert!(chi_squared < BOUND, "{chi_squared}");
    }
}
