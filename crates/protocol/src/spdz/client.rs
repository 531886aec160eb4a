//! Clients of authenticated sharing: the masks of their inputs, and the messages that bring them outputs.
//!
//! **To a client** (Damgard, Damgard, Nielsen, Nordholt, Toft 2015, "Confidential benchmarking based on
//! multiparty computation", ePrint 2015/1006). A client has no share of the MAC key. For elements E_1 .. E_m
//! of GF(2^128) that it is to learn, the nodes take two random ones, rho and v, compute w_j = E_j rho and u =
//! v rho, and **check everything that was opened**. Then each node sends its shares of E_1 .. E_m, v, w_1 ..
//! w_m, u and rho, plus a sharing of zeros. The client adds them up, and accepts if and only if u = v rho and
//! w_j = E_j rho for all j.
//!
//! *Soundness.* After the check the shared values are right. A node, or all but one together, can only shift
//! the sums by differences d. They fix d while rho and v are uniform to them: they have seen both only under
//! the masks of triples, and the shares of an honest node only in what it sends the client.
//! * With d_rho or d_v other than 0 the client accepts u only if d_u = v d_rho + d_v rho + d_v d_rho: a line
//!   of the plane of all (v, rho), met with probability 2^-128.
//! * With both 0 it accepts w_j only if d_wj = d_Ej rho. If some d_Ej is not 0 this determines one rho:
//!   probability 2^-128.
//!
//! So a wrong value is accepted with probability 2^-128. Except with that probability, whether the client
//! accepts depends only on the differences and not on the E_j, so there is no selective failure. (Without v
//! and u there would be one: with d_rho, d_wj = E_j d_rho would confirm a guess at E_j.)
//!
//! *Privacy.* The client learns E_j, and v and rho, which are random and used once; w_j and u follow from
//! these. The sharing of zeros makes its messages random except for their sums.
//!
//! **Bytes** become elements without communication. Byte k of 16 is a cell b_k, an element of GF(2^8). Since
//! 1, X .. X^7 are a basis of GF(2^64) over GF(2^8), x_0 = sum of b_k X^k over the first eight and x_1 over
//! the others are the coordinates of an element that contains all sixteen. Cells that share a byte are
//! narrow, so b_k is the sum of them times powers of x.
//!
//! **From a client** comes c = x ^ r, public among the nodes, under a mask of random bits r that nobody
//! knows: \[x\] is c plus \[r\], and the same holds for every image. The nodes send the mask to the client
//! like any other value, so a client that has accepted it knows r. Two inputs under one mask would show the
//! nodes x ^ x'.
//!
//! Adversary: active, all nodes but one, static; an honest client. The caller has to notice if a client sends
//! something to some nodes only.
//!
//! Cost of m elements: two triples and three more for each of m + 1 products, one round, and the check. Each
//! node sends the client 4 + 16 (2m + 3) bytes.
//!
//! # Differences from the paper
//! The factor is an element of GF(2^128), so the error is 2^-128 whatever the field of the MACs, which bounds
//! the check before. The paper's output check takes v as the client's random input; here the nodes draw it.

use polyclave_cipher::{Cells, CompiledPort, Matrix};
use polyclave_field::{Gf2_64, Gf128, MacField, tower};
use polyclave_kernels::gf128;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::Shared;
use super::arithmetic::Arithmetic;
use super::elements::{PRODUCT_TRIPLES, elements_of_bits, of_coordinates};
use super::shared::image_of_bits;
use crate::authenticated::Authenticated;
use crate::interface::elements::{ELEMENT_BYTES, Element, Elements};
use crate::interface::masking::masked_cells;
use crate::interface::net::Net;
use crate::interface::service::OwnMask;
use crate::{Error, Party, PartySet, Result};

/// X^0 .. X^7 in GF(2^64).
const BASIS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// 1 / X.
const INVERSE: u64 = 1 << 63 | 1 << 3 | 1 << 2 | 1;

/// Bytes of a message that proves one element: shares of E, v, w, u and rho.
pub(super) const PROOF: usize = 5 * ELEMENT_BYTES;

/// A random value that masks an input of a client: its bits, which determine shares of every image of it.
pub struct Mask {
    /// The lowest bits of all bytes, then the next, and so on.
    bits: Authenticated<Gf2_64>,
    len: usize,
}

