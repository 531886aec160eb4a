//! Lookups of tables built on inversion in GF(2^8), such as the S-box of AES, by arithmetic on shares.
//!
//! A table is `after(before(x)^254)` with affine maps around the power (Damgard and Keller 2010, section
//! 4.1). An affine map that is not a product by a constant costs an opening under a mask (bit decomposition,
//! section 3.4), unless the value to which it applies is opened under a mask anyway.
//!
//! | method | operations | rounds | of them before the inputs are known |
//! |---|---|---|---|
//! | an addition chain of m products, d deep | m + 1 | d + 1 | |
//! | masking | 11 + 2/255 | 7 + 2/255 | |
//! | masked exponentiation | 15 | 5 + 7 | 7 operations, 7 rounds for all lookups together |
//! | views | 5 | 4 | |
//! | carried squares | 4 | 3 | |
//! | masked powers | 6 | 2 + 2 | 4 operations, 2 rounds |
//!
//! If products do not bring their images (`active/dealt_triples.rs`), views and carried squares take three
//! more of both, and masked powers one more. If only multiples of the result are needed, it is one less.
//!
//! How the power itself is computed is in `power.rs`.

use std::sync::Arc;

use polyclave_cipher::{Compiled, Lookup, Matrix};
use polyclave_kernels::affine::{Map, Term, combine};

use super::arithmetic::Arithmetic;
use super::inversion::Inversion;
use super::masked_powers::by_masked_powers;
use super::opening::{Opening, Secret};
use super::power::{Powers, by_chain, by_masked_exponentiation, by_masking, rivain_prouff};
use super::prss::View;
use super::runs::Run;
use super::security::AdversaryModel;
use crate::byte_registers::Registers;
use crate::interface::net::Net;
use crate::pool::{Pool, Shares};
use crate::{Error, Result};

/// The lookups of a layer that are inversions, as one vector.
pub(super) struct Inversions<'a> {
    runs: Vec<Run<'a>>,
    len: usize,
}

impl Run<'_> {
    fn before(&self) -> &polyclave_cipher::Affine {
        &self.table.inversion().expect("runs are of such tables").before
    }

    /// The images of the power that the lookups want, with their constants.
    fn after(&self) -> Vec<(Matrix, u8)> {
        let after = self.table.inversion().expect("runs are of such tables").after;
        let views = self.lookups[0].views.iter();
        views.map(|(m, _)| (m.after(&after.matrix), m.apply(after.constant))).collect()
    }
}

impl<'a> Inversions<'a> {
    pub(super) fn new(
        compiled: &'a Compiled,
        lookups: &[&'a Lookup],
        registers: &Registers,
    ) -> Inversions<'a> {
        let (runs, len) = Run::group(compiled, lookups, registers);
        Inversions { runs, len }
    }

    /// Computes all of them.
    pub(super) fn run<S: AdversaryModel>(
        &self,
        way: Inversion,
        arithmetic: &mut Arithmetic<S>,
        registers: &mut Registers,
        powers: Option<&mut Powers>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let identity = Matrix::identity(8);
        match way {
            Inversion::Views | Inversion::CarriedSquares => {
                let square = Matrix::frobenius(1);
                let [x, x2]: [Shares; 2] = match way {
                    Inversion::CarriedSquares => {
                        let pool = &arithmetic.pool;
                        [
                            self.carried(0, &identity, registers, pool),
                            self.carried(1, &square, registers, pool),
                        ]
                    }
                    _ => pair(self.open_images(&[identity, square], arithmetic, registers, net)?),
                };
                let [x14, x240] = rivain_prouff(&x, &x2, arithmetic, net)?;
                self.finish(Power::Product(&x240, &x14), arithmetic, registers, net)
            }
            Inversion::Masking => {
                let mut images = vec![identity];
                images.extend((0..8).map(|i| Matrix::bit(8, i)));
                let shares = self.open_images(&images, arithmetic, registers, net)?;
                let inverse = by_masking(shares, arithmetic, net)?;
                self.finish(Power::Value(&inverse), arithmetic, registers, net)
            }
            Inversion::MaskedExponentiation => {
                let powers = powers.ok_or_else(|| Error::misuse("the batch has no powers of masks"))?;
                let x = self.plain(arithmetic, registers, net)?;
                let inverse = by_masked_exponentiation(&x, powers, arithmetic, net)?;
                self.finish(Power::Value(&inverse), arithmetic, registers, net)
            }
            Inversion::MaskedPowers => {
                let powers = powers.ok_or_else(|| Error::misuse("the batch has no powers of masks"))?;
                let x = self.carried(0, &identity, registers, &arithmetic.pool);
                let [x170, x84] = by_masked_powers(&x, powers, arithmetic, net)?;
                self.finish(Power::Product(&x170, &x84), arithmetic, registers, net)
            }
            chained => {
                let chain = chained.chain().expect("all other ways are chains");
                let x = self.plain(arithmetic, registers, net)?;
                let inverse = by_chain(x, &chain, arithmetic, net)?;
                self.finish(Power::Value(&inverse), arithmetic, registers, net)
            }
        }
    }

