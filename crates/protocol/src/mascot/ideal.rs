//! PLACEHOLDER for `crate::ot`, insecure: choices go in clear text and everything else is derived from public labels.
#![allow(missing_docs)]

use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use crate::net::Net;
use crate::{Party, Result};

#[derive(Clone, Copy)]
pub struct Shape {
    columns: usize,
}

impl Shape {
    pub fn new(columns: usize, _expansion: usize) -> Result<Shape> {
        Ok(Shape { columns })
    }
}

pub struct Pairs {
    label: Vec<u8>,
    delta: u128,
    columns: usize,
    count: u64,
}

pub struct Correlated {
    pub sent: Vec<Zeroizing<Vec<u128>>>,
    pub received: Vec<Zeroizing<Vec<u128>>>,
}

fn bytes(label: &[u8], from: Party, to: Party, at: u64, out: &mut [u8]) {
    let mut h = blake3::Hasher::new_derive_key("ideal");
    h.update(label).update(&[from.0, to.0]).update(&at.to_le_bytes());
    let d = *h.finalize().as_bytes();
    AesPrg::new(d[..16].try_into().expect("16"), 0).fill(out);
}

impl Pairs {
    pub fn set_up(label: &[u8], delta: u128, shape: Shape, _net: &mut dyn Net) -> Result<Pairs> {
        Ok(Pairs { label: label.to_vec(), delta, columns: shape.columns, count: 0 })
    }

    pub fn extend(&mut self, choices: &[&[u8]], count: usize, net: &mut dyn Net) -> Result<Correlated> {
        let (me, n) = (net.me(), net.parties());
        let mut theirs: Vec<Vec<u8>> =
            Party::all(n).map(|p| vec![0; if p == me { 0 } else { count.div_ceil(8) }]).collect();
        net.exchange(choices, &mut theirs.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
        self.count += 1;
        let mask = u128::MAX >> (128 - self.columns);
        let t = |from: Party, to: Party| {
            let mut all = vec![0; count * 16];
            bytes(&self.label, from, to, self.count, &mut all);
            Zeroizing::new(
                all.chunks(16)
                    .map(|c| u128::from_le_bytes(c.try_into().expect("16")) & mask)
                    .collect::<Vec<_>>(),
            )
        };
        let sent = |p: Party| {
            let mut q = t(me, p);
            for (i, q) in q.iter_mut().enumerate() {
                *q ^= self.delta & u128::from(theirs[p.index()][i / 8] >> (i % 8) & 1).wrapping_neg();
            }
            q
        };
        Ok(Correlated {
            sent: Party::all(n).map(|p| if p == me { Zeroizing::default() } else { sent(p) }).collect(),
            received: Party::all(n).map(|p| if p == me { Zeroizing::default() } else { t(p, me) }).collect(),
        })
    }

    pub fn check(&mut self, _net: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    pub fn random_sent(&self, c: &Correlated, to: Party) -> Result<[Zeroizing<Vec<u128>>; 2]> {
        let q = &c.sent[to.index()];
        let flipped: Vec<u128> = q.iter().map(|q| q ^ self.delta).collect();
        Ok([hash(q), hash(&flipped)])
    }

    pub fn random_received(&self, c: &Correlated, from: Party) -> Result<Zeroizing<Vec<u128>>> {
        Ok(hash(&c.received[from.index()]))
    }
}

/// Not a hash at all, but fast.
fn hash(blocks: &[u128]) -> Zeroizing<Vec<u128>> {
    let mix = |(i, x): (usize, &u128)| {
        (x ^ i as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).rotate_left(61)
    };
    Zeroizing::new(blocks.iter().enumerate().map(mix).collect())
}
