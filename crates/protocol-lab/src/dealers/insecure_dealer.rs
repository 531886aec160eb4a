//! A dealer of material for authenticated sharing: **every party could compute everybody's shares and the MAC
//! key**.
//!
//! For tests, and for measuring the online phase alone. All parties hold one seed. Each party derives from it
//! what the dealer would hand out to it; the first party's shares are what is missing to the sum.

use polyclave_cipher::Matrix;
use polyclave_field::{MacField, Word};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256;
use zeroize::Zeroizing;

use polyclave_field::subfields::{GF4, GF16};
use polyclave_protocol::authenticated::{
    Authenticated, Element, Inverses, MacKey, OwnedBits, RowShape, Rows, Source, Triples, Units,
};
use polyclave_protocol::net::Net;
use polyclave_protocol::pool::Pool;
use polyclave_protocol::{Party, Result};

/// Unit vectors that are dealt at once.
const AT_ONCE: usize = 1024;

/// The dealer's side of one stream of a session, as every party runs it.
pub struct InsecureDealer<F: MacField> {
    me: Party,
    parties: usize,
    alpha: F::Word,
    values: [u8; 16],
    shares: Vec<[u8; 16]>,
    /// Everything dealt has a stream of its own.
    dealt: u64,
}

/// The MAC key of a dealer's seed: the shares of all parties.
fn mac_key_shares<F: MacField>(seed: &[u8; 32], parties: usize) -> Vec<F::Word> {
    let mut shares = vec![F::Word::ZERO; parties];
    let mut bytes = vec![0; parties * F::BYTES];
    AesPrg::new(&derived(seed, b"MAC key"), 0).fill(&mut bytes);
    F::read_row(&bytes, &mut shares);
    shares
}

/// This party's share of the MAC key that the dealer of this seed uses.
pub fn mac_key<F: MacField>(seed: &[u8; 32], me: Party, parties: usize) -> MacKey<F> {
    MacKey::of_share(me, parties, mac_key_shares::<F>(seed, parties)[me.index()])
}

fn derived(seed: &[u8; 32], role: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 insecure dealer");
    let mut key = [0; 16];
    hasher.update(seed).update(role).finalize_xof().fill(&mut key);
    key
}

impl<F: MacField> InsecureDealer<F> {
    /// The dealer of a seed that all parties know, for one stream.
    pub fn new(seed: &[u8; 32], stream: &[u8], me: Party, parties: usize) -> Self {
        let role = |name: &[u8]| derived(seed, &[stream, name].concat());
        let alpha = mac_key_shares::<F>(seed, parties).into_iter().fold(F::Word::ZERO, |sum, x| sum ^ x);
        let shares = Party::all(parties).map(|p| role(&[b'p', p.0])).collect();
        InsecureDealer { me, parties, alpha, values: role(b"values"), shares, dealt: 0 }
    }

    /// A stream of values, the same at everybody.
    fn stream_of_values(&mut self) -> AesPrg {
        self.dealt += 1;
        AesPrg::new(&self.values, self.dealt)
    }

    /// Random elements.
    fn random(&mut self, count: usize) -> Vec<F::Word> {
        let mut bytes = vec![0; count * F::BYTES];
        self.stream_of_values().fill(&mut bytes);
        let mut words = vec![F::Word::ZERO; count];
        F::read_row(&bytes, &mut words);
        words
    }

    fn random_bits(&mut self, count: usize) -> Vec<u8> {
        let mut bits = vec![0; count];
        self.stream_of_values().fill(&mut bits);
        bits.iter_mut().for_each(|bit| *bit &= 1);
        bits
    }

    /// The shares of this party of elements that only the first one needs.
    fn deal(&mut self, count: usize, values: &dyn Fn() -> Vec<F::Word>) -> Authenticated<F> {
        let mut shares = Authenticated::zero(count);
        if self.me.0 == 0 {
            shares.values.copy_from_slice(&values());
            let alpha = vec![self.alpha; count];
            F::multiply_rows(&mut shares.macs, &shares.values, &alpha);
        }
        let mut bytes = vec![0; 2 * count * F::BYTES];
        let mut words = vec![F::Word::ZERO; 2 * count];
        for mut stream in self.share_streams() {
            stream.fill(&mut bytes);
            F::read_row(&bytes, &mut words);
            shares.values.iter_mut().zip(&words[..count]).for_each(|(sum, share)| *sum ^= *share);
            shares.macs.iter_mut().zip(&words[count..]).for_each(|(sum, share)| *sum ^= *share);
        }
        shares
    }

