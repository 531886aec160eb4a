//! Proactive refresh: a fresh zero sharing m_0 + m_1 + m_2 = 0 is added to everything that the nodes store
//! (Herzberg, Jarecki, Krawczyk and Yung, CRYPTO 1995, for Shamir sharing; cited from memory).
//!
//! All three nodes know the m_j while they refresh: they expand a seed to which each has contributed 32 bytes
//! of its operating system, by commitments that all compare. Nobody stores the seed.
//!
//! **Adversary**: mobile. Between two refreshes it has one node at most; a node that it has during a refresh
//! counts for the time before and after. *If it has a node during the refresh*, it has the same node before
//! and after, P_i. It knows the m_j, and x_i and x_(i+1) of both times, and not x_(i+2). *If it has none*, it
//! knows two shares x_i, x_(i+1) from before, and two shares y_j, y_(j+1) from after, where y = x + m. The
//! seed is gone, and an honest node's part of it was uniform. So m is uniform among all (m_0, m_1, m_2) with
//! sum zero. If j = i, two of the m follow, and the third share stays unknown. If not, one share is in both
//! pairs. Its m follows, and m_a + m_b = that m for the two others, with m_a uniform. The adversary has x_a
//! and y_b, and y_b = x_b + m_b tells nothing of x_b. So every value x is equally likely.
//!
//! **The seed must not follow from keys that are stored.** Were the m_j derived from the common key of the
//! new setup, or from the keys of its pairs, a node that falls after the refresh could compute the share that
//! it had before: with x_0, x_1 of P_0 from before, P_2 would give x_2 = y_2 + m_2, hence x. The old keys
//! must go, too (`node/src/material/refresh.rs`).
//!
//! **A node that cheats** can do nothing to the seed (`commitment.rs`): two honest nodes have the same one,
//! or there is an error. So both add the same m, which sums up to zero, and the value stays. After that each
//! two nodes compare digests of the shares that they have in common, one for each value. So a share that a
//! node has lost or changed on its disk is found here, and not in the next request.
//!
//! Every node tells its digests to both others. So all three learn which values do not fit, and between which
//! two nodes. A digest is keyed with the key of the pair, which the third node does not know, and binds the
//! number of the value: the third node learns nothing of a share, and not even which ones are equal. Two
//! nodes that do not cheat and hold the right shares tell everybody the same digest. So if the digests of two
//! nodes differ, one of these two cheats, or its memory or disk is damaged. Nothing is taken into use then. A
//! cheater can end the refresh in this way; it learns nothing from that.
//!
//! Cost: three rounds, for any stored values.

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::secret::ct_eq;
use zeroize::{Zeroize, Zeroizing};

use super::Pair;
use super::config::{Named, Setup};
use super::ring::{Purpose, Ring, add, common_zero, keys, next, previous, seed};
use super::shared::Shared;
use super::storage::{restore_elements, save_elements};
use crate::commitment::commit_and_open;
use crate::interface::elements::Elements;
use crate::interface::net::Net;
use crate::interface::service::Stored;
use crate::interface::session::{Stream, random_bytes};
use crate::{Error, Result};

const CONTEXT: &[u8] = b"polyclave replicated refresh 1";

const DIGEST_BYTES: usize = 32;

/// What was stored.
enum Part {
    Value(Shared),
    Elements(Elements),
}