    /// Shares of before(x): free where that is a product by a constant, otherwise opened.
    fn plain<S: AdversaryModel>(
        &self,
        arithmetic: &mut Arithmetic<S>,
        registers: &Registers,
        net: &mut dyn Net,
    ) -> Result<Shares> {
        let scalar = |run: &&Run<'_>| run.before().matrix.as_scalar().is_some();
        let (local, others): (Vec<&Run<'_>>, Vec<&Run<'_>>) = self.runs.iter().partition(scalar);
        let mut x = match others.is_empty() {
            true => arithmetic.pool.take(self.len),
            false => self.open_runs(&others, &[Matrix::identity(8)], arithmetic, registers, net)?.remove(0),
        };
        for run in local {
            let map = Map::new(run.before().matrix.columns());
            for (part, lookup) in run.parts() {
                let terms = [Term { src: registers.row(lookup.xs[0]), map: &map }];
                combine(&mut x[part], &terms, run.before().constant);
            }
        }
        Ok(x)
    }

    /// Shares of images of before(x), by one opening of x under a mask.
    fn open_images<S: AdversaryModel>(
        &self,
        images: &[Matrix],
        arithmetic: &mut Arithmetic<S>,
        registers: &Registers,
        net: &mut dyn Net,
    ) -> Result<Vec<Shares>> {
        self.open_runs(&self.runs.iter().collect::<Vec<_>>(), images, arithmetic, registers, net)
    }

    /// [`open_images`](Self::open_images) of some of the runs; what is at the others is unspecified.
    fn open_runs<S: AdversaryModel>(
        &self,
        runs: &[&Run<'_>],
        images: &[Matrix],
        arithmetic: &mut Arithmetic<S>,
        registers: &Registers,
        net: &mut dyn Net,
    ) -> Result<Vec<Shares>> {
        let mut x = arithmetic.pool.take(self.len);
        for (part, lookup) in runs.iter().flat_map(|run| run.parts()) {
            x[part].copy_from_slice(registers.row(lookup.xs[0]));
        }
        let openings = runs.iter().map(|run| Opening {
            secret: Secret::Value(&x[run.range.clone()]),
            views: images.iter().map(|m| arithmetic.prss.view(&m.after(&run.before().matrix))).collect(),
        });
        let openings = openings.collect();
        let opened = arithmetic.open_masked(openings, net)?;
        let mut shares: Vec<Shares> = images.iter().map(|_| arithmetic.pool.take(self.len)).collect();
        for (i, run) in runs.iter().enumerate() {
            for (k, (image, dst)) in images.iter().zip(&mut shares).enumerate() {
                let constant = image.apply(run.before().constant);
                opened.share(i, k, 0..run.range.len(), constant, &mut dst[run.range.clone()]);
            }
        }
        Ok(shares)
    }

    /// An image of before(x) that came through the linear layers as the lookup's k-th start.
    fn carried(&self, k: usize, image: &Matrix, registers: &Registers, pool: &Pool) -> Shares {
        let mut x = pool.take(self.len);
        let identity = Map::identity();
        for run in &self.runs {
            let constant = image.apply(run.before().constant);
            for (part, lookup) in run.parts() {
                let terms = [Term { src: registers.row(lookup.xs[k]), map: &identity }];
                combine(&mut x[part], &terms, constant);
            }
        }
        x
    }

    /// The views that the lookups want of x^254, into the bank.
    fn finish<S: AdversaryModel>(
        &self,
        power: Power<'_>,
        arithmetic: &mut Arithmetic<S>,
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        let local = |run: &&Run<'_>| run.after().iter().all(|(m, _)| m.as_scalar().is_some());
        let (free, opened): (Vec<&Run<'_>>, Vec<&Run<'_>>) = match power {
            Power::Value(_) => self.runs.iter().partition(local),
            Power::Product(..) => (Vec::new(), self.runs.iter().collect()),
        };
        if let Power::Value(y) = power {
            for run in &free {
                let after = run.after();
                run.write(registers, |k, range, dst| {
                    let map = Map::new(after[k].0.columns());
                    let src = &y[run.range.clone()][range];
                    combine(dst, &[Term { src, map: &map }], after[k].1);
                });
            }
        }
        if opened.is_empty() {
            return Ok(());
        }
        let mut openings = Vec::with_capacity(opened.len());
        let afters: Vec<_> = opened.iter().map(|run| run.after()).collect();
        for (run, after) in opened.iter().zip(&afters) {
            let secret = match power {
                Power::Value(y) => Secret::Value(&y[run.range.clone()]),
                Power::Product(a, b) => Secret::Product(&a[run.range.clone()], &b[run.range.clone()]),
            };
            let views: Vec<Arc<View>> = after.iter().map(|(m, _)| arithmetic.prss.view(m)).collect();
            openings.push(Opening { secret, views });
        }
        let results = arithmetic.open_masked(openings, net)?;
        for (i, (run, after)) in opened.iter().zip(&afters).enumerate() {
            run.write(registers, |k, range, dst| results.share(i, k, range, after[k].1, dst));
        }
        Ok(())
    }
}

/// x^254 as shares, or as the two shared factors of it.
#[derive(Clone, Copy)]
enum Power<'a> {
    Value(&'a [u8]),
    Product(&'a [u8], &'a [u8]),
}

fn pair(shares: Vec<Shares>) -> [Shares; 2] {
    let mut shares = shares.into_iter();
    [(); 2].map(|()| shares.next().unwrap_or_default())
}