    /// What this party's shares are sums of: its own stream, or, at the first, those of all others.
    fn share_streams(&mut self) -> Vec<AesPrg> {
        self.dealt += 1;
        let number = self.dealt;
        let of = |p: Party| AesPrg::new(&self.shares[p.index()], number);
        match self.me.0 {
            0 => Party::all(self.parties).skip(1).map(of).collect(),
            _ => vec![of(self.me)],
        }
    }

    fn deal_bits(&mut self, bits: &[u8]) -> Authenticated<F> {
        let element = |bit: &u8| if *bit == 1 { F::Word::ONE } else { F::Word::ZERO };
        self.deal(bits.len(), &|| bits.iter().map(element).collect())
    }

    /// Shares of cells as a byte each, and their MACs.
    fn deal_cells(&mut self, cells: &[u8]) -> (Vec<u8>, Vec<F::Word>) {
        let shares = self.deal(cells.len(), &|| cells.iter().map(|cell| F::embed(*cell)).collect());
        let mut bytes = vec![0; cells.len()];
        F::project_row(&mut bytes, &shares.values);
        (bytes, shares.macs.to_vec())
    }

    fn random_cells(&mut self, in_bits: u8, count: usize) -> Vec<u8> {
        let mut cells = vec![0; count];
        self.stream_of_values().fill(&mut cells);
        cells.iter_mut().for_each(|cell| *cell &= 0xff >> (8 - in_bits));
        cells
    }

    /// Sums of some of the elements.
    fn random_cells_of(&mut self, basis: &[u8], count: usize) -> Vec<u8> {
        let sum = |bits: u8| (0..basis.len()).fold(0, |sum, i| sum ^ (basis[i] * (bits >> i & 1)));
        self.random_cells(basis.len() as u8, count).into_iter().map(sum).collect()
    }
}

impl<F: MacField> Source<F> for InsecureDealer<F> {
    fn triples(&mut self, count: usize, _: &mut dyn Net) -> Result<Triples<F>> {
        let (a, b) = (self.random(count), self.random(count));
        let product = || {
            let mut c = vec![F::Word::ZERO; count];
            F::multiply_rows(&mut c, &a, &b);
            c
        };
        let [of_a, of_b] = [&a, &b].map(|values| self.deal(count, &|| values.clone()));
        Ok(Triples { a: of_a, b: of_b, c: self.deal(count, &product) })
    }

    fn bits(&mut self, count: usize, _: &mut dyn Net) -> Result<Authenticated<F>> {
        let bits = self.random_bits(count);
        Ok(self.deal_bits(&bits))
    }

    fn bits_of(&mut self, owner: Party, count: usize, _: &mut dyn Net) -> Result<OwnedBits<F>> {
        let bits = self.random_bits(count);
        let shares = self.deal_bits(&bits);
        Ok((shares, (owner == self.me).then(|| Zeroizing::new(bits))))
    }

    fn bit_triples(&mut self, count: usize, _: &mut dyn Net) -> Result<Triples<F>> {
        let (a, b) = (self.random_bits(count), self.random_bits(count));
        let c: Vec<u8> = a.iter().zip(&b).map(|(a, b)| a & b).collect();
        Ok(Triples { a: self.deal_bits(&a), b: self.deal_bits(&b), c: self.deal_bits(&c) })
    }

    fn inverses(&mut self, count: usize, _: &mut dyn Net) -> Result<Inverses<F>> {
        let [lx, mu] = [0; 2].map(|_| self.random_cells(8, count));
        let [ln, lv, lm] = [&GF16[..], &GF16, &GF4].map(|basis| self.random_cells_of(basis, count));
        let power = |cells: &[u8], squarings: u32| {
            let (mut power, map) = (vec![0; count], Map::new(Matrix::frobenius(squarings).columns()));
            combine(&mut power, &[Term { src: cells, map: &map }], 0);
            power
        };
        let product = |a: &[u8], b: &[u8]| {
            let mut product = vec![0; count];
            gf256::multiply(&mut product, a, b);
            product
        };
        let [lx16, ln4, x] = [power(&lx, 4), power(&ln, 2), power(&lm, 1)];
        let [lx17, ln5, xln4, lvlx16] =
            [product(&lx16, &lx), product(&ln4, &ln), product(&x, &ln4), product(&lv, &lx16)];

        let mut dealt = Inverses::zero(count);
        let mut set = |element: Element, cells: &[u8]| {
            let (shares, macs) = self.deal_cells(cells);
            dealt.values[element as usize].copy_from_slice(&shares);
            dealt.macs[element as usize].copy_from_slice(&macs);
        };
        set(Element::Lx, &lx);
        set(Element::Lx16, &lx16);
        set(Element::Lx17, &lx17);
        set(Element::Ln, &ln);
        set(Element::Ln4, &ln4);
        set(Element::Ln5, &ln5);
        set(Element::Lm, &lm);
        set(Element::X, &x);
        set(Element::XLn4, &xln4);
        set(Element::Lv, &lv);
        set(Element::LvLx16, &lvlx16);
        for (i, macs) in dealt.bit_macs.iter_mut().enumerate() {
            let bits: Vec<u8> = mu.iter().map(|byte| byte >> i & 1).collect();
            let (shares, of_bit) = self.deal_cells(&bits);
            // The lowest bit of a sum of cells is the sum of their lowest bits.
            dealt.bits.iter_mut().zip(&shares).for_each(|(byte, share)| *byte |= (share & 1) << i);
            macs.copy_from_slice(&of_bit);
        }
        Ok(dealt)
    }

