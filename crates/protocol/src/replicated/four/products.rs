//! Products, and the joint messages that they take (Dalskov, Escudero and Keller, "Fantastic Four", USENIX
//! Security 2021; the message of each pair of components is our choice among equals).
//!
//! x y is the sum of x_a y_b over all components a and b. For each pair {a, b} let s = x_a y_b + x_b y_a,
//! with x_a y_a added for one pair of each a. The two parties c and d other than P_a and P_b have both
//! components, so both know s. Component b gets r, which comes from K_b. Component a gets s + r, which P_c
//! and P_d know, and P_b has to be told (P_a lacks component a). P_b lacks K_b, so s + r is uniform to it.
//! One of P_c and P_d **tells** it, and the other vouches for it by a tag, in the same round
//! ([`super::transcript`]).
//!
//! The roles of a and b change in the middle of the message, so that all parties send as much: half a product
//! to each other party, 1.5 products in all.

use polyclave_kernels::gf128;
use polyclave_kernels::planes::{Terms, add_products};

use super::super::lookup::{Multiplier, Round};
use super::super::ring::add;
use super::keys::{Components, Keys, held, place};
use super::tag::{TAG_BYTES, Tag};
use super::transcript::{Line, Transcript};
use super::{COMPONENTS, PARTIES};
use crate::interface::elements::{ELEMENT_BYTES, Elements};
use crate::interface::net::{MIN_BYTES_PER_SECOND, Net, Patience};
use crate::interface::tally::{Phase, Tally};
use crate::pool::{Pool, Shares};
use crate::{Party, PartySet, Result};

/// How long a party waits for a joint message, in this round of an evaluation. Each party hears each other in
/// every round. So while one party waits for one that is silent, the others are at most a round ahead, and
/// wait for the first. They have to wait longer than it does. The patience grows up to [`STEPS`] steps and
/// begins again: if a party falls silent just then, two that follow the protocol may lose each other, and the
/// request ends with an error. Its client asks three of the four then.
fn patience(round: u32) -> Patience {
    Patience { limits: 1, bytes: STEP * (u64::from(round) % STEPS) }
}

/// A quarter of a second.
const STEP: u64 = MIN_BYTES_PER_SECOND / 4;
/// More rounds than AES takes.
const STEPS: u64 = 64;

/// How far parties may be behind one another: one that has waited in vain for a joint message, and for a
/// party among three.
pub(super) const BEHIND: Patience = Patience { limits: 3, bytes: STEP * STEPS };

/// Behind each message: the tag of another one, for which the sender vouches, and a set of peers that it has
/// lost.
const TAIL_BYTES: usize = TAG_BYTES + 1;

/// A party's part in joint messages.
pub(super) struct Joint {
    pub(super) keys: Keys,
    pub(super) transcript: Transcript,
    /// Peers that were lost.
    pub(super) lost: PartySet,
    /// Which peers each party has said to have lost, since the last verdict. Nobody waits for these.
    pub(super) heard: [PartySet; PARTIES],
    pub(super) phase: Phase,
    pub(super) tally: Tally,
}

/// A pair of components in the order in which their terms are summed, and which terms these are: the pairs
/// (0, 1), (1, 2), (2, 3) and (3, 0) have the square of the first one, too, and {0, 2} and {1, 3} have none.
fn ordered(low: Party, high: Party) -> ([Party; 2], Terms) {
    match high.0 - low.0 {
        1 => ([low, high], Terms::Contributed),
        2 => ([low, high], Terms::Mixed),
        _ => ([high, low], Terms::Contributed),
    }
}

impl Joint {
    /// Turns what the parties know of products into components of them. `cross` gives the sum of the terms of
    /// a pair of components, which this party has, both by their places.
    fn share_products(
        &mut self,
        len: usize,
        mut cross: impl FnMut(Terms, [usize; 2], &mut [u8]),
        net: &mut dyn Net,
    ) -> Result<Components<Shares>> {
        let mut out: [Shares; PARTIES] = Default::default();
        let mut components: Components<Shares> = std::array::from_fn(|_| self.keys.zeros(len));
        self.transcript.begin_round();
        if !self.transcript.has_stopped() {
            self.contribute(len, &mut cross, &mut components, &mut out);
        }
        let heard = self.exchange(len, out, net)?;
        self.take_told(len, &heard, &mut components);
        self.transcript.next_round();
        Ok(components)
    }

