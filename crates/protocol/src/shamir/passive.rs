//! Shamir sharing among parties that follow the protocol, and only look on.
//!
//! Adversary: passive, at most t < n/2 parties, static. Each function states why what it opens tells nothing.

use polyclave_cipher::{Cells, Compiled};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256::multiply;
use zeroize::Zeroizing;

use super::arithmetic::{Arithmetic, recombination, resize, scalar, terms};
use super::elements;
use super::opening::{Layout, Opened, Opening, Secret};
use super::prss::{Degree, Prss, TILE};
use super::security::{AdversaryModel, Image};
use super::setup::{Setup, Structure, point};
use super::{Batch, Shamir};
use crate::commitment::broadcast;
use crate::interface::net::Net;
use crate::interface::protocol::Faults;
use crate::interface::release::Unverified;
use crate::interface::service::Element;
use crate::interface::session::{Stream, random_bytes};
use crate::interface::tally::Cost;
use crate::pool::{Pool, Shares};
use crate::{Party, PartySet, Result};

/// A party that follows the protocol, and trusts that all others do.
pub struct Passive {
    /// Coefficients of resharing polynomials: this party's own randomness.
    own_randomness: AesPrg,
    /// Recombination: a polynomial of degree 2t at 0, from its values at the points of the serving parties.
    lagrange: Vec<Map>,
    /// For each party the powers 1 .. t of its point.
    point_powers: Vec<Vec<Map>>,
}

impl AdversaryModel for Passive {
    type Released = Unverified<Cells>;
    type Material = ();
    const KINDS: [u8; 2] = *b"PS";
    const CORRECTS: bool = false;
    const HOLDS_STOCK: bool = false;

    fn new(setup: &Setup, _: &Stream, serving: PartySet) -> Result<Passive> {
        let (parties, threshold) = (setup.structure.parties(), setup.structure.threshold());
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        Ok(Passive {
            own_randomness: AesPrg::new(&seed, 0),
            lagrange: recombination(serving),
            point_powers: Party::all(parties)
                .map(|p| (1..=threshold as u32).map(|k| scalar(point(p).pow(k))).collect())
                .collect(),
        })
    }

    fn released(cells: Cells) -> Unverified<Cells> {
        Unverified::new(cells)
    }

