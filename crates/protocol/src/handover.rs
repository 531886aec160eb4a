//! Hands shared values over from one set of parties to another, which may run another protocol.
//!
//! Both sets are on one network, and may have members in common. Every old party is a *dealer*: it gets a
//! random mask r_i from the old set and another one, m_i, from the new set, and tells everybody delta_i = r_i
//! ^ m_i. It gets them in the way in which clients do ([`ServiceSession::mask_input`]). From a set to which
//! it belongs it takes one that it knows by itself, where the protocol makes such values
//! ([`ServiceSession::mask_of`]). Then
//!
//! ```text
//!   old set:  opens d = s ^ r_1 ^ .. ^ r_k                    (k dealers)
//!   new set:  [s] = d ^ (delta_1 ^ [m_1]) ^ .. ^ (delta_k ^ [m_k])
//! ```
//!
//! so nothing but masks and sums under masks is ever opened. What a protocol shares its values in (its field,
//! its MACs, its images of cells) stays inside its set; what goes from one to the other is bytes in the order
//! in which people write them.
//!
//! **Adversary**: static while values move. It controls parties of either set, as many as the protocol of
//! that set bears, and does what the weaker one of the two protocols bears: under a passive protocol in
//! either set it only looks on. A party in both sets counts for both.
//!
//! *Secrecy.* At least one dealer h is honest: the old set bears fewer corrupt parties than take part, for t
//! < n/2 as for all but one. The old set's protocol hides r_h from the adversary, and the new set's hides
//! m_h: these are the masks of an honest client, or the honest dealer's own. r_h and m_h are uniform and
//! independent, so delta_h tells nothing of r_h. What a cheating dealer's own mask is it chose before it saw
//! anything that depends on r_h. So d is uniform whatever s is. The check below opens sums under masks of its
//! own. What the new set computes is as in any of its sessions.
//!
//! *Correctness* against active adversaries. Three things could go wrong.
//! 1. *A dealer tells another delta_i*, to all parties or to some. After everybody has heard all deltas, all
//!    parties toss chi in GF(2^128), uniform if one of them is honest. The old set opens rho_i = b_i + sum
//!    chi^j r_ij, the new one mu_i = c_i + sum chi^j m_ij, for blinds b_i and c_i that only the dealer knows
//!    and of which it told b_i + c_i before. Everybody checks that rho_i + mu_i is what the deltas say that
//!    it has heard. For a wrong delta_i it is with probability L 2^-128 at most, where L is the number of
//!    elements (Schwartz-Zippel), and the dealer is named. For an honest dealer rho_i is uniform because of
//!    b_i, and mu_i follows from it and from what is public. A mask of which a cheater told the dealer
//!    something wrong fails in the same check, unless the protocol's own check of what clients get has found
//!    it before; no protocol with active security lets it pass.
//! 2. *A set's openings are told wrongly.* Each of them is told by every party of the set to everybody, and
//!    all that was told has to be the same. One of these parties is honest, and what it opened has passed its
//!    protocol's check (of MACs, or of codes).
//! 3. *Parties of the new set are told different things*, which would give them a sharing of nothing, and
//!    under MACs a check that fails depending on the key. But every honest party that goes on has heard
//!    delta_i = r_i ^ m_i by 1, and d as an honest old party opened it by 2. So all have heard the same,
//!    without comparing it once more.
//!
//! Any fault ends the handover, and [`Fault`] says whether the old set's own secrets may have been tested: a
//! failed check in an old session counts as one of those that its MAC key bears (`authenticated/guesses.rs`).
//!
//! **What it takes**: a quorum of the old parties, and all new ones.
//!
//! Cost for k dealers and L bytes: k masks of L bytes in each set, those of its members without a proof, one
//! opening of L bytes in the old one, 2 k openings of an element, and eight exchanges among all.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use polyclave_cipher::{Builder, Cells, Circuit, Compiled, Matrix, compile_with_views};
use polyclave_field::Gf128;
use zeroize::Zeroizing;

