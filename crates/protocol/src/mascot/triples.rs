//! Multiplication triples (Keller, Orsini, Scholl 2016, protocol Pi_Triple: Multiply, Combine, Authenticate,
//! Sacrifice).
//!
//! * *Multiply.* Every party has tau random elements a_l and one b for a triple. With every peer, for each of
//!   the tau k bits of its a_l, it takes one of two random messages q0, q1 of the peer's by oblivious
//!   transfer. The peer sends d = q0 + q1 + b. If s is the message that was taken, s + a_lh d = q0 + a_lh b;
//!   summed over h with X^h this gives shares of a_l b. So all parties have shares of tau products a_l b with
//!   the same b.
//! * *Combine.* Coins r, r^ (tau elements each): a = sum r_l a_l, c = sum r_l c_l, and a^, c^ in the same
//!   way.
//! * *Authenticate* a, b, c, a^, c^ ([`super::authenticate`]).
//! * *Sacrifice.* A coin s. rho = s a + a^ is opened, and s c + c^ + b rho must be zero, which the MAC check
//!   verifies.
//!
//! Why this is enough: a cheater that offers another b at some transfers, or chooses with other a towards
//! another peer, makes the product wrong by e = c + a b, fixed before s. So s e + e^ = 0 with probability
//! 2^-k at most (one s serves all triples of a batch; a batch passes only if the same s fits each). An error
//! that depends on bits of an honest a_l, and is zero by luck, tells the cheater those bits: with c bits
//! guessed, with probability 2^-c. Combine protects against that: a and a^ are 2k bits, made from tau k by a
//! random linear hash, and stay uniform except with probability 2^-kappa if (tau - 2) k >= 2 kappa (the
//! paper's lemma on combining; leftover hash). kappa = 40 for k = 40 and 42, and 64 for k = 64 and 128: tau =
//! 4, 4, 4, 3.
//!
//! Bits to every peer and triple: tau k columns / expansion of the extension (columns = 128), tau k k for d,
//! 5 k k to authenticate, and k for rho; elements in whole bytes. 34,880 + 40 for k = 40, 69,632 + 64 for 64,
//! 180,224 + 128 for 128.
//!
//! # Differences from the paper
//! * There is one s for all triples of a batch; the paper draws one for each. The bound above is for one s.
//! * rho and s c + c^ + b rho are checked together by one MAC check.
//!
//! Rounds of a batch: five to multiply, two for the coins of Combine, four for COPEe, nine for the check of
//! authentication, nine to sacrifice; and those of `zero_tests.rs`.

use polyclave_field::{MacField, Word};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::bit_transpose::columns_to_blocks;
use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret::masks;
use zeroize::Zeroizing;

use super::Mascot;
use super::rows::{Gadget, Row, add, low, zeros};
use crate::authenticated::{Authenticated, Coefficients, Triples};
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::ot::{Correlated, Pairs};
use crate::{Party, Result, coins};

/// Products that a triple is combined from.
pub(super) const fn products<F: MacField>() -> usize {
    if F::BITS > 64 { 3 } else { 4 }
}

/// Transfers in a batch: bounds the memory.
const TRANSFERS: usize = 1 << 18;

/// This party's shares of products a_l b, with some a_l for every b.
pub(super) struct Products<F: MacField> {
    pub(super) a: Vec<Row<F>>,
    pub(super) b: Row<F>,
    pub(super) c: Vec<Row<F>>,
}

/// What one batch is made with.
struct TripleBatch<'a, F: MacField> {
    transfers: &'a Pairs,
    correlated: &'a Correlated,
    products: &'a mut Products<F>,
}

impl<F: MacField> Mascot<F> {
    /// Triples, batch by batch; each is checked before the next begins.
    pub(super) fn triples_in_batches(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        let most = TRANSFERS / (products::<F>() * F::BITS as usize) / 8 * 8;
        let mut batches = Vec::new();
        let mut missing = count;
        while missing > 0 {
            let now = missing.min(most);
            let triples = self.batch(now.next_multiple_of(8), net)?;
            batches.push([&triples.a, &triples.b, &triples.c].map(|shares| shares.part(0..now)));
            missing -= now;
        }
        let joined = |which: usize| {
            Authenticated::join(&batches.iter().map(|batch| &batch[which]).collect::<Vec<_>>())
        };
        Ok(Triples { a: joined(0), b: joined(1), c: joined(2) })
    }

