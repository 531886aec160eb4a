//! Checks that the parts of both parties fit together.

use super::*;
use crate::Party;
use crate::dealers::insecure_dealer_bits::{InsecureBitDealer, bit_dealer_key};
use crate::mesh::run_parties;

/// Runs both parties and returns their keys with what they made.
pub(super) fn made<T: Send>(
    kappa: Kappa,
    make: impl Fn(&mut TinyOt, &mut dyn Net) -> Result<T> + Sync,
) -> ([Key; 2], [T; 2]) {
    made_by(kappa, make)
}

/// The same with so many parties.
pub(super) fn made_by<const N: usize, T: Send>(
    kappa: Kappa,
    make: impl Fn(&mut TinyOt, &mut dyn Net) -> Result<T> + Sync,
) -> ([Key; N], [T; N]) {
    made_with(kappa, 4, make)
}

/// The same with these transfers.
pub(super) fn made_with<const N: usize, T: Send>(
    kappa: Kappa,
    means: impl Into<Means> + Copy + Sync,
    make: impl Fn(&mut TinyOt, &mut dyn Net) -> Result<T> + Sync,
) -> ([Key; N], [T; N]) {
    let outcomes = run_parties(N, |net| {
        let key = Key::generate(net)?;
        let mut source = TinyOt::setup(b"tests", &key, kappa, means, net)?;
        Ok((key, make(&mut source, net)?))
    });
    let (mut keys, mut made) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        let (key, of_party) = outcome.expect("honest parties finish");
        keys.push(key);
        made.push(of_party);
    }
    let all = (keys.try_into().ok(), made.try_into().ok());
    (all.0.expect("as many parties"), all.1.expect("as many parties"))
}

/// The bits, whose tags must be right in both directions.
fn opened(keys: &[Key; 2], [first, second]: [&Bits; 2]) -> Vec<u8> {
    for (own, peer, key) in [(first, second, &keys[1]), (second, first, &keys[0])] {
        assert!([own.values.len(), own.tags.len(), own.keys.len()].iter().all(|len| *len == peer.len()));
        for ((bit, tag), beta) in own.values.iter().zip(&own.tags).zip(&peer.keys) {
            assert!(*bit <= 1);
            assert_eq!(*tag, beta ^ (u64::from(*bit) * key.reveal_own_share()));
        }
    }
    first.values.iter().zip(&second.values).map(|(x, y)| x ^ y).collect()
}

fn assert_products(keys: &[Key; 2], [first, second]: &[Triples; 2], count: usize) -> [Vec<u8>; 3] {
    let [x, y, z] = [(&first.x, &second.x), (&first.y, &second.y), (&first.z, &second.z)]
        .map(|(first, second)| opened(keys, [first, second]));
    assert_eq!([x.len(), y.len(), z.len()], [count; 3]);
    assert!(x.iter().zip(&y).zip(&z).all(|((x, y), z)| x & y == *z));
    [x, y, z]
}

/// Six standard deviations.
fn assert_share_of_ones(bits: &[u8], share: f64) {
    let (count, ones) = (bits.len() as f64, bits.iter().filter(|bit| **bit == 1).count() as f64);
    let deviation = (count * share * (1.0 - share)).sqrt();
    assert!((ones - count * share).abs() < 6.0 * deviation, "{ones} ones of {count}");
}

#[test]
fn bits_have_tags_in_both_directions_and_are_balanced() {
    for count in [0, 1, 9, AT_ONCE + 3] {
        let (keys, [first, second]) = made(Kappa::Bits64, |source, net| source.bits(count, net));
        let bits = opened(&keys, [&first, &second]);
        assert_eq!(bits.len(), count);
        if count > 1000 {
            [&bits, &first.values, &second.values].iter().for_each(|bits| assert_share_of_ones(bits, 0.5));
            // The keys are fresh for each bit.
            let mut betas = first.keys.clone();
            betas.sort_unstable();
            betas.dedup();
            assert_eq!(betas.len(), count);
        }
    }
}

#[test]
fn triples_multiply_whatever_is_asked_for() {
    for kappa in [Kappa::Bits40, Kappa::Bits64] {
        for count in [0, 1, 2, 13, 500] {
            let (keys, triples) = made(kappa, |source, net| source.triples(count, net));
            assert_products(&keys, &triples, count);
        }
    }
}

/// More leaky triples than fit a piece; and as many triples as are asked for out of more.
#[test]
fn triples_of_many_pieces_multiply_and_are_balanced() {
    let count = 12_000;
    let (keys, triples) = made(Kappa::Bits40, |source, net| {
        // The last batch is smaller than the memory that it finds.
        let [some, more, rest] = [2_900, count - 3_400, 500].map(|count| source.triples(count, net));
        let (some, more, rest) = (some?, more?, rest?);
        let joined = |of: fn(&Triples) -> &Bits| Bits::join(&[of(&some), of(&more), of(&rest)]);
        Ok(Triples { x: joined(|t| &t.x), y: joined(|t| &t.y), z: joined(|t| &t.z) })
    });
    let [x, y, z] = assert_products(&keys, &triples, count);
    assert_share_of_ones(&x, 0.5);
    assert_share_of_ones(&y, 0.5);
    assert_share_of_ones(&z, 0.25);
    triples.iter().for_each(|own| assert_share_of_ones(&own.z.values, 0.5));
}