impl Arithmetic<Gf2_64> {
    /// Draws a mask, eight random bits a byte, or takes one that was made ahead (`client_masks.rs`). Also
    /// returns the message to the client.
    pub(super) fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(Mask, Vec<u8>)> {
        if let Some(made) = self.mask_from_stock(len, net)? {
            return Ok(made);
        }
        let bits = self.bits(8 * len, net)?;
        let message = self.reveal_bits(&bits, len, net)?;
        Ok((Mask { bits, len }, message))
    }

    /// A mask of bits that one party knows ([`bits_of`](super::Source::bits_of)). That party's own bytes come
    /// with it.
    pub(super) fn mask_of(&mut self, owner: Party, len: usize, net: &mut dyn Net) -> Result<OwnMask<Mask>> {
        self.tally.of(self.phase).bits += 8 * len as u64;
        let (bits, known) = self.source.bits_of(owner, 8 * len, net)?;
        let known = known.map(|bits| {
            let mut bytes = Zeroizing::new(vec![0; len]);
            for (place, row) in bits.chunks(len.max(1)).enumerate() {
                bytes.iter_mut().zip(row).for_each(|(byte, bit)| *byte |= bit << place);
            }
            bytes
        });
        Ok((Mask { bits, len }, known))
    }

    /// The message to a client that is to learn bytes. `bits` are their bits: the lowest of all bytes, then
    /// the next, and so on.
    pub(super) fn reveal_bits(
        &mut self,
        bits: &Authenticated<Gf2_64>,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        let bytes = image_of_bits(bits, &Matrix::identity(8), len);
        self.send(&packed(&bytes), len, net)
    }

    /// Shares of x, and of the images that a port needs, from the public x ^ r. Local.
    pub(super) fn unmask(
        &self,
        mask: &Mask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<Shared<Gf2_64>> {
        let public = masked_cells(port, masked, at, mask.len)?;
        let mut shared = Shared::of_bits(port, public.lanes(), &mask.bits_of(at, port, public.lanes()));
        shared.add_public(&public, &self.key);
        Ok(shared)
    }

    /// What goes to a client that is to learn the first bytes of a value, in the blocks people write. Of the
    /// whole of a value that came out of circuits, the proof was made with these.
    pub(super) fn bytes_for_client(
        &mut self,
        value: &Shared<Gf2_64>,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.refuse_unchecked(&value.unchecked)?;
        if len == value.block_bytes()
            && let Some(made) = value.proofs.take(&self.stream)
        {
            // Of what the value rests on.
            self.check(net)?;
            self.tally.of(self.phase).openings += (2 * PROOF / ELEMENT_BYTES * value.lanes) as u64;
            return Ok(made);
        }
        self.send(&packed(&value.bytes().part(0..len)), len, net)
    }

    /// The message to a client that is to learn elements which contain this many bytes; see the module. Empty
    /// if there are none.
    pub(super) fn send(&mut self, elements: &Elements, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
        let count = elements.count();
        if count == 0 {
            return Ok(Vec::new());
        }
        let message = u32::try_from(bytes)
            .map_err(|_| Error::Misuse(format!("{bytes} bytes are too many for one message to a client")))?;
        // All at once: a source makes together what is requested together.
        let triples = self.triples(2 + PRODUCT_TRIPLES * (count + 1), net)?;
        let random = triples.part(0..2);
        let random = of_coordinates(&random.a, &random.b);
        let (rho, v) = (random.part(0..1), random.part(1..2));
        let values = Elements::join(&[elements, &v]);
        let factors = Elements::join(&vec![&rho; count + 1]);
        let products = self.multiply_by(&values, &factors, triples.part(2..triples.a.len()), net)?;
        // Whoever opens its part of E_j wrongly in w_j proves another value to the client.
        self.check(net)?;

        let mut shares = Elements::join(&[&values, &products, &rho]).shares;
        self.tally.of(self.phase).openings += 2 * (2 * count as u64 + 3);
        let mut zeros = Zeroizing::new(vec![0; shares.len() / 8]);
        self.source.zeros(&mut zeros);
        for (share, zero) in shares.as_chunks_mut::<8>().0.iter_mut().zip(zeros.iter()) {
            *share = (u64::from_be_bytes(*share) ^ zero).to_be_bytes();
        }
        Ok([&message.to_le_bytes()[..], &shares].concat())
    }
}

impl Mask {
    /// A mask of so many bytes with these bits.
    pub(super) fn of_bits(bits: Authenticated<Gf2_64>, len: usize) -> Mask {
        Mask { bits, len }
    }

