//! What a faulty network or party does to Shamir sharing: errors, never a hang or a panic. (Right answers are not promised: the
//! protocol is passive, and a flipped share goes unnoticed.) And what a party sees: nothing that depends on the key.

use std::time::Duration;

use polyclave_cipher::{Cells, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{Mesh, mesh_with_timeout};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, Scheme};
use polyclave_protocol::session::{Terms, hello};
use polyclave_protocol::shamir::{Inversion, ShamirScheme, Structure};
use polyclave_protocol::testkit::record::{Direction, Record};
use polyclave_protocol::testkit::tamper::{Fault, Tamper};
use polyclave_protocol::{Error, Party, Result};

fn scheme(parties: usize, threshold: usize, inversion: Inversion) -> ShamirScheme {
    ShamirScheme { structure: Structure::new(parties, threshold).expect("it is valid"), inversion }
}

/// Three blocks from hello to output, under a key of equal cells that party 1 gives.
fn session(scheme: &ShamirScheme, cipher: &str, key: u8, net: &mut dyn Net) -> Result<Vec<u8>> {
    let session = hello(&scheme.terms(Terms::new(net.parties())), net)?;
    let mut protocol = scheme.join(&scheme.set_up(net)?, session, 0)?;
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

/// Runs three parties on threads, each over what `wrap` makes of its end of the mesh.
fn three<N: Net>(
    wrap: impl Fn(Mesh) -> N,
    party: impl Fn(&mut dyn Net) -> Result<Vec<u8>> + Sync,
) -> Vec<Result<Vec<u8>>> {
    let ends: Vec<N> = mesh_with_timeout(3, Duration::from_millis(300)).into_iter().map(wrap).collect();
    let party = &party;
    std::thread::scope(|scope| {
        let threads: Vec<_> = ends.into_iter().map(|mut net| scope.spawn(move || party(&mut net))).collect();
        threads.into_iter().map(|t| t.join().expect("no party panics")).collect()
    })
}

#[test]
fn no_fault_in_any_message_causes_a_hang_or_a_panic() {
    let scheme = scheme(3, 1, Inversion::Views);
    let mut runs = 0;
    // Party 1 sends two messages a round, and rounds are: hello, setup, 5 of Demux, input, 16 lookups, output.
    let rounds = 1 + 1 + 5 + 1 + 16 + 1;
    let faults =
        [Fault::FlipBit { byte: 0, bit: 7 }, Fault::Replay, Fault::Truncate, Fault::Garbage { seed: 1 }];
    for at in 0..2 * rounds {
        for fault in faults.into_iter().chain((at % 10 == 3).then_some(Fault::Drop)) {
            let outcomes = three(
                |net| {
                    let cheats = net.me() == Party(0);
                    Tamper::new(net, if cheats { at } else { u64::MAX }, fault)
                },
                |net| session(&scheme, "des", 1, net),
            );
            runs += 1;
            if matches!(fault, Fault::Truncate | Fault::Drop) {
                assert!(outcomes[1..].iter().any(Result::is_err), "message {at}, {fault:?}");
            }
        }
    }
    assert!(runs > 200);
}

#[test]
fn a_silent_party_is_named_within_the_limit() {
    let scheme = scheme(3, 1, Inversion::Views);
    let outcomes = three(
        |net| net,
        |net| {
            if net.me() == Party(2) {
                // Takes part until the lookups, then falls silent for longer than anybody waits.
                let session = hello(&scheme.terms(Terms::new(3)), net)?;
                scheme.join(&scheme.set_up(net)?, session, 0)?;
                std::thread::sleep(Duration::from_secs(2));
                return Ok(Vec::new());
            }
            session(&scheme, "aes-128", 1, net)
        },
    );
    for outcome in &outcomes[..2] {
        assert!(matches!(outcome, Err(Error::Timeout { .. } | Error::Closed { .. })), "{outcome:?}");
    }
    assert!(outcomes.iter().any(|o| matches!(o, Err(Error::Timeout { peer: Party(2), .. }))));
}

#[test]
fn parties_with_other_parameters_do_not_start() {
    let ours = scheme(5, 2, Inversion::Views);
    let others = [
        (scheme(5, 1, Inversion::Views), "threshold"),
        (scheme(5, 2, Inversion::Masking), "inversion"),
        (scheme(4, 1, Inversion::Views), "number of parties"),
    ];
    for (theirs, field) in others {
        let outcomes = three(
            |net| net,
            |net| {
                let scheme = if net.me() == Party(1) { &theirs } else { &ours };
                hello(&scheme.terms(Terms::new(scheme.parties())), net).map(|_| Vec::new())
            },
        );
        assert_eq!(outcomes[0], Err(Error::Disagreement { peer: Party(1), field }));
        assert_eq!(outcomes[1], Err(Error::Disagreement { peer: Party(0), field }));
    }
}

/// A nonce and two digests.
const GREETING_BYTES: usize = 80;

/// Bytes that party 2 receives in several sessions, by value.
fn histogram_of_view(inversion: Inversion, cipher: &str, key: u8) -> ([u32; 256], u32) {
    let scheme = scheme(3, 1, inversion);
    let mut histogram = [0; 256];
    let recorded = std::sync::Mutex::new(Vec::new());
    for _ in 0..8 {
        three(
            |net| {
                let me = net.me();
                let net = Record::new(net);
                if me == Party(1) {
                    recorded.lock().expect("no panic").push(net.transcript());
                }
                net
            },
            |net| session(&scheme, cipher, key, net),
        );
    }
    for transcript in recorded.lock().expect("no panic").iter() {
        let received = transcript.messages().into_iter().filter(|m| m.direction == Direction::Received);
        // Everything but the greeting, which holds digests of the settings.
        let bytes =
            received.filter(|m| m.bytes.len() != GREETING_BYTES).flat_map(|m| m.bytes).collect::<Vec<u8>>();
        bytes.iter().for_each(|b| histogram[usize::from(*b)] += 1);
    }
    (histogram, histogram.iter().sum())
}

/// Chi-squared at 255 degrees of freedom, nine standard deviations above its mean.
const BOUND: f64 = 255.0 + 9.0 * 22.6;

/// Every byte a single party receives is uniform under every key; leaving out a mask exceeds the bound by far. (That the
/// bytes of several parties together say nothing more is tested in `arithmetic`.)
#[test]
fn what_a_party_receives_is_uniform_for_every_key() {
    let ways =
        [Inversion::Views, Inversion::CarriedSquares, Inversion::Shortest, Inversion::MaskedExponentiation];
    for inversion in ways {
        for key in [0, 1] {
            let (histogram, total) = histogram_of_view(inversion, "aes-128", key);
            assert!(total > 5000, "{inversion}: {total} bytes");
            let expected = f64::from(total) / 256.0;
            let chi_squared: f64 =
                histogram.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
            assert!(chi_squared < BOUND, "{inversion}, key {key}: {chi_squared} of {total}");
        }
    }
}

/// Masks of 6-bit cells are uniform over 6 bits only, so bytes are not; but they are the same under any two keys.
#[test]
fn what_a_party_receives_for_narrow_cells_does_not_depend_on_the_key() {
    let (zeros, total) = histogram_of_view(Inversion::Views, "des", 0);
    let (ones, same) = histogram_of_view(Inversion::Views, "des", 1);
    assert_eq!(total, same);
    let term = |(a, b): (&u32, &u32)| match f64::from(a + b) {
        0.0 => 0.0,
        sum => (f64::from(*a) - f64::from(*b)).powi(2) / sum,
    };
    let chi_squared: f64 = zeros.iter().zip(&ones).map(term).sum();
    assert!(chi_squared < BOUND, "{chi_squared} of {total}");
}
