//! Extension and check in one call and three rounds, for several batches together, and the blocks of what has
//! passed.
//!
//! [`Pairs::extend`] writes all blocks at once, before the check. Whoever uses blocks only after the check
//! needs no memory for them: until then an end keeps columns, 16 bytes for each transfer with 128 columns and
//! 8 with 64. [`Columns`] turns some of them into blocks at a time, which then are in the cache when they are
//! used.
//!
//! **Rounds.** Corrections and commitments to coins travel together, then come the openings, then the
//! answers. A sender opens its part of the coins only after it has the corrections of all its receivers, and
//! its commitment hides that part. So a receiver still fixes its choices before it knows the coins, which are
//! uniform if the sender is honest. A receiver's own part is fixed by its commitment.
//!
//! **Several batches** under one coin, as wide and narrow blocks under one Delta ([`Pairs::fork_upper`]):
//! every batch has its own columns and its own masks, and what [`extension::Sender::fault`] says holds for
//! each. The probabilities that it excepts add up. Trees of two forks that lack the same leaf are about the
//! same bits of Delta, so a guess of these bits counts once.

use std::sync::Arc;

use polyclave_field::Gf2_64;
use polyclave_kernels::bit_transpose::Block;
use polyclave_kernels::secret::mark_public;
use polyclave_kernels::words64::reduce;
use zeroize::Zeroizing;

use super::tile::{TILE_TRANSFERS, Tile, TilePool};
use super::{Blocks, CONTEXT, Ends, Pairs, exchange, extension};
use crate::coins::Toss;
use crate::interface::net::Net;
use crate::{Error, Party, Result};

/// What some pairs are to be extended by.
pub struct Batch<'a> {
    /// Whose transfers.
    pub pairs: &'a mut Pairs,
    /// As in [`Pairs::extend`].
    pub choices: &'a [&'a [u8]],
    /// How many.
    pub count: usize,
}

/// What one batch gave, by peer; empty for this party. It has passed the check.
pub struct Checked {
    /// q: what this party has as sender towards each peer.
    pub sent: Vec<Columns>,
    /// t: what this party has as receiver from each peer; q of the peer is `t ^ choice * delta` of the peer.
    pub received: Vec<Columns>,
}

/// Blocks of one direction, mostly as columns. Their memory is used again, and wiped when they and the
/// transfers that made them are gone.
#[derive(Default)]
pub struct Columns {
    kept: Kept,
    columns: usize,
    count: usize,
}

/// How blocks are kept until they are used.
enum Kept {
    /// As columns.
    Tiles(Held),
    /// As blocks of 128 columns, of which the upper ones count.
    Blocks(Blocks),
}

/// Tiles that go back to their pool. Without this they would be wiped and freed, which only costs time.
#[derive(Default)]
struct Held {
    tiles: Vec<Tile>,
    home: Arc<TilePool>,
}

impl Default for Kept {
    fn default() -> Self {
        Kept::Tiles(Held::default())
    }
}

impl Columns {
    /// Blocks of 128 columns, of which so many count, the upper ones.
    pub(super) fn of_blocks(blocks: Blocks, columns: usize) -> Self {
        let count = blocks.len();
        Columns { kept: Kept::Blocks(blocks), columns, count }
    }

    /// How many blocks.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Writes as many blocks as there is room for, from number `at` on, which is a multiple of 8. Words of 64
    /// bits have room for 64 columns. It is quickest with some thousand blocks at a time, a multiple of 512.
    pub fn write_blocks<B: Block>(&self, at: usize, blocks: &mut [B]) -> Result<()> {
        self.refuse_others(at, blocks.len())?;
        if self.columns > 8 * size_of::<B>() {
            return Err(Error::misuse("blocks of more columns than a word has bits"));
        }
        let tiles = match &self.kept {
            Kept::Tiles(held) => &held.tiles,
            Kept::Blocks(kept) => {
                let unused = 128 - self.columns;
                blocks.iter_mut().zip(&kept[at..]).for_each(|(to, block)| *to = B::lowest(block >> unused));
                return Ok(());
            }
        };
        let (mut at, mut rest) = (at, blocks);
        while !rest.is_empty() {
            let within = at % TILE_TRANSFERS;
            let (now, later) = rest.split_at_mut(rest.len().min(TILE_TRANSFERS - within));
            tiles[at / TILE_TRANSFERS].write_blocks(self.columns, within, now);
            at += now.len();
            rest = later;
        }
        Ok(())
    }

