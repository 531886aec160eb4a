//! What was multiplied since the last proof.

use polyclave_field::subfields::element;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256::multiply;
use polyclave_kernels::planes::join;

use super::super::Pair;
use super::super::lookup::{Round, Vectors};
use super::super::ring::{Ring, add};
use crate::pool::{Pool, Shares};

/// Products z = x y and what this party knows of them. All are elements of GF(2^8), a byte each; padding of whole bytes is proven, too.
#[derive(Default)]
pub(super) struct Products {
    pieces: Vec<Piece>,
    count: usize,
    rounds: u64,
    /// F(k_i) and F(k_(i+1)) of the round that is under way.
    masks: Option<Pair<Shares>>,
}

/// Some products. P_i is the prover of its own products, V1 of those of P_(i+1), and V2 of those of P_(i-1).
pub(super) struct Piece {
    /// Both shares of the factors.
    pub(super) x: Pair<Shares>,
    pub(super) y: Pair<Shares>,
    /// What V1 knows of x_(i+1) y_(i+2) + x_(i+2) y_(i+1): z_(i+1) + x_(i+1) y_(i+1) + F(k_(i+1)).
    pub(super) as_first: Shares,
    /// What V2 knows of x_(i-1) y_i + x_i y_(i-1): F(k_i).
    pub(super) as_second: Shares,
}

impl Products {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How many messages with products this party has sent in this session.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// They are proven.
    pub(super) fn forget(&mut self) {
        self.pieces.clear();
        self.count = 0;
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
    pub(super) fn remember(&mut self, rounds: &[Round<'_>], received: &[u8], pool: &Pool) {
        let masks = self.masks.take().expect("products of a round have been masked");
        let mut at = 0;
        for round in rounds {
            let count = 8 * round.vectors.iter().map(|vectors| vectors.len).sum::<usize>();
            let mut piece = Piece::new(count, pool);
            let mut done = 0;
            for vectors in &round.vectors {
                let bytes = round.factors.planes()[0] * vectors.len;
                let sent = [received, &masks[1], &masks[0]].map(|row| &row[at..at + bytes]);
                piece.fill(done, round.factors.planes(), vectors, sent, pool);
                (at, done) = (at + bytes, done + 8 * vectors.len);
            }
            piece.finish(pool);
            self.count += count;
            self.pieces.push(piece);
        }
    }

    /// As if the party behind had sent an error with a product.
    #[cfg(test)]
    pub(super) fn spoil(&mut self, error: u8) {
        self.pieces[0].as_first[0] ^= error;
    }
}

impl Piece {
    fn new(count: usize, pool: &Pool) -> Piece {
        let row = || pool.take(count);
        Piece { x: [row(), row()], y: [row(), row()], as_first: row(), as_second: row() }
    }

    /// Elements of some vectors, from their planes, as coordinates.
    fn fill(
        &mut self,
        at: usize,
        [of_x, of_y]: [usize; 2],
        vectors: &Vectors<'_>,
        [received, mask, as_second]: [&[u8]; 3],
        pool: &Pool,
    ) {
        let (len, range) = (vectors.len, at..at + 8 * vectors.len);
        for share in 0..2 {
            let (x, y) = (vectors.x[share], vectors.y[share]);
            join(x.bytes, x.stride, of_x, &mut self.x[share][range.clone()]);
            join(y.bytes, y.stride, of_y, &mut self.y[share][range.clone()]);
        }
        let mut sum = pool.take(received.len());
        sum.copy_from_slice(received);
        add(&mut sum, mask);
        join(&sum, len, of_x, &mut self.as_first[range.clone()]);
        join(as_second, len, of_x, &mut self.as_second[range]);
    }

    /// From coordinates to elements, and the product of this party's second shares.
    fn finish(&mut self, pool: &Pool) {
        let to_elements = Map::new(core::array::from_fn(|i| element(1 << i).0));
        let mut row = pool.take(self.as_first.len());
        let [x0, x1] = &mut self.x;
        let [y0, y1] = &mut self.y;
        for column in [x0, x1, y0, y1, &mut self.as_first, &mut self.as_second] {
            row.copy_from_slice(column);
            combine(column, &[Term { src: &row, map: &to_elements }], 0);
        }
        multiply(&mut row, &self.x[1], &self.y[1]);
        add(&mut self.as_first, &row);
    }
}
