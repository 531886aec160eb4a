//! Openings under a mask, of values and of products: the operation that everything else is made of.

use std::sync::Arc;

use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256::multiply;

use super::arithmetic::{Arithmetic, resize};
use super::prss::{Degree, Prss, TILE, View};
use crate::Result;
use crate::net::Net;
use crate::pool::{Pool, Shares};

/// What is opened under a mask.
#[derive(Clone, Copy)]
pub(super) enum Secret<'a> {
    /// A shared vector.
    Value(&'a [u8]),
    /// The product of two shared vectors: multiplied and opened in one operation.
    Product(&'a [u8], &'a [u8]),
    /// The same plus a third shared vector.
    ProductPlus(&'a [u8], &'a [u8], &'a [u8]),
}

impl Secret<'_> {
    fn len(&self) -> usize {
        match self {
            Secret::Value(x) | Secret::Product(x, _) | Secret::ProductPlus(x, ..) => x.len(),
        }
    }
}

/// A vector to open under a mask, and the images of it that are wanted.
pub(super) struct Opening<'a> {
    pub(super) secret: Secret<'a>,
    pub(super) views: Vec<Arc<View>>,
}

/// The public c = z + r of every opening, and the shares of the images of r.
pub(super) struct Opened {
    public: Shares,
    masks: Shares,
    pool: Pool,
    /// By opening: where its values start in `public`, its first view in `masks`, and the number of values.
    layout: Vec<(usize, usize, usize)>,
    views: Vec<Vec<Arc<View>>>,
}

impl Opened {
    /// Shares of M(z) + constant = M(c) + [M(r)] + constant for a range of the values of an opening.
    pub(super) fn share(
        &self,
        opening: usize,
        view: usize,
        range: std::ops::Range<usize>,
        constant: u8,
        dst: &mut [u8],
    ) {
        combine(dst, &self.terms(opening, view, range), constant);
    }

    /// The two parts of [`share`](Opened::share), for sums with more.
    pub(super) fn terms(&self, opening: usize, view: usize, range: std::ops::Range<usize>) -> [Term<'_>; 2] {
        const IDENTITY: &Map = &Map::identity();
        let (public, masks, len) = self.layout[opening];
        let c = &self.public[public..][range.clone()];
        let r = &self.masks[masks + view * len..][range];
        [Term { src: c, map: &self.views[opening][view].map }, Term { src: r, map: IDENTITY }]
    }

    /// [`share`](Opened::share) of all values.
    pub(super) fn shares(&self, opening: usize, view: usize, constant: u8) -> Shares {
        let len = self.layout[opening].2;
        let mut shares = self.pool.take(len);
        self.share(opening, view, 0..len, constant, &mut shares);
        shares
    }
}

impl Arithmetic {
    /// Opens shared vectors under fresh masks; all images of them that are wanted follow locally. One operation a value,
    /// one round.
    ///
    /// Opened is z + r, with the whole polynomial: r has the degree of z or, for products, a zero sharing of degree 2t
    /// is added, so that given the shares of any t parties every remaining coefficient is pseudorandom (see
    /// [`super::prss`]). Damgard and Keller 2010, section 3.4, for bits; here for any linear image.
    pub(super) fn open_masked(&mut self, openings: Vec<Opening<'_>>, net: &mut dyn Net) -> Result<Opened> {
        let total: usize = openings.iter().map(|o| o.secret.len()).sum();
        let total_masks: usize = openings.iter().map(|o| o.secret.len() * o.views.len()).sum();
        let mut message = std::mem::take(&mut self.outgoing[self.me.index()]);
        resize(&mut message, total);
        let mut masks = self.pool.take(total_masks);
        let mut layout = Vec::with_capacity(openings.len());
        let (mut at, mut mask_at) = (0, 0);
        let counts = self.tally.of(self.phase);
        for opening in &openings {
            let len = opening.secret.len();
            match opening.secret {
                Secret::Value(_) => counts.openings += len as u64,
                Secret::Product(..) | Secret::ProductPlus(..) => counts.multiplications += len as u64,
            }
            layout.push((at, mask_at, len));
            let shares = &mut masks[mask_at..][..len * opening.views.len()];
            mask_opening(&mut self.prss, &self.pool, opening, &mut message[at..][..len], shares);
            at += len;
            mask_at += len * opening.views.len();
        }
        let mut public = self.pool.take(total);
        let opened = self.open(&message, &mut public, net);
        self.outgoing[self.me.index()] = message;
        opened?;
        Ok(Opened {
            public,
            masks,
            pool: self.pool.clone(),
            layout,
            views: openings.into_iter().map(|o| o.views).collect(),
        })
    }
}

