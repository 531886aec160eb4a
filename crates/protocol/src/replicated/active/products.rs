//! What was multiplied since the last proof, as planes.
//!
//! A product of bits is one of a *pair* (a, b). The four products of an inversion in GF(2^8)
//! ([`super::super::tower`]) are those of two *triples* (a, b, c), for which a b, a c and b c are proven:
//!
//! * xh xl and then x^16 V, with x^16 = omega xh + (xh + xl) because omega^16 = omega + 1: those of (xh, xl,
//!   V) in GF(16);
//! * n1 n0 and then N^4 M^2, with N^4 = zeta n1 + (n1 + n0) because zeta^4 = zeta + 1: those of (n1, n0, M^2)
//!   in GF(4).
//!
//! In both the second product has the upper half a c and the lower half (a + b) c.

use polyclave_kernels::planes::{Factors, Planes, Terms, add_products};

use super::super::Pair;
use super::super::lookup::{Round, Vectors};
use super::super::ring::{Ring, add};
use crate::pool::{Pool, Shares};

/// Products z = x y and what this party knows of them; the padding of whole bytes is proven, too.
pub(super) struct Products {
    groups: [Group; 3],
    rounds: u64,
    /// F(k_i) and F(k_(i+1)) of the round that is under way.
    masks: Option<Pair<Shares>>,
}

/// Pairs or triples in the same field. P_i is the prover of its own products, V1 of those of P_(i+1), and V2
/// of those of P_(i-1).
pub(super) struct Group {
    /// The fields of the product a b.
    first: Factors,
    /// Those of the product that has a c and (a + b) c.
    second: Option<Factors>,
    /// Planes of an element.
    pub(super) bits: usize,
    /// Both shares of a, b and c.
    pub(super) factors: Vec<Pair<Rows>>,
    /// What V1 knows of x_(i+1) y_(i+2) + x_(i+2) y_(i+1): z_(i+1) + x_(i+1) y_(i+1) + F(k_(i+1)). Of a b, a
    /// c and (a + b) c.
    pub(super) as_first: Vec<Rows>,
    /// What V2 knows of x_(i-1) y_i + x_i y_(i-1): F(k_i).
    pub(super) as_second: Vec<Rows>,
}

/// Planes that grow together.
#[derive(Default)]
pub(super) struct Rows {
    planes: Vec<Shares>,
    /// Bytes of a plane that are used.
    len: usize,
}

impl Default for Products {
    fn default() -> Products {
        let groups = [
            Group::new(Factors::Bits, None),
            Group::new(Factors::Gf4, Some(Factors::Gf16ByGf4)),
            Group::new(Factors::Gf16, Some(Factors::Gf256ByGf16)),
        ];
        Products { groups, rounds: 0, masks: None }
    }
}

impl Products {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.groups.iter().map(Group::count).sum()
    }

    /// Whether no triple lacks its second product.
    pub(super) fn are_whole(&self) -> bool {
        self.groups.iter().all(|group| group.as_first.iter().all(|rows| rows.len == group.len()))
    }

    /// How many messages with products this party has sent in this session.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Those that have products.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| group.len() > 0)
    }

    /// They are proven.
    pub(super) fn forget(&mut self) {
        self.groups.iter_mut().flat_map(Group::rows_mut).for_each(|rows| rows.len = 0);
    }

    /// The share of zero that masks a round's products.
    pub(super) fn zero_share(&mut self, len: usize, ring: &mut Ring) -> Shares {
        let masks = ring.zero_parts(len);
        let mut share = ring.pool.take(len);
        share.copy_from_slice(&masks[0]);
        add(&mut share, &masks[1]);
        self.masks = Some(masks);
        self.rounds += 1;
        share
    }

    /// Adds the products of a round, with what the party behind has sent. Second products come in the order
    /// of the first ones.
    ///
    /// # Panics
    /// If no share of zero was drawn for it.
    pub(super) fn remember(&mut self, rounds: &[Round<'_, 2>], received: &[u8], pool: &Pool) {
        let masks = self.masks.take().expect("products of a round have been masked");
        let mut at = 0;
        for round in rounds {
            let group = self.groups.iter_mut().find(|group| group.has(round.factors));
            let group = group.expect("there is a group for all factors");
            for vectors in &round.vectors {
                let end = at + round.factors.planes()[0] * vectors.len;
                let of_vectors = [received, &masks[1], &masks[0]].map(|row| &row[at..end]);
                group.add(round.factors, of_vectors, vectors, pool);
                at = end;
            }
        }
    }

    /// As if this party had one byte of products less in each plane, or had sent a message more.
    #[cfg(test)]
    pub(super) fn miscount(&mut self, bytes: usize, messages: u64) {
        let group = self.groups.iter_mut().find(|group| group.len() > 0).expect("there are products");
        group.rows_mut().for_each(|rows| rows.len -= bytes);
        self.rounds += messages;
    }

    /// As if the party behind had sent an error with the first product of this byte of planes: of a b, a c or
    /// (a + b) c of a group.
    #[cfg(test)]
    pub(super) fn spoil(&mut self, [group, product, byte]: [usize; 3], error: u8) {
        for (i, plane) in self.groups[group].as_first[product].planes.iter_mut().enumerate() {
            plane[byte] ^= error >> i & 1;
        }
    }
}