use crate::among::{Among, in_network_of};
use crate::coins;
use crate::evaluate::{evaluate, prepare, release};
use crate::interface::any::{AnyMask, AnyServiceConfig, AnyServiceSession, AnyShared};
use crate::interface::masking::powers;
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Owner};
use crate::interface::release::Released;
use crate::interface::service::{ELEMENT_BYTES, Element, Elements, ServiceConfig, ServiceSession};
use crate::{Error, Party, PartySet, Result};

/// The most bytes that are handed over together: what a party allocates for the others' messages follows from
/// it.
pub const MAX_BYTES: usize = 1 << 20;

/// One of the two sets.
#[derive(Clone, Copy)]
pub struct Side<'s> {
    /// What it runs.
    pub config: &'s AnyServiceConfig,
    /// By a party's number in the set, its number on the network, of those that take part.
    pub places: &'s [Option<Party>],
}

impl Side<'_> {
    fn members(&self) -> PartySet {
        let numbered = (0..).map(Party).zip(self.places);
        numbered.filter(|(_, place)| place.is_some()).map(|(number, _)| number).collect()
    }

    fn number_of(&self, place: Party) -> Option<Party> {
        (0..).map(Party).zip(self.places).find(|(_, there)| **there == Some(place)).map(|(number, _)| number)
    }
}

/// A handover of this many bytes from one set to the other.
#[derive(Clone, Copy)]
pub struct Handover<'s> {
    /// The old set.
    pub from: Side<'s>,
    /// The new set.
    pub to: Side<'s>,
    /// How many bytes the blocks of all values have together.
    pub len: usize,
}

/// This party's part in a session of the old set, of the new one, or of both.
pub struct Sessions<'s> {
    /// In the old set.
    pub old: Option<&'s mut AnyServiceSession>,
    /// In the new set.
    pub new: Option<&'s mut AnyServiceSession>,
}

/// A value that moves, at an old party. Its bytes are the blocks of its lanes, one after another.
pub struct Leaving {
    /// This party's part.
    pub value: AnyShared,
    /// How its cells are.
    pub shape: Shape,
}

/// Number of cells, their width in bits, and the number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of cells in a lane.
    pub count: usize,
    /// Width of a cell.
    pub bits: u8,
    /// Number of lanes.
    pub lanes: usize,
}

impl Shape {
    /// How many bytes the blocks of all lanes have.
    pub fn bytes(&self) -> usize {
        self.lanes * Cells::block_bytes(self.count, self.bits)
    }
}

/// What went wrong. Parties have the numbers that they have on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// In a session of the old set, whose secrets stay in use if nothing moves.
    Old(Error),
    /// Anywhere else.
    Elsewhere(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Elsewhere(error)
    }
}

/// Masks in one set, one for each dealer.
#[derive(Default)]
struct Masks {
    masks: Vec<AnyMask>,
    blinds: Vec<Elements>,
    /// This dealer's mask, if nobody has to tell it.
    own: Option<Zeroizing<Vec<u8>>>,
}

/// Masks that all dealers have, and what this one has to tell.
pub struct Drawn {
    old: Masks,
    new: Masks,
    /// What this party tells as a dealer: the differences of its masks, and last that of its blinds. Empty if
    /// it is none.
    pub differences: Vec<u8>,
}

/// What the new set has been given, at one of its parties.
pub struct Arrived {
    masks: Vec<AnyMask>,
    /// For each dealer, what its mask of the new set is to be added to.
    masked: Vec<Vec<u8>>,
}

