//! Oblivious transfer between all pairs of parties, actively secure: Roy 2022, "SoftSpokenOT: Quieter OT
//! Extension from Small-Field Silent VOLE in the Minicrypt Model" (CRYPTO 2022, ePrint 2022/192).
//!
//! A correlated transfer: the sender holds Delta and gets q, the receiver chooses a bit u and gets t, and q =
//! t + u Delta over GF(2). Every party is sender and receiver towards every other party. From bottom to top:
//!
//! | file | what | source |
//! |---|---|---|
//! | `base.rs` | a few transfers from Diffie-Hellman | Masny and Rindal 2019 |
//! | `tree.rs` | all leaves of a tree but one, with a check | Roy 2022, section 6 |
//! | `extension.rs` | linear evaluation over GF(2^f) with the same choices in all columns, and a check | Roy 2022, sections 3.1, 3.2 and 4 |
//! | `checked.rs` | extension and check in three rounds, and blocks when they are used | |
//! | `random.rs` | random transfers | Roy 2022, section 5 |
//! | `silent.rs` | transfers in few bytes, from learning parity with noise | Yang et al. 2020 |
//!
//! **Adversary**: active, static, any number of parties; the channels are private and authentic. Secure with
//! abort: a cheater is caught or has guessed right, and what it guesses is bits of Delta:
//!
//! * A sender of transfers (which lacks leaves) learns nothing about choices. Corrections are hidden by
//!   streams that it lacks, computationally (AES, BLAKE3, Diffie-Hellman), and the check's answer is hidden
//!   by a mask that is used once.
//! * A receiver of transfers learns nothing about Delta unless it risks a guess, in trees with wrong sums or
//!   in extension with inconsistent choices. A guess about b bits of Delta passes with probability 2^-b. If
//!   it passes, the receiver knows these b bits, and nothing else went wrong except with probability 2^-115
//!   (`Sender::fault` in `extension.rs`, for every f: the check hashes to 128 bits). So the statistical
//!   security is the security of the guess, and **a failed check leaks about one bit**. Nothing may be tried
//!   again, the caller quarantines the peer, and everything under this Delta is retired, in all forks of the
//!   setup at once ([`Pairs::fork`]). A receiver that is silent once it may know the coins, and before it has
//!   answered, also ends them ([`Error::Unanswered`]). It does not know whether a guess was right, because
//!   the sender compares first and no message before depends on Delta; but it has chosen among coins. A
//!   receiver that is silent before that has seen no coins, and its silence costs the session only.
//! * Coins are tossed by commitment and opening ([`crate::coins`]). No party opens before all messages of the
//!   receivers have come to it. Coins are good if one party is honest.
//!
//! **Columns.** Blocks of 128 bits serve any purpose. With 64 or 40 columns messages are shorter in
//! proportion. The receiver's choices are as safe as with 128 columns. Only Delta shrinks: a receiver guesses
//! it with probability 2^-columns, once. That is the soundness error of a message authentication code whose
//! key is Delta, so such blocks are good for those. They must not be hashed to random transfers, where Delta
//! can be searched for offline, and [`Pairs::random_sent`] refuses to do so.
//!
//! **Delta** is chosen by the caller: its lowest bits can be a share of a key. It must be uniform in all
//! columns on which the purpose relies, because the choices of the base transfers are its bits, and
//! everything above counts guesses of it.
//!
//! **Rounds**: two for [`Pairs::setup`], one for each [`Pairs::extend`], three for [`Pairs::check`]; or three
//! for both together, and for several forks at once ([`extend_checked`]). **Bytes** in each direction of a
//! pair: about 32 KiB to set up; a bit for each tree, of which there are columns / f, rounded up, for a
//! transfer; 16 bytes a tree for each check's mask and 16 bytes a column for its answer. **Memory**: until
//! the check, columns / 8 bytes for each transfer at each end, and 16 for its block if blocks are written
//! before the check. All of it is reused; forks share it (`blocks.rs`, `tile.rs`). **Time**: AES encrypts
//! `2^f / f` blocks for every 128 bits of blocks. Adding streams up, turning columns into blocks and hashing
//! them for the check together take about as long again (`docs/benchmarks.md`).
//!
//! Constant time in Delta and in choices. All secrets are wiped when they are dropped, blocks when the last
//! of all forks is dropped.
//!
//! # Differences from the paper
//!
//! * Base transfers encrypt sums that the grower of a tree chooses, from a root that it draws. The paper
//!   takes the outputs of random base transfers for the first level. Ours costs 32 bytes a tree, and endemic
//!   base transfers are enough for it.
//! * The receiver chooses its choice bits, so the correction of every tree is sent. The paper's random
//!   choices save the correction of the first tree.
//! * All digests of all trees of a pair go into one hash, instead of one hash a tree. It accepts the same
//!   points.
//! * The universal hash goes to 128 bits with independent coefficients, which AES expands from the coin. The
//!   paper's coefficients are uniform.
//! * One check covers all extensions since the last, and the parties of all pairs use one coin.