impl Group {
    fn new(first: Factors, second: Option<Factors>) -> Group {
        let (factors, products) = if second.is_some() { (3, 3) } else { (2, 1) };
        let rows = |count| std::iter::repeat_with(Rows::default).take(count).collect();
        Group {
            first,
            second,
            bits: first.planes()[0],
            factors: std::iter::repeat_with(Default::default).take(factors).collect(),
            as_first: rows(products),
            as_second: rows(products),
        }
    }

    fn has(&self, factors: Factors) -> bool {
        factors == self.first || Some(factors) == self.second
    }

    /// Bytes of a plane.
    pub(super) fn len(&self) -> usize {
        self.as_first[0].len
    }

    /// Products that were sent.
    fn count(&self) -> usize {
        8 * (self.len() + self.as_first.get(1).map_or(0, |rows| rows.len))
    }

    fn rows_mut(&mut self) -> impl Iterator<Item = &mut Rows> {
        let known = self.as_first.iter_mut().chain(&mut self.as_second);
        self.factors.iter_mut().flatten().chain(known)
    }

    fn add(
        &mut self,
        factors: Factors,
        [received, mask, as_second]: [&[u8]; 3],
        vectors: &Vectors<'_, 2>,
        pool: &Pool,
    ) {
        let (bits, len) = (self.bits, vectors.len);
        let mut as_first = pool.take(received.len());
        as_first.copy_from_slice(received);
        add(&mut as_first, mask);
        add_products(factors, Terms::Second, &mut as_first, vectors.x, vectors.y);
        let (of_vectors, halves): (&[_], &[usize]) = match factors == self.first {
            true => (&[(0, vectors.x), (1, vectors.y)], &[0]),
            false => (&[(2, vectors.y)], &[2, 1]),
        };
        for (factor, shares) in of_vectors {
            for (rows, planes) in self.factors[*factor].iter_mut().zip(shares) {
                rows.extend(*planes, bits, len, pool);
            }
        }
        for (half, product) in halves.iter().enumerate() {
            let own = half * bits * len;
            let [as_first, as_second] =
                [&*as_first, as_second].map(|bytes| Planes { bytes: &bytes[own..], stride: len });
            self.as_first[*product].extend(as_first, bits, len, pool);
            self.as_second[*product].extend(as_second, bits, len, pool);
        }
    }
}

impl Rows {
    /// A plane.
    pub(super) fn plane(&self, plane: usize) -> &[u8] {
        &self.planes[plane][..self.len]
    }

    /// Appends to all planes.
    fn extend(&mut self, planes: Planes<'_>, count: usize, len: usize, pool: &Pool) {
        let end = self.len + len;
        self.planes.resize_with(count, Shares::default);
        for (i, plane) in self.planes.iter_mut().enumerate() {
            if plane.len() < end {
                let mut larger = pool.take(2 * end);
                larger[..self.len].copy_from_slice(&plane[..self.len]);
                *plane = larger;
            }
            plane[self.len..end].copy_from_slice(&planes.bytes[i * planes.stride..][..len]);
        }
        self.len = end;
    }
}
