//! The arithmetic of shared vectors: openings, multiplications, and openings under a mask.
//!
//! Adversary: passive, at most t < n/2 parties, static. Each function states why what it opens tells nothing. Every
//! elementary operation sends one byte to every peer (Damgard and Keller 2010, section 3.2).

use std::sync::Arc;

use polyclave_cipher::Matrix;
use polyclave_field::Gf256;
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256::multiply;
use zeroize::Zeroizing;

use super::prss::{Degree, Prss, TILE, View};
use super::setup::{Setup, point};
use super::shares::{Pool, Shares};
use crate::net::Net;
use crate::session::{Stream, random_bytes};
use crate::tally::{Phase, Tally};
use crate::{Party, Result};

/// What is opened under a mask.
#[derive(Clone, Copy)]
pub(super) enum Secret<'a> {
    /// A shared vector.
    Value(&'a [u8]),
    /// The product of two shared vectors: multiplied and opened in one operation.
    Product(&'a [u8], &'a [u8]),
}

impl Secret<'_> {
    fn len(&self) -> usize {
        match self {
            Secret::Value(x) | Secret::Product(x, _) => x.len(),
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
    public: Vec<u8>,
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
        let (public, masks, len) = self.layout[opening];
        let identity = Map::identity();
        let c = &self.public[public..][range.clone()];
        let r = &self.masks[masks + view * len..][range];
        let terms = [Term { src: c, map: &self.views[opening][view].map }, Term { src: r, map: &identity }];
        combine(dst, &terms, constant);
    }

    /// [`share`](Opened::share) of all values.
    pub(super) fn shares(&self, opening: usize, view: usize, constant: u8) -> Shares {
        let len = self.layout[opening].2;
        let mut shares = self.pool.take(len);
        self.share(opening, view, 0..len, constant, &mut shares);
        shares
    }
}

/// One party's arithmetic in one session and stream.
pub(super) struct Arithmetic {
    pub(super) prss: Prss,
    /// See [`Stream::label`].
    pub(super) stream: [u8; 40],
    me: Party,
    parties: usize,
    /// Coefficients of resharing polynomials: this party's own randomness.
    own_randomness: AesPrg,
    /// Recombination: a polynomial of degree below n at 0, from its values at all points.
    lagrange: Vec<Map>,
    /// For each party the powers 1 .. t of its point.
    point_powers: Vec<Vec<Map>>,
    /// Multiplication by every constant.
    pub(super) scalars: Vec<Map>,
    pub(super) tally: Tally,
    pub(super) phase: Phase,
    pub(super) pool: Pool,
    outgoing: Vec<Zeroizing<Vec<u8>>>,
    incoming: Vec<Zeroizing<Vec<u8>>>,
}