mod base;
mod binding;
mod blocks;
mod checked;
mod extension;
mod random;
mod shape;
mod silent;
mod tile;
mod tree;

use std::sync::Arc;

pub use binding::Binding;
pub use blocks::Blocks;
pub use checked::{Batch, Checked, Columns, extend_checked};
pub use shape::Shape;
pub use silent::{Silent, Wanted};
use zeroize::Zeroizing;

use crate::coins;
use crate::interface::descriptor::Choice;
use crate::interface::net::Net;
use crate::interface::stock::Transfers;
use crate::retirement::Retirement;
use crate::{Error, Party, PartySet, Result};
use blocks::Pool;
use random::Hash;
use tile::TilePool;

/// The expansion (2 to this power) that programs take where nobody chooses one: the quickest on a fast
/// network.
pub const EXPANSION: usize = 4;

/// The option of protocols that use oblivious transfer.
pub const EXPANSION_CHOICE: Choice = Choice {
    name: "expansion",
    summary: "of oblivious transfer: with more, less is sent and more computed; 1 is the classic extension",
    values: || vec!["1", "2", "4", "5", "6", "8"],
    default: Some("4"),
};

/// The option of protocols that can take silent transfers.
pub const TRANSFERS_CHOICE: Choice = Choice {
    name: "transfers",
    summary: "of material: extended, or silent for slow networks: they take few bytes and more computation, and assume that learning \
              parity with noise is hard",
    values: || vec!["extended", "silent"],
    default: Some("extended"),
};

/// How transfers are made for a purpose that takes many. The same at all parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// The expansion of [`Pairs`].
    pub expansion: usize,
    /// Whether [`Silent`] makes the most of them.
    pub silent: bool,
}

impl From<Transfers> for Means {
    fn from(transfers: Transfers) -> Means {
        match transfers {
            Transfers::Quick => EXPANSION.into(),
            Transfers::Small => SMALL.into(),
            // What a batch takes from extension is little.
            Transfers::Silent => Means { expansion: SMALL, silent: true },
        }
    }
}

/// The expansion that sends least.
const SMALL: usize = 8;

impl From<usize> for Means {
    /// By extension alone.
    fn from(expansion: usize) -> Means {
        Means { expansion, silent: false }
    }
}

/// What the coins of checks are for.
const CONTEXT: &[u8] = b"oblivious transfer";

/// This party's ends of the transfers with all members of the network.
pub struct Pairs {
    me: Party,
    members: PartySet,
    shape: Shape,
    delta: Zeroizing<u128>,
    /// By peer; `None` for this party and for parties that are not members.
    ends: Vec<Option<Ends>>,
    /// The number of the next transfer, the same in all pairs.
    next: u64,
    /// The transfers below are checked.
    checked: u64,
    /// Something failed here, if only a connection: the two ends are not in step any more.
    failed: bool,
    /// A guess at Delta may have failed, here or in another fork of the same setup. Then no fork continues.
    retired: Retirement,
    /// Memory of all blocks, shared with forks.
    pool: Arc<Pool>,
    /// Memory of all columns, shared with forks of the same shape.
    tiles: Arc<TilePool>,
}

