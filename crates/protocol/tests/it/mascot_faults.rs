//! MASCOT with a party that cheats once, in any message: an error, or right material; never a hang or a
//! panic, and no honest party accuses another.

use std::time::Duration;

use polyclave_field::{Gf2_40, MacField, Word};
use polyclave_protocol::authenticated::{Authenticated, MacKey, Source};
use polyclave_protocol::mascot::Mascot;
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::testkit::faults::accused;
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper, Tampering};

type F = Gf2_40;
type Element = <F as MacField>::Word;

const CHEATER: Party = Party(1);
const TIMEOUT: Duration = Duration::from_secs(2);

/// Shares of the key, and of a, b, c of triples, bits, bits of each party and its elements.
type Made = (Element, Vec<Authenticated<F>>);

fn party(net: &mut dyn Net) -> Result<Made> {
    let n = net.parties();
    let key = MacKey::<F>::generate(net)?;
    let mut mascot = Mascot::setup(b"faults", &key, 2, net)?;
    let mut made = Vec::new();
    for owner in Party::all(n) {
        let own = (net.me() == owner).then_some(&[7, 8][..]);
        made.push(mascot.authenticate(owner, own, 2, net)?);
    }
    let triples = mascot.triples(8, net)?;
    made.extend([triples.a, triples.b, triples.c]);
    made.push(mascot.bits(9, net)?);
    for owner in Party::all(n) {
        made.push(mascot.bits_of(owner, 5, net)?.0);
    }
    Ok((key.reveal_own_share(), made))
}

fn run(n: usize, at: u64, fault: Fault) -> (Vec<Result<Made>>, Tampering) {
    let mut tampering = Tampering::default();
    let mut threads = Vec::new();
    for net in mesh_with_timeout(n, TIMEOUT) {
        let cheats = net.me() == CHEATER;
        let mut net = Tamper::new(net, if cheats { at } else { u64::MAX }, fault);
        if cheats {
            tampering = net.tampering();
        }
        threads.push(std::thread::spawn(move || party(&mut net)));
    }
    let outcomes: Vec<Result<Made>> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
    for (p, outcome) in Party::all(n).zip(&outcomes).filter(|(p, _)| *p != CHEATER) {
        let accused = outcome.as_ref().err().map(accused).unwrap_or_default();
        let is_just = accused.is_empty() || accused.contains(CHEATER);
        assert!(
            is_just,
            "message {at}, {fault:?}: {p} accuses an honest party: {:?}",
            outcome.as_ref().err()
        );
    }
    (outcomes, tampering)
}

/// Whether everybody finished. Then everything must be right.
fn finished(outcomes: &[Result<Made>], what: &str) -> bool {
    let Ok(made) = outcomes.iter().map(Result::as_ref).collect::<std::result::Result<Vec<_>, _>>() else {
        return false;
    };
    let n = made.len();
    let alpha = made.iter().fold(Element::ZERO, |sum, (share, _)| sum ^ share);
    let mut values = Vec::new();
    for i in 0..made[0].1.len() {
        let mut sum = made[0].1[i].clone();
        made[1..].iter().for_each(|(_, shares)| sum.add(&shares[i]));
        for (value, mac) in sum.values.iter().zip(sum.macs.iter()) {
            assert_eq!(*mac, F::multiply(alpha, *value), "{what}: a MAC");
        }
        values.push(sum.values.to_vec());
    }
    assert!(values[..n].iter().all(|elements| *elements == [7, 8]), "{what}: elements");
    for ((a, b), c) in values[n].iter().zip(&values[n + 1]).zip(&values[n + 2]) {
        assert_eq!(F::multiply(*a, *b), *c, "{what}: a product");
    }
    assert!(values[n + 3..].iter().flatten().all(|bit| *bit <= 1), "{what}: a bit");
    true
}

/// Messages that a party sends in all.
fn messages(n: usize) -> u64 {
    let (outcomes, tampering) = run(n, u64::MAX, Fault::Drop);
    assert!(finished(&outcomes, "no fault"));
    tampering.messages()
}

fn some_fault(at: u64) -> Fault {
    match at % 4 {
        0 => Fault::Replay,
        1 => Fault::Truncate,
        2 => Fault::Garbage { seed: at },
        _ => Fault::Drop,
    }
}

#[test]
fn no_fault_in_any_message_gives_wrong_material_or_hangs() {
    let all = messages(2);
    assert!(all > 60, "only {all} messages");
    let (mut fired, mut found) = (0, 0);
    for at in 0..all {
        let flip = Fault::FlipBit { byte: (at as usize).wrapping_mul(0x9e37_79b9), bit: at as u32 };
        for fault in [flip, some_fault(at)] {
            let (outcomes, tampering) = run(2, at, fault);
            let right = finished(&outcomes, &format!("message {at}, {fault:?}"));
            fired += u64::from(tampering.fired());
            found += u64::from(!right);
            assert!(!right || !matches!(fault, Fault::Truncate), "message {at} was cut, and all finished");
        }
    }
    // A flip at a place that a bit of the key does not look at is without effect.
    assert!(found > fired * 3 / 4, "{found} of {fired} faults were found");
}

#[test]
fn nor_among_three_parties() {
    let all = messages(3);
    let (mut fired, mut found) = (0, 0);
    for at in (0..all).step_by(9) {
        let fault =
            if at % 2 == 0 { Fault::FlipBit { byte: at as usize * 77, bit: 1 } } else { some_fault(at) };
        let (outcomes, tampering) = run(3, at, fault);
        let right = finished(&outcomes, &format!("message {at}, {fault:?}"));
        fired += u64::from(tampering.fired());
        found += u64::from(!right);
    }
    assert!(found > fired * 3 / 4, "{found} of {fired} faults were found");
}
