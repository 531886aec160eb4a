//! Opening selected bits of committed strings: pi_MiniMac of Damgard et al. 2016, section 6.
//!
//! 1. Each party sends its share of the masked product of every string (`product.rs`), all in one message.
//! 2. Coins are tossed, and the MACs are combined and compared (`check.rs`). Only then is a bit handed out.
//!
//! **Nothing but the selected bits is revealed.** If C(I) * C(s) were opened without a mask, it would reveal
//! more than I * s: its places k to n are sums over bits of s that are not selected. With the mask, the sum
//! y = C(I) * C(s) + r is uniform among the words of C* with message I * s: adding words whose message is
//! zero permutes the words of one message, and r is uniform among the words with message zero. A party sees
//! its peer's share. For the same reason this is a uniform word with message I * s_i. It consists of the
//! selected bits of s_i, which together with the party's own give those of s, and k - 1 uniform symbols. So a
//! simulator that knows I * s and the cheater's shares samples it exactly. It then opens the digest of what
//! the cheater's own sigma must be, if the cheater has opened as it should, and otherwise a digest of noise
//! (lemma 1; `check.rs` for what can go wrong). A mask is used with one selection only, because a second one
//! would reveal the difference of two products: [`Committed`] is consumed.
//!
//! **Nothing else is accepted**, except with a probability of 2^-270 with [`Code::STANDARD`] (2^-256 for the
//! digests), however many strings are opened at once. The first failed opening ends all openings under a key.
//! After an error of any kind in an opening, a peer's silence too, the key is not used any more: an opening
//! that has begun is neither finished nor repeated. Checks under a key come one after the other, because an
//! [`Opener`] is the key's only holder.
//!
//! # Differences from the paper
//! * The code is over GF(2^16), not binary, with one symbol for every bit. The paper names Reed-Solomon codes
//!   over a growing field as the alternative, with complexities O(polylog(k) s). MACs of 16 bits a place come
//!   with it.
//! * \[I\] is never formed. For a public I the product of representations that the paper asks for is local
//!   (`product.rs`). Preprocessing supplies only the mask.
//! * Shares of C(s) and of r are words themselves (`commitment.rs`). So nobody has to check that an opened
//!   value is a word, and a message is sent as k - 1 symbols and the selected bits. Hiding is the same: s_B
//!   is uniform.
//! * AES expands the coefficients from 256 coins, and sigma is compared by digests under commitments. So
//!   security, which in the paper is statistical given preprocessing, is computational in these two places.
//! * Both parties learn what is opened (the owner knows it). The paper opens to the other party only.

use blake3::Hasher;
use zeroize::Zeroizing;

use super::Code;
use super::check::check;
use super::commitment::{Committed, pack};
use super::product::Product;
use polyclave_protocol::EARLIER_CHECK;
use polyclave_protocol::commitment::broadcast;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, Result};

/// A party's share of a, the MAC key: one symbol for each place of the code, unknown to both. It has one
/// holder, and is wiped on drop.
pub struct KeyShare {
    me: Party,
    code: Code,
    symbols: Zeroizing<Vec<u16>>,
}

impl KeyShare {
    /// The share of party `me`.
    ///
    /// # Panics
    /// If there are not as many symbols as the code has places.
    pub fn new(me: Party, code: Code, symbols: Vec<u16>) -> Self {
        assert_eq!(symbols.len(), code.places(), "a symbol for every place");
        KeyShare { me, code, symbols: Zeroizing::new(symbols) }
    }

    pub(super) fn code(&self) -> Code {
        self.code
    }

    pub(super) fn symbols(&self) -> &[u16] {
        &self.symbols
    }
}

/// A party in a session that opens what was committed under its key.
pub struct Opener {
    key: KeyShare,
    label: Vec<u8>,
    openings: u64,
    retired: bool,
}

