//! Transfers from learning parity with noise, for slow networks: Yang, Weng, Lan, Zhang and Wang 2020,
//! "Ferret: Fast Extension for Correlated OT with Small Communication" (CCS 2020, ePrint 2020/924).
//!
//! A batch of 2^22 transfers is made from 284,800 of [`Pairs`] and a few messages. Its choices are random;
//! a transfer of a chosen bit then costs one bit, the difference, and one round. Everything is under the
//! Delta of the pairs, whose lowest bit has to be one.
//!
//! | file | what |
//! |---|---|
//! | `trees.rs` | noise: leaves that differ by Delta at one secret place |
//! | `code.rs` | a public sparse matrix |
//! | `direction.rs` | batches of one direction, their check, outputs |
//! | `parameters.rs` | how many of what, which is what security rests on |
//!
//! **A batch**, in both directions at once: (1) transfers by extension, checked, of random choices: the
//! secret bits, a path to a leaf of each tree, and 128 more; four rounds. (2) The sender's message about
//! all trees, hidden by hashes of the transfers of paths, with the commitment to its part of a coin; one
//! round. (3) The coin is opened. (4) The receiver answers with the sum of the coin's coefficients at its
//! places of noise, hidden by its 128 choices. (5) The sender answers with a hash of what both have
//! computed then (`Direction::sums`), and the receiver compares. Eight rounds. The hash of an honest sender
//! is of `V = sum chi v + sum X^i y_i + d Delta`, and the receiver's is of `W = sum chi w + sum X^i z_i`.
//! With `w = v + e Delta`, `z_i = y_i + x_i Delta` and `d = sum X^i x_i + sum chi e` they are equal.
//!
//! **Adversary**: as in [`crate::ot`]. The argument is Ferret's (Theorem 3 and appendix C), with these
//! points:
//!
//! * *A cheating sender* fixes all its messages about trees before the coin. For each point alpha that a
//!   receiver can have, they determine its leaves. So the sender names, in effect, sets of points for each
//!   tree, where all points of a set have the same leaves without the noise. For two choices of sets the
//!   sums of the check are equal with probability 2^-128. The sender may choose, after the coin, for which
//!   sum it answers: all other choices of sets with that sum have a probability of 2^-64 together, except
//!   with probability 2^-64. So it is caught, with that exception, unless all points of the receiver lie in
//!   the sets that it has named. If it passes, it has learnt that they do: less than two bits on average
//!   over all that it can try, once, since a failure gives the key up ([`crate::retirement`]). This is the
//!   leak for which Ferret states its assumption (regular noise with a leak of such sets). d tells nothing,
//!   because x is used once.
//! * *A cheating receiver* has one choice for every transfer of the pairs, except for guesses of bits of
//!   Delta, which are found before anything of a batch is sent. So it lacks one leaf of each tree, and its
//!   choice for each output is determined: the secret bits, the paths and the code say it. A wrong d makes
//!   the sender hash `W + f Delta` with an f that is not zero, which has all the entropy that Delta has.
//! * *What an output's choice is worth* against the sender is the assumption of `parameters.rs`. That is one
//!   more than extension needs, and secrecy rests on it: a sender that can tell choices knows this party's
//!   shares of the random bits that mask clients' keys and texts. Correctness does not rest on it: Delta,
//!   and so the MAC key, stays hidden.
//!
//! The difference that a receiver sends for a chosen bit needs no check: with any difference, it has chosen
//! one bit. So a batch's outputs are checked transfers.
//!
//! Silence: a peer that falls silent once it may know the coin is treated as if the check had failed.
//!
//! Constant time in the points, the secret bits, Delta and the choices. All of it is wiped when it is
//! dropped.
//!
//! # Differences from the paper
//!
//! * Each batch takes its transfers from extension, not from the batch before. With three bits for each
//!   output instead of half of one, nothing is kept from one batch to the next, and there are no sets of
//!   parameters for a start.
//! * The secret has more bits for as much noise than theirs, because of an attack on a part of the secret
//!   (docs/protocols/silent.md).
//! * Choices of these transfers are chosen, so the receiver sends no corrections for its paths.
//! * Leaves have 127 bits. So the choice is in the lowest bit from the beginning.
//! * The seed of the matrix is bound to direction and batch. It needs no coin, as nobody chooses the label.

