//! Opening values whose tags are compared later, all by one hash (Damgard et al. 2016, section 3.3).
//!
//! Instead of tags the parties send, once for many openings, H(d_1, .., d_n), the sum of AES_K(d_i). The
//! party that opened sends the hash of its tags; the other party compares it with the hash of the tags that
//! it expects. K is fresh for every stream of a session.
//!
//! # Differences from the paper
//! * d_i is not the tag alone, but tag, position and direction. With the tags alone, equal tags cancel and
//!   their order is lost. A tag of up to 71 bits leaves 57 bits for position (56) and direction (1).
//! * Both hashes are sent at once, in one round. A party that receives a wrong one gives the keys up.
//!
//! Why this is enough, in the model in which AES under a fresh key is a random permutation: a party that
//! opened a wrong value somewhere does not know the tag that is expected there (2^-64 each). So it has not
//! asked for the image of that block, and the expected hash is unknown to it except with probability 2^-128.
//! The hash of honest tags tells the peer nothing that it cannot compute: it follows from what was opened to
//! it and its own keys. So a failed check tells a cheater that it failed, and of the key only that a guess at
//! all of it was wrong.

use polyclave_kernels::aes_sum::AesSum;
use polyclave_kernels::secret::{ct_eq, mark_public};

use super::share::mask;
use super::{Bits, Key};
use crate::interface::net::Net;
use crate::{Error, Party, Result};

const INDEX_BITS: u32 = 56;
const MAX: u64 = 1 << INDEX_BITS;
/// Tags that are hashed at once.
const AT_ONCE: usize = 64;

/// The hash of the tags that go from one party to the other.
struct TagHash {
    direction: u128,
    next: u64,
    sum: u128,
}

impl TagHash {
    fn new(from: Party) -> Self {
        TagHash { direction: u128::from(from.0 & 1) << 127, next: 0, sum: 0 }
    }

    /// Adds tags of at most 71 bits; their positions are written into them.
    ///
    /// # Panics
    /// After 2^56 tags.
    fn add(&mut self, aes: &AesSum, tags: &mut [u128]) {
        assert!(tags.len() as u64 <= MAX - self.next, "fewer tags than positions");
        for tag in tags.iter_mut() {
            *tag |= self.direction | u128::from(self.next) << (127 - INDEX_BITS);
            self.next += 1;
        }
        self.sum ^= aes.of(tags);
    }
}

/// What was opened on one stream of a session, in both directions, and is not checked yet.
pub struct Openings {
    aes: AesSum,
    /// The hash of the tags of this party's openings.
    shown: TagHash,
    /// The hash of the tags that it expects for its peer's openings.
    expected: TagHash,
    unchecked: bool,
}

