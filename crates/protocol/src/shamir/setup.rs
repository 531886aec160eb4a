//! The setup: the parties, and the keys for pseudorandom secret sharing. A party keeps both between sessions.
//!
//! For every set A of n - t parties one key is known to exactly its members (Cramer, Damgard and Ishai 2005;
//! Damgard and Keller 2010, section 3.3, call these sets minimal qualified, which holds for n = 2t + 1 only).
//! Any t parties miss at least one set, the complement of theirs, so what is derived from all keys is unknown
//! to them.

use polyclave_field::Gf256;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::{Error, Party, PartySet, Result};

pub(super) const KEY_BYTES: usize = 32;

/// The most parties: the number of sets grows with the binomial of n and t.
pub const MAX_PARTIES: usize = 9;

/// Parties and threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Structure {
    pub(super) parties: usize,
    pub(super) threshold: usize,
}

impl Structure {
    /// 3 <= n <= 9 parties. Any t of them together learn nothing, 1 <= t < n/2.
    pub fn new(parties: usize, threshold: usize) -> Result<Structure> {
        if !(3..=MAX_PARTIES).contains(&parties) {
            return Err(Error::Misuse(format!("shamir runs with 3 to {MAX_PARTIES} parties, not {parties}")));
        }
        if threshold == 0 || 2 * threshold >= parties {
            let most = (parties - 1) / 2;
            return Err(Error::Misuse(format!(
                "shamir with {parties} parties needs a threshold from 1 to {most} (below half), not {threshold}"
            )));
        }
        Ok(Structure { parties, threshold })
    }

    /// The largest threshold for a number of parties.
    pub fn with_largest_threshold(parties: usize) -> Result<Structure> {
        Structure::new(parties, parties.saturating_sub(1) / 2)
    }

    /// n.
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// t: any t parties together learn nothing.
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// 2t + 1: the number of parties that must serve, because they recombine polynomials of degree 2t.
    pub fn quorum(&self) -> usize {
        2 * self.threshold + 1
    }

    /// Refuses parties that are too few to serve, or no parties of these.
    pub(super) fn check_serving(&self, serving: PartySet) -> Result<()> {
        if serving.iter().any(|p| p.index() >= self.parties) {
            return Err(Error::misuse(format!("{serving} cannot serve: there are {} parties", self.parties)));
        }
        if serving.len() < self.quorum() {
            return Err(Error::misuse(format!(
                "{serving} are too few: with threshold {} at least {} parties serve",
                self.threshold,
                self.quorum()
            )));
        }
        Ok(())
    }

    /// How many of the sets of n - t parties each party is in.
    pub(super) fn sets_of_a_party(&self) -> usize {
        self.sets().filter(|set| contains(*set, Party(0))).count()
    }

    /// f_A at a party's point, for the polynomial f_A of degree t that is 1 at 0 and 0 at the points of all
    /// parties outside of a set A of n - t.
    pub(crate) fn weight(&self, set: PartySet, party: Party) -> Gf256 {
        weight(*self, set.bits(), party)
    }

    /// The sets of n - t parties, as bit masks, in increasing order.
    pub(super) fn sets(&self) -> impl Iterator<Item = u16> + use<> {
        let members = (self.parties - self.threshold) as u32;
        (0..1u16 << self.parties).filter(move |set| set.count_ones() == members)
    }
}

/// The point at which a party's shares are evaluations.
pub(crate) fn point(party: Party) -> Gf256 {
    Gf256(party.0 + 1)
}

pub(super) fn contains(set: u16, party: Party) -> bool {
    set >> party.0 & 1 == 1
}

/// A set this party belongs to.
#[derive(Clone)]
pub(super) struct HeldKey {
    /// The members, as a bit mask.
    pub(super) set: u16,
    /// Known to the members only.
    pub(super) key: Box<Zeroizing<[u8; KEY_BYTES]>>,
    /// f_A at this party's point, where f_A has degree t, is 1 at 0 and 0 at the points of all parties
    /// outside of A.
    pub(super) weight: Gf256,
}

/// A party's long-lived secrets.
#[derive(Clone)]
pub struct Setup {
    pub(super) structure: Structure,
    pub(super) me: Party,
    pub(super) keys: Vec<HeldKey>,
}

