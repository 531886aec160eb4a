//! Products, and the joint messages that they take (Dalskov, Escudero and Keller, "Fantastic Four", USENIX
//! Security 2021; the message of each pair of components is our choice among equals).
//!
//! x y is the sum of x_a y_b over all components a and b. For each pair {a, b} let s = x_a y_b + x_b y_a,
//! with x_a y_a added for one pair of each a. The two parties c and d other than P_a and P_b have both
//! components, so both know s. Component b gets r, which comes from K_b. Component a gets s + r, which P_c
//! and P_d know, and P_b has to be told (P_a lacks component a). P_b lacks K_b, so s + r is uniform to it.
//! One of P_c and P_d **tells** it, and the other vouches by a digest ([`super::transcript`]).
//!
//! The roles of a and b change in the middle of the message, so that all parties send as much: half a product
//! to each other party, 1.5 products in all.

use std::ops::Range;

use polyclave_kernels::gf128;
use polyclave_kernels::planes::{Terms, add_products};

use super::super::lookup::{Multiplier, Round};
use super::super::ring::add;
use super::keys::{Components, Keys, held, place};
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
fn patience(round: usize) -> Patience {
    Patience { limits: 1, bytes: STEP * (round as u64 % STEPS) }
}

/// A quarter of a second.
const STEP: u64 = MIN_BYTES_PER_SECOND / 4;
/// More rounds than AES takes.
const STEPS: u64 = 64;

/// How far parties may be behind one another: one that has waited in vain for a joint message, and for a
/// party among three.
pub(super) const BEHIND: Patience = Patience { limits: 3, bytes: STEP * STEPS };

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

/// Which part of a message of this length goes along a line.
fn part_of(line: &Line, len: usize) -> Range<usize> {
    let half = len.div_ceil(2);
    if line.told > line.kept { 0..half } else { half..len }
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
        let me = self.keys.me;
        let held = held(me);
        // By the place of the component that is not in the pair.
        let sums: Components<Shares> = std::array::from_fn(|left_out| {
            let mut pair = held.into_iter().filter(|component| *component != held[left_out]);
            let [low, high] = std::array::from_fn(|_| pair.next().expect("two of three are left"));
            let (pair, terms) = ordered(low, high);
            let mut sum = self.keys.zeros(len);
            cross(terms, pair.map(|component| place(me, component).expect("it is held")), &mut sum);
            sum
        });
        let mut components: Components<Shares> = std::array::from_fn(|_| self.keys.zeros(len));
        let mut out: Vec<Vec<u8>> = vec![Vec::new(); PARTIES];
        // Behind what is told: which peers this party has lost.
        let mut due = [1; PARTIES];
        due[me.index()] = 0;
        for (number, line) in Line::all().enumerate() {
            let part = part_of(&line, len);
            if line.told == me {
                due[line.teller.index()] += part.len();
                continue;
            }
            let told_key = place(me, line.told).expect("another party's component is held");
            let mask = self.keys.product_mask(told_key, part.len());
            add(&mut components[told_key][part.clone()], &mask);
            let Some(kept) = place(me, line.kept) else { continue };
            let mut message = mask;
            add(&mut message, &sums[COMPONENTS - kept - told_key][part.clone()]);
            add(&mut components[kept][part.clone()], &message);
            self.transcript.note(number, &line, &message);
            if line.teller == me {
                out[line.told.index()].extend_from_slice(&message);
            }
        }
        let flags = self.lost.bits() as u8;
        Party::all(PARTIES)
            .zip(&mut out)
            .filter(|(p, _)| *p != me)
            .for_each(|(_, message)| message.push(flags));
        let mut heard: Vec<Vec<u8>> = due.iter().map(|len| vec![0; *len]).collect();
        let arrived = self.exchange(&out, &mut heard, net)?;
        for (number, line) in Line::all().enumerate().filter(|(_, line)| line.told == me) {
            let Some((flags, message)) =
                heard[line.teller.index()].split_last().filter(|_| arrived.contains(line.teller))
            else {
                self.transcript.note_missing(number);
                continue;
            };
            let said = &mut self.heard[line.teller.index()];
            *said = said.and(PartySet::from_bits((*flags).into()));
            self.transcript.note(number, &line, message);
            let kept = place(me, line.kept).expect("another party's component is held");
            add(&mut components[kept][part_of(&line, len)], message);
        }
        self.transcript.next_round();
        Ok(components)
    }

    /// Sends messages and waits for those of all others, but not of those that are said to be lost: what they
    /// send comes late, and is thrown away. A peer that is lost is noted. One round.
    fn exchange(&mut self, out: &[Vec<u8>], heard: &mut [Vec<u8>], net: &mut dyn Net) -> Result<PartySet> {
        self.tally.of(self.phase).rounds += 1;
        let reachable = |p: Party| !self.lost.contains(p);
        let out: Vec<&[u8]> =
            Party::all(PARTIES).zip(out).map(|(p, m)| if reachable(p) { &m[..] } else { &[] }).collect();
        let mut into: Vec<&mut [u8]> = Party::all(PARTIES)
            .zip(heard)
            .map(|(p, buffer)| if reachable(p) { &mut buffer[..] } else { &mut [][..] })
            .collect();
        let given_up = self.heard.into_iter().fold(self.lost, PartySet::and);
        let awaited = PartySet::all(PARTIES).without(given_up).without([self.keys.me].into_iter().collect());
        let patience = patience(self.transcript.len());
        let gathered =
            net.gather(&out, &mut into, patience, &mut |arrived, _| awaited.without(arrived).is_empty())?;
        self.lost = self.lost.and(gathered.lost);
        Ok(gathered.arrived)
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