/// Masks one opening tile by tile, so that the generated randomness never leaves the cache.
fn mask_opening(prss: &mut Prss, pool: &Pool, opening: &Opening<'_>, message: &mut [u8], masks: &mut [u8]) {
    let len = message.len();
    let mut product = pool.take(TILE.min(len));
    for start in (0..len).step_by(TILE) {
        let range = start..len.min(start + TILE);
        let (degree, secret) = match opening.secret {
            Secret::Value(x) => (Degree::Value, &x[range.clone()]),
            Secret::Product(a, b) => {
                let product = &mut product[..range.len()];
                multiply(product, &a[range.clone()], &b[range.clone()]);
                (Degree::Product, &*product)
            }
            Secret::ProductPlus(a, b, c) => {
                let product = &mut product[..range.len()];
                multiply(product, &a[range.clone()], &b[range.clone()]);
                product.iter_mut().zip(&c[range.clone()]).for_each(|(product, c)| *product ^= c);
                (Degree::Product, &*product)
            }
        };
        let shares = masks.chunks_mut(len.max(1)).map(|share| &mut share[range.clone()]);
        let views = opening.views.iter().map(|v| &**v).zip(shares);
        prss.mask(degree, secret, &mut message[range.clone()], views);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use polyclave_cipher::Matrix;
    use polyclave_field::Gf256;

    use super::super::setup::{Setup, Structure, point};
    use super::*;
    use crate::mesh::run_parties;
    use crate::session::{Terms, hello};

    const VALUES: usize = 40_000;

    /// The polynomial of an opening, recovered from the messages of all three parties, says nothing but the masked value:
    /// each of its three coefficients is uniform, though the factors and their sharings are the same every time.
    #[test]
    fn every_coefficient_of_an_opened_product_is_uniform() {
        let messages = Mutex::new(vec![Vec::new(); 3]);
        let outcomes = run_parties(3, |net| {
            let setup = Setup::agree(Structure::new(3, 1)?, net)?;
            let stream = hello(&Terms::new(3), net)?.stream();
            let mut arithmetic = Arithmetic::new(&setup, stream, net.members())?;
            let at = point(net.me());
            // The sharings 5 + 7 x and 9 + 3 x.
            let a = vec![(Gf256(5) + Gf256(7) * at).0; VALUES];
            let b = vec![(Gf256(9) + Gf256(3) * at).0; VALUES];
            let identity = arithmetic.prss.view(&Matrix::identity(8));
            let opening = Opening { secret: Secret::Product(&a, &b), views: vec![identity] };
            let opened = arithmetic.open_masked(vec![opening], net)?;
            messages.lock().expect("no panic")[net.me().index()] =
                arithmetic.outgoing[net.me().index()].to_vec();
            Ok(opened.shares(0, 0, 0).to_vec())
        });
        let shares: Vec<Vec<u8>> = outcomes.into_iter().map(|o| o.expect("honest parties finish")).collect();
        let messages = messages.into_inner().expect("no panic");
        let points = [1, 2, 3].map(Gf256);
        let mut histograms = [[0u32; 256]; 3];
        for i in 0..VALUES {
            // Newton's divided differences, then the coefficients.
            let y = [0, 1, 2].map(|p: usize| Gf256(messages[p][i]));
            let slope = |j: usize, k: usize| (y[j] + y[k]) * (points[j] + points[k]).inverse_or_zero();
            let c2 = (slope(0, 1) + slope(1, 2)) * (points[0] + points[2]).inverse_or_zero();
            let c1 = slope(0, 1) + c2 * (points[0] + points[1]);
            let c0 = y[0] + c1 * points[0] + c2 * points[0] * points[0];
            [c0, c1, c2].iter().zip(&mut histograms).for_each(|(c, h)| h[usize::from(c.0)] += 1);
            let value: Gf256 = Gf256::lagrange(&points[..2], Gf256::ZERO)
                .into_iter()
                .zip([shares[0][i], shares[1][i]])
                .map(|(l, share)| l * Gf256(share))
                .sum();
            assert_eq!(value, Gf256(5) * Gf256(9), "two shares give the product");
        }
        for (k, histogram) in histograms.iter().enumerate() {
            let expected = VALUES as f64 / 256.0;
            let chi_squared: f64 =
                histogram.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
            assert!(chi_squared < 255.0 + 9.0 * 22.6, "coefficient {k}: {chi_squared}");
        }
    }
}