impl Handover<'_> {
    fn dealers(&self) -> impl Iterator<Item = Party> + '_ {
        self.from.places.iter().flatten().copied()
    }

    /// The dealers get their masks.
    pub fn draw(&self, sessions: &mut Sessions<'_>, net: &mut dyn Net) -> std::result::Result<Drawn, Fault> {
        if self.len == 0 || self.len > MAX_BYTES {
            let len = self.len;
            return Err(Error::Misuse(format!("{len} bytes cannot be handed over at once")).into());
        }
        let (old, of_old) = match sessions.old.as_deref_mut() {
            Some(session) => self.masks(&self.from, session, net).map_err(Fault::Old)?,
            None => Default::default(),
        };
        let (new, of_new) = match sessions.new.as_deref_mut() {
            Some(session) => self.masks(&self.to, session, net)?,
            None => Default::default(),
        };
        let heard = self.exchange(&of_old, &of_new, net)?;
        let mut differences = Vec::new();
        if self.from.number_of(net.me()).is_some() {
            let mine = self.known(&self.from, &old, heard.old)?;
            let theirs = self.known(&self.to, &new, heard.new)?;
            differences.extend(mine.iter().zip(theirs.iter()).map(|(r, m)| r ^ m));
        }
        Ok(Drawn { old, new, differences })
    }

    /// Masks of one set, and the messages about each of them for its dealer.
    fn masks(
        &self,
        side: &Side<'_>,
        session: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<(Masks, Vec<[Vec<u8>; 2]>)> {
        let in_network = |e| in_network_of(side.places, e);
        let mut among = Among::with_absent(net, side.places)?;
        let (mut masks, mut messages) = (Masks::default(), Vec::new());
        for dealer in self.dealers() {
            let own = match side.number_of(dealer) {
                Some(number) => session.mask_of(number, self.len, &mut among).map_err(in_network)?,
                None => None,
            };
            let (mask, of_mask) = match own {
                Some((mask, known)) => {
                    masks.own = masks.own.or(known);
                    (mask, Vec::new())
                }
                None => session.mask_input(self.len, &mut among).map_err(in_network)?,
            };
            let (blind, of_blind) = session.arithmetic().random_for_client(&mut among).map_err(in_network)?;
            masks.masks.push(mask);
            masks.blinds.push(blind);
            messages.push([of_mask, of_blind]);
        }
        Ok((masks, messages))
    }

    /// Each dealer gets the messages about its masks.
    fn exchange(&self, of_old: &[[Vec<u8>; 2]], of_new: &[[Vec<u8>; 2]], net: &mut dyn Net) -> Result<Heard> {
        let me = net.me();
        // What a message of a protocol takes is known to its own set. The others hear it first.
        let lens = |messages: &[[Vec<u8>; 2]], dealer: usize| {
            messages.get(dealer).map_or([0; 2], |both| both.each_ref().map(|message| message.len() as u64))
        };
        let lens =
            (0..self.dealers().count()).flat_map(|dealer| [lens(of_old, dealer), lens(of_new, dealer)]);
        let mine: Vec<u8> = lens.flatten().flat_map(u64::to_le_bytes).collect();
        let parties = net.parties();
        let my_number = self.dealers().position(|dealer| dealer == me);
        let received = tell(&mine, &vec![mine.len(); parties], net)?;
        let most = 4 * (self.len + 64);
        let mut lens = Vec::with_capacity(parties);
        for (place, received) in Party::all(parties).zip(&received) {
            let words: Vec<u64> =
                received.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            if words.iter().any(|len| *len > most as u64) {
                return Err(Error::Peer { peer: place, detail: "longer messages than masks take".into() });
            }
            // What each party has for this dealer; nothing if it is none.
            let mine = my_number.and_then(|number| words.chunks_exact(4).nth(number)).unwrap_or_default();
            lens.push(mine.iter().map(|len| *len as usize).collect::<Vec<usize>>());
        }
        let joined = |dealer: usize| -> Zeroizing<Vec<u8>> {
            let both = of_old.get(dealer).into_iter().chain(of_new.get(dealer));
            Zeroizing::new(both.flatten().flatten().copied().collect())
        };
        let is_dealer = my_number.is_some();
        let outgoing: Vec<(Party, Zeroizing<Vec<u8>>)> =
            self.dealers().enumerate().map(|(dealer, place)| (place, joined(dealer))).collect();
        let own = outgoing.iter().find(|(place, _)| *place == me).map(|(_, message)| message.clone());
        let to = |place: Party| outgoing.iter().find(|(dealer, _)| *dealer == place && place != me);
        let out: Vec<&[u8]> =
            Party::all(parties).map(|place| to(place).map_or(&[][..], |(_, message)| message)).collect();
        let due = |place: Party| match is_dealer && place != me {
            true => lens[place.index()].iter().sum(),
            false => 0,
        };
        let mut into: Vec<Zeroizing<Vec<u8>>> =
            Party::all(parties).map(|place| Zeroizing::new(vec![0; due(place)])).collect();
        net.exchange(&out, &mut into.iter_mut().map(|message| message.as_mut_slice()).collect::<Vec<_>>())?;
        if let Some(own) = own {
            into[me.index()] = own;
        }
        let mut heard = Heard::default();
        for (message, lens) in into.iter().zip(&lens).filter(|_| is_dealer) {
            let mut rest = &message[..];
            let mut parts = lens.iter().map(|len| {
                let (part, behind) = rest.split_at(*len);
                rest = behind;
                Zeroizing::new(part.to_vec())
            });
            heard.old.push([parts.next().unwrap_or_default(), parts.next().unwrap_or_default()]);
            heard.new.push([parts.next().unwrap_or_default(), parts.next().unwrap_or_default()]);
        }
        Ok(heard)
    }

    /// At a dealer: its mask of one set, and behind it its blind, from what every party of the network has
    /// sent it.
    fn known(
        &self,
        side: &Side<'_>,
        masks: &Masks,
        heard: Vec<[Zeroizing<Vec<u8>>; 2]>,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let members = side.members();
        let of_members = |k: usize| -> Vec<&[u8]> {
            let places = side.places.iter().flatten();
            places.map(|place| heard.get(place.index()).map_or(&[][..], |both| &both[k][..])).collect()
        };
        let in_network = |e| in_network_of(side.places, e);
        let mask = match &masks.own {
            Some(mask) => mask.clone(),
            None => side.config.combine(members, &of_members(0)).map_err(in_network)?,
        };
        let blind = side.config.combine_elements(members, &of_members(1)).map_err(in_network)?;
        if mask.len() != self.len || blind.len() != 1 {
            return Err(Error::CheckFailed { what: "a mask of another length than was asked for" });
        }
        let mut known = Zeroizing::new(Vec::with_capacity(self.len + ELEMENT_BYTES));
        known.extend_from_slice(&mask);
        known.extend_from_slice(&blind[0]);
        Ok(known)
    }

    /// Checks the masks, opens the values under them, and gives the new set what it needs. An old party names
    /// its values, one after another, which have as many bytes as are handed over.
    pub fn complete(
        &self,
        drawn: Drawn,
        leaving: &[Leaving],
        sessions: &mut Sessions<'_>,
        net: &mut dyn Net,
    ) -> std::result::Result<Arrived, Fault> {
        let Drawn { mut old, new, differences } = drawn;
        let places: Vec<Party> = self.dealers().collect();
        let mut lens = vec![0; net.parties()];
        places.iter().for_each(|place| lens[place.index()] = self.len + ELEMENT_BYTES);
        let message = tell(&differences, &lens, net)?;
        let of_dealers: Vec<&Vec<u8>> = places.iter().map(|place| &message[place.index()]).collect();

        let mut chi = [0; ELEMENT_BYTES];
        chi.copy_from_slice(&coins::toss(b"check of masks in two sets of parties", net)?[..ELEMENT_BYTES]);
        let rho = match sessions.old.as_deref_mut() {
            Some(session) => opened(&self.from, session, &old, chi, net).map_err(Fault::Old)?,
            None => Vec::new(),
        };
        let mu = match sessions.new.as_deref_mut() {
            Some(session) => opened(&self.to, session, &new, chi, net)?,
            None => Vec::new(),
        };
        let rho = unanimous(&self.from, rho.as_flattened(), ELEMENT_BYTES * places.len(), net)?;
        let mu = unanimous(&self.to, mu.as_flattened(), ELEMENT_BYTES * places.len(), net)?;
        for (number, (place, message)) in places.iter().zip(&of_dealers).enumerate() {
            let at = ELEMENT_BYTES * number..ELEMENT_BYTES * (number + 1);
            let sum: Vec<u8> = rho[at.clone()].iter().zip(&mu[at]).map(|(r, m)| r ^ m).collect();
            if sum != combination(message, self.len, chi) {
                let detail = "other masks to the new nodes than to the old ones".into();
                return Err(Error::Peer { peer: *place, detail }.into());
            }
        }

        let mine = match sessions.old.as_deref_mut() {
            Some(session) => {
                self.open(session, &std::mem::take(&mut old.masks), leaving, net).map_err(Fault::Old)?
            }
            None => Vec::new(),
        };
        let public = unanimous(&self.from, &mine, self.len, net)?;
        let mut masked: Vec<Vec<u8>> =
            of_dealers.iter().map(|message| message[..self.len].to_vec()).collect();
        masked[0].iter_mut().zip(&public).for_each(|(byte, d)| *byte ^= d);
        Ok(Arrived { masks: new.masks, masked })
    }

    /// At an old party: the values under all masks.
    fn open(
        &self,
        session: &mut AnyServiceSession,
        masks: &[AnyMask],
        leaving: &[Leaving],
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        let mut among = Among::with_absent(net, self.from.places)?;
        let mut open = || -> Result<Vec<u8>> {
            let mut public = Vec::with_capacity(self.len);
            for Leaving { value, shape } in leaving {
                let circuit = compile_with_views(&sum(1 + masks.len(), shape), session, |port| {
                    vec![Matrix::identity(port.bits)]
                });
                let zeros = vec![0; shape.bytes()];
                let unmasked = masks.iter().zip(&circuit.inputs()[1..]);
                let unmasked: Vec<AnyShared> = unmasked
                    .map(|(mask, port)| session.unmask(mask, public.len(), &zeros, port))
                    .collect::<Result<_>>()?;
                let inputs: Vec<_> = std::iter::once(value).chain(&unmasked).map(Input::Shared).collect();
                let batch = prepare(session, &circuit, shape.lanes, &mut among)?;
                let sums = evaluate(session, &circuit, shape.lanes, &inputs, batch, &mut among)?;
                let opened = release(session, &sums[0], Owner::All, &mut among)?;
                let opened = opened.ok_or_else(|| Error::misuse("the value was not opened"))?;
                public.extend(opened.accept().to_blocks());
            }
            match public.len() == self.len {
                true => Ok(public),
                false => Err(Error::misuse("the values have another length than is handed over")),
            }
        };
        open().map_err(|e| in_network_of(self.from.places, e))
    }
}

