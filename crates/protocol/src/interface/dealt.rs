//! A mask that a client deals to the nodes itself, so that its input can come with its request: it need not
//! wait for a mask of theirs.
//!
//! It is for sharings by components: a value is the sum of components, and each component is known to some of
//! the parties ([`ServiceConfig::components`](crate::interface::service::ServiceConfig::components)). The
//! client draws a seed for each component, gives each party the seeds of its components, and tells all the
//! same commitments to all seeds. The mask is the sum of what the seeds expand to.
//!
//! * *One value*: each party checks its seeds against the commitments, and the parties compare the
//!   commitments before they use anything (they are part of the request, which the hello compares). So all
//!   that hold a component have the same seed, unless somebody finds a collision of the hash. Everything that
//!   a client can deal is a sharing of some value. It is the client's input, so it may be any.
//! * *Private*: the parties that a protocol tolerates lack the seed of some component. What it expands to is
//!   uniform to them, and the commitment to 32 random bytes says nothing about them (both in the random
//!   oracle model). So x ^ r hides x as under a mask of the nodes.
//! * *Once*: a client draws new seeds for each request. If it did not, the nodes would learn the sum of its
//!   own inputs, and nothing of others.
//! * *Fixed before it matters*: input and mask are fixed by the request. No party can choose its part by what
//!   a session brings.

use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use crate::interface::session::random_bytes;
use crate::{Error, Party, PartySet, Result};

/// Bytes of the seed of a component.
pub const SEED_BYTES: usize = 32;

/// More components than any protocol has.
pub const MAX_COMPONENTS: usize = 16;

/// A commitment to the seed of a component.
pub type SeedCommitment = [u8; 32];

type Seed = Zeroizing<[u8; SEED_BYTES]>;

/// At a client: the seeds of a mask.
pub struct DealtMask {
    /// Of each component: which parties know it, and its seed.
    components: Vec<(PartySet, Seed)>,
}

/// At a node: the seeds of its components, which fit the client's commitments.
pub struct HeldSeeds {
    seeds: Vec<(usize, Seed)>,
}

impl DealtMask {
    /// Draws the seeds of components that these parties know.
    pub fn draw(components: &[PartySet]) -> Result<DealtMask> {
        let draw = |holders: &PartySet| {
            let mut seed = Zeroizing::new([0; SEED_BYTES]);
            random_bytes(&mut *seed)?;
            Ok((*holders, seed))
        };
        Ok(DealtMask { components: components.iter().map(draw).collect::<Result<_>>()? })
    }

    /// What all nodes are told.
    pub fn commitments(&self) -> Vec<SeedCommitment> {
        self.components.iter().enumerate().map(|(at, (_, seed))| commitment(at, seed)).collect()
    }

    /// The seeds that a party gets, one after the other in the order of the components.
    pub fn seeds_of(&self, party: Party) -> Zeroizing<Vec<u8>> {
        let mut seeds = Zeroizing::new(Vec::with_capacity(SEED_BYTES * self.components.len()));
        let held = self.components.iter().filter(|(holders, _)| holders.contains(party));
        held.for_each(|(_, seed)| seeds.extend_from_slice(&seed[..]));
        seeds
    }

    /// The first bytes of the mask.
    pub fn mask(&self, len: usize) -> Zeroizing<Vec<u8>> {
        let mut mask = Zeroizing::new(vec![0; len]);
        for (at, (_, seed)) in self.components.iter().enumerate() {
            mask.iter_mut().zip(expanded(at, seed, len).iter()).for_each(|(sum, byte)| *sum ^= byte);
        }
        mask
    }
}

impl HeldSeeds {
    /// Takes what a client sent to party `me`: seeds that fit its commitments, or an error that says what is
    /// wrong.
    pub fn checked(
        components: &[PartySet],
        me: Party,
        commitments: &[SeedCommitment],
        seeds: &[u8],
    ) -> Result<HeldSeeds> {
        let wrong = |what: &str| Error::Misuse(format!("the client deals a mask in another way: {what}"));
        if components.is_empty() {
            return Err(wrong("under this protocol the nodes draw all masks"));
        }
        if commitments.len() != components.len() {
            return Err(wrong("there is not a commitment for each component"));
        }
        let held = components.iter().enumerate().filter(|(_, holders)| holders.contains(me));
        let held: Vec<usize> = held.map(|(at, _)| at).collect();
        let (chunks, rest) = seeds.as_chunks::<SEED_BYTES>();
        if chunks.len() != held.len() || !rest.is_empty() {
            return Err(wrong("there is not a seed for each component of this node"));
        }
        let seeds: Vec<(usize, Seed)> =
            held.into_iter().zip(chunks.iter().map(|seed| Zeroizing::new(*seed))).collect();
        match seeds.iter().all(|(at, seed)| ct_eq(&commitment(*at, seed), &commitments[*at])) {
            true => Ok(HeldSeeds { seeds }),
            false => Err(wrong("a seed does not fit its commitment")),
        }
    }