    /// What this party computes of a round: components, and messages to those that lack them.
    fn contribute(
        &mut self,
        len: usize,
        cross: &mut impl FnMut(Terms, [usize; 2], &mut [u8]),
        components: &mut Components<Shares>,
        out: &mut [Shares; PARTIES],
    ) {
        let me = self.keys.me;
        // By the place of the component that is not in the pair: masks, to which the terms are added.
        let mut pairs: Components<Shares> = std::array::from_fn(|_| self.keys.pool.take(len));
        for line in Line::all().filter(|line| line.told != me) {
            let told = place(me, line.told).expect("another party's component is held");
            if line.kept == me {
                self.keys.fill_product_mask(told, &mut components[told][line.part(len)]);
            } else {
                let (pair, part) = line.message_at(me, len);
                self.keys.fill_product_mask(told, &mut pairs[pair][part]);
            }
        }
        for line in Line::all().filter(|line| ![line.told, line.kept].contains(&me)) {
            let (pair, part) = line.message_at(me, len);
            let told = place(me, line.told).expect("another party's component is held");
            add(&mut components[told][part.clone()], &pairs[pair][part]);
        }
        let held = held(me);
        for (left_out, sum) in pairs.iter_mut().enumerate() {
            let mut pair = held.into_iter().filter(|component| *component != held[left_out]);
            let [low, high] = std::array::from_fn(|_| pair.next().expect("two of three are left"));
            let (pair, terms) = ordered(low, high);
            cross(terms, pair.map(|component| place(me, component).expect("it is held")), sum);
        }
        let mut tags: [Tag; PARTIES] = Default::default();
        let vouched = |line: &Line| line.told != me && line.kept != me;
        for (number, line) in Line::all().enumerate().filter(|(_, line)| vouched(line)) {
            let (pair, part) = line.message_at(me, len);
            let message = &pairs[pair][part.clone()];
            let kept = place(me, line.kept).expect("another party's component is held");
            add(&mut components[kept][part], message);
            if line.teller == me {
                let mut told = self.keys.pool.take(message.len() + TAIL_BYTES);
                told[..message.len()].copy_from_slice(message);
                out[line.told.index()] = told;
            } else {
                tags[line.told.index()] = self.transcript.vouch(number, message);
            }
        }
        for (message, tag) in out.iter_mut().zip(tags).filter(|(message, _)| !message.is_empty()) {
            let at = message.len() - TAIL_BYTES;
            message[at..at + TAG_BYTES].copy_from_slice(&tag);
        }
        self.transcript.keep(pairs);
    }

    /// Adds what this party was told to its components. If anything does not fit, or did not come, it stops.
    fn take_told(&mut self, len: usize, heard: &[Option<Shares>], components: &mut Components<Shares>) {
        let me = self.keys.me;
        for (said, message) in self.heard.iter_mut().zip(heard) {
            let flags = message.as_ref().and_then(|message| message.last()).copied().unwrap_or_default();
            *said = said.and(PartySet::from_bits(flags.into()));
        }
        for (number, line) in Line::all().enumerate().filter(|(_, line)| line.told == me) {
            let part = line.part(len);
            let message = heard[line.teller.index()].as_ref().and_then(|message| message.get(..part.len()));
            let vouched = heard[line.second.index()].as_ref().and_then(|message| {
                let (_, tail) = message.split_at_checked(message.len().checked_sub(TAIL_BYTES)?)?;
                tail.first_chunk()
            });
            let (Some(message), Some(vouched)) = (message, vouched) else {
                self.transcript.stop();
                continue;
            };
            self.transcript.compare(number, &line, message, vouched);
            let kept = place(me, line.kept).expect("another party's component is held");
            add(&mut components[kept][part], message);
        }
    }

