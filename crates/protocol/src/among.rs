//! A network as some of its parties see it, with numbers of their own: two sets of parties that have members
//! in common meet on one network, and each of the sets runs protocols among itself.

use zeroize::Zeroizing;

use crate::interface::net::{Gathered, Net, Patience};
use crate::{Error, Party, PartySet, Result};

/// Some parties of a network. Party k of theirs is the k-th of a list.
pub struct Among<N> {
    net: N,
    /// By number here, the number in the network, of those that are there.
    parties: Vec<Option<Party>>,
    me: Party,
}

/// What is sent, and where what is received goes.
type Spread<'a> = (Vec<&'a [u8]>, Vec<&'a mut [u8]>);

impl<N: Net> Among<N> {
    /// These parties of a network, this one included, by their numbers there.
    pub fn new(net: N, parties: &[Party]) -> Result<Self> {
        Among::with_absent(net, &parties.iter().copied().map(Some).collect::<Vec<_>>())
    }

    /// The same when some of the parties are not in the network: they are no members.
    pub fn with_absent(net: N, parties: &[Option<Party>]) -> Result<Self> {
        let me = parties.iter().zip(0..).find(|(party, _)| **party == Some(net.me()));
        let (_, number) = me.ok_or_else(|| Error::misuse("this party is none of those that meet"))?;
        if parties.iter().flatten().any(|party| party.index() >= net.parties()) {
            return Err(Error::misuse("the network has no such party"));
        }
        Ok(Among { net, parties: parties.to_vec(), me: Party(number) })
    }

    /// The number in the network.
    fn outer(&self, party: Party) -> Result<Party> {
        let unknown = || Error::Misuse(format!("there is no {party} among {}", self.parties.len()));
        self.parties.get(party.index()).copied().flatten().ok_or_else(unknown)
    }

    fn inner_set(&self, set: PartySet) -> PartySet {
        numbered_here(&self.parties, set)
    }

    /// What is sent and received, by the numbers in the network.
    fn spread<'a>(&self, out: &[&'a [u8]], into: &'a mut [&mut [u8]]) -> Result<Spread<'a>> {
        let n = self.parties.len();
        if out.len() != n || into.len() != n {
            let text = format!("{} and {} messages among {n} parties", out.len(), into.len());
            return Err(Error::Misuse(text));
        }
        let mut outer_out: Vec<&[u8]> = vec![&[]; self.net.parties()];
        let mut outer_into: Vec<&mut [u8]> = (0..self.net.parties()).map(|_| &mut [][..]).collect();
        for ((party, message), buffer) in self.parties.iter().zip(out).zip(into) {
            if let Some(party) = party {
                outer_out[party.index()] = message;
                outer_into[party.index()] = buffer;
            }
        }
        Ok((outer_out, outer_into))
    }

    /// An error of the network, with the numbers that the parties have here.
    fn renumbered(&self, error: Error) -> Error {
        let here = |peer: Party| {
            let found = self.parties.iter().zip(0..).find(|(outer, _)| **outer == Some(peer));
            found.map_or(peer, |(_, number)| Party(number))
        };
        renamed(error, here)
    }
}

/// An error of some parties among themselves, with the numbers that they have in the network.
pub fn in_network(parties: &[Party], error: Error) -> Error {
    in_network_of(&parties.iter().copied().map(Some).collect::<Vec<_>>(), error)
}

/// The same when some of the parties are not in the network.
pub fn in_network_of(parties: &[Option<Party>], error: Error) -> Error {
    let there = |peer: Party| parties.get(peer.index()).copied().flatten().unwrap_or(peer);
    renamed(error, there)
}

/// An error in which parties have other numbers.
fn renamed(error: Error, new: impl Fn(Party) -> Party + Copy) -> Error {
    match error {
        Error::Closed { peer, detail } => Error::Closed { peer: new(peer), detail },
        Error::Timeout { peer, waited } => Error::Timeout { peer: new(peer), waited },
        Error::Peer { peer, detail } => Error::Peer { peer: new(peer), detail },
        Error::OutOfStep { peer, detail } => Error::OutOfStep { peer: new(peer), detail },
        Error::Disagreement { peer, field } => Error::Disagreement { peer: new(peer), field },
        Error::Unanswered { peer, detail } => Error::Unanswered { peer: new(peer), detail },
        Error::Counted(error) => Error::Counted(Box::new(renamed(*error, new))),
        Error::Disputed { dealer, receiver } => {
            Error::Disputed { dealer: new(dealer), receiver: new(receiver) }
        }
        Error::OneOfTwo { first, second, what } => {
            Error::OneOfTwo { first: new(first), second: new(second), what }
        }
        Error::SharesDiffer { first, second, values } => {
            Error::SharesDiffer { first: new(first), second: new(second), values }
        }
        Error::Missing { there, needed, purpose } => {
            Error::Missing { there: there.iter().map(new).collect(), needed, purpose }
        }
        // They name nobody.
        Error::Equivocation { .. }
        | Error::CheckFailed { .. }
        | Error::OutOfMaterial { .. }
        | Error::Misuse(_)
        | Error::System(_) => error,
    }
}