    /// The first bytes of a component of the mask.
    pub(crate) fn component(&self, component: usize, len: usize) -> Result<Zeroizing<Vec<u8>>> {
        let held = self.seeds.iter().find(|(at, _)| *at == component);
        let (at, seed) = held.ok_or_else(|| Error::misuse("this node lacks that component of the mask"))?;
        Ok(expanded(*at, seed, len))
    }
}

fn commitment(component: usize, seed: &Seed) -> SeedCommitment {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 commitment to a seed of a client's mask");
    hasher.update(&(component as u64).to_le_bytes()).update(&seed[..]);
    *hasher.finalize().as_bytes()
}

fn expanded(component: usize, seed: &Seed, len: usize) -> Zeroizing<Vec<u8>> {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 component of a client's mask");
    hasher.update(&(component as u64).to_le_bytes()).update(&seed[..]);
    let mut bytes = Zeroizing::new(vec![0; len]);
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Component j is known to parties j and j - 1 of three.
    fn components() -> Vec<PartySet> {
        (0..3).map(|j| [Party(j), Party((j + 2) % 3)].into_iter().collect()).collect()
    }

    fn held(dealt: &DealtMask, party: Party) -> Result<HeldSeeds> {
        HeldSeeds::checked(&components(), party, &dealt.commitments(), &dealt.seeds_of(party))
    }

    #[test]
    fn the_mask_is_the_sum_of_components_of_which_each_party_has_its_own() {
        let dealt = DealtMask::draw(&components()).expect("the system has randomness");
        let holders = [Party(0), Party(1), Party(2)].map(|party| held(&dealt, party).expect("they fit"));
        let mut sum = [0; 40];
        for component in 0..3 {
            let [first, second] = [component, (component + 2) % 3]
                .map(|party| holders[party].component(component, 40).expect("it has that component"));
            assert_eq!(first, second);
            assert!(holders[(component + 1) % 3].component(component, 40).is_err(), "it lacks that one");
            sum.iter_mut().zip(first.iter()).for_each(|(sum, byte)| *sum ^= byte);
        }
        assert_eq!(sum[..], dealt.mask(40)[..]);
        assert_eq!(dealt.mask(16)[..], sum[..16], "a shorter mask is its beginning");
    }

    #[test]
    fn seeds_that_do_not_fit_are_refused() {
        let dealt = DealtMask::draw(&components()).expect("the system has randomness");
        let (commitments, seeds) = (dealt.commitments(), dealt.seeds_of(Party(1)));
        let refused = |commitments: &[SeedCommitment], seeds: &[u8], components: &[PartySet]| {
            HeldSeeds::checked(components, Party(1), commitments, seeds).is_err()
        };
        assert!(!refused(&commitments, &seeds, &components()));
        for at in 0..seeds.len() {
            let mut altered = seeds.to_vec();
            altered[at] ^= 1;
            assert!(refused(&commitments, &altered, &components()), "{at}");
        }
        // Parties 0 and 2 hold component 0.
        for (component, concerns) in [(0, false), (1, true), (2, true)] {
            let mut altered = commitments.clone();
            altered[component][0] ^= 1;
            assert_eq!(refused(&altered, &seeds, &components()), concerns, "{component}");
        }
        assert!(refused(&commitments, &[&seeds[SEED_BYTES..], &seeds[..SEED_BYTES]].concat(), &components()));
        assert!(refused(&commitments, &seeds[..SEED_BYTES], &components()));
        assert!(refused(&commitments, &[&seeds[..], &[0]].concat(), &components()));
        assert!(refused(&commitments[..2], &seeds, &components()));
        assert!(refused(&commitments, &seeds, &[]), "the nodes draw all masks");
    }
}