/// What a dealer was sent, by the sender's number on the network: about its mask, and about its blind.
#[derive(Default)]
struct Heard {
    old: Vec<[Zeroizing<Vec<u8>>; 2]>,
    new: Vec<[Zeroizing<Vec<u8>>; 2]>,
}

impl Arrived {
    /// The value whose bytes begin at `at`, with these views, at a party of the new set.
    pub fn value(
        &self,
        (at, shape): (usize, Shape),
        views: &[Matrix],
        sums: &mut Sums,
        session: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<AnyShared> {
        let circuit = sums.compiled(self.masks.len(), shape, views, session);
        let end = at + shape.bytes();
        let masked = self.masks.iter().zip(&self.masked).zip(circuit.inputs());
        let terms: Vec<AnyShared> = masked
            .map(|((mask, masked), port)| {
                let bytes = masked.get(at..end).ok_or_else(|| Error::misuse("no value begins there"))?;
                session.unmask(mask, at, bytes, port)
            })
            .collect::<Result<_>>()?;
        let inputs: Vec<_> = terms.iter().map(Input::Shared).collect();
        let batch = prepare(session, circuit, shape.lanes, net)?;
        Ok(evaluate(session, circuit, shape.lanes, &inputs, batch, net)?.remove(0))
    }
}

/// Circuits of sums, which were compiled for sessions of one kind.
#[derive(Default)]
pub struct Sums(HashMap<(usize, Shape, Vec<Matrix>), Compiled>);

impl Sums {
    fn compiled(
        &mut self,
        terms: usize,
        shape: Shape,
        views: &[Matrix],
        session: &AnyServiceSession,
    ) -> &Compiled {
        // Circuits are the same for all numbers of lanes.
        let shape = Shape { lanes: 1, ..shape };
        self.0
            .entry((terms, shape, views.to_vec()))
            .or_insert_with(|| compile_with_views(&sum(terms, &shape), session, |_| views.to_vec()))
    }
}

/// The sum of some values.
fn sum(terms: usize, shape: &Shape) -> Circuit {
    let mut b = Builder::new("sum under masks");
    let terms: Vec<_> = (0..terms).map(|i| b.input(&format!("term {i}"), shape.count, shape.bits)).collect();
    let cells: Vec<_> = (0..shape.count)
        .map(|cell| b.xor(&terms.iter().map(|term| term[cell]).collect::<Vec<_>>()))
        .collect();
    b.output("sum", &cells);
    b.finish()
}

/// For every dealer the combination of its mask that the coins ask for, under its blind.
fn opened(
    side: &Side<'_>,
    session: &mut AnyServiceSession,
    masks: &Masks,
    chi: Element,
    net: &mut dyn Net,
) -> Result<Vec<Element>> {
    let mut among = Among::with_absent(net, side.places)?;
    let of_dealers = masks.masks.iter().zip(&masks.blinds);
    let opened = of_dealers.map(|(mask, blind)| session.open_mask_check(mask, blind, chi, &mut among));
    opened.collect::<Result<_>>().map_err(|e| in_network_of(side.places, e))
}

/// What a dealer's differences say that the openings have to differ by.
fn combination(message: &[u8], len: usize, chi: Element) -> Vec<u8> {
    let (of_mask, of_blind) = message.split_at(len);
    let element = |bytes: &[u8]| {
        let mut element = [0; ELEMENT_BYTES];
        element[..bytes.len()].copy_from_slice(bytes);
        Gf128::from_bytes(element)
    };
    let elements = of_mask.chunks(ELEMENT_BYTES).map(element);
    // A difference is the same as a sum.
    let powers = powers(chi, len.div_ceil(ELEMENT_BYTES)).into_iter().map(Gf128::from_bytes);
    elements.zip(powers).fold(element(of_blind), |sum, (x, power)| sum + x * power).to_bytes().to_vec()
}

/// What every party of a set tells everybody, which has to be the same.
fn unanimous(side: &Side<'_>, mine: &[u8], len: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
    let mut lens = vec![0; net.parties()];
    side.places.iter().flatten().for_each(|place| lens[place.index()] = len);
    let message = tell(mine, &lens, net)?;
    let mut message = side.places.iter().flatten().map(|place| &message[place.index()]);
    let first = message.next().cloned().unwrap_or_default();
    if message.any(|other| *other != first) {
        return Err(Error::Equivocation { what: "openings of a set of parties" });
    }
    Ok(first)
}

/// Every party tells all others something of the length that is due from it.
fn tell(mine: &[u8], lens: &[usize], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let me = net.me();
    if lens[me.index()] != mine.len() {
        return Err(Error::misuse("another length is due from this party"));
    }
    let out: Vec<&[u8]> = Party::all(lens.len()).map(|p| if p == me { &[][..] } else { mine }).collect();
    let mut into: Vec<Vec<u8>> =
        Party::all(lens.len()).zip(lens).map(|(p, len)| vec![0; if p == me { 0 } else { *len }]).collect();
    net.exchange(&out, &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    into[me.index()] = mine.to_vec();
    Ok(into)
}
