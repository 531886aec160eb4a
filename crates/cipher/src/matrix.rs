//! Linear maps over GF(2) between cells of at most 8 bits.

use polyclave_field::Gf256;

/// A matrix over GF(2) with `ins` columns and `outs` rows, at most 8 each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Matrix {
    columns: [u8; 8],
    ins: u8,
    outs: u8,
}

impl Matrix {
    /// The map that takes bit i to `columns[i]`.
    ///
    /// # Panics
    /// If there are more than 8 columns, or a column has a bit at or above `outs`.
    pub fn from_columns(columns: &[u8], outs: u8) -> Matrix {
        assert!((1..=8).contains(&columns.len()) && (1..=8).contains(&outs), "a cell has 1 to 8 bits");
        assert!(columns.iter().all(|c| u16::from(*c) < 1 << outs), "a column exceeds the output");
        let mut all = [0; 8];
        all[..columns.len()].copy_from_slice(columns);
        Matrix { columns: all, ins: columns.len() as u8, outs }
    }

    /// The matrix of a function that is linear.
    pub fn of(ins: u8, outs: u8, f: impl Fn(u8) -> u8) -> Matrix {
        assert!((1..=8).contains(&ins), "a cell has 1 to 8 bits");
        let mut columns = [0; 8];
        (0..ins).for_each(|i| columns[usize::from(i)] = f(1 << i));
        Matrix::from_columns(&columns[..usize::from(ins)], outs)
    }

    /// The map that changes nothing.
    pub fn identity(bits: u8) -> Matrix {
        Matrix::of(bits, bits, |x| x)
    }

    /// Multiplication by a constant of GF(2^8).
    pub fn scalar(c: u8) -> Matrix {
        Matrix::of(8, 8, |x| (Gf256(c) * Gf256(x)).0)
    }

    /// Squaring in GF(2^8), applied `times` times.
    pub fn frobenius(times: u32) -> Matrix {
        Matrix::of(8, 8, |x| Gf256(x).pow(1 << times).0)
    }

    /// The map from a cell of `ins` bits to its bit `i`.
    pub fn bit(ins: u8, i: u8) -> Matrix {
        Matrix::of(ins, 1, |x| x >> i & 1)
    }

    /// The map of a single bit to place `i` of a cell of `outs` bits.
    pub fn place(outs: u8, i: u8) -> Matrix {
        Matrix::from_columns(&[1 << i], outs)
    }

    /// Bits that go in.
    pub fn ins(&self) -> u8 {
        self.ins
    }

    /// Bits that come out.
    pub fn outs(&self) -> u8 {
        self.outs
    }

    /// The images of the 8 unit bytes; those beyond `ins` are 0.
    pub fn columns(&self) -> [u8; 8] {
        self.columns
    }

    /// The image of a public cell. (Of a secret one the compiler may make choices by its bits:
    /// `polyclave_kernels::affine::Map`.)
    pub fn apply(&self, x: u8) -> u8 {
        (0..self.ins).fold(0, |y, i| y ^ self.columns[usize::from(i)] & (x >> i & 1).wrapping_neg())
    }

    /// First `inner`, then this map.
    ///
    /// # Panics
    /// If `inner` puts out another number of bits than this map takes.
    pub fn after(&self, inner: &Matrix) -> Matrix {
        assert_eq!(inner.outs, self.ins, "maps of different widths do not compose");
        Matrix::of(inner.ins, self.outs, |x| self.apply(inner.apply(x)))
    }

    /// Whether every input goes to 0.
    pub fn is_zero(&self) -> bool {
        self.columns == [0; 8]
    }

    /// Whether this is the identity of some width.
    pub fn is_identity(&self) -> bool {
        *self == Matrix::identity(self.ins)
    }

    /// The constant c of GF(2^8) with M(x) = c x for all x of `ins` bits, if there is one. A map of one bit
    /// always is such a product.
    pub fn as_scalar(&self) -> Option<u8> {
        let c = Gf256(self.columns[0]);
        (0..self.ins).all(|i| (c * Gf256(1 << i)).0 == self.columns[usize::from(i)]).then_some(c.0)
    }

    /// A map to bytes as a product by a constant of GF(2^8) after the one of its multiples that takes the
    /// first bit which is not taken to 0 to 1. All multiples of a map have the same second part.
    pub fn factored(&self) -> Option<(Matrix, Matrix)> {
        let first = self.columns.into_iter().find(|c| *c != 0).filter(|_| self.outs == 8)?;
        Some((Matrix::scalar(first), Matrix::scalar(Gf256(first).inverse_or_zero().0).after(self)))
    }

    /// The inverse map, if there is one.
    pub fn inverse(&self) -> Option<Matrix> {
        let mut preimages = vec![None; 1 << self.outs];
        for x in 0..1u16 << self.ins {
            preimages[usize::from(self.apply(x as u8))] = Some(x as u8);
        }
        (self.ins == self.outs && preimages.iter().all(Option::is_some))
            .then(|| Matrix::of(self.outs, self.ins, |y| preimages[usize::from(y)].unwrap_or(0)))
    }
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({}->{} {:02x?})", self.ins, self.outs, &self.columns[..usize::from(self.ins)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_recognised_and_squares_are_not() {
        assert!((0..=255).all(|c| Matrix::scalar(c).as_scalar() == Some(c)));
        assert_eq!(Matrix::frobenius(1).as_scalar(), None);
        assert_eq!(Matrix::place(6, 3).as_scalar(), Some(8));
        assert_eq!(Matrix::bit(4, 1).as_scalar(), None);
    }

    #[test]
    fn multiples_of_a_map_are_products_of_one() {
        let m = Matrix::of(4, 8, |x| Matrix::frobenius(2).apply(x << 3) ^ x);
        let (_, of_all) = m.factored().expect("it goes to bytes");
        for c in 1..=255 {
            let (factor, rest) = Matrix::scalar(c).after(&m).factored().expect("it goes to bytes");
            assert_eq!((factor.after(&rest), rest), (Matrix::scalar(c).after(&m), of_all));
        }
        assert_eq!(Matrix::bit(8, 0).factored(), None);
        assert_eq!(Matrix::of(8, 8, |_| 0).factored(), None);
    }

    #[test]
    fn inverse_undoes() {
        let m = Matrix::frobenius(3).after(&Matrix::scalar(0x57));
        assert!(m.inverse().expect("both factors are invertible").after(&m).is_identity());
        assert!(Matrix::bit(8, 0).inverse().is_none());
        assert!(Matrix::of(8, 8, |x| x & 1).inverse().is_none());
    }
}