    /// Its bytes as elements. Local.
    pub(super) fn elements(&self) -> Elements {
        elements_of_bits(&self.bits, self.len)
    }

    /// The bits at place `at` of the cells of a port's blocks: the lowest of all cells, then the next, and so
    /// on.
    fn bits_of(&self, at: usize, port: &CompiledPort, lanes: usize) -> Authenticated<Gf2_64> {
        let (count, width) = (port.cells.len(), Cells::block_bytes(port.cells.len(), port.bits));
        let mut bits = Authenticated::zero(usize::from(port.bits) * count * lanes);
        for (i, to) in (0..usize::from(port.bits)).zip((0..).step_by(count * lanes)) {
            for cell in 0..count {
                let (byte, shift) = Cells::place(cell, port.bits);
                for lane in 0..lanes {
                    let from = (shift + i) * self.len + at + lane * width + byte;
                    let to = to + cell * lanes + lane;
                    bits.values[to] = self.bits.values[from];
                    bits.macs[to] = self.bits.macs[from];
                }
            }
        }
        bits
    }
}

impl Shared<Gf2_64> {
    /// The bytes of the blocks, in the order in which people write them, as elements of GF(2^8) inside
    /// GF(2^64). Local.
    pub(super) fn bytes(&self) -> Authenticated<Gf2_64> {
        let len = self.count * self.lanes;
        let width = Cells::block_bytes(self.count, self.bits);
        let mut embedded = Zeroizing::new(vec![0; len]);
        Gf2_64::embed_row(&mut embedded, &self.cells[..len]);
        // A cell at a shift is the cell times x^shift. The value is narrow, so no reduction occurs, and the
        // same map applies to its shares whatever they are.
        let mut places: Vec<Vec<(usize, u64)>> = vec![Vec::new(); width];
        for cell in 0..self.count {
            let (byte, shift) = Cells::place(cell, self.bits);
            places[byte].push((cell, Gf2_64::embed(1 << shift)));
        }
        let mut bytes = Authenticated::zero(width * self.lanes);
        let mut row = Zeroizing::new(vec![0; self.lanes]);
        for (byte, cells) in places.iter().enumerate() {
            for (from, to) in [(&embedded[..], &mut bytes.values), (&self.macs[..len], &mut bytes.macs)] {
                let row_of = |cell: usize| &from[cell * self.lanes..(cell + 1) * self.lanes];
                let terms: Vec<_> = cells.iter().map(|(cell, factor)| (row_of(*cell), *factor)).collect();
                Gf2_64::combine(&mut row, &terms, 0);
                to[byte..].iter_mut().step_by(width).zip(row.iter()).for_each(|(to, from)| *to = *from);
            }
        }
        bytes
    }
}

/// Elements that contain bytes; the last one is filled up with zeros.
pub(super) fn packed(bytes: &Authenticated<Gf2_64>) -> Elements {
    let coordinate = |k: usize| {
        let mut coordinate = Authenticated::zero(bytes.len().div_ceil(ELEMENT_BYTES));
        let pack = |to: &mut [u64], from: &[u64]| {
            for (to, sixteen) in to.iter_mut().zip(from.chunks(ELEMENT_BYTES)) {
                if let Some(eight) = sixteen.chunks(BASIS.len()).nth(k) {
                    *to = Gf2_64::inner_product(eight, &BASIS[..eight.len()]);
                }
            }
        };
        pack(&mut coordinate.values, &bytes.values);
        pack(&mut coordinate.macs, &bytes.macs);
        coordinate
    };
    of_coordinates(&coordinate(0), &coordinate(1))
}

/// The bytes that an element contains.
fn unpacked(element: Element) -> [u8; ELEMENT_BYTES] {
    let mut bytes = [0; ELEMENT_BYTES];
    let coordinates = tower::split(Gf128::from_bytes(element));
    for (mut word, bytes) in coordinates.into_iter().zip(bytes.chunks_exact_mut(BASIS.len())) {
        for byte in bytes {
            // Takes the coefficient at 1; then the next one moves to its place.
            *byte = Gf2_64::project(word);
            word = Gf2_64::multiply(word ^ Gf2_64::embed(*byte), INVERSE);
        }
    }
    bytes
}

/// At a client: the bytes from the nodes' messages, or from several messages of each node one after another.
pub(super) fn combine_bytes(
    parties: usize,
    serving: PartySet,
    messages: &[&[u8]],
) -> Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(messages.first().map_or(0, |m| m.len())));
    for (len, elements) in verified(parties, serving, messages)? {
        let start = bytes.len();
        elements.iter().for_each(|element| bytes.extend(unpacked(*element)));
        bytes.truncate(start + len);
    }
    Ok(bytes)
}