/// Both directions with one peer.
struct Ends {
    sender: extension::Sender,
    receiver: extension::Receiver,
    /// The binding of what this party sends.
    outward: Binding,
    hash_sent: Hash,
    hash_received: Hash,
    /// What the streams of the sender and of the receiver come from, for [`Pairs::fork`].
    roots: [Zeroizing<Vec<tree::Seed>>; 2],
    /// Messages of extensions, kept for their memory.
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

/// What one extension gave, by peer; empty for this party. Provisional until [`Pairs::check`] has passed.
pub struct Correlated {
    /// q: what this party has as sender towards each peer.
    pub sent: Vec<Blocks>,
    /// t: what this party has as receiver from each peer; q of the peer is `t ^ choice * delta` of the peer.
    pub received: Vec<Blocks>,
    first: u64,
}

impl Ends {
    /// From the leaves of the trees: of the sender, which lacks one of each, and of the receiver.
    fn new(
        label: &[u8],
        me: Party,
        peer: Party,
        shape: Shape,
        delta: u128,
        roots: [Zeroizing<Vec<tree::Seed>>; 2],
        tiles: &Arc<TilePool>,
    ) -> Ends {
        let outward = Binding::new(label, me, peer, peer);
        Ends {
            sender: extension::Sender::new(shape, delta, &roots[0], tiles),
            receiver: extension::Receiver::new(shape, &roots[1], tiles),
            hash_sent: Hash::new(&outward),
            hash_received: Hash::new(&Binding::new(label, peer, me, peer)),
            outward,
            roots,
            outgoing: Vec::new(),
            incoming: Vec::new(),
        }
    }
}

/// The seed of a fork: a hash of its label and of the seed it comes from, in which BLAKE3 is taken for a
/// random oracle.
pub(crate) fn forked_seed(label: &[u8], seed: &[u8; 16]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 seeds of a fork");
    let mut forked = [0; 16];
    hasher.update(seed).update(label).finalize_xof().fill(&mut forked);
    forked
}

impl Pairs {
    /// Base transfers with every member, trees and their checks. `label` names the session and is used once
    /// ([`Stream::label`](crate::interface::session::Stream::label)); of `delta` the lowest
    /// [`Shape::columns`] bits count. Two rounds.
    pub fn setup(label: &[u8], delta: u128, shape: Shape, net: &mut dyn Net) -> Result<Pairs> {
        Self::set_up_under(label, delta, shape, &Retirement::default(), net)
    }

    /// The same for a Delta that shares the fate of other secrets.
    pub(crate) fn set_up_under(
        label: &[u8],
        delta: u128,
        shape: Shape,
        retired: &Retirement,
        net: &mut dyn Net,
    ) -> Result<Pairs> {
        let (me, n, members) = (net.me(), net.parties(), net.members());
        let delta = Zeroizing::new(delta & shape.mask());
        let outward = |p| Binding::new(label, me, p, p);
        let inward = |p| Binding::new(label, p, me, p);
        let peers = || Party::all(n).map(|p| Some(p).filter(|p| *p != me && members.contains(*p)));

        // The sender of transfers is the receiver of base transfers: it chooses by the bits of delta.
        let chosen = |p| base::Receiver::new(&outward(p), tree::choices(shape, *delta));
        let chosen: Vec<_> = peers().map(|p| p.map(chosen).transpose()).collect::<Result<_>>()?;
        let out: Vec<&[u8]> = chosen.iter().map(|c| c.as_ref().map_or(&[][..], |c| c.offer())).collect();
        let offers = exchange(&out, |_| shape.columns() * base::OFFER_BYTES, net)?;

        let mut grown = Vec::new();
        for (p, offer) in peers().zip(&offers) {
            let Some(p) = p else {
                grown.push((Zeroizing::default(), Vec::new()));
                continue;
            };
            let (mut answer, keys) = base::answer(&inward(p), offer)?;
            let (leaves, message) = tree::grow(&inward(p), shape, &keys)?;
            answer.extend(message);
            grown.push((leaves, answer));
        }
        let answer_bytes = shape.columns() * base::ANSWER_BYTES;
        let out: Vec<&[u8]> = grown.iter().map(|(_, answer)| answer.as_slice()).collect();
        let answers = exchange(&out, |_| answer_bytes + tree::message_bytes(shape), net)?;

        let tiles = Arc::default();
        let mut ends = Vec::new();
        for (p, (chosen, ((grown, _), answer))) in
            peers().zip(chosen.into_iter().zip(grown.iter().zip(&answers)))
        {
            let (Some(p), Some(chosen)) = (p, chosen) else {
                ends.push(None);
                continue;
            };
            let (answer, message) = answer.split_at(answer_bytes);
            let keys = chosen.keys(&outward(p), answer)?;
            let leaves = tree::puncture(&outward(p), shape, *delta, &keys, message, retired)?;
            ends.push(Some(Ends::new(label, me, p, shape, *delta, [leaves, grown.clone()], &tiles)));
        }
        Ok(Pairs {
            me,
            members,
            shape,
            delta,
            ends,
            next: 0,
            checked: 0,
            failed: false,
            retired: retired.clone(),
            pool: Arc::default(),
            tiles,
        })
    }

