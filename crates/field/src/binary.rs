//! What the fields of [`crate::mac_field`] are built from: products of polynomials, and the tables of the
//! maps between cells and elements in both directions. The compiler computes all of it.
//!
//! With F the field of cells and X that of the larger field's polynomial, the powers 1, X, X^2, .. below the
//! degree over F are a basis over F, since X generates the field. `project` takes the coefficient at 1: that
//! is linear over F, and an embedded cell is its own coefficient.

/// The product modulo X^degree + tail: the reference, and what constants are made with. No secret comes here.
pub(crate) const fn times(a: u128, b: u128, degree: u32, tail: u128) -> u128 {
    let (mut multiple, mut product, mut i) = (a, 0, 0);
    while i < degree {
        product ^= multiple & ((b >> i) & 1).wrapping_neg();
        let carry = (multiple >> (degree - 1)) & 1;
        multiple = truncate(multiple << 1, degree) ^ (tail & carry.wrapping_neg());
        i += 1;
    }
    product
}

/// The bits below degree.
pub(crate) const fn truncate(x: u128, degree: u32) -> u128 {
    x & (u128::MAX >> (128 - degree))
}

/// 1 + sum of X^tap: what X^degree is congruent to.
pub(crate) const fn tail(taps: &[u32]) -> u128 {
    let (mut tail, mut i) = (1, 0);
    while i < taps.len() {
        tail |= 1 << taps[i];
        i += 1;
    }
    tail
}

/// The images of the bits of a cell: the powers of the root, as many as cells have bits, and zeros.
pub(crate) const fn images(root: u128, cell_bits: u8, degree: u32, tail: u128) -> [u128; 8] {
    let mut images = [0; 8];
    images[0] = 1;
    let mut bit = 1;
    while bit < cell_bits as usize {
        images[bit] = times(images[bit - 1], root, degree, tail);
        bit += 1;
    }
    images
}

/// The masks whose parities are the bits of the coefficient at 1 (see the module).
///
/// They solve the linear system that says so of every basis element X^j times image: parity zero unless j is
/// zero and the image is that of the mask's own bit. Gauss and Jordan's elimination, for the eight right-hand
/// sides of a byte at once.
pub(crate) const fn projection(images: [u128; 8], cell_bits: u8, degree: u32, tail: u128) -> [u128; 8] {
    let (cell_bits, size) = (cell_bits as usize, degree as usize);
    let (mut rows, mut sides) = ([0; 128], [0u8; 128]);
    let mut row = 0;
    while row < size {
        rows[row] = if row < cell_bits { images[row] } else { times(rows[row - cell_bits], 2, degree, tail) };
        sides[row] = if row < cell_bits { 1 << row } else { 0 };
        row += 1;
    }
    let mut column = 0;
    while column < size {
        let mut pivot = column;
        while rows[pivot] >> column & 1 == 0 {
            pivot += 1;
        }
        let (found, side) = (rows[pivot], sides[pivot]);
        (rows[pivot], sides[pivot]) = (rows[column], sides[column]);
        (rows[column], sides[column]) = (found, side);
        let mut other = 0;
        while other < size {
            if other != column && rows[other] >> column & 1 == 1 {
                rows[other] ^= found;
                sides[other] ^= side;
            }
            other += 1;
        }
        column += 1;
    }
    let mut masks = [0; 8];
    let mut place = 0;
    while place < size * 8 {
        masks[place % 8] |= ((sides[place / 8] >> (place % 8) & 1) as u128) << (place / 8);
        place += 1;
    }
    masks
}

/// Implements [`MacField`](crate::MacField) for a type with the constants `ROOT` and `TAPS`.
macro_rules! mac_field {
    ($field:ident, $word:ty, $kernels:ident, $cells:ident, $inner_product:ident, $name:literal, bits: $bits:literal, cell_bits: $cell_bits:literal) => {
        const TAIL: u128 = crate::binary::tail(&TAPS);
        const IMAGES: [u128; 8] = crate::binary::images(ROOT, $cell_bits, $bits, TAIL);
        const BYTES: usize = ($bits as usize).div_ceil(8);
        static EMBEDDING: polyclave_kernels::cells::Embedding<BYTES> =
            polyclave_kernels::cells::Embedding::new(IMAGES);
        static PROJECTION: polyclave_kernels::cells::Projection<BYTES> =
            polyclave_kernels::cells::Projection::new(crate::binary::projection(
                IMAGES, $cell_bits, $bits, TAIL,
            ));

        impl polyclave_kernels::Modulus for $field {
            const DEGREE: u32 = $bits;
            const TAPS: &'static [u32] = &TAPS;
        }

        impl crate::MacField for $field {
            type Word = $word;
            const NAME: &'static str = $name;
            const BITS: u32 = $bits;
            const CELL_BITS: u8 = $cell_bits;

            #[inline]
            fn multiply(a: $word, b: $word) -> $word {
                polyclave_kernels::$kernels::product::<$field>(a, b)
            }

            #[inline]
            fn embed(cell: u8) -> $word {
                EMBEDDING.word(cell) as $word
            }

            #[inline]
            fn project(x: $word) -> u8 {
                PROJECTION.cell(x.into())
            }

            fn multiply_rows(dst: &mut [$word], a: &[$word], b: &[$word]) {
                polyclave_kernels::$kernels::multiply::<$field>(dst, a, b);
            }

            fn combine(dst: &mut [$word], terms: &[(&[$word], $word)], constant: $word) {
                polyclave_kernels::$kernels::combine::<$field>(dst, terms, constant);
            }

            fn inner_product(a: &[$word], b: &[$word]) -> $word {
                polyclave_kernels::$kernels::inner_product::<$field>(a, b)
            }

            fn embedded_inner_product(weights: &[$word], cells: &[u8]) -> $word {
                EMBEDDING.$inner_product::<$field>(weights, cells)
            }

            fn embed_row(dst: &mut [$word], cells: &[u8]) {
                EMBEDDING.$kernels(dst, cells);
            }

            fn project_row(dst: &mut [u8], src: &[$word]) {
                PROJECTION.$cells(dst, src);
            }

            #[inline]
            fn truncate(word: $word) -> $word {
                word & (<$word>::MAX >> (<$word>::BITS - $bits))
            }
        }
    };
}

pub(crate) use mac_field;
