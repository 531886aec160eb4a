//! A dealer of committed strings: **every party could compute everybody's shares and the MAC key**.
//!
//! For tests, and for measuring an opening alone: F_MiniMac^pre of Damgard et al. 2016, figure 9. Both
//! parties hold one seed. The shares of the party that does not own a string are pseudorandom, as a simulator
//! would have a cheater choose them; those of the owner are what is left.

use polyclave_field::Gf2_16;
use polyclave_kernels::aes_prg::AesPrg;

use super::{Code, Committed, KeyShare, Shares, Tile, pack};
use polyclave_protocol::Party;

/// The dealer of one key, as each of two parties runs it.
pub struct InsecureMiniMac {
    me: Party,
    code: Code,
    seed: [u8; 16],
    dealt: u64,
}

impl InsecureMiniMac {
    /// The dealer of a seed that both parties know.
    pub fn new(seed: &[u8; 32], code: Code, me: Party) -> Self {
        let derived = blake3::derive_key("polyclave 2026 insecure minimac dealer", seed);
        let mut seed = [0; 16];
        seed.copy_from_slice(&derived[..16]);
        InsecureMiniMac { me, code, seed, dealt: 0 }
    }

    /// This party's share of the key.
    pub fn key(&self) -> KeyShare {
        KeyShare::new(self.me, self.code, self.key_share(self.me))
    }

    fn key_share(&self, party: Party) -> Vec<u16> {
        symbols(&mut AesPrg::new(&self.seed, u64::from(party.0)), self.code.places())
    }

    /// This party is committed to a string, 0 or 1 for each bit. The other one calls
    /// [`InsecureMiniMac::commit_peer`] meanwhile.
    pub fn commit(&mut self, string: &[u8]) -> Committed {
        let (code, len) = (self.code, string.len());
        let mut shares = self.others_shares(len);
        let a = self.key_share(Party(0)).into_iter().zip(self.key_share(Party(1)));
        let a: Vec<u16> = a.map(|(x, y)| x ^ y).collect();
        let mask = symbols(&mut self.next_stream(), shares.mask.len());
        for tile in Tile::all(code, len) {
            let mut words = vec![0; code.places() * tile.lanes];
            tile.messages(|i| string[i], len, code, &mut words);
            code.encode(&mut words, tile.lanes);
            authenticate(&a, &words, tile.lanes, tile.part_mut(&mut shares.macs, code.places()));
            words.fill(0);
            let mask = tile.part(&mask, code.free());
            words[code.message() * tile.lanes..][..mask.len()].copy_from_slice(mask);
            code.complete_square(&mut words, tile.lanes);
            authenticate(&a, &words, tile.lanes, tile.part_mut(&mut shares.mask_macs, code.places()));
        }
        Gf2_16::add_row(&mut shares.mask, &mask);
        shares.bits.iter_mut().zip(pack(string)).for_each(|(x, y)| *x ^= y);
        Committed::new(self.dealt, self.me, code, len, shares)
    }

    /// The other party is committed to a string of this many bits.
    pub fn commit_peer(&mut self, len: usize) -> Committed {
        let shares = self.others_shares(len);
        _ = self.next_stream();
        Committed::new(self.dealt, Party(1 - self.me.0), self.code, len, shares)
    }

    /// The shares of the party that does not own a string.
    fn others_shares(&mut self, len: usize) -> Shares {
        let (messages, mut stream) = (len.div_ceil(self.code.message()), self.next_stream());
        let mut bits = vec![0; len.div_ceil(8)];
        stream.fill(&mut bits);
        if let Some(last) = bits.last_mut().filter(|_| !len.is_multiple_of(8)) {
            *last &= 0xff >> (8 - len % 8);
        }
        let mut symbols = |rows: usize| symbols(&mut stream, rows * messages);
        let places = self.code.places();
        Shares { bits, mask: symbols(self.code.free()), macs: symbols(places), mask_macs: symbols(places) }
    }

    /// The first two are those of the key.
    fn next_stream(&mut self) -> AesPrg {
        self.dealt += 1;
        AesPrg::new(&self.seed, 1 + self.dealt)
    }
}

/// Adds a * word to shares of zero.
fn authenticate(a: &[u16], words: &[u16], lanes: usize, shares: &mut [u16]) {
    for (a, (shares, words)) in a.iter().zip(shares.chunks_exact_mut(lanes).zip(words.chunks_exact(lanes))) {
        Gf2_16::add_multiple(shares, words, *a);
    }
}

fn symbols(stream: &mut AesPrg, count: usize) -> Vec<u16> {
    let mut bytes = vec![0; 2 * count];
    stream.fill(&mut bytes);
    bytes.chunks_exact(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]])).collect()
}
