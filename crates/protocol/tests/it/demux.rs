//! Demux in every packing and width: unit vectors, authenticated, at the cost of Keller et al. 2017, Table 1.

use polyclave_field::{Gf2_40, Gf2_64, Gf2_128, MacField, Word};
use polyclave_protocol::Result;
use polyclave_protocol::authenticated::MacKey;
use polyclave_protocol::authenticated::{Authenticated, UnitVectors};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{ProtocolConfig, Session};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::{LookupMethod, Packing, Spdz};
use polyclave_protocol::spdz::{Preprocessing, SpdzConfig};
use polyclave_protocol::tally::Counts;
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::dealers::insecure_dealer::{InsecureDealer, mac_key};

const SEED: [u8; 32] = [7; 32];

/// One party's shares, and what it counted.
struct Made<F: MacField> {
    key: MacKey<F>,
    vectors: UnitVectors<F>,
    counts: Counts,
}

fn make<F: MacField>(parties: usize, k: usize, in_bits: u8, count: usize) -> Vec<Made<F>> {
    let packing = Packing::of::<F>(k).expect("the field has this packing");
    let party = |net: &mut dyn Net| -> Result<Made<F>> {
        let stream = hello(&HandshakeParameters::new(parties), net)?.stream();
        let key = mac_key(&SEED, net.me(), parties);
        let dealer = InsecureDealer::new(&SEED, &stream.label(), net.me(), parties);
        let mut spdz = Spdz::<F>::with_source(
            LookupMethod::MaskedTables,
            packing,
            key.clone(),
            &stream,
            Box::new(dealer),
        );
        let vectors = spdz.demux(in_bits, count, net)?;
        Ok(Made { key, vectors, counts: spdz.tally().online })
    };
    run_parties(parties, party).into_iter().map(|made| made.expect("honest parties finish")).collect()
}

/// The sum of all parties' shares, of which the MACs must be right.
fn opened<'a, F: MacField>(
    made: &'a [Made<F>],
    of: impl Fn(&'a UnitVectors<F>) -> &'a Authenticated<F>,
) -> Vec<F::Word> {
    let sum = |words: &mut dyn Iterator<Item = F::Word>| words.fold(F::Word::ZERO, |sum, x| sum ^ x);
    let alpha = sum(&mut made.iter().map(|party| party.key.reveal_own_share()));
    let elements = 0..of(&made[0].vectors).len();
    elements
        .map(|i| {
            let value = sum(&mut made.iter().map(|party| of(&party.vectors).values[i]));
            let mac = sum(&mut made.iter().map(|party| of(&party.vectors).macs[i]));
            assert!(mac == F::multiply(alpha, value), "a MAC is alpha times the value");
            value
        })
        .collect()
}

fn check<F: MacField>(parties: usize, k: usize, in_bits: u8, count: usize) {
    let made = make::<F>(parties, k, in_bits, count);
    let mut indices = vec![0; count];
    for bit in 0..usize::from(in_bits) {
        let bits = opened(&made, |vectors| &vectors.index[bit]);
        for (index, value) in indices.iter_mut().zip(bits) {
            assert!(value == F::Word::ZERO || value == F::Word::ONE);
            *index |= usize::from(value == F::Word::ONE) << bit;
        }
    }
    assert_eq!(made[0].vectors.entries.len(), 1 << in_bits);
    for j in 0..1 << in_bits {
        let entries = opened(&made, |vectors| &vectors.entries[j]);
        for (index, entry) in indices.iter().zip(entries) {
            let expected = if *index == j { F::Word::ONE } else { F::Word::ZERO };
            assert!(entry == expected, "k = {k}, {in_bits} bits: entry {j} of the vector at {index}");
        }
    }
    // The sum over j of ceil(2^j / k).
    let triples: usize = (1..in_bits).map(|j| (1usize << j).div_ceil(k)).sum();
    for party in &made {
        assert_eq!(party.counts.triples, (triples * count) as u64, "k = {k}, {in_bits} bits");
    }
}

#[test]
fn vectors_are_one_at_the_opened_index_in_every_packing_and_width() {
    for in_bits in 1..=10 {
        check::<Gf2_64>(2, 1, in_bits, 3);
        check::<Gf2_64>(2, 8, in_bits, 3);
        check::<Gf2_40>(2, 40, in_bits, 5);
        check::<Gf2_64>(3, 64, in_bits, 1);
        check::<Gf2_128>(2, 128, in_bits, 2);
    }
}

#[test]
fn indices_without_bits_and_too_wide_ones_are_misuse() {
    let config = SpdzConfig::<Gf2_64>::new(
        2,
        LookupMethod::MaskedTables,
        Preprocessing::Dealt(&InsecureDealing),
        Packing::of::<Gf2_64>(64).expect("it has it"),
    )
    .expect("it is valid");
    let outcomes = run_parties(2, |net| {
        let stream = hello(&config.handshake(HandshakeParameters::new(2)), net)?.stream();
        let mut spdz = config.join(&config.setup(net)?, stream, net.members())?;
        for (in_bits, count) in [(0, 1), (11, 1), (8, 0)] {
            let outcome = spdz.demux(in_bits, count, net);
            assert!(
                matches!(outcome, Err(polyclave_protocol::Error::Misuse(_))),
                "{count} of {in_bits} bits"
            );
        }
        Ok(())
    });
    outcomes.into_iter().for_each(|outcome| outcome.expect("the session goes on"));
}