impl Opener {
    /// `label` names the session, the same at both parties, and is used once
    /// ([`Stream::label`](polyclave_protocol::session::Stream::label)).
    pub fn new(key: KeyShare, label: &[u8]) -> Self {
        Opener { key, label: label.to_vec(), openings: 0, retired: false }
    }

    /// Whether an opening has ended in an error, so that there will be no other.
    pub fn is_retired(&self) -> bool {
        self.retired
    }

    /// The bits of each string at the places where its selection, 0 or 1 for each of its bits, is 1, in
    /// order: verified, and the same at both parties. Strings and selections are the same at both. The
    /// strings are used up; after an error from the network, the peer or the check so is the key. Five
    /// rounds, none without strings.
    pub fn open(
        &mut self,
        committed: Vec<Committed>,
        selections: &[&[u8]],
        net: &mut dyn Net,
    ) -> Result<Vec<Vec<u8>>> {
        let peer = self.peer(net)?;
        self.refuse_misuse(&committed, selections)?;
        if self.retired {
            return Err(Error::CheckFailed { what: EARLIER_CHECK });
        }
        if committed.is_empty() {
            return Ok(Vec::new());
        }
        self.openings += 1;
        // Until everything has passed.
        self.retired = true;
        let context = self.context(&committed, selections);
        let mut products: Vec<_> = committed
            .into_iter()
            .zip(selections)
            .map(|(string, selection)| Product::of(string, selection))
            .collect();
        exchange(&mut products, peer, net)?;
        check(&self.key, &context, &products, peer, net)?;
        self.retired = false;
        Ok(products.into_iter().map(Product::into_bits).collect())
    }

    fn peer(&self, net: &dyn Net) -> Result<Party> {
        if net.parties() != 2 || net.me() != self.key.me {
            let what = format!(
                "the key is that of {} of two, but here is {} of {}",
                self.key.me,
                net.me(),
                net.parties()
            );
            return Err(Error::Misuse(what));
        }
        Ok(Party(1 - net.me().0))
    }

    fn refuse_misuse(&self, committed: &[Committed], selections: &[&[u8]]) -> Result<()> {
        if committed.len() != selections.len() {
            return Err(Error::misuse("every string to be opened has one selection"));
        }
        for (string, selection) in committed.iter().zip(selections) {
            if string.code != self.key.code {
                return Err(Error::misuse("a string was committed to with another code than the key's"));
            }
            if selection.len() != string.len || selection.iter().any(|bit| *bit > 1) {
                return Err(Error::misuse("a selection is 0 or 1 for every bit of its string"));
            }
        }
        Ok(())
    }

    /// What is opened: parties that open different things, or for different sessions, do not get beyond the
    /// coins.
    fn context(&self, committed: &[Committed], selections: &[&[u8]]) -> [u8; 32] {
        let mut hasher = Hasher::new_derive_key("polyclave 2026 minimac opening");
        hasher.update(&(self.label.len() as u64).to_le_bytes()).update(&self.label);
        hasher.update(&self.openings.to_le_bytes()).update(&(committed.len() as u64).to_le_bytes());
        for (string, selection) in committed.iter().zip(selections) {
            hasher.update(&string.number.to_le_bytes()).update(&[string.owner.0]);
            hasher.update(&(string.len as u64).to_le_bytes()).update(&pack(selection));
        }
        *hasher.finalize().as_bytes()
    }
}

/// Adds the peer's shares. One round.
fn exchange(products: &mut [Product<'_>], peer: Party, net: &mut dyn Net) -> Result<()> {
    let mut message = Vec::with_capacity(products.iter().map(Product::message_bytes).sum());
    products.iter().for_each(|product| product.write(&mut message));
    let all = broadcast(&message, net)?;
    let mut rest = all[peer.index()].as_slice();
    for product in products {
        let (part, others) = rest.split_at(product.message_bytes());
        product.add(peer, part)?;
        rest = others;
    }
    Ok(())
}
