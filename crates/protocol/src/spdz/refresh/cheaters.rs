//! Cheaters that one check alone finds. Nothing that they say fits badly to the rest: only a MAC is wrong.

use super::tests::{CHEATER, DEALER, F, Refreshing, adding};
use super::*;
use crate::EARLIER_CHECK;
use crate::dealers::insecure_dealer_bits::InsecureBitDealer;
use crate::mesh::run_parties;
use crate::tinyot::Source as _;

/// All parties find the wrong MAC, and give both keys up.
fn caught(n: usize, carry: impl Fn(&mut Refreshing, &mut dyn Net) -> Result<()> + Sync) {
    let outcomes = run_parties(n, |net| {
        let mut refreshing = Refreshing::begin(DEALER, net)?;
        let outcome = carry(&mut refreshing, net);
        let Refresh { old, new } = &refreshing.refresh;
        Ok((outcome, [&old.key, &new.key].map(|key| key.refuse_retired().is_err())))
    });
    let failed = Err(Error::CheckFailed { what: "the MACs of opened values" });
    assert!(outcomes.iter().all(|outcome| *outcome == Ok((failed.clone(), [true; 2]))), "{outcomes:?}");
}

/// x + r opens to another value at everybody, which has right MACs under the new key: it would be what is
/// stored from then on, with the cheater's difference, for cells (keys), elements and bits alike.
#[test]
fn a_difference_on_the_value_that_moves_is_caught() {
    for n in [2, 3] {
        caught(n, |refreshing, net| {
            let mut value = refreshing.cells(8, net)?;
            if net.me() == CHEATER {
                value.cells[0] ^= 1;
            }
            refreshing.refresh.refresh_cells(&value, net).map(drop)
        });
        caught(n, |refreshing, net| {
            let mut elements = refreshing.before.triples(2, net)?.a;
            if net.me() == CHEATER {
                elements.values[1] ^= 1 << 20;
            }
            refreshing.refresh.refresh_elements(&elements, net).map(drop)
        });
    }
    caught(2, |refreshing, net| {
        let Refresh { old, new } = &refreshing.refresh;
        let [mut of_old, mut of_new] = [dealer_of_bits(&old.key, net)?, dealer_of_bits(&new.key, net)?];
        let mut bits = of_old.bits(5, net)?;
        if net.me() == CHEATER {
            bits.values[2] ^= 1;
        }
        refreshing.refresh.refresh_bits(&bits, [&mut of_old, &mut of_new], net).map(drop)
    });
}

/// Bits that move, and the bytes of a party's message about them.
const BITS: usize = 30;
const D_OF_BITS: usize = (BITS + 64).div_ceil(8);

/// The refresh itself ends: the next check under the new key would come too late, after the bits are stored.
#[test]
fn bits_move_to_another_key_unless_a_party_tells_another_difference() {
    let move_bits = |changed: usize| {
        run_parties(2, |net| {
            let mut refreshing = Refreshing::begin(DEALER, net)?;
            let Refresh { old, new } = &refreshing.refresh;
            let [mut of_old, mut of_new] = [dealer_of_bits(&old.key, net)?, dealer_of_bits(&new.key, net)?];
            let bits = of_old.bits(BITS, net)?;
            let len = if net.me() == CHEATER { changed } else { usize::MAX };
            let sources: [&mut dyn crate::tinyot::Source; 2] = [&mut of_old, &mut of_new];
            let refreshed = refreshing.refresh.refresh_bits(&bits, sources, &mut adding(net, len, |_| true));
            let refreshed = match refreshed {
                Ok(refreshed) => refreshed,
                Err(error) => return Ok(Err(error)),
            };
            let Refresh { old, new } = &mut refreshing.refresh;
            let (before, _) = old.open(&bits.to_spdz(&old.key), &[], &[], net)?;
            let (after, _) = new.open(&refreshed.to_spdz(&new.key), &[], &[], net)?;
            old.check(net)?;
            new.check(net)?;
            Ok(Ok(before == after))
        })
    };
    assert!(move_bits(usize::MAX).iter().all(|outcome| *outcome == Ok(Ok(true))));
    let lied = move_bits(D_OF_BITS);
    assert!(lied.iter().all(|outcome| matches!(outcome, Ok(Err(Error::CheckFailed { .. })))), "{lied:?}");
}

/// A check of another session, before a value moves or meanwhile, ends that, too. Before, nothing is sent.
#[test]
fn no_value_moves_to_or_from_a_key_that_was_given_up() {
    let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
    let outcomes = run_parties(2, |net| {
        let mut refreshing = Refreshing::begin(DEALER, net)?;
        let value = refreshing.cells(8, net)?;
        if net.me() == CHEATER {
            return Ok(());
        }
        let fail = |key: &MacKey<F>| {
            key.judge(|| Some(Error::CheckFailed { what: "elsewhere" })).expect_err("it fails")
        };
        let meanwhile = refreshing.refresh.guarded(|refresh| {
            fail(&refresh.new.key);
            Ok(())
        });
        assert_eq!(meanwhile, earlier);
        // And not that the peer has gone.
        assert_eq!(refreshing.refresh.refresh_cells(&value, net).map(drop), earlier);
        Ok(())
    });
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

/// Both parties tell their shares of the key: there is nothing to protect.
fn dealer_of_bits(key: &MacKey<F>, net: &mut dyn Net) -> Result<InsecureBitDealer> {
    let shares = broadcast(&key.reveal_own_share().to_le_bytes(), net)?;
    let alphas = [0, 1].map(|p: usize| u64::from_bytes(&shares[p]));
    Ok(InsecureBitDealer::with_keys(&[7; 32], b"bits", net.me(), alphas))
}

/// Random bits under both keys, of which one is another one under the new key.
fn bits_of_which_one_differs(refresh: &mut Refresh<F>, net: &mut dyn Net) -> Result<[Authenticated<F>; 2]> {
    let all = 10 + F::BITS as usize;
    let [old, mut new] = [refresh.old.source.bits(all, net)?, refresh.new.source.bits(all, net)?];
    let (b, _) = refresh.old.open(&old, &[], &[], net)?;
    let (c, _) = refresh.new.open(&new, &[], &[], net)?;
    let mut d: Vec<u64> = b.iter().zip(&c).map(|(b, c)| b ^ c).collect();
    d[PLACE] ^= 1;
    new.add_public(&d, &refresh.new.key);
    Ok([old, new])
}

const PLACE: usize = 3;

/// V = V' holds, because the cheater knows by how much they differ, and tells one of them otherwise. V' is
/// checked at once. V is checked together with x + r, before anything is made of either.
#[test]
fn a_combination_that_hides_that_bits_differ_is_caught_under_its_own_key() {
    for n in [2, 3] {
        for side in [0, 1] {
            caught(n, |refreshing, net| {
                refreshing.refresh.guarded(|refresh| {
                    let mut bits = bits_of_which_one_differs(refresh, net)?;
                    if net.me() == CHEATER {
                        bits[side].values[PLACE] ^= 1;
                    }
                    let compared = refresh.check_equal(&bits, net);
                    assert_eq!(compared.is_ok(), side == 0, "{compared:?}");
                    compared?;
                    refresh.old.check(net)
                })
            });
        }
    }
}
