//! What was multiplied since the last proof, as planes.

use polyclave_kernels::planes::{Factors, Planes, Terms, add_products};

use super::super::Pair;
use super::super::lookup::{Round, Vectors};
use super::super::ring::{Ring, add};
use crate::pool::{Pool, Shares};

/// Products z = x y and what this party knows of them; the padding of whole bytes is proven, too.
pub(super) struct Products {
    /// By the fields of the factors, in the order of [`Factors::ALL`].
    groups: [Group; Factors::ALL.len()],
    rounds: u64,
    /// F(k_i) and F(k_(i+1)) of the round that is under way.
    masks: Option<Pair<Shares>>,
}

/// Products in the same fields. P_i is the prover of its own products, V1 of those of P_(i+1), and V2 of
/// those of P_(i-1).
pub(super) struct Group {
    pub(super) factors: Factors,
    /// Both shares of the factors.
    pub(super) x: Pair<Rows>,
    pub(super) y: Pair<Rows>,
    /// What V1 knows of x_(i+1) y_(i+2) + x_(i+2) y_(i+1): z_(i+1) + x_(i+1) y_(i+1) + F(k_(i+1)).
    pub(super) as_first: Rows,
    /// What V2 knows of x_(i-1) y_i + x_i y_(i-1): F(k_i).
    pub(super) as_second: Rows,
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
        Products { groups: Factors::ALL.map(Group::new), rounds: 0, masks: None }
    }
}

impl Products {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.groups.iter().map(|group| 8 * group.len()).sum()
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
        self.groups.iter_mut().for_each(Group::forget);
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

    /// Adds the products of a round, with what the party behind has sent.
    ///
    /// # Panics
    /// If no share of zero was drawn for it.
    pub(super) fn remember(&mut self, rounds: &[Round<'_, 2>], received: &[u8], pool: &Pool) {
        let masks = self.masks.take().expect("products of a round have been masked");
        let mut at = 0;
        for round in rounds {
            let group = self.groups.iter_mut().find(|group| group.factors == round.factors);
            let group = group.expect("there is a group for all factors");
            for vectors in &round.vectors {
                let end = at + round.factors.planes()[0] * vectors.len;
                group.add([received, &masks[1], &masks[0]].map(|row| &row[at..end]), vectors, pool);
                at = end;
            }
        }
    }

    /// As if this party had one byte of products less in each plane, or had sent a message more.
    #[cfg(test)]
    pub(super) fn miscount(&mut self, bytes: usize, messages: u64) {
        let group = self.groups.iter_mut().find(|group| group.len() > 0).expect("there are products");
        let [x0, x1] = &mut group.x;
        let [y0, y1] = &mut group.y;
        for rows in [x0, x1, y0, y1, &mut group.as_first, &mut group.as_second] {
            rows.len -= bytes;
        }
        self.rounds += messages;
    }

    /// As if the party behind had sent the same error with the first product of each of these bytes of
    /// planes.
    #[cfg(test)]
    pub(super) fn spoil(&mut self, bytes: &[usize], error: u8) {
        let group = self.groups.iter_mut().find(|group| group.len() > 0).expect("there are products");
        for (i, plane) in group.as_first.planes.iter_mut().enumerate() {
            bytes.iter().for_each(|byte| plane[*byte] ^= error >> i & 1);
        }
    }
}

impl Group {
    fn new(factors: Factors) -> Group {
        let rows = Rows::default;
        Group { factors, x: [rows(), rows()], y: [rows(), rows()], as_first: rows(), as_second: rows() }
    }

    /// Bytes of a plane.
    pub(super) fn len(&self) -> usize {
        self.as_first.len
    }

    fn add(&mut self, [received, mask, as_second]: [&[u8]; 3], vectors: &Vectors<'_, 2>, pool: &Pool) {
        let ([of_x, of_y], len) = (self.factors.planes(), vectors.len);
        for share in 0..2 {
            self.x[share].extend(vectors.x[share], of_x, len, pool);
            self.y[share].extend(vectors.y[share], of_y, len, pool);
        }
        let mut as_first = pool.take(received.len());
        as_first.copy_from_slice(received);
        add(&mut as_first, mask);
        add_products(self.factors, Terms::Second, &mut as_first, vectors.x, vectors.y);
        self.as_first.extend(Planes { bytes: &as_first, stride: len }, of_x, len, pool);
        self.as_second.extend(Planes { bytes: as_second, stride: len }, of_x, len, pool);
    }

    fn forget(&mut self) {
        let [x0, x1] = &mut self.x;
        let [y0, y1] = &mut self.y;
        for rows in [x0, x1, y0, y1, &mut self.as_first, &mut self.as_second] {
            rows.len = 0;
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
