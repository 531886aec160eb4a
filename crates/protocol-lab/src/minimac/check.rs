//! The check of the MACs of all words that were opened, in one step.
//!
//! After the words y_j are opened, coins are tossed. They give every place p of every word its own
//! coefficient chi_j(p). With its shares m_ij of a * y_j and a_i of a, each party computes sigma_i(p) = sum_j
//! chi_j(p) m_ij(p) + a_i(p) sum_j chi_j(p) y_j(p). If all words are right, sigma_1 = sigma_2, because the
//! characteristic is two. The parties compare digests of the two. Each party commits to its digest before it
//! sees the other's.
//!
//! * *It finds errors.* Let y_j be off by e_j at the honest party. e_j is a word of C*, because only words
//!   can be sent. So if some e_j is not zero, there are at least d = n - 2k + 2 places at which some e_j is
//!   not zero. At such a place E(p) = sum_j chi_j(p) e_j(p) is uniform, because the coins are tossed after
//!   all e_j: it is zero with probability 2^-16. If it is not zero, sigma_1 + sigma_2 is off by a(p) E(p),
//!   which the cheater must correct in its own sigma. It has committed to that before it hears of the honest
//!   one's. a(p) is uniform in its view (all its shares are uniform and independent of a; what it was sent is
//!   masked by values that it does not know): 2^-16. Places are independent in all of this, because every
//!   place has its own coefficients and its own symbol of a. So the probability is at most 2 * 2^-16 at
//!   each, **2^(-15 d)** together, for any number of words. (With one coefficient in GF(2^16) for a whole
//!   word, the combination E of wrong words would vanish altogether with probability 2^-16, however long the
//!   code is.)
//! * *What a failed check reveals.* Digests are opened, not sigma: where E(p) is not zero, the honest sigma
//!   is a(p) E(p) plus what the cheater knows, so sigma in the clear would reveal a(p). The digest, in the
//!   random oracle model, reveals only whether a guess at all of these at once, 16 bits for each place, is
//!   right; and the guess that counts was made before. sigma depends on s and r only through y. A check that
//!   fails, or does not end, ends the key's use anyway (`opening.rs`).

use blake3::Hasher;
use polyclave_field::Gf2_16;
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::opening::KeyShare;
use super::product::Product;
use polyclave_protocol::commitment::commit_and_open;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, Result, coins};

/// Checks what was opened; `context` says what that is. Four rounds.
pub(super) fn check(
    key: &KeyShare,
    context: &[u8; 32],
    opened: &[Product<'_>],
    peer: Party,
    net: &mut dyn Net,
) -> Result<()> {
    let seed = coins::toss(context, net)?;
    let sigma = sigma(key, &seed, opened);
    let mut hasher = Hasher::new_derive_key("polyclave 2026 minimac sums of tags");
    hasher.update(&seed);
    sigma.iter().for_each(|symbol| _ = hasher.update(&symbol.to_le_bytes()));
    let digest = *hasher.finalize().as_bytes();
    let digests = commit_and_open(&[*context, seed].concat(), &digest, net)?;
    match ct_eq(&digests[peer.index()], &digest) {
        true => Ok(()),
        false => Err(Error::CheckFailed { what: "the MACs of opened bits of a committed string" }),
    }
}

/// This party's sigma.
fn sigma(key: &KeyShare, seed: &[u8; 32], opened: &[Product<'_>]) -> Zeroizing<Vec<u16>> {
    let places = key.code().places();
    let mut coefficients = Coefficients::new(seed);
    let mut sigma = Zeroizing::new(vec![0; places]);
    let mut values = vec![0; places];
    for product in opened {
        product.for_each_tile(|words, macs, lanes| {
            let chi = coefficients.next(words.len());
            let rows = words.chunks_exact(lanes).zip(macs.chunks_exact(lanes)).zip(chi.chunks_exact(lanes));
            for (((words, macs), chi), sums) in rows.zip(sigma.iter_mut().zip(&mut values)) {
                *sums.0 ^= Gf2_16::inner_product(chi, macs);
                *sums.1 ^= Gf2_16::inner_product(chi, words);
            }
        });
    }
    Gf2_16::multiply_row(&mut values, key.symbols());
    Gf2_16::add_row(&mut sigma, &values);
    sigma
}

/// Independent uniform symbols from tossed coins.
struct Coefficients {
    stream: AesPrg,
    bytes: Vec<u8>,
    symbols: Vec<u16>,
}

impl Coefficients {
    fn new(seed: &[u8; 32]) -> Self {
        let derived = blake3::derive_key("polyclave 2026 minimac coefficients", seed);
        let mut key = [0; 16];
        key.copy_from_slice(&derived[..16]);
        Coefficients { stream: AesPrg::new(&key, 0), bytes: Vec::new(), symbols: Vec::new() }
    }

    fn next(&mut self, count: usize) -> &[u16] {
        self.bytes.resize(2 * count, 0);
        self.stream.fill(&mut self.bytes);
        self.symbols.clear();
        self.symbols.extend(self.bytes.chunks_exact(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]])));
        &self.symbols
    }
}