    fn zeros(&mut self, shares: &mut [F::Word]) {
        let mut bytes = vec![0; shares.len() * F::BYTES];
        let mut words = vec![F::Word::ZERO; shares.len()];
        for mut stream in self.share_streams() {
            stream.fill(&mut bytes);
            F::read_row(&bytes, &mut words);
            shares.iter_mut().zip(&words).for_each(|(sum, share)| *sum ^= *share);
        }
    }

    fn deal_units(
        &mut self,
        in_bits: u8,
        count: usize,
        pool: &Pool,
        _: &mut dyn Net,
    ) -> Result<Option<Units<F>>> {
        let indices = self.random_cells(in_bits, count);
        let (index, index_macs) = self.deal_cells(&indices);
        let mut entries = Vec::with_capacity(count);
        let mut macs = pool.take((count << in_bits) * F::BYTES);
        for (indices, macs) in indices.chunks(AT_ONCE).zip(macs.chunks_mut((AT_ONCE << in_bits) * F::BYTES)) {
            let unit = || {
                let entries = indices.iter().flat_map(|s| (0..1u8 << in_bits).map(move |j| j == *s));
                entries.map(|is| if is { F::Word::ONE } else { F::Word::ZERO }).collect()
            };
            let shares = self.deal(indices.len() << in_bits, &unit);
            let mut cells = vec![0; shares.len()];
            F::project_row(&mut cells, &shares.values);
            let word =
                |cells: &[u8]| cells.iter().rev().fold(0, |word, cell| word << 1 | u64::from(cell & 1));
            entries.extend(cells.chunks(1 << in_bits).map(word));
            F::write_row(&shares.macs, macs);
        }
        Ok(Some(Units::new(in_bits, index, index_macs, entries, macs)))
    }

    fn deal_rows(
        &mut self,
        shape: &RowShape,
        count: usize,
        pool: &Pool,
        _: &mut dyn Net,
    ) -> Result<Option<Rows<F>>> {
        let indices = self.random_cells(shape.in_bits, count);
        let (index, index_macs) = self.deal_cells(&indices);
        let mut records = pool.take(count * shape.bytes::<F>());
        records.fill(0);
        if self.me.0 == 0 {
            let record = 1 + F::BYTES;
            let mac = |cell: u8| F::multiply(self.alpha, F::embed(cell));
            let macs: Vec<F::Word> = (0..=0xff >> (8 - F::CELL_BITS)).map(mac).collect();
            let tables = records.chunks_exact_mut(shape.bytes::<F>());
            for (table, s) in tables.zip(&indices) {
                for (i, row) in table.chunks_exact_mut(record * shape.views.len()).enumerate() {
                    for (record, images) in row.chunks_exact_mut(record).zip(&shape.images) {
                        record[0] = images[i ^ usize::from(*s)];
                        macs[usize::from(record[0])].write_to(&mut record[1..]);
                    }
                }
            }
        }
        let mut streams = self.share_streams();
        let mut share = vec![0; 1 << 16];
        for chunk in records.chunks_mut(1 << 16) {
            for stream in &mut streams {
                let share = &mut share[..chunk.len()];
                stream.fill(share);
                chunk.iter_mut().zip(share.iter()).for_each(|(sum, share)| *sum ^= share);
            }
        }
        Ok(Some(Rows::new(shape.clone(), index, index_macs, records)))
    }
}