impl Arithmetic {
    pub(super) fn new(setup: &Setup, stream: Stream) -> Result<Arithmetic> {
        let (parties, threshold) = (setup.structure.parties(), setup.structure.threshold());
        let scalar = |c: Gf256| Map::new(Matrix::scalar(c.0).columns());
        let points: Vec<Gf256> = Party::all(parties).map(point).collect();
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        Ok(Arithmetic {
            prss: Prss::new(setup, &stream),
            stream: stream.label(),
            me: setup.me,
            parties,
            own_randomness: AesPrg::new(&seed, 0),
            lagrange: Gf256::lagrange(&points, Gf256::ZERO).into_iter().map(scalar).collect(),
            point_powers: points
                .iter()
                .map(|x| (1..=threshold as u32).map(|k| scalar(x.pow(k))).collect())
                .collect(),
            scalars: (0..=255).map(|c| scalar(Gf256(c))).collect(),
            tally: Tally::default(),
            phase: Phase::Preprocessing,
            pool: Pool::default(),
            outgoing: vec![Zeroizing::default(); parties],
            incoming: vec![Zeroizing::default(); parties],
        })
    }

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
                Secret::Product(..) => counts.multiplications += len as u64,
            }
            layout.push((at, mask_at, len));
            let shares = &mut masks[mask_at..][..len * opening.views.len()];
            mask_opening(&mut self.prss, &self.pool, opening, &mut message[at..][..len], shares);
            at += len;
            mask_at += len * opening.views.len();
        }
        let mut public = vec![0; total];
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

    /// Opens shared values that are uniformly random or meant to be known. One operation a value, one round.
    pub(super) fn open_plain(&mut self, shares: &[u8], net: &mut dyn Net) -> Result<Shares> {
        self.tally.of(self.phase).openings += shares.len() as u64;
        let mut public = self.pool.take(shares.len());
        self.open(shares, &mut public, net)?;
        Ok(public)
    }

    /// Sends every party the same shares and recombines. All n shares enter: they determine a polynomial of any degree
    /// below n, so this opens values and products alike.
    fn open(&mut self, shares: &[u8], public: &mut [u8], net: &mut dyn Net) -> Result<()> {
        if shares.is_empty() {
            return Ok(());
        }
        self.tally.of(self.phase).rounds += 1;
        let out: Vec<&[u8]> = self.each_party(|p| if p == self.me { &[][..] } else { shares });
        receive_from_all(&mut self.incoming, self.me, shares.len(), &out, net)?;
        let share_of = |p: Party| if p == self.me { shares } else { &self.incoming[p.index()][..] };
        combine(public, &terms(self.each_party(share_of), &self.lagrange), 0);
        Ok(())
    }

    /// Products of shared vectors of equal lengths by resharing (Ben-Or, Goldwasser and Wigderson 1988 in the form of
    /// Gennaro, Rabin and Rabin 1998). One operation a product, one round.
    ///
    /// Each party shares its local product by a fresh polynomial of degree t; recombination at 0 is linear, so the sum
    /// of those sharings, weighted, shares the product. Any t parties see t points of polynomials of degree t.
    pub(super) fn multiply(&mut self, products: &[(&[u8], &[u8])], net: &mut dyn Net) -> Result<Vec<Shares>> {
        let len = products[0].0.len();
        if len == 0 {
            return Ok(products.iter().map(|_| self.pool.take(0)).collect());
        }
        let counts = self.tally.of(self.phase);
        counts.multiplications += (products.len() * len) as u64;
        counts.rounds += 1;
        self.outgoing.iter_mut().for_each(|m| resize(m, len * products.len()));
        let mut product = self.pool.take(TILE.min(len));
        for (i, (a, b)) in products.iter().enumerate() {
            for start in (0..len).step_by(TILE) {
                let range = start..len.min(start + TILE);
                let product = &mut product[..range.len()];
                multiply(product, &a[range.clone()], &b[range.clone()]);
                share_secret(
                    product,
                    i * len + start,
                    &mut self.own_randomness,
                    &self.point_powers,
                    &mut self.outgoing,
                    &self.pool,
                );
            }
        }
        let out: Vec<&[u8]> =
            self.each_party(|p| if p == self.me { &[][..] } else { &self.outgoing[p.index()][..] });
        receive_from_all(&mut self.incoming, self.me, len * products.len(), &out, net)?;
        let shares_of = |p: Party| match p == self.me {
            true => &self.outgoing[p.index()],
            false => &self.incoming[p.index()],
        };
        let mut results = Vec::with_capacity(products.len());
        for i in 0..products.len() {
            let mut result = self.pool.take(len);
            let sources = self.each_party(|p| &shares_of(p)[i * len..][..len]);
            combine(&mut result, &terms(sources, &self.lagrange), 0);
            results.push(result);
        }
        Ok(results)
    }

    /// Shares this party's own values: `dst` becomes its share.
    pub(super) fn share_own(&mut self, values: &[u8], dst: &mut [u8], net: &mut dyn Net) -> Result<()> {
        self.tally.of(self.phase).rounds += 1;
        self.outgoing.iter_mut().for_each(|m| resize(m, values.len()));
        for start in (0..values.len()).step_by(TILE) {
            let range = start..values.len().min(start + TILE);
            let randomness = &mut self.own_randomness;
            let powers = &self.point_powers;
            share_secret(&values[range], start, randomness, powers, &mut self.outgoing, &self.pool);
        }
        for p in self.me.peers(self.parties) {
            net.send(p, &self.outgoing[p.index()])?;
        }
        dst.copy_from_slice(&self.outgoing[self.me.index()]);
        Ok(())
    }

    /// Receives shares of another party's values.
    pub(super) fn receive_share(&mut self, from: Party, dst: &mut [u8], net: &mut dyn Net) -> Result<()> {
        self.tally.of(self.phase).rounds += 1;
        net.recv(from, dst)
    }

    /// Reveals shared values to one party only; `None` for the others.
    pub(super) fn reveal_to(
        &mut self,
        owner: Party,
        shares: &[u8],
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        let counts = self.tally.of(self.phase);
        counts.openings += shares.len() as u64;
        counts.rounds += 1;
        if owner != self.me {
            net.send(owner, shares)?;
            return Ok(None);
        }
        let nothing = vec![&[][..]; self.parties];
        receive_from_all(&mut self.incoming, self.me, shares.len(), &nothing, net)?;
        let mut values = self.pool.take(shares.len());
        let share_of = |p: Party| if p == self.me { shares } else { &self.incoming[p.index()][..] };
        combine(&mut values, &terms(self.each_party(share_of), &self.lagrange), 0);
        Ok(Some(values))
    }

    fn each_party<'a, T>(&'a self, f: impl Fn(Party) -> T + 'a) -> Vec<T> {
        Party::all(self.parties).map(f).collect()
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
        };
        let shares = masks.chunks_mut(len.max(1)).map(|share| &mut share[range.clone()]);
        let views = opening.views.iter().map(|v| &**v).zip(shares);
        prss.mask(degree, secret, &mut message[range.clone()], views);
    }
}