    /// Independent transfers under the same Delta, bound to another label that is used once: all streams come
    /// from hashes of this object's seeds with the label. What a party fixed when these pairs were set up
    /// holds for all their forks, and so does a check that failed in any of them. Local.
    pub fn fork(&self, label: &[u8]) -> Pairs {
        self.fork_trees(label, self.shape)
    }

    /// A fork with the upper 64 of these 128 columns. Its Delta is the upper half of this one's, by
    /// construction: the same trees lack the same leaves. With an expansion of 3 or 7 a tree would lie in
    /// both halves.
    pub fn fork_upper(&self, label: &[u8]) -> Result<Pairs> {
        let upper = Some(self.shape).filter(|shape| shape.columns() == 128).and_then(|all| all.upper_half());
        let upper = upper.ok_or_else(|| {
            Error::misuse("the upper columns are those of 128, with an expansion of 1, 2, 4, 5, 6 or 8")
        })?;
        Ok(self.fork_trees(label, upper))
    }

    /// A fork of the last trees, which have this shape.
    fn fork_trees(&self, label: &[u8], shape: Shape) -> Pairs {
        let delta = Zeroizing::new(*self.delta >> (self.shape.columns() - shape.columns()));
        let skipped = self.shape.leaves(self.shape.trees() - shape.trees());
        let tiles = if shape == self.shape { self.tiles.clone() } else { Arc::default() };
        let derived = |seeds: &Zeroizing<Vec<tree::Seed>>| {
            let seeds = &seeds[skipped..];
            let mut fork = Zeroizing::new(vec![tree::Seed::default(); seeds.len()]);
            seeds.iter().zip(fork.iter_mut()).for_each(|(seed, fork)| *fork = forked_seed(label, seed));
            fork
        };
        let fork = |(p, ends): (Party, &Option<Ends>)| {
            let [sent, received] = &ends.as_ref()?.roots;
            let roots = [derived(sent), derived(received)];
            Some(Ends::new(label, self.me, p, shape, *delta, roots, &tiles))
        };
        Pairs {
            me: self.me,
            members: self.members,
            shape,
            ends: Party::all(self.ends.len()).zip(&self.ends).map(fork).collect(),
            delta,
            next: 0,
            checked: 0,
            failed: self.failed,
            retired: self.retired.clone(),
            pool: self.pool.clone(),
            tiles,
        }
    }

    /// This party's Delta towards all peers.
    pub fn delta(&self) -> u128 {
        *self.delta
    }

    /// Columns and expansion.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Extends by `count` transfers in both directions with every member. `choices[p]` packs the bits that
    /// this party chooses as receiver from peer p, the lowest of a byte first; it is empty for this party.
    /// One round.
    pub fn extend(&mut self, choices: &[&[u8]], count: usize, net: &mut dyn Net) -> Result<Correlated> {
        self.refuse_other_choices(choices, count)?;
        self.guarded(net, |pairs, net| pairs.try_extend(choices, count, net))
    }

    /// Checks everything that was extended since the last check. After an error nothing of it may be used,
    /// and this object refuses to do more. So does every fork of the setup, unless the error is a connection
    /// that failed before there were coins. Three rounds, or none if there is nothing to check.
    pub fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.guarded(net, Pairs::try_check)
    }

    /// Whether a guess at Delta may have failed in any fork of this setup, for everything else that this can
    /// spoil.
    pub(crate) fn retirement(&self) -> &Retirement {
        &self.retired
    }