/// Fresh shares of what is stored, in the same form. The setup is the one under which they will be.
pub(super) fn refresh<A: Named>(
    setup: &Setup,
    stream: &Stream,
    stored: &[Stored<'_>],
    net: &mut dyn Net,
) -> Result<Vec<Zeroizing<Vec<u8>>>> {
    let me = setup.keys.me();
    let mut parts = Vec::with_capacity(stored.len());
    for stored in stored {
        parts.push(match stored {
            Stored::Value(bytes) => Part::Value(Shared::restore::<A>(bytes, me)?),
            Stored::Elements(bytes) => Part::Elements(restore_elements::<A>(bytes, me)?),
        });
    }
    let mut ring = Ring::new(setup, stream);
    let mut zeros = zeros(stream, net)?;
    let keys = keys(&setup.keys, stream, Purpose::Refresh);
    let mut mine = [Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len())];
    for (number, part) in (0_u64..).zip(&mut parts) {
        let (shares, keep) = match part {
            Part::Value(value) => {
                let keep = 0xff >> (8 - value.bits);
                (value.shares_mut(), keep)
            }
            Part::Elements(elements) => ([&mut elements.shares[..], &mut elements.macs[..]], 0xff),
        };
        let zero = common_zero(&mut zeros, me, shares[0].len());
        for (((share, mut zero), key), digests) in shares.into_iter().zip(zero).zip(&keys).zip(&mut mine) {
            zero.iter_mut().for_each(|byte| *byte &= keep);
            add(share, &zero);
            digests.push(digest(key, number, share));
        }
    }
    compare(&mine, &mut ring, net)?;
    Ok(parts
        .iter()
        .map(|part| match part {
            Part::Value(value) => value.save::<A>(me),
            Part::Elements(elements) => save_elements::<A>(elements, me),
        })
        .collect())
}

type Digest = [u8; DIGEST_BYTES];

/// The digest of a share of the value with this number, under the key of the two parties that have it.
fn digest(key: &[u8; 32], number: u64, share: &[u8]) -> Digest {
    let mut digest = blake3::Hasher::new_keyed(key);
    digest.update(&number.to_le_bytes()).update(&(share.len() as u64).to_le_bytes()).update(share);
    *digest.finalize().as_bytes()
}

/// Compares the digests of all values among all parties. `mine` are those of the shares in common with the
/// party before this one, and of those in common with the next. One round.
fn compare(mine: &Pair<Vec<Digest>>, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
    let me = net.me();
    let message = mine.concat();
    let message = message.as_flattened();
    let [before, behind] = ring.swap_with_both([message, message], net)?;
    let split = |message: &[u8]| {
        let (with_previous, with_next) = message.as_chunks().0.split_at(mine[0].len());
        [with_previous.to_vec(), with_next.to_vec()]
    };
    let (before, behind): (Pair<Vec<Digest>>, Pair<Vec<Digest>>) = (split(&before), split(&behind));
    for (first, second, its, others) in [
        (previous(me), me, &before[1], &mine[0]),
        (me, next(me), &mine[1], &behind[0]),
        (next(me), previous(me), &behind[1], &before[0]),
    ] {
        let differ = |(a, b): (&Digest, &Digest)| !ct_eq(a, b);
        let values: Vec<usize> = its
            .iter()
            .zip(others)
            .enumerate()
            .filter_map(|(value, pair)| differ(pair).then_some(value))
            .collect();
        if !values.is_empty() {
            return Err(Error::SharesDiffer { first, second, values });
        }
    }
    Ok(())
}

/// The generator of zero sharings, from a seed of all parties. Two rounds.
fn zeros(stream: &Stream, net: &mut dyn Net) -> Result<AesPrg> {
    let mut mine = Zeroizing::new([0; 32]);
    random_bytes(&mut *mine)?;
    let context = [CONTEXT, &stream.label()].concat();
    let mut parts = commit_and_open(&context, &*mine, net)?;
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 zeros of a replicated refresh");
    hasher.update(&context);
    for part in &mut parts {
        hasher.update(part);
        part.zeroize();
    }
    let key = Zeroizing::new(*hasher.finalize().as_bytes());
    Ok(AesPrg::new(&seed(&key), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All nodes know what was added, so the third one would learn the sum of two shares.
    #[test]
    fn equal_shares_of_two_values_have_different_digests() {
        let (key, share) = ([7; 32], [1, 2, 3]);
        let numbered = [0, 1, 1 << 8, 1 << 56].map(|number| digest(&key, number, &share));
        for (i, one) in numbered.iter().enumerate() {
            assert!(numbered[..i].iter().all(|other| other != one), "{i}");
        }
        assert_eq!(digest(&key, 0, &share), numbered[0]);
        assert_ne!(digest(&[8; 32], 0, &share), numbered[0]);
        assert_ne!(digest(&key, 0, &share[..2]), numbered[0]);
    }
}