    fn batch(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        let products = self.multiply(products::<F>(), count, net)?;
        let combined = combine(&products, &mut self.openings, net)?;
        drop(products);
        let shares = self.authenticate_shares(&combined, net)?;
        drop(combined);
        let [a, b, c, a_hat, c_hat] =
            [0, 1, 2, 3, 4].map(|part| shares.part(part * count..(part + 1) * count));
        let triples = Triples { a, b, c };
        self.sacrifice(&triples, &a_hat, &c_hat, net)?;
        Ok(triples)
    }

    /// Multiply: `each` products for each of `count` b, a multiple of eight. Five rounds.
    pub(super) fn multiply(&mut self, each: usize, count: usize, net: &mut dyn Net) -> Result<Products<F>> {
        let (me, n) = (self.key.me(), self.key.parties());
        let transfers = each * F::BITS as usize * count;
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        let mut random = AesPrg::new(&seed, 0);
        let mut choices = Zeroizing::new(vec![0; transfers / 8]);
        random.fill(&mut choices);
        let everyone: Vec<&[u8]> =
            Party::all(n).map(|p| if p == me { &[][..] } else { choices.as_slice() }).collect();
        let correlated = self.transfers.extend(&everyone, transfers, net)?;
        self.transfers.check(net)?;

        let mut products = own_products(&choices, each, count, &mut random);
        let mut batch =
            TripleBatch { transfers: &self.transfers, correlated: &correlated, products: &mut products };
        let len = |p: Party| if p == me { 0 } else { transfers * F::BYTES };
        for p in me.peers(n) {
            batch.offer(p, self.messages.outgoing(p, len(p)))?;
        }
        self.messages.exchange(len, net)?;
        for p in me.peers(n) {
            batch.take(p, self.messages.incoming(p))?;
        }
        Ok(products)
    }

    /// Sacrifice: s c + c^ + b rho is zero, with rho = s a + a^.
    fn sacrifice(
        &mut self,
        triples: &Triples<F>,
        a_hat: &Authenticated<F>,
        c_hat: &Authenticated<F>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let seed = coins::toss(b"sacrifice", net)?;
        self.openings.note(&seed);
        let s = Coefficients::<F>::new(&seed).next(1)[0];
        let mut rho = triples.a.scaled(s);
        rho.add(a_hat);
        let (rho, _) = self.openings.open(&rho, &[], &[], net)?;
        let mut zero = triples.c.scaled(s);
        zero.add(c_hat);
        zero.add(&triples.b.times_public(&rho));
        self.openings.claim_zero(&zero.macs);
        self.check_openings(net)
    }
}

/// a_l with the bits chosen with, a random b, and this party's own part of the products.
fn own_products<F: MacField>(choices: &[u8], each: usize, count: usize, random: &mut AesPrg) -> Products<F> {
    let mut bytes = Zeroizing::new(vec![0; count * F::BYTES]);
    random.fill(&mut bytes);
    let mut b = zeros::<F>(count);
    F::read_row(&bytes, &mut b);
    let mut a: Vec<Row<F>> = (0..each).map(|_| zeros::<F>(count)).collect();
    let mut blocks = Wiped::zeros(count);
    for (row, bits) in a.iter_mut().zip(choices.chunks_exact(F::BITS as usize * count / 8)) {
        columns_to_blocks(bits, count / 8, F::BITS as usize, &mut blocks);
        row.iter_mut().zip(blocks.iter()).for_each(|(element, block)| *element = low::<F>(*block));
    }
    let product = |a: &Row<F>| {
        let mut c = zeros::<F>(count);
        F::multiply_rows(&mut c, a, &b);
        c
    };
    let c = a.iter().map(product).collect();
    Products { a, b, c }
}