impl Setup {
    /// Agrees on fresh keys: the first member of each set draws its key and sends it to the other members
    /// over their private channels. One round.
    pub fn agree(structure: Structure, net: &mut dyn Net) -> Result<Setup> {
        let (me, n) = (net.me(), net.parties());
        let connected = net.members().len();
        if n != structure.parties || connected != n {
            return Err(Error::misuse(format!(
                "{connected} of {n} parties are connected, all of {} are needed",
                structure.parties
            )));
        }
        let leader = |set: u16| Party(set.trailing_zeros() as u8);
        let shared_with =
            |from: Party, to: Party| move |set: &u16| leader(*set) == from && contains(*set, to);

        let mut keys = Vec::new();
        // Sized at once: growing would leave copies of keys behind.
        let room = KEY_BYTES * structure.sets().count();
        let mut out: Vec<_> = (0..n).map(|_| Zeroizing::new(Vec::with_capacity(room))).collect();
        for set in structure.sets().filter(shared_with(me, me)) {
            let mut key = Box::new(Zeroizing::new([0; KEY_BYTES]));
            random_bytes(&mut **key)?;
            me.peers(n).filter(|p| contains(set, *p)).for_each(|p| out[p.index()].extend_from_slice(&**key));
            keys.push((set, key));
        }
        let due = |p: Party| if p == me { 0 } else { structure.sets().filter(shared_with(p, me)).count() };
        let mut received: Vec<_> =
            Party::all(n).map(|p| Zeroizing::new(vec![0; KEY_BYTES * due(p)])).collect();
        let messages: Vec<&[u8]> = out.iter().map(|m| m.as_slice()).collect();
        net.exchange(&messages, &mut received.iter_mut().map(|m| m.as_mut_slice()).collect::<Vec<_>>())?;
        for p in me.peers(n) {
            for (set, key) in
                structure.sets().filter(shared_with(p, me)).zip(received[p.index()].chunks(KEY_BYTES))
            {
                let mut held = Box::new(Zeroizing::new([0; KEY_BYTES]));
                held.copy_from_slice(key);
                keys.push((set, held));
            }
        }
        keys.sort_by_key(|(set, _)| *set);
        let weigh = |(set, key)| HeldKey { set, key, weight: weight(structure, set, me) };
        Ok(Setup { structure, me, keys: keys.into_iter().map(weigh).collect() })
    }