#[test]
fn forks_make_independent_material_under_the_same_keys() {
    let (keys, all) = made(Kappa::Bits40, |source, net| {
        let mut forks = [source.fork(b"one"), source.fork(b"another")];
        let mut made = vec![source.bits(200, net)?];
        for fork in &mut forks {
            made.push(fork.bits(200, net)?);
            made.push(fork.triples(100, net)?.z);
        }
        Ok(made)
    });
    let [first, second] = &all;
    let bits: Vec<_> =
        first.iter().zip(second).map(|(first, second)| opened(&keys, [first, second])).collect();
    assert!(bits[0] != bits[1] && bits[1] != bits[3] && bits[2] != bits[4]);
    assert_ne!(first[1].keys, first[3].keys);
}

#[test]
fn the_upper_half_of_delta_is_the_key_and_the_lower_is_fresh() {
    let (keys, deltas) = made(Kappa::Bits40, |source, _| Ok(*source.maker.transfers.delta()));
    for (key, delta) in keys.iter().zip(deltas) {
        assert_eq!((delta >> 64) as u64, key.reveal_own_share());
    }
    let (_, others) = made(Kappa::Bits40, |source, _| Ok(*source.maker.transfers.delta()));
    assert!(deltas.iter().zip(others).all(|(delta, other)| *delta as u64 != other as u64));
}

#[test]
fn bits_turn_into_authenticated_shares() {
    let (keys, [first, second]) = made(Kappa::Bits40, |source, net| source.bits(100, net));
    let bits = opened(&keys, [&first, &second]);
    let alpha = keys[0].reveal_own_share() ^ keys[1].reveal_own_share();
    let mut sum = first.to_spdz(&keys[0]);
    sum.add(&second.to_spdz(&keys[1]));
    assert!(bits.contains(&0) && bits.contains(&1));
    for ((value, mac), bit) in sum.values.iter().zip(sum.macs.iter()).zip(bits) {
        assert_eq!((*value, *mac), (u64::from(bit), u64::from(bit) * alpha));
    }
}

#[test]
fn the_dealer_deals_what_the_protocol_makes() {
    let keys = [0, 1].map(|p| bit_dealer_key(&[9; 32], Party(p)));
    let dealt = run_parties(2, |net| {
        let mut dealer = InsecureBitDealer::new(&[9; 32], b"stream", net.me());
        Ok((dealer.bits(5_001, net)?, dealer.triples(5_001, net)?))
    });
    let [first, second] = [0, 1].map(|p: usize| dealt[p].as_ref().expect("it is local"));
    assert_share_of_ones(&opened(&keys, [&first.0, &second.0]), 0.5);
    let copy = |t: &Triples| Triples { x: t.x.clone(), y: t.y.clone(), z: t.z.clone() };
    let bits = assert_products(&keys, &[copy(&first.1), copy(&second.1)], 5_001);
    [0.5, 0.5, 0.25].iter().zip(&bits).for_each(|(share, bits)| assert_share_of_ones(bits, *share));
}

#[test]
fn settings_that_cannot_be_are_a_misuse() {
    for expansion in [0, 3, 9] {
        let outcomes = run_parties(2, |net| {
            let key = Key::generate(net)?;
            TinyOt::setup(b"tests", &key, Kappa::Bits40, expansion, net).map(drop)
        });
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Misuse(_)))), "{outcomes:?}");
    }
}

/// Asking for them in vain spoils nothing.
#[test]
fn bits_with_tags_triples_and_unit_vectors_of_three_parties_are_a_misuse() {
    let (_, outcomes) = made_by::<3, _>(Kappa::Bits40, |source, net| {
        let refused = [
            source.bits(1, net).map(drop),
            source.triples(1, net).map(drop),
            source.unit_vectors(6, 1, &crate::pool::Pool::default(), net).map(drop),
        ];
        source.inverses(1, net)?;
        Ok(refused)
    });
    for outcome in outcomes.iter().flatten() {
        assert!(matches!(outcome, Err(Error::Misuse(_))), "{outcome:?}");
    }
}

#[test]
fn wide_bits_have_tags_under_all_of_delta() {
    for count in [0, 1, 9, AT_ONCE + 3] {
        let make =
            |source: &mut TinyOt, net: &mut dyn Net| Ok((*source.delta(), source.wide_bits(count, net)?));
        let (keys, made) = made(Kappa::Bits64, make);
        for (own, peer) in [(0, 1), (1, 0)] {
            let ((_, bits), (delta, of_peer)) = (&made[own], &made[peer]);
            assert_eq!((*delta >> 64) as u64, keys[peer].reveal_own_share());
            assert_eq!([bits.values.len(), bits.tags.len(), bits.keys.len()], [count; 3]);
            for ((bit, tag), key) in bits.values.iter().zip(bits.tags.iter()).zip(of_peer.keys.iter()) {
                assert!(*bit <= 1);
                assert_eq!(*tag, key ^ (u128::from(*bit) * delta));
            }
            if count > 1000 {
                assert_share_of_ones(&bits.values, 0.5);
            }
        }
    }
}