    /// Sends messages, each with a tag and with the peers that were lost behind it, and waits for those of
    /// all others: but not of those that are said to be lost, whose messages come late and are thrown away. A
    /// peer that is lost is noted. A party that has stopped has no messages, and sends zeros. One round.
    fn exchange(
        &mut self,
        len: usize,
        mut out: [Shares; PARTIES],
        net: &mut dyn Net,
    ) -> Result<Vec<Option<Shares>>> {
        self.tally.of(self.phase).rounds += 1;
        let me = self.keys.me;
        let mut heard: [Shares; PARTIES] = Default::default();
        for line in Line::all() {
            let bytes = line.part(len).len() + TAIL_BYTES;
            if line.teller == me && !self.lost.contains(line.told) {
                let message = &mut out[line.told.index()];
                if message.is_empty() {
                    *message = self.keys.zeros(bytes);
                }
                message[bytes - 1] = self.lost.bits() as u8;
            }
            if line.told == me && !self.lost.contains(line.teller) {
                heard[line.teller.index()] = self.keys.pool.take(bytes);
            }
        }
        for lost in self.lost.iter() {
            out[lost.index()] = Shares::default();
        }
        let given_up = self.heard.into_iter().fold(self.lost, PartySet::and);
        let awaited = PartySet::all(PARTIES).without(given_up).without([me].into_iter().collect());
        let patience = patience(self.transcript.rounds());
        let mut into: Vec<&mut [u8]> = heard.iter_mut().map(|message| &mut message[..]).collect();
        let gathered = net.gather(
            &out.each_ref().map(|message| &message[..]),
            &mut into,
            patience,
            &mut |arrived, _| awaited.without(arrived).is_empty(),
        )?;
        self.lost = self.lost.and(gathered.lost);
        let arrived = |(p, message)| gathered.arrived.contains(p).then_some(message);
        Ok(Party::all(PARTIES).zip(heard).map(arrived).collect())
    }

    /// Products of elements of GF(2^128), which are not judged yet. One round.
    pub(super) fn multiply_elements(
        &mut self,
        x: Components<&[u8]>,
        y: Components<&[u8]>,
        net: &mut dyn Net,
    ) -> Result<Components<Shares>> {
        let len = x[0].len();
        self.tally.of(self.phase).multiplications += (len / ELEMENT_BYTES) as u64;
        let mut product = self.keys.pool.take(len);
        let cross = |terms: Terms, [a, b]: [usize; 2], sum: &mut [u8]| {
            let mut pairs = vec![(a, b), (b, a)];
            if terms == Terms::Contributed {
                pairs.push((a, a));
            }
            for (i, j) in pairs {
                gf128::multiply(&mut product, x[i], y[j]);
                add(sum, &product);
            }
        };
        self.share_products(len, cross, net)
    }
}

impl Multiplier<COMPONENTS> for Joint {
    fn share_zero(&self) -> Option<usize> {
        place(self.keys.me, Party(0))
    }

    fn pool(&self) -> &Pool {
        &self.keys.pool
    }

    fn multiply(
        &mut self,
        rounds: &[Round<'_, COMPONENTS>],
        net: &mut dyn Net,
    ) -> Result<Components<Shares>> {
        self.tally.of(self.phase).multiplications +=
            rounds.iter().map(|round| round.count() as u64).sum::<u64>();
        let len = rounds.iter().map(Round::len).sum();
        let cross = |terms: Terms, [a, b]: [usize; 2], mut sum: &mut [u8]| {
            for round in rounds {
                for vectors in &round.vectors {
                    let (part, rest) = sum.split_at_mut(round.factors.planes()[0] * vectors.len);
                    let [x, y] = [&vectors.x, &vectors.y].map(|factor| [factor[a], factor[b]]);
                    add_products(round.factors, terms, part, x, y);
                    sum = rest;
                }
            }
        };
        self.share_products(len, cross, net)
    }

    /// Joint messages are judged at the end of an evaluation.
    fn relieve(&mut self, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }
}

/// The components of elements.
pub(super) fn of_elements(elements: &Elements) -> Components<&[u8]> {
    [&elements.shares, &elements.macs, &elements.thirds]
}
