//! Lookups of small tables as polynomials with three products, evaluated on shares with nothing made ahead
//! (Pulkus and Vivek 2016; DES-PV of Keller et al. 2017, sections 3.2 and 3.3).
//!
//! The table is the low bits of p1(X) q1(X) + p2(X), where p1, q1 and p2 are sums of GF(2)-linear maps of X,
//! X^3 and X^7 ([`polyclave_cipher::Polynomials`]). The images of X that the lookup needs ([`wants`]) come
//! with its input, through the linear layers. If a cell is combined from single bits, as in DES, every image
//! of it is local. X^3 = X X^2, X^7 = X^3 X^4 and the result are each opened under a mask, which gives all
//! their images too (`opening.rs`). 3 operations, 3 rounds.
//!
//! Adversary: passive, below half. What is opened is z + r for a pseudorandom byte r. That covers all 8 bits
//! of z: bits of the result that are no output of the table but depend on the input stay unknown too.
//!
//! # Differences from the paper
//! The paper decomposes X^3, X^7 and the result into bits, with random bits made ahead: 5 rounds. Here the
//! products themselves are opened under a mask: 3 rounds.

use polyclave_cipher::{Compiled, Lookup, Matrix, Polynomials, Table};
use polyclave_kernels::affine::{Map, Term, combine};

use super::arithmetic::Arithmetic;
use super::opening::{Opening, Secret};
use super::runs::Run;
use super::security::AdversaryModel;
use crate::Result;
use crate::byte_registers::Registers;
use crate::interface::net::Net;
use crate::pool::Shares;

/// Operations and rounds of a lookup.
pub(super) const COST: (usize, usize) = (3, 3);

/// Positions among what a lookup [`wants`] of the images that p1 and p2 have of X.
const P1: usize = 3;
const P2: usize = 4;

/// The images of its input that a lookup starts from: X, X^2, X^4, and those in p1 and p2. (q1 has none.)
pub(super) fn wants(table: &Table, polynomials: &Polynomials) -> Vec<Matrix> {
    let bits = table.in_bits();
    let element = Matrix::of(bits, 8, |x| x);
    let images = [Matrix::frobenius(1), Matrix::frobenius(2), polynomials.p1.maps[0], polynomials.p2.maps[0]];
    let images = images.iter().map(|m| m.after(&element));
    [Matrix::identity(bits)].into_iter().chain(images).collect()
}

/// All lookups of a layer that go by polynomials, together.
pub(super) fn lookup<S: AdversaryModel>(
    compiled: &Compiled,
    lookups: &[&Lookup],
    arithmetic: &mut Arithmetic<S>,
    registers: &mut Registers,
    net: &mut dyn Net,
) -> Result<()> {
    let (runs, len) = Run::group(compiled, lookups, registers);
    let tables = runs.iter().map(|run| run.table);
    let solved = tables.map(|table| table.pulkus_vivek().expect("tables without go another way"));
    let polynomials: Vec<&Polynomials> = solved.collect();
    let [x, x2, x4] = [0, 1, 2].map(|start| {
        let mut image = arithmetic.pool.take(len);
        for (part, lookup) in runs.iter().flat_map(Run::parts) {
            image[part].copy_from_slice(registers.row(lookup.xs[start]));
        }
        image
    });

    let mut open_products = |a: &Shares, b: &Shares, images: &dyn Fn(&Polynomials) -> [Matrix; 3]| {
        let openings = runs.iter().zip(&polynomials).map(|(run, polynomials)| Opening {
            secret: Secret::Product(&a[run.range.clone()], &b[run.range.clone()]),
            views: images(polynomials).iter().map(|m| arithmetic.prss.view(m)).collect(),
        });
        let openings = openings.collect();
        arithmetic.open_masked(openings, net)
    };
    let cubes = open_products(&x, &x2, &|p| [Matrix::identity(8), p.p1.maps[1], p.p2.maps[1]])?;
    let mut x3 = x;
    for (i, run) in runs.iter().enumerate() {
        cubes.share(i, 0, 0..run.range.len(), 0, &mut x3[run.range.clone()]);
    }
    let sevenths = open_products(&x3, &x4, &|p| [p.p1.maps[2], p.q1.maps[2], p.p2.maps[2]])?;

    let [mut p1, mut q1, mut p2] = [x3, x2, x4];
    let identity = Map::identity();
    for (i, (run, polynomials)) in runs.iter().zip(&polynomials).enumerate() {
        sevenths.share(i, 1, 0..run.range.len(), polynomials.q1.constant, &mut q1[run.range.clone()]);
        for (part, lookup) in run.parts() {
            let range = part.start - run.range.start..part.end - run.range.start;
            let sum = |start: usize, cube: usize, seventh: usize, constant, dst: &mut Shares| {
                let [c3, r3] = cubes.terms(i, cube, range.clone());
                let [c7, r7] = sevenths.terms(i, seventh, range.clone());
                let x = Term { src: registers.row(lookup.xs[start]), map: &identity };
                combine(&mut dst[part.clone()], &[x, c3, r3, c7, r7], constant);
            };
            sum(P1, 1, 0, polynomials.p1.constant, &mut p1);
            sum(P2, 2, 2, polynomials.p2.constant, &mut p2);
        }
    }

    let openings = runs.iter().map(|run| {
        let range = || run.range.clone();
        let low = Matrix::of(8, run.table.out_bits(), |z| z & (0xff >> (8 - run.table.out_bits())));
        let views = run.lookups[0].views.iter();
        let views = views.map(|(m, _)| arithmetic.prss.view(&m.after(&low))).collect();
        Opening { secret: Secret::ProductPlus(&p1[range()], &q1[range()], &p2[range()]), views }
    });
    let openings = openings.collect();
    let opened = arithmetic.open_masked(openings, net)?;
    for (i, run) in runs.iter().enumerate() {
        run.write(registers, |view, range, dst| opened.share(i, view, range, 0, dst));
    }
    Ok(())
}