mod code;
mod direction;
mod parameters;
mod trees;

use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret::{ct_eq, mark_public, mask};
use zeroize::Zeroizing;

pub(super) use parameters::Parameters;

use super::blocks::Blocks;
use super::checked::{Checked, Columns};
use super::{Binding, Correlated, Pairs, exchange};
use crate::coins::Toss;
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::{Error, Party, Result};
use code::Entries;
use direction::{Direction, ELEMENT, Leaves, Taken, add, add_product, message_bytes};

/// Transfers that hide the answer of a check.
const MASK: usize = 128;

/// Bytes of the hash that ends a check.
const HASH: usize = 32;

/// What the coins of checks are for.
const CONTEXT: &[u8] = b"silent oblivious transfer";

/// This party's ends of silent transfers with all members, under the Delta of some pairs.
pub struct Silent {
    parameters: Parameters,
    /// By peer; `None` for this party and for parties that are not members.
    ends: Vec<Option<Ends>>,
    /// Transfers that were asked for.
    asked: usize,
}

/// Both directions with one peer.
struct Ends {
    sender: Direction,
    receiver: Direction,
}

/// Transfers with choices, of blocks with so many columns: the upper ones of 128.
pub struct Wanted<'a> {
    /// As in [`Pairs::extend`].
    pub choices: &'a [&'a [u8]],
    /// How many, in whole bytes of choices.
    pub count: usize,
    /// 128 or 64.
    pub columns: usize,
}

/// A batch with a peer between its messages.
struct Begun {
    sent: (Leaves, Taken),
    received: (Leaves, Taken),
}

impl Silent {
    /// For one stream of a session, as which the label is used once. Makes nothing yet. Local.
    pub fn new(label: &[u8], pairs: &Pairs) -> Result<Silent> {
        Self::with(Parameters::BEST, label, pairs)
    }

    /// With other parameters.
    pub(super) fn with(parameters: Parameters, label: &[u8], pairs: &Pairs) -> Result<Silent> {
        if pairs.shape().columns() != 128 || pairs.delta() & 1 == 0 {
            return Err(Error::misuse(
                "silent transfers take 128 columns and a Delta whose lowest bit is one",
            ));
        }
        Ok(Self::of(parameters, label, pairs))
    }

    fn of(parameters: Parameters, label: &[u8], pairs: &Pairs) -> Silent {
        let me = pairs.me;
        let direction =
            |sender, receiver, peer| Direction::new(parameters, Binding::new(label, sender, receiver, peer));
        let of_peer = |(p, ends): (Party, &Option<super::Ends>)| {
            ends.as_ref()?;
            Some(Ends { sender: direction(me, p, p), receiver: direction(p, me, p) })
        };
        let ends = Party::all(pairs.ends.len()).zip(&pairs.ends).map(of_peer).collect();
        Silent { parameters, ends, asked: 0 }
    }

    /// Others with the same parameters, for another stream, with a fork of the pairs. Local.
    pub fn fork(&self, label: &[u8], pairs: &Pairs) -> Silent {
        Self::of(self.parameters, label, pairs)
    }

    /// Whether so many more transfers are made silently: once as many were asked for as are worth a batch. So
    /// a short session makes none, and no session sends more than twice what extension alone would. The same
    /// at all parties.
    pub fn serves(&mut self, count: usize) -> bool {
        self.asked += count;
        self.asked > self.parameters.worth_a_batch()
    }

