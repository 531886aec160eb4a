//! Openings of values and products under a mask. All other operations are built on these.

use std::ops::Range;
use std::sync::Arc;

use polyclave_kernels::affine::{Map, Term, combine};

use super::prss::View;
use crate::interface::tally::Counts;
use crate::pool::{Pool, Shares};

/// What is opened under a mask.
#[derive(Clone, Copy)]
pub enum Secret<'a> {
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
pub struct Opening<'a> {
    pub(super) secret: Secret<'a>,
    pub(super) views: Vec<Arc<View>>,
}

/// Where openings that go out together stand.
pub(super) struct Layout {
    pub(super) places: Vec<Place>,
    /// Bytes that are sent.
    pub(super) messages: usize,
    /// Bytes of the shares of all images.
    pub(super) masks: usize,
}

/// Where one opening stands.
pub(super) struct Place {
    /// What is sent of it: one byte a value, or several vectors one after another.
    pub(super) messages: Range<usize>,
    /// Shares of its images, image after image.
    pub(super) masks: Range<usize>,
    /// Number of values.
    pub(super) len: usize,
}

impl Layout {
    /// With this many bytes sent for a value of each secret.
    pub(super) fn of(openings: &[Opening<'_>], sent: impl Fn(&Secret<'_>) -> usize) -> Layout {
        let (mut messages, mut masks) = (0, 0);
        let places = openings.iter().map(|opening| {
            let len = opening.secret.len();
            let (message_at, masks_at) = (messages, masks);
            messages += sent(&opening.secret) * len;
            masks += len * opening.views.len();
            Place { messages: message_at..messages, masks: masks_at..masks, len }
        });
        let places = places.collect();
        Layout { places, messages, masks }
    }

    /// Counts the operations.
    pub(super) fn count(&self, openings: &[Opening<'_>], counts: &mut Counts) {
        for (opening, place) in openings.iter().zip(&self.places) {
            match opening.secret {
                Secret::Value(_) => counts.openings += place.len as u64,
                Secret::Product(..) | Secret::ProductPlus(..) => counts.multiplications += place.len as u64,
            }
        }
    }
}

/// The public c = z + r of every opening, and the shares of the images of r.
pub struct Opened {
    /// Value by value, without what else was sent.
    public: Shares,
    masks: Shares,
    pool: Pool,
    /// By opening: where its values start in `public`, its first view in `masks`, and the number of values.
    layout: Vec<(usize, usize, usize)>,
    views: Vec<Vec<Arc<View>>>,
}

impl Opened {
    pub(super) fn new(
        public: Shares,
        masks: Shares,
        layout: Layout,
        openings: Vec<Opening<'_>>,
        pool: &Pool,
    ) -> Opened {
        let mut at = 0;
        let places = layout.places.into_iter().map(|place| {
            let start = at;
            at += place.len;
            (start, place.masks.start, place.len)
        });
        Opened {
            public,
            masks,
            pool: pool.clone(),
            layout: places.collect(),
            views: openings.into_iter().map(|o| o.views).collect(),
        }
    }

    /// Shares of M(z) + constant = M(c) + [M(r)] + constant for a range of the values of an opening.
    pub(super) fn share(
        &self,
        opening: usize,
        view: usize,
        range: Range<usize>,
        constant: u8,
        dst: &mut [u8],
    ) {
        combine(dst, &self.terms(opening, view, range), constant);
    }

    /// The two parts of [`share`](Opened::share), for sums with more.
    pub(super) fn terms(&self, opening: usize, view: usize, range: Range<usize>) -> [Term<'_>; 2] {
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

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use polyclave_cipher::Matrix;
    use polyclave_field::Gf256;

    use super::super::arithmetic::Arithmetic;
    use super::super::passive::Passive;
    use super::super::setup::{Setup, Structure, point};
    use super::*;
    use crate::interface::session::{HandshakeParameters, hello};
    use crate::mesh::run_parties;

    const VALUES: usize = 40_000;

    /// The polynomial of an opening, recovered from the messages of all three parties, says nothing but the
    /// masked value: each of its three coefficients is uniform, though the factors and their sharings are the
    /// same every time.
    #[test]
    fn every_coefficient_of_an_opened_product_is_uniform() {
        let messages = Mutex::new(vec![Vec::new(); 3]);
        let outcomes = run_parties(3, |net| {
            let setup = Setup::agree(Structure::new(3, 1)?, net)?;
            let stream = hello(&HandshakeParameters::new(3), net)?.stream();
            let mut arithmetic = Arithmetic::<Passive>::new(&setup, stream, net.members())?;
            let at = point(net.me());
            // The sharings 5 + 7 x and 9 + 3 x.
            let a = vec![(Gf256(5) + Gf256(7) * at).0; VALUES];
            let b = vec![(Gf256(9) + Gf256(3) * at).0; VALUES];
            let identity = arithmetic.prss.view(&Matrix::identity(8));
            let opening = Opening { secret: Secret::Product(&a, &b), views: vec![identity] };
            let opened = arithmetic.open_masked(vec![opening], net)?;
            messages.lock()[net.me().index()] = arithmetic.outgoing[net.me().index()].to_vec();
            Ok(opened.shares(0, 0, 0).to_vec())
        });
        let shares: Vec<Vec<u8>> = outcomes.into_iter().map(|o| o.expect("honest parties finish")).collect();
        let messages = messages.into_inner();
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