    /// [`agree`](Setup::agree), and then compares the keys: the members of each set send each other a digest
    /// of the key they hold. If a cheater gave them different keys, values derived from these would not be a
    /// sharing at all. So each party that sees a difference ends with an error. Two rounds.
    pub(crate) fn agree_and_compare(structure: Structure, net: &mut dyn Net) -> Result<Setup> {
        let setup = Setup::agree(structure, net)?;
        let (me, n) = (setup.me, structure.parties);
        let digests_with = |peer: Party| -> Vec<u8> {
            let common = setup.keys.iter().filter(|held| contains(held.set, peer));
            common.flat_map(|held| held.digest()).collect()
        };
        let mine: Vec<Vec<u8>> =
            Party::all(n).map(|p| if p == me { Vec::new() } else { digests_with(p) }).collect();
        let mut theirs: Vec<Vec<u8>> = mine.iter().map(|digests| vec![0; digests.len()]).collect();
        let out: Vec<&[u8]> = mine.iter().map(Vec::as_slice).collect();
        net.exchange(&out, &mut theirs.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
        let mut differ = me.peers(n).filter(|p| !ct_eq(&mine[p.index()], &theirs[p.index()])).peekable();
        if differ.peek().is_none() {
            return Ok(setup);
        }
        // A key that one of the two has drawn is between these two alone; one of a third party may have been
        // told differently.
        let leader = |set: u16| Party(set.trailing_zeros() as u8);
        for peer in differ {
            let common = setup.keys.iter().filter(|held| contains(held.set, peer));
            let digests = mine[peer.index()].chunks(KEY_BYTES).zip(theirs[peer.index()].chunks(KEY_BYTES));
            let wrong = |(held, (mine, theirs)): (&HeldKey, (&[u8], &[u8]))| {
                !ct_eq(mine, theirs) && [me, peer].contains(&leader(held.set))
            };
            if common.zip(digests).any(wrong) {
                let detail = "it has another key than the one that passed between it and this party".into();
                return Err(Error::Peer { peer, detail });
            }
        }
        Err(Error::Equivocation { what: "keys of pseudorandom sharing" })
    }

    /// Parties and threshold.
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// This party.
    pub(crate) fn me(&self) -> Party {
        self.me
    }

    /// The key that exactly these parties have, if this is one of them.
    pub(crate) fn key_of(&self, set: PartySet) -> Option<&[u8; KEY_BYTES]> {
        self.keys.iter().find(|held| held.set == set.bits()).map(|held| &**held.key)
    }

    /// The setup of three parties from keys that they have: one for each pair.
    pub(crate) fn of_pairs(me: Party, key_with: impl Fn(Party) -> Zeroizing<[u8; KEY_BYTES]>) -> Setup {
        let structure = Structure { parties: 3, threshold: 1 };
        let held = |peer: Party| {
            let set = 1 << me.0 | 1 << peer.0;
            HeldKey { set, key: Box::new(key_with(peer)), weight: weight(structure, set, me) }
        };
        let mut keys: Vec<HeldKey> = me.peers(3).map(held).collect();
        keys.sort_by_key(|held| held.set);
        Setup { structure, me, keys }
    }

    /// The key that only this party and one other have.
    ///
    /// # Panics
    /// If the sets are not pairs: they are among three parties with threshold 1.
    pub(crate) fn key_of_pair(&self, peer: Party) -> &[u8; KEY_BYTES] {
        let pair = 1 << self.me.0 | 1 << peer.0;
        &self.keys.iter().find(|held| held.set == pair).expect("the sets are pairs").key
    }
}

impl HeldKey {
    /// Tells members of the set whether they have the same key, and nobody anything about it.
    fn digest(&self) -> [u8; KEY_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"polyclave shamir key comparison 1").update(&self.set.to_le_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// f_A at a party's point.
pub(super) fn weight(structure: Structure, set: u16, party: Party) -> Gf256 {
    let outside = Party::all(structure.parties).filter(|p| !contains(set, *p));
    outside.map(|p| (point(party) - point(p)) * point(p).inverse_or_zero()).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::mesh;

    #[test]
    fn structures_without_an_honest_majority_are_refused() {
        for (n, t) in [(2, 1), (3, 0), (3, 2), (4, 2), (10, 4)] {
            assert!(matches!(Structure::new(n, t), Err(Error::Misuse(_))), "{n} {t}");
        }
        assert!(Structure::new(9, 4).is_ok());
    }

    #[test]
    fn exactly_the_members_of_a_set_hold_its_key() {
        let structure = Structure::new(5, 2).expect("it is valid");
        let parties = mesh(5).into_iter();
        let threads: Vec<_> =
            parties.map(|mut net| std::thread::spawn(move || Setup::agree(structure, &mut net))).collect();
        let setups: Vec<Setup> =
            threads.into_iter().map(|t| t.join().expect("no panic").expect("agreement")).collect();
        for set in structure.sets() {
            let keys: Vec<Option<[u8; KEY_BYTES]>> = setups
                .iter()
                .map(|s| s.keys.iter().find(|held| held.set == set).map(|held| **held.key))
                .collect();
            let member = keys.iter().flatten().next().expect("a set has members");
            for p in Party::all(5) {
                let held = keys[p.index()].as_ref();
                assert_eq!(held, contains(set, p).then_some(member), "set {set:05b}, {p}");
            }
        }
    }

    #[test]
    fn weights_are_a_polynomial_of_degree_t_that_is_one_at_zero() {
        let structure = Structure::new(5, 2).expect("it is valid");
        for set in structure.sets() {
            let members: Vec<Party> = Party::all(5).filter(|p| contains(set, *p)).collect();
            assert_eq!(members.len(), 3);
            let points: Vec<Gf256> = members.iter().map(|p| point(*p)).collect();
            let values = members.iter().map(|p| weight(structure, set, *p));
            let at_zero: Gf256 =
                Gf256::lagrange(&points, Gf256::ZERO).iter().zip(values).map(|(l, v)| *l * v).sum();
            assert_eq!(at_zero, Gf256::ONE);
        }
    }
}