/// a, b, c, a^, c^, one after another.
fn combine<F: MacField>(
    products: &Products<F>,
    openings: &mut crate::authenticated::Openings<F>,
    net: &mut dyn Net,
) -> Result<Row<F>> {
    let seed = coins::toss(b"combination", net)?;
    openings.note(&seed);
    let mut coefficients = Coefficients::<F>::new(&seed);
    let count = products.b.len();
    let mut all = zeros::<F>(5 * count);
    let mut term = zeros::<F>(count);
    all[count..2 * count].copy_from_slice(&products.b);
    for (of_a, of_c) in [(0, 2), (3, 4)] {
        for (a, c) in products.a.iter().zip(&products.c) {
            let r = coefficients.next(count);
            for (row, part) in [(a, of_a), (c, of_c)] {
                F::multiply_rows(&mut term, row, r);
                add::<F>(&mut all[part * count..(part + 1) * count], &term);
            }
        }
    }
    Ok(all)
}

/// Elements of a row that are worked on at a time: all that belongs to them stays in the first-level cache.
const PIECE: usize = 256;

impl<F: MacField> TripleBatch<'_, F> {
    /// The d for a peer that chooses, and this party's share of the peer's a_l times its own b.
    fn offer(&mut self, peer: Party, message: &mut [u8]) -> Result<()> {
        let (gadget, count) = (Gadget::<F>::new(), self.products.b.len());
        let [mut zero, mut one] = [Wiped::zeros(PIECE), Wiped::zeros(PIECE)];
        let [mut sums, mut ds, mut firsts] = [0; 3].map(|_| zeros::<F>(PIECE));
        for (l, c) in self.products.c.iter_mut().enumerate() {
            let pieces = c.chunks_mut(PIECE).zip(self.products.b.chunks(PIECE));
            for (start, (c, b)) in (0..).step_by(PIECE).zip(pieces) {
                let (zero, one) = (&mut zero[..b.len()], &mut one[..b.len()]);
                let (sums, ds) = (&mut sums[..b.len()], &mut ds[..b.len()]);
                let firsts = &mut firsts[..b.len()];
                sums.fill(F::Word::ZERO);
                for bit in (0..F::BITS as usize).rev() {
                    let at = (l * F::BITS as usize + bit) * count + start;
                    self.transfers.write_random_sent(self.correlated, peer, at, [zero, one])?;
                    let messages = zero.iter().zip(one.iter());
                    let rows = firsts.iter_mut().zip(ds.iter_mut()).zip(b).zip(messages);
                    for (((first, d), b), (zero, one)) in rows {
                        *first = low::<F>(*zero);
                        *d = *first ^ low::<F>(*one) ^ *b;
                    }
                    gadget.add_row(sums, firsts);
                    F::write_row(ds, &mut message[at * F::BYTES..][..b.len() * F::BYTES]);
                }
                add::<F>(c, sums);
            }
        }
        Ok(())
    }

    /// This party's share of its own a_l times the b of a peer, from what that sent.
    fn take(&mut self, peer: Party, message: &[u8]) -> Result<()> {
        let (gadget, count) = (Gadget::<F>::new(), self.products.b.len());
        let mut taken = Wiped::zeros(PIECE);
        let [mut sums, mut ds, mut choices] = [0; 3].map(|_| zeros::<F>(PIECE));
        for (l, (c, a)) in self.products.c.iter_mut().zip(&self.products.a).enumerate() {
            let pieces = c.chunks_mut(PIECE).zip(a.chunks(PIECE));
            for (start, (c, a)) in (0..).step_by(PIECE).zip(pieces) {
                let taken = &mut taken[..a.len()];
                let (sums, ds) = (&mut sums[..a.len()], &mut ds[..a.len()]);
                let choices = &mut choices[..a.len()];
                sums.fill(F::Word::ZERO);
                for bit in (0..F::BITS).rev() {
                    let at = (l * F::BITS as usize + bit as usize) * count + start;
                    self.transfers.write_random_received(self.correlated, peer, at, taken)?;
                    F::read_row(&message[at * F::BYTES..][..a.len() * F::BYTES], ds);
                    masks(choices, |i| a[i].shift_right(bit));
                    for ((d, choice), taken) in ds.iter_mut().zip(choices.iter()).zip(taken.iter()) {
                        *d = low::<F>(*taken) ^ d.and(*choice);
                    }
                    gadget.add_row(sums, ds);
                }
                add::<F>(c, sums);
            }
        }
        Ok(())
    }
}