    fn prepare(
        protocol: &mut Shamir<Passive>,
        compiled: &Compiled,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Batch<Passive>> {
        protocol.make_batch(compiled, lanes, net)
    }

    fn cost_of_products(&self, _: &mut Cost, _: usize, _: usize, _: Structure) {}

    fn load(&mut self, (): ()) {}

    /// Sends every party the same shares and recombines. The shares of all serving parties enter: they
    /// determine a polynomial of degree 2t, so this opens values and products alike.
    fn open(
        arithmetic: &mut Arithmetic<Passive>,
        shares: &[u8],
        public: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        if shares.is_empty() {
            return Ok(());
        }
        arithmetic.counts().rounds += 1;
        let out: Vec<&[u8]> = arithmetic.to_peers(|_| shares);
        let (me, serving) = (arithmetic.me, arithmetic.serving);
        receive_from_peers(&mut arithmetic.incoming, me, serving, shares.len(), &out, net)?;
        arithmetic.recombine(shares, public);
        Ok(())
    }

    fn reveal_to(
        arithmetic: &mut Arithmetic<Passive>,
        owner: Party,
        shares: &[u8],
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        if owner != arithmetic.me {
            net.send(owner, shares)?;
            return Ok(None);
        }
        let nothing = vec![&[][..]; arithmetic.structure.parties()];
        let (me, serving) = (arithmetic.me, arithmetic.serving);
        receive_from_peers(&mut arithmetic.incoming, me, serving, shares.len(), &nothing, net)?;
        let mut values = arithmetic.pool.take(shares.len());
        arithmetic.recombine(shares, &mut values);
        Ok(Some(values))
    }

    /// Opened is z + r, with the whole polynomial: r has the degree of z or, for products, a zero sharing of
    /// degree 2t is added, so that given the shares of any t parties every remaining coefficient is
    /// pseudorandom (see [`super::prss`]). Damgard and Keller 2010, section 3.4, for bits; here for any
    /// linear image.
    fn open_masked(
        arithmetic: &mut Arithmetic<Passive>,
        openings: Vec<Opening<'_>>,
        net: &mut dyn Net,
    ) -> Result<Opened> {
        let layout = Layout::of(&openings, |_| 1);
        let mut message = std::mem::take(&mut arithmetic.outgoing[arithmetic.me.index()]);
        resize(&mut message, layout.messages);
        let mut masks = arithmetic.pool.take(layout.masks);
        layout.count(&openings, arithmetic.counts());
        for (opening, place) in openings.iter().zip(&layout.places) {
            let shares = &mut masks[place.masks.clone()];
            let message = &mut message[place.messages.clone()];
            mask_opening(&mut arithmetic.prss, &arithmetic.pool, opening, message, shares);
        }
        let mut public = arithmetic.pool.take(layout.messages);
        let opened = Self::open(arithmetic, &message, &mut public, net);
        arithmetic.outgoing[arithmetic.me.index()] = message;
        opened?;
        Ok(Opened::new(public, masks, layout, openings, &arithmetic.pool))
    }

    /// By resharing (Ben-Or, Goldwasser and Wigderson 1988 in the form of Gennaro, Rabin and Rabin 1998).
    ///
    /// Each party shares its local product by a fresh polynomial of degree t; recombination at 0 is linear,
    /// so the sum of those sharings, weighted, shares the product. Any t parties see t points of polynomials
    /// of degree t.
    fn multiply(
        arithmetic: &mut Arithmetic<Passive>,
        products: &[(&[u8], &[u8])],
        net: &mut dyn Net,
    ) -> Result<Vec<Shares>> {
        let len = products[0].0.len();
        if len == 0 {
            return Ok(products.iter().map(|_| arithmetic.pool.take(0)).collect());
        }
        let counts = arithmetic.counts();
        counts.multiplications += (products.len() * len) as u64;
        counts.rounds += 1;
        let (me, serving) = (arithmetic.me, arithmetic.serving);
        serving.iter().for_each(|p| resize(&mut arithmetic.outgoing[p.index()], len * products.len()));
        let mut product = arithmetic.pool.take(TILE.min(len));
        for (i, (a, b)) in products.iter().enumerate() {
            for start in (0..len).step_by(TILE) {
                let range = start..len.min(start + TILE);
                let product = &mut product[..range.len()];
                multiply(product, &a[range.clone()], &b[range.clone()]);
                arithmetic.share_secret(product, i * len + start);
            }
        }
        let out: Vec<&[u8]> = arithmetic.to_peers(|p| &arithmetic.outgoing[p.index()]);
        receive_from_peers(&mut arithmetic.incoming, me, serving, len * products.len(), &out, net)?;
        let shares_of = |p: Party| match p == me {
            true => &arithmetic.outgoing[p.index()],
            false => &arithmetic.incoming[p.index()],
        };
        let mut results = Vec::with_capacity(products.len());
        for i in 0..products.len() {
            let mut result = arithmetic.pool.take(len);
            let sources = arithmetic.of_serving(|p| &shares_of(p)[i * len..][..len]);
            combine(&mut result, &terms(sources, &arithmetic.security.lagrange), 0);
            results.push(result);
        }
        Ok(results)
    }

    fn share_own(
        arithmetic: &mut Arithmetic<Passive>,
        cells: &Cells,
        images: &[Image<'_>],
        dst: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        arithmetic.counts().rounds += 1;
        let values = rows_of_images(cells, images);
        let (me, serving) = (arithmetic.me, arithmetic.serving);
        serving.iter().for_each(|p| resize(&mut arithmetic.outgoing[p.index()], values.len()));
        for start in (0..values.len()).step_by(TILE) {
            arithmetic.share_secret(&values[start..values.len().min(start + TILE)], start);
        }
        for p in serving.iter().filter(|p| *p != me) {
            net.send(p, &arithmetic.outgoing[p.index()])?;
        }
        dst.copy_from_slice(&arithmetic.outgoing[me.index()]);
        Ok(())
    }

    fn receive_share(
        arithmetic: &mut Arithmetic<Passive>,
        from: Party,
        _: (usize, usize),
        _: &[Image<'_>],
        dst: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        arithmetic.check_serves(from)?;
        arithmetic.counts().rounds += 1;
        net.recv(from, dst)
    }

    fn hand_out_mask(arithmetic: &mut Arithmetic<Passive>, message: &mut [u8]) {
        arithmetic.prss.add_zero(message);
    }

    /// Adds a fresh zero sharing of degree 2t.
    fn hand_out(arithmetic: &mut Arithmetic<Passive>, message: &mut [u8], _: &mut dyn Net) -> Result<()> {
        arithmetic.prss.add_zero(message);
        Ok(())
    }

    fn publish(
        arithmetic: &mut Arithmetic<Passive>,
        message: &[u8],
        net: &mut dyn Net,
    ) -> Result<Vec<Vec<u8>>> {
        arithmetic.counts().rounds += 1;
        broadcast(message, net)
    }

    fn outvote(_: &mut Arithmetic<Passive>, _: PartySet) {}

    fn faults(_: &Arithmetic<Passive>) -> Faults {
        Faults::default()
    }

    fn combine(_: Structure, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        let maps = recombination(serving);
        let terms: Vec<Term<'_>> = messages.iter().zip(&maps).map(|(src, map)| Term { src, map }).collect();
        let mut values = Zeroizing::new(vec![0; messages[0].len()]);
        combine(&mut values, &terms, 0);
        Ok(values)
    }

    fn combine_elements(_: Structure, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        elements::combine_elements(serving, messages)
    }
}

impl Arithmetic<Passive> {
    /// The values of what has come in, and of this party's own shares.
    fn recombine(&self, shares: &[u8], values: &mut [u8]) {
        let share_of = |p: Party| if p == self.me { shares } else { &self.incoming[p.index()][..] };
        combine(values, &terms(self.of_serving(share_of), &self.security.lagrange), 0);
    }

    /// Shares up to a tile of values with fresh polynomials of degree t, into the message to every serving
    /// party, at a position.
    fn share_secret(&mut self, values: &[u8], at: usize) {
        let (len, identity) = (values.len(), Map::identity());
        let Passive { own_randomness, point_powers, .. } = &mut self.security;
        let mut coefficients = self.pool.take(point_powers[0].len() * len);
        own_randomness.fill(&mut coefficients);
        for p in self.serving.iter().map(Party::index) {
            let mut terms = vec![Term { src: values, map: &identity }];
            terms.extend(coefficients.chunks(len).zip(&point_powers[p]).map(|(src, map)| Term { src, map }));
            combine(&mut self.outgoing[p][at..][..len], &terms, 0);
        }
    }
}

/// Images of cells, one row each.
fn rows_of_images(cells: &Cells, images: &[Image<'_>]) -> Zeroizing<Vec<u8>> {
    let width = cells.lanes();
    let mut rows = Zeroizing::new(vec![0; images.len() * width]);
    for ((i, m), row) in images.iter().zip(rows.chunks_mut(width.max(1))) {
        combine(row, &[Term { src: cells.row(*i), map: &Map::new(m.columns()) }], 0);
    }
    rows
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

/// One exchange in which every peer that serves sends `len` bytes.
pub(super) fn receive_from_peers(
    incoming: &mut [Zeroizing<Vec<u8>>],
    me: Party,
    serving: PartySet,
    len: usize,
    out: &[&[u8]],
    net: &mut dyn Net,
) -> Result<()> {
    for (p, buffer) in Party::all(out.len()).zip(incoming.iter_mut()) {
        resize(buffer, if p != me && serving.contains(p) { len } else { 0 });
    }
    net.exchange(out, &mut incoming.iter_mut().map(|b| b.as_mut_slice()).collect::<Vec<_>>())
}
