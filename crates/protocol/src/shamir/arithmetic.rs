//! The arithmetic of shared vectors: openings and multiplications. Openings under a mask are in `opening.rs`.
//!
//! Adversary: passive, at most t < n/2 parties, static. Each function states why what it opens tells nothing. Every
//! elementary operation sends one byte to every peer (Damgard and Keller 2010, section 3.2).
//!
//! # Who serves
//! Shares belong to the whole cluster of n parties; any 2t + 1 of them, or more, can serve a session.
//! * Correctness: what is recombined has degree 2t at most, so the shares of any 2t + 1 parties determine it; the Lagrange
//!   coefficients are those of the serving set. Resharing gives shares to those who serve, by polynomials of degree t, and
//!   they are not used outside of the session (whatever is stored was made by all n parties).
//! * Pseudorandom sharing: party p's share of the sum of r_A f_A needs the r_A of the sets p is in only, since f_A is 0 at
//!   all others. So absent parties are not missed, whichever they are.
//! * Secrecy: t parties, serving or not, miss the key of the set A that is their complement. All of its n - t parties are
//!   honest, and among any 2t + 1 who serve are t + 1 of them at least. r_A and the t zero sharings of A stay unknown to the
//!   t parties, so a polynomial that is opened is random but for its value at 0 and at their points. That is a statement
//!   about the polynomial; it does not matter at which points it was opened.
//! * Two sessions never draw the same values, though (for n >= 4t + 2) two serving sets can have no party in common: the
//!   session id hashes the set and a fresh nonce of every member.

use polyclave_cipher::Matrix;
use polyclave_field::Gf256;
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256::multiply;
use zeroize::Zeroizing;

use super::prss::{Prss, TILE};
use super::setup::{Setup, Structure, point};
use crate::net::Net;
use crate::pool::{Pool, Shares};
use crate::session::{Stream, random_bytes};
use crate::tally::{Phase, Tally};
use crate::{Error, Party, PartySet, Result};

/// One party's arithmetic in one session and stream.
pub(super) struct Arithmetic {
    pub(super) prss: Prss,
    /// See [`Stream::label`].
    pub(super) stream: [u8; 40],
    pub(super) me: Party,
    pub(super) structure: Structure,
    /// Those who take part, this one included.
    serving: PartySet,
    /// Coefficients of resharing polynomials: this party's own randomness.
    own_randomness: AesPrg,
    /// Recombination: a polynomial of degree 2t at 0, from its values at the points of those who serve.
    lagrange: Vec<Map>,
    /// For each party the powers 1 .. t of its point.
    point_powers: Vec<Vec<Map>>,
    /// Multiplication by every constant.
    pub(super) scalars: Vec<Map>,
    pub(super) tally: Tally,
    pub(super) phase: Phase,
    pub(super) pool: Pool,
    pub(super) outgoing: Vec<Zeroizing<Vec<u8>>>,
    incoming: Vec<Zeroizing<Vec<u8>>>,
}

impl Arithmetic {
    pub(super) fn new(setup: &Setup, stream: Stream, serving: PartySet) -> Result<Arithmetic> {
        setup.structure.check_serving(serving)?;
        if stream.serving() != serving || !serving.contains(setup.me) {
            let (me, agreed) = (setup.me, stream.serving());
            return Err(Error::Misuse(format!("{me} joins with {serving}, but the session is of {agreed}")));
        }
        let structure = setup.structure;
        let (parties, threshold) = (structure.parties(), structure.threshold());
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        Ok(Arithmetic {
            prss: Prss::new(setup, &stream),
            stream: stream.label(),
            me: setup.me,
            structure,
            serving,
            own_randomness: AesPrg::new(&seed, 0),
            lagrange: recombination(serving),
            point_powers: Party::all(parties)
                .map(|p| (1..=threshold as u32).map(|k| scalar(point(p).pow(k))).collect())
                .collect(),
            scalars: (0..=255).map(|c| scalar(Gf256(c))).collect(),
            tally: Tally::default(),
            phase: Phase::Preprocessing,
            pool: Pool::default(),
            outgoing: vec![Zeroizing::default(); parties],
            incoming: vec![Zeroizing::default(); parties],
        })
    }

    /// Opens shared values that are uniformly random or meant to be known. One operation a value, one round.
    pub(super) fn open_plain(&mut self, shares: &[u8], net: &mut dyn Net) -> Result<Shares> {
        self.tally.of(self.phase).openings += shares.len() as u64;
        let mut public = self.pool.take(shares.len());
        self.open(shares, &mut public, net)?;
        Ok(public)
    }