/// Those of a set that have numbers here.
fn numbered_here(parties: &[Option<Party>], set: PartySet) -> PartySet {
    let numbered = parties.iter().zip(0..);
    numbered.filter(|(outer, _)| outer.is_some_and(|p| set.contains(p))).map(|(_, k)| Party(k)).collect()
}

impl<N: Net> Net for Among<N> {
    fn me(&self) -> Party {
        self.me
    }

    fn parties(&self) -> usize {
        self.parties.len()
    }

    fn members(&self) -> PartySet {
        self.inner_set(self.net.members())
    }

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        let to = self.outer(to)?;
        self.net.send(to, message).map_err(|e| self.renumbered(e))
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        let from = self.outer(from)?;
        self.net.recv(from, into).map_err(|e| self.renumbered(e))
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let (out, mut into) = self.spread(out, into)?;
        self.net.exchange(&out, &mut into).map_err(|e| self.renumbered(e))
    }

    /// The closure sees copies of what has come, by the numbers here. Each message is copied once.
    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        let (out, mut outer_into) = self.spread(out, into)?;
        let parties = &self.parties;
        let blank = |outer: &Option<Party>| outer.map_or(0, |p| outer_into[p.index()].len());
        let mut copies: Vec<Zeroizing<Vec<u8>>> =
            parties.iter().map(|outer| Zeroizing::new(vec![0; blank(outer)])).collect();
        let mut copied = PartySet::default();
        let mut is_enough = |arrived: PartySet, came: &[&mut [u8]]| {
            let new = arrived.without(copied);
            for (outer, copy) in parties.iter().zip(&mut copies) {
                if let Some(p) = outer.filter(|p| new.contains(*p)) {
                    copy.copy_from_slice(came[p.index()]);
                }
            }
            copied = arrived;
            let copies: Vec<&mut [u8]> = copies.iter_mut().map(|copy| copy.as_mut_slice()).collect();
            enough(numbered_here(parties, arrived), &copies)
        };
        let gathered = self.net.gather(&out, &mut outer_into, patience, &mut is_enough);
        let Gathered { arrived, lost } = gathered.map_err(|e| self.renumbered(e))?;
        Ok(Gathered { arrived: self.inner_set(arrived), lost: self.inner_set(lost) })
    }

    fn lost(&self) -> PartySet {
        self.inner_set(self.net.lost())
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        let net = self.net.fork()?;
        Ok(Box::new(Among { net, parties: self.parties.clone(), me: self.me }))
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        let members = members.iter().map(|party| self.outer(party)).collect::<Result<PartySet>>()?;
        let net = self.net.fork_among(members, name)?;
        Ok(Box::new(Among { net, parties: self.parties.clone(), me: self.me }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::run_parties;

    #[test]
    fn two_sets_with_a_member_in_common_exchange_among_themselves() {
        let sets = [[Party(3), Party(0), Party(1)], [Party(1), Party(2), Party(4)]];
        let outcomes = run_parties(5, |net| {
            let mut heard = Vec::new();
            let outer = net.me().0;
            for set in sets.iter().filter(|set| set.contains(&Party(outer))) {
                let mut among = Among::new(&mut *net, set)?;
                assert_eq!((among.parties(), among.members()), (3, PartySet::all(3)));
                let mut theirs = [[9]; 3];
                let me = among.me();
                let out: Vec<&[u8]> = Party::all(3)
                    .map(|p| if p == me { &[][..] } else { std::slice::from_ref(&outer) })
                    .collect();
                let mut into: Vec<&mut [u8]> = theirs
                    .iter_mut()
                    .zip(Party::all(3))
                    .map(|(buffer, p)| if p == me { &mut [][..] } else { &mut buffer[..] })
                    .collect();
                among.exchange(&out, &mut into)?;
                heard.extend(theirs.as_flattened().iter().filter(|byte| **byte != 9));
            }
            Ok(heard)
        });
        let heard: Vec<Vec<u8>> = outcomes.into_iter().map(|o| o.expect("all are there")).collect();
        assert_eq!(heard, [vec![3, 1], vec![3, 0, 2, 4], vec![1, 4], vec![0, 1], vec![1, 2]]);
    }

    #[test]
    fn a_party_that_is_absent_is_no_member_and_is_sent_nothing() {
        let set = [Some(Party(1)), None, Some(Party(0))];
        let outcomes = run_parties(2, |net| {
            let mut among = Among::with_absent(&mut *net, &set)?;
            assert_eq!((among.parties(), among.members()), (3, PartySet::from_bits(0b101)));
            assert!(matches!(among.send(Party(1), b"to nobody"), Err(Error::Misuse(_))));
            crate::coins::toss(b"among those that are there", &mut among)
        });
        let coins: Vec<_> = outcomes.into_iter().map(|coin| coin.expect("two are there")).collect();
        assert_eq!(coins[0], coins[1]);
    }

    /// As with the whole network. The late one says nothing; whoever had waited for it would have lost it.
    #[test]
    fn a_gathering_ends_when_enough_have_come() {
        let set = [Party(3), Party(1), Party(2)];
        let late = Party(1);
        let outcomes = run_parties(4, |net| {
            if !set.contains(&net.me()) {
                return Ok(None);
            }
            let mut among = Among::new(&mut *net, &set)?;
            let mut after = among.fork()?;
            let (me, mine) = (among.me(), [among.me().0; 2]);
            if me == late {
                return me.peers(3).try_for_each(|peer| after.recv(peer, &mut [0])).map(|()| None);
            }
            let out: Vec<&[u8]> = Party::all(3).map(|p| if p == me { &[][..] } else { &mine[..] }).collect();
            let mut theirs = [[9; 2]; 3];
            let mut into: Vec<&mut [u8]> = theirs
                .iter_mut()
                .zip(Party::all(3))
                .map(|(buffer, p)| if p == me { &mut [][..] } else { &mut buffer[..] })
                .collect();
            let (due, mut seen) = (Party(2 - me.0), Vec::new());
            let gathered = among.gather(&out, &mut into, Patience::of(1), &mut |arrived, came| {
                seen = came.iter().map(|message| message.to_vec()).collect();
                arrived.contains(due)
            })?;
            after.send(late, &[1])?;
            Ok(Some((due, gathered, seen)))
        });
        let outcomes: Vec<_> = outcomes.into_iter().filter_map(|o| o.expect("nobody is lost")).collect();
        assert_eq!(outcomes.len(), 2);
        for (due, Gathered { arrived, lost }, seen) in outcomes {
            assert_eq!((arrived, lost), ([due].into_iter().collect(), PartySet::default()));
            assert_eq!(seen[due.index()], [due.0; 2]);
        }
    }

    #[test]
    fn errors_name_the_parties_that_they_mean() {
        let places = [Some(Party(3)), None, Some(Party(0))];
        let (dealer, receiver) = (Party(2), Party(0));
        assert_eq!(
            in_network_of(&places, Error::Disputed { dealer, receiver }),
            Error::Disputed { dealer: Party(0), receiver: Party(3) }
        );
        let one_of = |first, second| Error::OneOfTwo { first, second, what: "shares" };
        assert_eq!(in_network_of(&places, one_of(Party(0), Party(2))), one_of(Party(3), Party(0)));
        let missing = |there: &[Party]| {
            let there = there.iter().copied().collect();
            Error::Missing { there, needed: 3, purpose: "make material" }
        };
        assert_eq!(in_network_of(&places, missing(&[Party(0), Party(2)])), missing(&[Party(0), Party(3)]));
    }

    #[test]
    fn who_is_not_among_them_is_told_so() {
        let outcomes = run_parties(2, |net| {
            let me = net.me();
            let others = [Party(1 - me.0)];
            assert!(matches!(Among::new(&mut *net, &others), Err(Error::Misuse(_))));
            assert!(matches!(Among::new(&mut *net, &[me, Party(7)]), Err(Error::Misuse(_))));
            Ok(())
        });
        assert!(outcomes.iter().all(Result::is_ok));
    }
}