    /// Adds to each of the sums the next `width` blocks of 64 bits, block k times X^k in GF(2^64), from
    /// number `at` on, which is a multiple of 8. The width is a power of two from 2 to 64. No block is
    /// written anywhere.
    pub fn add_words(&self, width: usize, at: usize, sums: &mut [u64]) -> Result<()> {
        self.refuse_others(at, width * sums.len())?;
        if self.columns != u64::BITS as usize || !width.is_power_of_two() || !(2..=64).contains(&width) {
            return Err(Error::misuse("words of 2 to 64 blocks of 64 bits are added up"));
        }
        let tiles = match &self.kept {
            Kept::Tiles(held) => &held.tiles,
            Kept::Blocks(kept) => {
                for (sum, blocks) in sums.iter_mut().zip(kept[at..].chunks_exact(width)) {
                    // The upper half of a block, times a power of X.
                    let term = |(k, block): (usize, &u128)| (block >> 64) << k;
                    *sum ^= reduce::<Gf2_64>(blocks.iter().enumerate().map(term).fold(0, |sum, x| sum ^ x));
                }
                return Ok(());
            }
        };
        let (mut at, mut rest) = (at, sums);
        while !rest.is_empty() {
            let within = at % TILE_TRANSFERS;
            if !within.is_multiple_of(width) {
                return Err(Error::misuse("words of blocks begin at a multiple of their width"));
            }
            let (now, later) = rest.split_at_mut(((TILE_TRANSFERS - within) / width).min(rest.len()));
            tiles[at / TILE_TRANSFERS].add_words(width, within, now);
            at += width * now.len();
            rest = later;
        }
        Ok(())
    }