    /// Sends every party the same shares and recombines. The shares of all who serve enter: they determine a polynomial of
    /// degree 2t, so this opens values and products alike.
    pub(super) fn open(&mut self, shares: &[u8], public: &mut [u8], net: &mut dyn Net) -> Result<()> {
        if shares.is_empty() {
            return Ok(());
        }
        self.tally.of(self.phase).rounds += 1;
        let out: Vec<&[u8]> = self.to_peers(|_| shares);
        receive_from_peers(&mut self.incoming, self.me, self.serving, shares.len(), &out, net)?;
        let share_of = |p: Party| if p == self.me { shares } else { &self.incoming[p.index()][..] };
        combine(public, &terms(self.of_serving(share_of), &self.lagrange), 0);
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
        let serving = self.serving;
        serving.iter().for_each(|p| resize(&mut self.outgoing[p.index()], len * products.len()));
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
                    self.serving,
                    &mut self.outgoing,
                    &self.pool,
                );
            }
        }
        let out: Vec<&[u8]> = self.to_peers(|p| &self.outgoing[p.index()]);
        receive_from_peers(&mut self.incoming, self.me, serving, len * products.len(), &out, net)?;
        let shares_of = |p: Party| match p == self.me {
            true => &self.outgoing[p.index()],
            false => &self.incoming[p.index()],
        };
        let mut results = Vec::with_capacity(products.len());
        for i in 0..products.len() {
            let mut result = self.pool.take(len);
            let sources = self.of_serving(|p| &shares_of(p)[i * len..][..len]);
            combine(&mut result, &terms(sources, &self.lagrange), 0);
            results.push(result);
        }
        Ok(results)
    }

    /// Shares this party's own values: `dst` becomes its share.
    pub(super) fn share_own(&mut self, values: &[u8], dst: &mut [u8], net: &mut dyn Net) -> Result<()> {
        self.tally.of(self.phase).rounds += 1;
        let serving = self.serving;
        serving.iter().for_each(|p| resize(&mut self.outgoing[p.index()], values.len()));
        for start in (0..values.len()).step_by(TILE) {
            let range = start..values.len().min(start + TILE);
            let randomness = &mut self.own_randomness;
            let powers = &self.point_powers;
            share_secret(&values[range], start, randomness, powers, serving, &mut self.outgoing, &self.pool);
        }
        for p in serving.iter().filter(|p| *p != self.me) {
            net.send(p, &self.outgoing[p.index()])?;
        }
        dst.copy_from_slice(&self.outgoing[self.me.index()]);
        Ok(())
    }

    /// Receives shares of another party's values.
    pub(super) fn receive_share(&mut self, from: Party, dst: &mut [u8], net: &mut dyn Net) -> Result<()> {
        self.check_serves(from)?;
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
        self.check_serves(owner)?;
        let counts = self.tally.of(self.phase);
        counts.openings += shares.len() as u64;
        counts.rounds += 1;
        if owner != self.me {
            net.send(owner, shares)?;
            return Ok(None);
        }
        let nothing = vec![&[][..]; self.structure.parties()];
        receive_from_peers(&mut self.incoming, self.me, self.serving, shares.len(), &nothing, net)?;
        let mut values = self.pool.take(shares.len());
        let share_of = |p: Party| if p == self.me { shares } else { &self.incoming[p.index()][..] };
        combine(&mut values, &terms(self.of_serving(share_of), &self.lagrange), 0);
        Ok(Some(values))
    }

    fn check_serves(&self, party: Party) -> Result<()> {
        match self.serving.contains(party) {
            true => Ok(()),
            false => Err(Error::misuse(format!("{party} takes no part: {} serve", self.serving))),
        }
    }

    /// In the order of those who serve, as the coefficients of recombination are.
    fn of_serving<'a, T>(&'a self, f: impl Fn(Party) -> T + 'a) -> Vec<T> {
        self.serving.iter().map(f).collect()
    }

    /// What goes to every peer that serves, and nothing for the others.
    fn to_peers<'a>(&self, message: impl Fn(Party) -> &'a [u8]) -> Vec<&'a [u8]> {
        let is_peer = |p: Party| p != self.me && self.serving.contains(p);
        Party::all(self.structure.parties()).map(|p| if is_peer(p) { message(p) } else { &[] }).collect()
    }
}

/// The coefficients that make a polynomial at 0 from its values at the points of these parties, in their order.
pub(super) fn recombination(parties: PartySet) -> Vec<Map> {
    let points: Vec<Gf256> = parties.iter().map(point).collect();
    Gf256::lagrange(&points, Gf256::ZERO).into_iter().map(scalar).collect()
}

fn scalar(c: Gf256) -> Map {
    Map::new(Matrix::scalar(c.0).columns())
}

/// Shares up to a tile of values with fresh polynomials of degree t, into the message of everybody who serves, at a position.
fn share_secret(
    values: &[u8],
    at: usize,
    randomness: &mut AesPrg,
    point_powers: &[Vec<Map>],
    serving: PartySet,
    messages: &mut [Zeroizing<Vec<u8>>],
    pool: &Pool,
) {
    let (len, identity) = (values.len(), Map::identity());
    let threshold = point_powers[0].len();
    let mut coefficients = pool.take(threshold * len);
    randomness.fill(&mut coefficients);
    for p in serving.iter().map(Party::index) {
        let mut terms = vec![Term { src: values, map: &identity }];
        terms.extend(coefficients.chunks(len).zip(&point_powers[p]).map(|(src, map)| Term { src, map }));
        combine(&mut messages[p][at..][..len], &terms, 0);
    }
}

fn terms<'a>(sources: Vec<&'a [u8]>, maps: &'a [Map]) -> Vec<Term<'a>> {
    sources.into_iter().zip(maps).map(|(src, map)| Term { src, map }).collect()
}

/// One exchange in which every peer that serves sends `len` bytes.
fn receive_from_peers(
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

/// Changes the length of a buffer that is reused; a new allocation leaves no unwiped one behind.
pub(super) fn resize(buffer: &mut Zeroizing<Vec<u8>>, len: usize) {
    if buffer.capacity() < len {
        *buffer = Zeroizing::new(Vec::with_capacity(len));
    }
    buffer.resize(len, 0);
}