    /// An error if a guess at Delta may have failed in any fork of this setup.
    pub(crate) fn refuse_retired(&self) -> Result<()> {
        self.retired.refuse_retired()
    }

    /// Runs something. If it fails, this object is of no use any more. If it was a check, neither is any
    /// other object of the setup.
    fn guarded<T>(
        &mut self,
        net: &mut dyn Net,
        run: impl FnOnce(&mut Pairs, &mut dyn Net) -> Result<T>,
    ) -> Result<T> {
        self.refuse_others(net)?;
        let outcome = run(self, net);
        self.conclude(outcome.as_ref().err());
        outcome
    }

    /// An error if these pairs cannot go on, or not among the members of this network.
    fn refuse_others(&self, net: &dyn Net) -> Result<()> {
        self.refuse_retired()?;
        if self.failed {
            return Err(Error::misuse("oblivious transfer has failed before and must be set up afresh"));
        }
        if (net.me(), net.members()) != (self.me, self.members) {
            return Err(Error::misuse("oblivious transfer was set up among other parties"));
        }
        Ok(())
    }

    /// An error unless there is one choice bit for each of `count` transfers from each peer.
    fn refuse_other_choices(&self, choices: &[&[u8]], count: usize) -> Result<()> {
        let fits = |(ends, choices): (&Option<Ends>, &&[u8])| {
            choices.len() == if ends.is_some() { count.div_ceil(8) } else { 0 }
        };
        if choices.len() != self.ends.len() || !self.ends.iter().zip(choices).all(fits) {
            return Err(Error::misuse("choices that are not one bit for each transfer from each peer"));
        }
        Ok(())
    }

    /// What an error means for these pairs, and for others of the setup.
    fn conclude(&mut self, error: Option<&Error>) {
        self.failed = error.is_some();
        if let Some(error) = error {
            self.retired.retire_after(error);
        }
    }

    fn try_extend(&mut self, choices: &[&[u8]], count: usize, net: &mut dyn Net) -> Result<Correlated> {
        let (pool, mut received) = (&self.pool, Vec::new());
        for (ends, choices) in self.ends.iter_mut().zip(choices) {
            let Some(ends) = ends else {
                received.push(Blocks::default());
                continue;
            };
            let mut blocks = pool.take(count);
            ends.outgoing.resize(ends.receiver.message_bytes(count), 0);
            ends.receiver.extend(choices, count, &mut ends.outgoing, &mut blocks)?;
            received.push(blocks);
        }
        let (mut out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) = Default::default();
        for ends in &mut self.ends {
            let Some(ends) = ends else {
                out.push(&[]);
                into.push(&mut []);
                continue;
            };
            ends.incoming.resize(ends.sender.message_bytes(count), 0);
            out.push(&ends.outgoing);
            into.push(&mut ends.incoming);
        }
        net.exchange(&out, &mut into)?;
        let extend = |ends: &mut Ends| {
            let mut blocks = pool.take(count);
            ends.sender.extend(&ends.incoming, count, &mut blocks);
            blocks
        };
        let sent = self.ends.iter_mut().map(|ends| ends.as_mut().map(extend).unwrap_or_default()).collect();
        let first = self.next;
        self.next += count as u64;
        Ok(Correlated { sent, received, first })
    }

    fn try_check(&mut self, net: &mut dyn Net) -> Result<()> {
        if self.checked == self.next {
            return Ok(());
        }
        let coin = coins::toss_for_check(CONTEXT, net)?;
        checked::answer(&mut [&mut *self], &coin, net)?;
        for ends in self.ends.iter_mut().flatten() {
            ends.receiver.tiles.checked_from(usize::MAX);
            ends.sender.tiles.checked_from(usize::MAX);
        }
        Ok(())
    }
}

/// Sends `out[p]` to every member p and receives `due(p)` bytes from each. Nothing goes to this party and to
/// others.
fn exchange(out: &[&[u8]], due: impl Fn(Party) -> usize, net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let (me, members) = (net.me(), net.members());
    let is_peer = |p: Party| p != me && members.contains(p);
    let mut messages: Vec<Vec<u8>> =
        Party::all(out.len()).map(|p| vec![0; if is_peer(p) { due(p) } else { 0 }]).collect();
    net.exchange(out, &mut messages.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    Ok(messages)
}