/// Shares up to a tile of values with fresh polynomials of degree t, into everybody's message at a position.
fn share_secret(
    values: &[u8],
    at: usize,
    randomness: &mut AesPrg,
    point_powers: &[Vec<Map>],
    messages: &mut [Zeroizing<Vec<u8>>],
    pool: &Pool,
) {
    let (len, identity) = (values.len(), Map::identity());
    let threshold = point_powers[0].len();
    let mut coefficients = pool.take(threshold * len);
    randomness.fill(&mut coefficients);
    for (message, powers) in messages.iter_mut().zip(point_powers) {
        let mut terms = vec![Term { src: values, map: &identity }];
        terms.extend(coefficients.chunks(len).zip(powers).map(|(src, map)| Term { src, map }));
        combine(&mut message[at..][..len], &terms, 0);
    }
}

fn terms<'a>(sources: Vec<&'a [u8]>, maps: &'a [Map]) -> Vec<Term<'a>> {
    sources.into_iter().zip(maps).map(|(src, map)| Term { src, map }).collect()
}

/// One exchange in which every peer sends `len` bytes.
fn receive_from_all(
    incoming: &mut [Zeroizing<Vec<u8>>],
    me: Party,
    len: usize,
    out: &[&[u8]],
    net: &mut dyn Net,
) -> Result<()> {
    for (p, buffer) in Party::all(out.len()).zip(incoming.iter_mut()) {
        resize(buffer, if p == me { 0 } else { len });
    }
    net.exchange(out, &mut incoming.iter_mut().map(|b| b.as_mut_slice()).collect::<Vec<_>>())
}

/// Changes the length of a buffer that is reused; a new allocation leaves no unwiped one behind.
fn resize(buffer: &mut Zeroizing<Vec<u8>>, len: usize) {
    if buffer.capacity() < len {
        *buffer = Zeroizing::new(Vec::with_capacity(len));
    }
    buffer.resize(len, 0);
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::setup::Structure;
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
            let mut arithmetic = Arithmetic::new(&setup, hello(&Terms::new(3), net)?.stream())?;
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