impl Openings {
    /// None yet. `label` names the stream and is used once
    /// ([`Stream::label`](crate::interface::session::Stream::label)).
    pub fn new(label: &[u8], me: Party) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 hash of tags");
        let mut key = [0; 16];
        hasher.update(label).finalize_xof().fill(&mut key);
        let peer = Party(1 - (me.0 & 1));
        Openings {
            aes: AesSum::new(&key),
            shown: TagHash::new(me),
            expected: TagHash::new(peer),
            unchecked: false,
        }
    }

    /// Adds tags: those of what this party opened, and those expected for its peer's. The peer adds the same
    /// to each direction, in the same order.
    pub fn add(&mut self, shown: &mut [u128], expected: &mut [u128]) {
        self.unchecked |= !(shown.is_empty() && expected.is_empty());
        self.shown.add(&self.aes, shown);
        self.expected.add(&self.aes, expected);
    }

    /// Whether something was opened that is not checked.
    pub fn is_unchecked(&self) -> bool {
        self.unchecked
    }

    /// Opens bits to both parties: provisional until [`Openings::check`]. One round, a bit each.
    pub fn open(&mut self, bits: &Bits, key: &Key, net: &mut dyn Net) -> Result<Vec<u8>> {
        let Bits { values, tags, keys } = bits;
        self.open_with(values, key, net, |i| (tags[i], keys[i]))
    }

    /// The same for bits with these values. `macs` gives the tag and the key of each.
    pub(crate) fn open_with(
        &mut self,
        values: &[u8],
        key: &Key,
        net: &mut dyn Net,
        macs: impl Fn(usize) -> (u64, u64),
    ) -> Result<Vec<u8>> {
        let mut theirs = exchange_bits(values, key, net)?;
        let alpha = key.reveal_own_share();
        let (mut shown, mut expected) = ([0; AT_ONCE], [0; AT_ONCE]);
        for (piece, theirs) in theirs.chunks(AT_ONCE).enumerate() {
            let rows = shown.iter_mut().zip(&mut expected).zip(theirs);
            for (i, ((shown, expected), bit)) in (piece * AT_ONCE..).zip(rows) {
                let (tag, beta) = macs(i);
                *shown = u128::from(tag);
                *expected = u128::from(beta ^ (alpha & mask(*bit)));
            }
            self.add(&mut shown[..theirs.len()], &mut expected[..theirs.len()]);
        }
        theirs.iter_mut().zip(values).for_each(|(theirs, own)| *theirs ^= own);
        Ok(theirs)
    }

    /// Compares the hashes of all tags since the last check. One round, none if there are no tags. After an
    /// error the keys are given up.
    pub fn check(&mut self, key: &Key, net: &mut dyn Net) -> Result<()> {
        self.check_also(&[], &[], key, net)
    }

    /// [`Openings::check`], and in the same round whether the peer shows other proof that is expected of it.
    pub fn check_also(&mut self, shown: &[u8], expected: &[u8], key: &Key, net: &mut dyn Net) -> Result<()> {
        key.refuse_retired()?;
        if !self.unchecked && shown.is_empty() && expected.is_empty() {
            return Ok(());
        }
        let peer = peer_of(net)?;
        let shown = [&self.shown.sum.to_le_bytes(), shown].concat();
        let expected = [&self.expected.sum.to_le_bytes(), expected].concat();
        let mut theirs = vec![0; expected.len()];
        let (mut out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) = (vec![&[]; 2], vec![&mut [], &mut []]);
        out[peer.index()] = &shown;
        into[peer.index()] = &mut theirs;
        net.exchange(&out, &mut into)?;
        let failed = Error::CheckFailed { what: "the tags of what was opened" };
        key.judge(|| (!ct_eq(&expected, &theirs)).then_some(failed))?;
        self.unchecked = false;
        Ok(())
    }
}

/// What the parties agree on behind openings: the context of coins or of a zero test. Three parties or more
/// compare what each was told, since a party can tell others different things. With two there is nothing to
/// compare.
pub(super) fn context<'a>(of: &[u8], opened: impl IntoIterator<Item = &'a [u8]>, net: &dyn Net) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 what was opened while material is made");
    hasher.update(of);
    if net.parties() > 2 {
        opened.into_iter().for_each(|row| {
            hasher.update(&(row.len() as u64).to_le_bytes()).update(row);
        });
    }
    *hasher.finalize().as_bytes()
}

/// The other party of two.
pub fn peer_of(net: &dyn Net) -> Result<Party> {
    if net.parties() != 2 {
        return Err(Error::Misuse(format!("two parties take part, not {}", net.parties())));
    }
    Ok(Party(1 - net.me().0))
}

/// Sends bits, 0 or 1 each, eight in a byte, and receives as many. One round.
pub(crate) fn exchange_bits(bits: &[u8], key: &Key, net: &mut dyn Net) -> Result<Vec<u8>> {
    let peer = peer_of(net)?;
    let packed: Vec<u8> =
        bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit)).collect();
    let mut theirs = vec![0; packed.len()];
    let (mut out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) = (vec![&[]; 2], vec![&mut [], &mut []]);
    out[peer.index()] = &packed;
    into[peer.index()] = &mut theirs;
    net.exchange(&out, &mut into)?;
    // They are sent.
    mark_public(bits);
    // Bits beyond the last one would be a second way to say the same.
    if !bits.len().is_multiple_of(8) && theirs.last().is_some_and(|byte| byte >> (bits.len() % 8) != 0) {
        key.retire();
        return Err(Error::Peer { peer, detail: "it opened more bits than there are".into() });
    }
    Ok((0..bits.len()).map(|i| theirs[i / 8] >> (i % 8) & 1).collect())
}