    /// Transfers with choices, checked. One round, and eight for each batch that has to be made. `pairs` are
    /// those that this was made with.
    pub fn extend<const N: usize>(
        &mut self,
        pairs: &mut Pairs,
        wanted: [Wanted<'_>; N],
        net: &mut dyn Net,
    ) -> Result<[Checked; N]> {
        for wanted in &wanted {
            pairs.refuse_other_choices(wanted.choices, wanted.count)?;
            if !wanted.count.is_multiple_of(8) || ![64, 128].contains(&wanted.columns) {
                return Err(Error::misuse("silent transfers come by eight, with blocks of 64 or 128 bits"));
            }
        }
        pairs.guarded(net, |pairs, net| self.try_extend(pairs, wanted, net))
    }

    fn try_extend<const N: usize>(
        &mut self,
        pairs: &mut Pairs,
        wanted: [Wanted<'_>; N],
        net: &mut dyn Net,
    ) -> Result<[Checked; N]> {
        let all: usize = wanted.iter().map(|wanted| wanted.count).sum();
        let counts = [128, 64].map(|columns| {
            wanted.iter().filter(|wanted| wanted.columns == columns).map(|wanted| wanted.count).sum()
        });
        while !self.has(counts) {
            self.make_batch(pairs, net)?;
        }
        let (pool, mut out) = (pairs.pool.clone(), Vec::new());
        let mut received: Vec<[Blocks; N]> = Vec::new();
        for (p, ends) in self.ends.iter_mut().enumerate() {
            let mut message = Vec::new();
            received.push(wanted.each_ref().map(|wanted| {
                let Some(ends) = ends else { return Blocks::default() };
                let mut blocks = pool.take(wanted.count);
                ends.receiver.write(wanted.columns == 128, &mut blocks);
                message.extend(differences(&blocks, wanted.choices[p]));
                blocks
            }));
            out.push(message);
        }
        let lent: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
        let differences = exchange(&lent, |_| all / 8, net)?;
        let mut sent: Vec<[Blocks; N]> = Vec::new();
        for (ends, differences) in self.ends.iter_mut().zip(&differences) {
            let mut rest = &differences[..];
            sent.push(wanted.each_ref().map(|wanted| {
                let Some(ends) = ends else { return Blocks::default() };
                let mut blocks = pool.take(wanted.count);
                ends.sender.write(wanted.columns == 128, &mut blocks);
                let (now, later) = rest.split_at(wanted.count / 8);
                rest = later;
                correct(&mut blocks, now, pairs.delta());
                blocks
            }));
        }
        let [mut sent, mut received] = [sent.into_iter(), received.into_iter()].map(|of_peers| {
            let mut by_batch: [Vec<Blocks>; N] = std::array::from_fn(|_| Vec::new());
            for of_peer in of_peers {
                by_batch.iter_mut().zip(of_peer).for_each(|(batch, blocks)| batch.push(blocks));
            }
            by_batch.into_iter()
        });
        Ok(wanted.map(|wanted| {
            let columns = |blocks: Option<Vec<Blocks>>| {
                let blocks = blocks.unwrap_or_default().into_iter();
                blocks.map(|blocks| Columns::of_blocks(blocks, wanted.columns)).collect()
            };
            Checked { sent: columns(sent.next()), received: columns(received.next()) }
        }))
    }

    /// Whether so many whole blocks and upper halves are there. It is the same with every peer and in both
    /// directions.
    fn has(&self, counts: [usize; 2]) -> bool {
        self.ends.iter().flatten().all(|ends| ends.sender.has(counts))
    }

    /// One batch more in every direction. Eight rounds.
    fn make_batch(&mut self, pairs: &mut Pairs, net: &mut dyn Net) -> Result<()> {
        let (parameters, n) = (self.parameters, self.ends.len());
        let mut choices = Vec::new();
        for ends in &self.ends {
            let len = if ends.is_some() { parameters.taken() / 8 } else { 0 };
            let mut of_peer = Zeroizing::new(vec![0; len]);
            random_bytes(&mut of_peer)?;
            choices.push(of_peer);
        }
        let lent: Vec<&[u8]> = choices.iter().map(|choices| choices.as_slice()).collect();
        let taken = pairs.try_extend(&lent, parameters.taken(), net)?;
        pairs.try_check(net)?;

        let toss = Toss::begin(CONTEXT, net.me())?;
        let (mut offered, mut out) = (Vec::new(), Vec::new());
        for (p, ends) in Party::all(n).zip(&mut self.ends) {
            let mut message = Vec::new();
            offered.push(match ends {
                Some(ends) => Some(ends.offer(pairs, &taken, p, &mut message)?),
                None => None,
            });
            if ends.is_some() {
                message.extend(toss.commitment());
            }
            out.push(message);
        }
        let lent: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
        let mut messages = exchange(&lent, |_| message_bytes(parameters) + HASH, net)?;
        mark_public(toss.commitment());
        let mut commitments = Vec::new();
        let mut begun = Vec::new();
        for ((p, offered), message) in Party::all(n).zip(offered).zip(&mut messages) {
            commitments.push(message.split_off(message.len().saturating_sub(HASH)));
            if p == net.me() {
                commitments[p.index()] = toss.commitment().to_vec();
            }
            begun.push(match offered {
                Some(sent) => {
                    let received = accept(pairs, &taken, p, &choices[p.index()], message, parameters)?;
                    Some(Begun { sent, received })
                }
                None => None,
            });
        }
        drop(taken);
        let coin = toss.open_for_check(commitments, net)?;
        self.check(pairs, &choices, &begun, &coin, net)?;
        for (ends, begun) in self.ends.iter_mut().zip(begun) {
            let (Some(ends), Some(Begun { sent, received })) = (ends, begun) else { continue };
            ends.sender.put(sent.0, sent.1);
            ends.receiver.put(received.0, received.1);
        }
        Ok(())
    }

    /// Compares what both ends of every direction have of a batch. Two rounds.
    fn check(
        &mut self,
        pairs: &Pairs,
        choices: &[Zeroizing<Vec<u8>>],
        begun: &[Option<Begun>],
        coin: &[u8; 32],
        net: &mut dyn Net,
    ) -> Result<()> {
        let (mut due, mut answers) = (Vec::new(), Vec::new());
        for ((ends, begun), choices) in self.ends.iter_mut().zip(begun).zip(choices) {
            let (Some(ends), Some(begun)) = (ends, begun) else {
                due.push(None);
                answers.push(Vec::new());
                continue;
            };
            let [sum, mut answer] = ends.receiver.sums(&begun.received.0, &begun.received.1, coin);
            let (_, mask) = choices.split_at(choices.len() - ELEMENT);
            add(&mut answer, mask.try_into().expect("it has as many bytes"));
            due.push(Some(sum));
            answers.push(answer.to_vec());
        }
        let lent: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
        let answers = exchange(&lent, |_| ELEMENT, net).map_err(Error::in_a_check)?;
        let mut hashes = Vec::new();
        for ((ends, begun), answer) in self.ends.iter_mut().zip(begun).zip(&answers) {
            let (Some(ends), Some(begun)) = (ends, begun) else {
                hashes.push(Vec::new());
                continue;
            };
            let [mut sum, _] = ends.sender.sums(&begun.sent.0, &begun.sent.1, coin);
            let answer = answer.as_slice().try_into().expect("as many bytes were received");
            add_product(&mut sum, answer, pairs.delta());
            hashes.push(hash(ends.sender.binding(), coin, &sum).to_vec());
        }
        let lent: Vec<&[u8]> = hashes.iter().map(Vec::as_slice).collect();
        let hashes = exchange(&lent, |_| HASH, net).map_err(Error::in_a_check)?;
        let fault = || {
            self.ends.iter().zip(&due).zip(&hashes).find_map(|((ends, due), hash_sent)| {
                let (ends, due) = (ends.as_ref()?, due.as_ref()?);
                let binding = ends.receiver.binding();
                let fault = || binding.fault("a tree of silent transfers that is not consistent");
                (!ct_eq(&hash(binding, coin, due), hash_sent)).then(fault)
            })
        };
        pairs.retirement().judge_guess(fault)
    }
}

impl Ends {
    /// The sender's part of a batch up to its message.
    fn offer(
        &mut self,
        pairs: &Pairs,
        taken: &Correlated,
        peer: Party,
        message: &mut Vec<u8>,
    ) -> Result<(Leaves, Taken)> {
        let parameters = self.sender.parameters();
        let blocks = &taken.sent[peer.index()];
        let paths = parameters.trees * parameters.depth;
        let [mut zero, mut one] = [(); 2].map(|()| Wiped::zeros(paths));
        pairs.write_random_sent(taken, peer, parameters.secret(), [&mut zero, &mut one])?;
        let mut seed = Zeroizing::new(vec![0; parameters.trees * size_of::<u128>()]);
        random_bytes(&mut seed)?;
        let mut roots = Wiped::zeros(parameters.trees);
        for (root, bytes) in roots.iter_mut().zip(seed.as_chunks().0) {
            *root = u128::from_le_bytes(*bytes);
        }
        let leaves = Leaves::offer(&mut self.sender, roots, pairs.delta(), [&zero, &one], message);
        Ok((leaves, taken_of(blocks, parameters, &[])))
    }
}

/// The receiver's part of a batch once it has the message.
fn accept(
    pairs: &Pairs,
    taken: &Correlated,
    peer: Party,
    choices: &[u8],
    message: &[u8],
    parameters: Parameters,
) -> Result<(Leaves, Taken)> {
    let mut pads = Wiped::zeros(parameters.trees * parameters.depth);
    pairs.write_random_received(taken, peer, parameters.secret(), &mut pads)?;
    let of_paths = &choices[parameters.secret() / 8..];
    let leaves = Leaves::accept(parameters, of_paths, &pads, message);
    let of_secret = &choices[..parameters.secret() / 8];
    Ok((leaves, taken_of(&taken.received[peer.index()], parameters, of_secret)))
}

/// The parts of what was taken from extension, with the choices of the secret bits at the receiver.
fn taken_of(blocks: &[u128], parameters: Parameters, choices: &[u8]) -> Taken {
    let secret = Entries::new(&blocks[..parameters.secret()], choices);
    let mut mask = Wiped::zeros(MASK);
    mask.copy_from_slice(&blocks[blocks.len() - MASK..]);
    Taken { secret, mask }
}

/// What a receiver sends to have its choices: the differences from those that its blocks have, eight a byte.
fn differences(blocks: &[u128], choices: &[u8]) -> Vec<u8> {
    let of_eight = |(eight, choices): (&[u128; 8], &u8)| {
        eight.iter().rev().fold(0, |bits, block| bits << 1 | *block as u8 & 1) ^ choices
    };
    blocks.as_chunks().0.iter().zip(choices).map(of_eight).collect()
}

/// Adds Delta to the sender's blocks where the receiver chose another bit than it had.
fn correct(blocks: &mut [u128], differences: &[u8], delta: u128) {
    for (eight, differences) in blocks.as_chunks_mut::<8>().0.iter_mut().zip(differences) {
        for (i, block) in eight.iter_mut().enumerate() {
            *block ^= mask(u128::from(differences >> i)) & delta;
        }
    }
}

/// What ends the check of a batch.
fn hash(binding: &Binding, coin: &[u8; 32], sum: &[u8; ELEMENT]) -> [u8; HASH] {
    *binding.hasher("silent: check").update(coin).update(sum).finalize().as_bytes()
}

#[cfg(test)]
mod tests;