/// [`combine_bytes`] for elements.
pub(super) fn combine_elements(
    parties: usize,
    serving: PartySet,
    messages: &[&[u8]],
) -> Result<Vec<Element>> {
    let mut all = Vec::new();
    for (len, elements) in verified(parties, serving, messages)? {
        if len != ELEMENT_BYTES * elements.len() {
            return Err(UNVERIFIED);
        }
        all.extend(elements);
    }
    Ok(all)
}

const UNVERIFIED: Error = Error::CheckFailed { what: "what the nodes sent to a client" };

/// Elements and the number of bytes that they contain, message after message; all have been verified.
fn verified(parties: usize, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<(usize, Vec<Element>)>> {
    if serving != PartySet::all(parties) {
        return Err(Error::Misuse(format!("{serving} serve, but all of {parties} parties have to")));
    }
    if messages.len() != parties {
        return Err(Error::Misuse(format!("{} messages came, but {serving} serve", messages.len())));
    }
    let mut rest = messages.to_vec();
    let mut all = Vec::new();
    while rest.iter().any(|message| !message.is_empty()) {
        let mut text = None;
        let mut sum = Vec::new();
        for message in &mut rest {
            let (len, shares) = message.split_first_chunk().ok_or(UNVERIFIED)?;
            let len = u32::from_le_bytes(*len) as usize;
            if len == 0 || *text.get_or_insert(len) != len {
                return Err(UNVERIFIED);
            }
            let due = len.div_ceil(ELEMENT_BYTES).checked_mul(2 * ELEMENT_BYTES);
            let due = due.and_then(|due| due.checked_add(3 * ELEMENT_BYTES)).ok_or(UNVERIFIED)?;
            let (shares, behind) = shares.split_at_checked(due).ok_or(UNVERIFIED)?;
            sum.resize(due, 0);
            sum.iter_mut().zip(shares).for_each(|(sum, share)| *sum ^= share);
            *message = behind;
        }
        let len = text.ok_or(UNVERIFIED)?;
        all.push((len, verify(&sum, len.div_ceil(ELEMENT_BYTES))?));
    }
    Ok(all)
}

/// The elements E_1 .. E_m before v, w_1 .. w_m, u and rho, if the latter match them.
fn verify(sum: &[u8], count: usize) -> Result<Vec<Element>> {
    let (elements, rest) = sum.as_chunks::<ELEMENT_BYTES>();
    let [values @ .., rho] = elements else { return Err(UNVERIFIED) };
    let (values, products) = values.split_at_checked(count + 1).ok_or(UNVERIFIED)?;
    let mut due = vec![0; ELEMENT_BYTES * values.len()];
    gf128::scale_add(&mut due, values.as_flattened(), rho);
    // Two equal messages of two nodes would make everything zero; otherwise rho is zero with probability
    // 2^-128.
    let drawn = !ct_eq(rho, &[0; ELEMENT_BYTES]);
    match drawn && rest.is_empty() && ct_eq(&due, products.as_flattened()) {
        true => Ok(values[..count].to_vec()),
        false => Err(UNVERIFIED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dealers::insecure_dealer::{InsecureDealer, mac_key};
    use crate::interface::elements::ElementArithmetic;
    use crate::mesh::run_parties;
    use crate::spdz::proofs::Proofs;

    fn arithmetic(net: &dyn Net) -> Arithmetic<Gf2_64> {
        let (seed, stream, me, n) = ([7; 32], [0; 40], net.me(), net.parties());
        let dealer = InsecureDealer::new(&seed, &stream, me, n);
        Arithmetic::new(mac_key(&seed, me, n), stream, Box::new(dealer))
    }

    /// The node adds to its own share of an element before the proof is made: all fits, and a client would
    /// accept the other value.
    #[test]
    fn another_value_that_a_node_proves_is_found_before_any_node_sends_it() {
        for n in [2, 3] {
            let outcomes = run_parties(n, |net| {
                let mut arithmetic = arithmetic(net);
                let mut elements = arithmetic.random_elements(2, net)?;
                if net.me() == Party(1) {
                    elements.shares[3] ^= 1;
                }
                arithmetic.send(&elements, 2 * ELEMENT_BYTES, net)
            });
            let failed = Err(Error::CheckFailed { what: "the MACs of opened values" });
            assert!(outcomes.iter().all(|outcome| *outcome == failed), "{outcomes:?}");
        }
    }

    /// What was opened wrongly in another session would be proven to the client as if it were right.
    #[test]
    fn a_value_that_its_session_has_not_checked_goes_to_no_client() {
        let outcomes = run_parties(2, |net| {
            let mut arithmetic = arithmetic(net);
            let views = [Matrix::identity(8)];
            let mut value = Shared::public(&Cells::zero(16, 8, 1), &views, &arithmetic.key);
            let session = crate::unchecked::Checks::default();
            value.unchecked = session.next();
            assert!(matches!(arithmetic.bytes_for_client(&value, 16, net), Err(Error::Misuse(_))));
            session.pass();
            Ok(arithmetic.bytes_for_client(&value, 16, net).is_ok())
        });
        assert_eq!(outcomes, [Ok(true), Ok(true)]);
    }

    /// A proof that was made ahead is sent without an opening of its own. Before, what the value rests on is
    /// checked. A session that has ended sends none.
    #[test]
    fn a_proof_that_was_made_ahead_is_sent_only_after_a_check_and_under_a_key_in_use() {
        type Spoil = fn(&mut Arithmetic<Gf2_64>, &mut dyn Net) -> Result<()>;
        let retired: Spoil = |arithmetic, _| {
            let fault = Error::CheckFailed { what: "another check" };
            assert!(arithmetic.key.judge(|| Some(fault)).is_err());
            Ok(())
        };
        let over: Spoil = |arithmetic, _| {
            arithmetic.is_over = true;
            Ok(())
        };
        let opened_wrongly: Spoil = |arithmetic, net| {
            let mut bits = arithmetic.bits(2, net)?;
            bits.values[0] ^= u64::from(net.me().0);
            arithmetic.open(&bits, &[], &[], net).map(|_| ())
        };
        let honest: Spoil = |_, _| Ok(());
        for (spoil, is_sent) in [(retired, false), (over, false), (opened_wrongly, false), (honest, true)] {
            let outcomes = run_parties(2, |net| {
                let mut arithmetic = arithmetic(net);
                let views = [Matrix::identity(8)];
                let mut value = Shared::public(&Cells::zero(16, 8, 1), &views, &arithmetic.key);
                value.proofs = Proofs::of(arithmetic.stream, [Zeroizing::new(vec![7; 4 + PROOF])]);
                spoil(&mut arithmetic, net)?;
                Ok(arithmetic.bytes_for_client(&value, 16, net).is_ok())
            });
            assert_eq!(outcomes, [Ok(is_sent), Ok(is_sent)]);
        }
    }

    /// Three products of coordinates for each product, with two openings each; and two coordinates of each
    /// element that the client gets.
    #[test]
    fn what_goes_to_clients_and_masks_is_counted() {
        let outcomes = run_parties(2, |net| {
            let mut arithmetic = arithmetic(net);
            let count = 4;
            let elements = arithmetic.random_elements(count, net)?;
            let before = arithmetic.tally;
            let message = arithmetic.send(&elements, ELEMENT_BYTES * count, net)?;
            let sent = 2 * count + 3;
            assert_eq!(message.len(), 4 + ELEMENT_BYTES * sent);
            let openings = 2 * PRODUCT_TRIPLES * (count + 1) + 2 * sent;
            assert_eq!((arithmetic.tally - before).online.openings, openings as u64);
            for owner in Party::all(2) {
                let before = arithmetic.tally;
                arithmetic.mask_of(owner, 20, net)?;
                assert_eq!((arithmetic.tally - before).online.bits, 8 * 20);
            }
            Ok(())
        });
        assert_eq!(outcomes, [Ok(()), Ok(())]);
    }

    #[test]
    fn bytes_come_back_out_of_elements_at_every_length() {
        assert_eq!(Gf2_64::multiply(INVERSE, 2), 1);
        for len in 0..70 {
            let bytes: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_mul(151) ^ 0x5a).collect();
            let mut words = Authenticated::zero(len);
            Gf2_64::embed_row(&mut words.values, &bytes);
            let elements = packed(&words);
            assert_eq!(elements.count(), len.div_ceil(16));
            let mut back: Vec<u8> =
                elements.shares.as_chunks().0.iter().flat_map(|element| unpacked(*element)).collect();
            assert!(back[len..].iter().all(|padding| *padding == 0));
            back.truncate(len);
            assert_eq!(back, bytes);
        }
    }
}
