//! What was multiplied since the last proof.

use polyclave_field::subfields::element;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256::multiply;
use polyclave_kernels::planes::join;

use super::super::Pair;
use super::super::lookup::{Round, Vectors};
use super::super::ring::{Ring, add};
use crate::pool::{Pool, Shares};

/// A product z = x y and what this party knows of it, as the prover P_i, as the party before the prover of P_(i+1)'s proof, and as the
/// party behind the prover of P_(i-1)'s. All are elements of GF(2^8), a byte each; padding of whole bytes is proven, too.
#[derive(Default)]
pub(super) struct Products {
    pieces: Vec<Piece>,
    count: usize,
    /// F(k_i) and F(k_(i+1)) of the round that is under way.
    masks: Option<Pair<Shares>>,
}

/// Some products.
pub(super) struct Piece {
    /// Both shares of the factors.
    pub(super) x: Pair<Shares>,
    pub(super) y: Pair<Shares>,
    /// z_(i+1) + x_(i+1) y_(i+1) + F(k_(i+1)): what the party before the prover knows of x_(i+1) y_(i+2) + x_(i+2) y_(i+1).
    pub(super) before: Shares,
    /// F(k_i): what the party behind the prover knows of x_(i-1) y_i + x_i y_(i-1).
    pub(super) behind: Shares,
}

impl Products {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The share of zero that masks a round's products.
    pub(super) fn zero_share(&mut self, len: usize, ring: &mut Ring) -> Shares {
        let masks = ring.zero_parts(len);
        let mut share = ring.pool.take(len);
        share.copy_from_slice(&masks[0]);
        add(&mut share, &masks[1]);
        self.masks = Some(masks);
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
}

impl Piece {
    fn new(count: usize, pool: &Pool) -> Piece {
        let row = || pool.take(count);
        Piece { x: [row(), row()], y: [row(), row()], before: row(), behind: row() }
    }

    /// Elements of some vectors, from their planes, as coordinates.
    fn fill(
        &mut self,
        at: usize,
        [of_x, of_y]: [usize; 2],
        vectors: &Vectors<'_>,
        [received, mask, behind]: [&[u8]; 3],
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
        join(&sum, len, of_x, &mut self.before[range.clone()]);
        join(behind, len, of_x, &mut self.behind[range]);
    }

    /// From coordinates to elements, and the product of this party's second shares.
    fn finish(&mut self, pool: &Pool) {
        let to_elements = Map::new(core::array::from_fn(|i| element(1 << i).0));
        let mut row = pool.take(self.before.len());
        let [x0, x1] = &mut self.x;
        let [y0, y1] = &mut self.y;
        for column in [x0, x1, y0, y1, &mut self.before, &mut self.behind] {
            row.copy_from_slice(column);
            combine(column, &[Term { src: &row, map: &to_elements }], 0);
        }
        multiply(&mut row, &self.x[1], &self.y[1]);
        add(&mut self.before, &row);
    }
}