    fn refuse_others(&self, at: usize, len: usize) -> Result<()> {
        if !at.is_multiple_of(8) || at > self.count || len > self.count - at {
            return Err(Error::misuse(
                "blocks that are not those of whole bytes of choices, or that are not there",
            ));
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.home.give_back(&mut self.tiles);
    }
}

impl Pairs {
    /// Extends by `count` transfers with `choices`, as [`Pairs::extend`] does, and checks them together with
    /// everything that was extended since the last check, as [`Pairs::check`] does. Three rounds.
    pub fn extend_checked(&mut self, choices: &[&[u8]], count: usize, net: &mut dyn Net) -> Result<Checked> {
        let [checked] = extend_checked([Batch { pairs: self, choices, count }], net)?;
        Ok(checked)
    }
}

/// [`Pairs::extend_checked`] of several forks of one setup at once, under one coin: three rounds in all.
/// After an error none of them goes on.
pub fn extend_checked<const N: usize>(batches: [Batch<'_>; N], net: &mut dyn Net) -> Result<[Checked; N]> {
    let mut batches = batches;
    let gate = batches.first().map(|batch| batch.pairs.retired.clone()).unwrap_or_default();
    for batch in &batches {
        // One gate is asked, for all.
        if !batch.pairs.retired.is(&gate) {
            return Err(Error::misuse("transfers of different setups are not checked together"));
        }
        batch.pairs.refuse_others(net)?;
        batch.pairs.refuse_other_choices(batch.choices, batch.count)?;
    }
    let outcome = try_extend_checked(&mut batches, net);
    batches.iter_mut().for_each(|batch| batch.pairs.conclude(outcome.as_ref().err()));
    outcome
}

fn try_extend_checked<const N: usize>(
    batches: &mut [Batch<'_>; N],
    net: &mut dyn Net,
) -> Result<[Checked; N]> {
    let toss = Toss::begin(CONTEXT, net.me())?;
    let before = batches.each_ref().map(|batch| batch.pairs.used_tiles());
    let commitments = extend(batches, toss.commitment(), net)?;
    let coin = toss.open_for_check(commitments, net)?;
    answer(&mut batches.each_mut().map(|batch| &mut *batch.pairs), &coin, net)?;
    let mut before = before.into_iter();
    Ok(batches.each_mut().map(|batch| {
        let before = before.next().unwrap_or_default();
        batch.pairs.take_checked(&before, batch.count)
    }))
}

/// Extends all batches, with one message to each member, which ends with this party's commitment. Returns the
/// commitments of all.
fn extend(batches: &mut [Batch<'_>], commitment: &[u8; 32], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let (me, n, members) = (net.me(), net.parties(), net.members());
    let is_peer = |p: Party| p != me && members.contains(p);
    // Messages of these lengths come again and again, so their memory is kept.
    let mut messages: Vec<[Vec<u8>; 2]> = Vec::new();
    for p in Party::all(n) {
        let kept = batches.first_mut().and_then(|batch| batch.pairs.ends[p.index()].as_mut());
        let mut kept = kept.map(Ends::take_messages).unwrap_or_default();
        if is_peer(p) {
            let mut due = [commitment.len(); 2];
            for (ends, count) in ends_with(batches, p) {
                due[0] += ends.receiver.message_bytes(count);
                due[1] += ends.sender.message_bytes(count);
            }
            kept.iter_mut().zip(due).for_each(|(kept, due)| kept.resize(due, 0));
        }
        messages.push(kept);
    }
    for (p, [outgoing, _]) in Party::all(n).zip(&mut messages).filter(|(p, _)| is_peer(*p)) {
        let mut rest = &mut outgoing[..];
        for batch in batches.iter_mut() {
            let Some(ends) = &mut batch.pairs.ends[p.index()] else { continue };
            let (message, later) = rest.split_at_mut(ends.receiver.message_bytes(batch.count));
            ends.receiver.extend(batch.choices[p.index()], batch.count, message, &mut [])?;
            rest = later;
        }
        rest.copy_from_slice(commitment);
    }
    let (out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) =
        messages.iter_mut().map(|[outgoing, incoming]| (&outgoing[..], &mut incoming[..])).unzip();
    net.exchange(&out, &mut into)?;
    // It is sent.
    mark_public(commitment);
    let mut commitments: Vec<Vec<u8>> = Vec::new();
    for (p, [outgoing, incoming]) in Party::all(n).zip(messages) {
        let mut rest = &incoming[..];
        for (ends, count) in ends_with(batches, p) {
            let (message, later) = rest.split_at(ends.sender.message_bytes(count));
            ends.sender.extend(message, count, &mut []);
            rest = later;
        }
        commitments.push(if p == me { commitment.to_vec() } else { rest.to_vec() });
        if let Some(ends) = batches.first_mut().and_then(|batch| batch.pairs.ends[p.index()].as_mut()) {
            (ends.outgoing, ends.incoming) = (outgoing, incoming);
        }
    }
    batches.iter_mut().for_each(|batch| batch.pairs.next += batch.count as u64);
    Ok(commitments)
}

/// The ends of all batches with a peer, and how many transfers each is extended by.
fn ends_with<'b>(batches: &'b mut [Batch<'_>], peer: Party) -> impl Iterator<Item = (&'b mut Ends, usize)> {
    batches.iter_mut().filter_map(move |batch| Some((batch.pairs.ends[peer.index()].as_mut()?, batch.count)))
}

/// Answers the check of everything that was extended since the last, and compares the answers of all peers.
/// One round.
pub(super) fn answer(all: &mut [&mut Pairs], coin: &[u8; 32], net: &mut dyn Net) -> Result<()> {
    let mut responses: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    for p in Party::all(net.parties()) {
        let ends = all.iter().filter_map(|pairs| pairs.ends[p.index()].as_ref());
        let hashes: Vec<_> = ends.map(|ends| ends.receiver.respond(coin)).collect();
        let hashes: Vec<&[u8]> = hashes.iter().map(|hashes| hashes.as_slice()).collect();
        responses.push(Zeroizing::new(hashes.concat()));
    }
    let out: Vec<&[u8]> = responses.iter().map(|response| response.as_slice()).collect();
    let due = all.iter().map(|pairs| extension::response_bytes(pairs.shape)).sum();
    let responses = exchange(&out, |_| due, net).map_err(Error::in_a_check)?;
    let mut compared = Vec::new();
    for (p, response) in Party::all(net.parties()).zip(&responses) {
        let mut rest = &response[..];
        for pairs in all.iter() {
            let Some(ends) = &pairs.ends[p.index()] else { continue };
            let (response, later) = rest.split_at(extension::response_bytes(pairs.shape));
            compared.push((ends.sender.expected(coin, response), response, &ends.outward));
            rest = later;
        }
    }
    // One comparison of all, since nothing between them is sent. They are of one secret.
    let fault = || compared.iter().find_map(|(due, sent, of)| extension::Sender::fault(due, sent, of));
    let Some(first) = all.first() else { return Ok(()) };
    // The gate is that of all, and looks last whether they are retired.
    first.retired.judge_guess(fault)?;
    all.iter_mut().for_each(|pairs| pairs.checked = pairs.next);
    Ok(())
}

impl Ends {
    fn take_messages(&mut self) -> [Vec<u8>; 2] {
        [std::mem::take(&mut self.outgoing), std::mem::take(&mut self.incoming)]
    }
}

impl Pairs {
    /// How many tiles the sender and the receiver of each pair hold.
    fn used_tiles(&self) -> Vec<[usize; 2]> {
        let used = |ends: &Ends| [ends.sender.tiles.used().len(), ends.receiver.tiles.used().len()];
        self.ends.iter().map(|ends| ends.as_ref().map(used).unwrap_or_default()).collect()
    }

    /// What was extended after there were so many tiles.
    fn take_checked(&mut self, before: &[[usize; 2]], count: usize) -> Checked {
        let (columns, home) = (self.shape.columns(), &self.tiles);
        let of = |tiles: Vec<Tile>| Columns {
            kept: Kept::Tiles(Held { tiles, home: home.clone() }),
            columns,
            count,
        };
        let mut checked = Checked { sent: Vec::new(), received: Vec::new() };
        for (ends, [sent, received]) in self.ends.iter_mut().zip(before) {
            let Some(ends) = ends else {
                checked.sent.push(Columns::default());
                checked.received.push(Columns::default());
                continue;
            };
            checked.sent.push(of(ends.sender.tiles.checked_from(*sent)));
            checked.received.push(of(ends.receiver.tiles.checked_from(*received)));
        }
        checked
    }
}

#[cfg(test)]
mod tests;
