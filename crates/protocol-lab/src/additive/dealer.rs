//! The dealer, simulated by every party: everything that it would hand out follows from a seed that all
//! parties hold.

use polyclave_cipher::Table;
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::gf128;
use zeroize::Zeroizing;

use polyclave_protocol::Party;
use polyclave_protocol::interface::elements::Elements;
use polyclave_protocol::service::ELEMENT_BYTES;

/// The dealer's side of one stream of a session.
pub(super) struct Dealer {
    me: Party,
    parties: usize,
    key: [u8; 32],
    /// Everything dealt has streams of its own.
    dealt: u64,
}

/// For one lookup in every lane: shares of masks r, and for each of shares of the entries T(i + r).
pub(super) struct MaskedTable {
    pub(super) masks: Zeroizing<Vec<u8>>,
    pub(super) entries: Zeroizing<Vec<u8>>,
}

impl Dealer {
    /// The dealer of a seed for one stream.
    pub(super) fn new(me: Party, parties: usize, seed: &[u8; 32], stream: &[u8]) -> Dealer {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 toy dealer");
        let key = *hasher.update(seed).update(stream).finalize().as_bytes();
        Dealer { me, parties, key, dealt: 0 }
    }

    /// Cells of random bits.
    fn random(&mut self, bits: u8, count: usize) -> Zeroizing<Vec<u8>> {
        self.dealt += 1;
        self.noise(None, bits, count)
    }

    /// This party's shares of cells: those of the first are what the others leave.
    fn deal(&mut self, bits: u8, cells: &[u8]) -> Zeroizing<Vec<u8>> {
        self.dealt += 1;
        if self.me != Party(0) {
            return self.noise(Some(self.me), bits, cells.len());
        }
        let mut shares = Zeroizing::new(cells.to_vec());
        for peer in self.me.peers(self.parties) {
            let noise = self.noise(Some(peer), bits, cells.len());
            shares.iter_mut().zip(noise.iter()).for_each(|(share, noise)| *share ^= noise);
        }
        shares
    }

    /// Pseudorandom cells: the dealer's own, or those of a party.
    fn noise(&self, of: Option<Party>, bits: u8, count: usize) -> Zeroizing<Vec<u8>> {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[of.map_or(u8::MAX, |party| party.0)]);
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        let mut noise = Zeroizing::new(vec![0; count]);
        AesPrg::new(&key, self.dealt).fill(&mut noise);
        noise.iter_mut().for_each(|cell| *cell &= 0xff >> (8 - bits));
        noise
    }

    /// Shares of zeros.
    pub(super) fn zeros(&mut self, bits: u8, count: usize) -> Zeroizing<Vec<u8>> {
        self.deal(bits, &vec![0; count])
    }

    /// Shares of random bytes.
    pub(super) fn masks(&mut self, count: usize) -> Zeroizing<Vec<u8>> {
        let masks = self.random(8, count);
        self.deal(8, &masks)
    }

    /// For one lookup in this many lanes.
    pub(super) fn masked_table(&mut self, table: &Table, lanes: usize) -> MaskedTable {
        let masks = self.random(table.in_bits(), lanes);
        let moved = |mask: &u8| {
            let mask = usize::from(*mask);
            (0..table.entries().len()).map(move |i| table.entries()[i ^ mask])
        };
        let entries: Zeroizing<Vec<u8>> = Zeroizing::new(masks.iter().flat_map(moved).collect());
        MaskedTable {
            masks: self.deal(table.in_bits(), &masks),
            entries: self.deal(table.out_bits(), &entries),
        }
    }

    /// Shares of random elements a and b, and of their products.
    pub(super) fn triples(&mut self, count: usize) -> [Elements; 3] {
        let [a, b] = [(); 2].map(|()| self.random(8, ELEMENT_BYTES * count));
        let mut c = Zeroizing::new(vec![0; ELEMENT_BYTES * count]);
        gf128::multiply(&mut c, &a, &b);
        [a, b, c].map(|values| Elements::of(self.deal(8, &values)))
    }
}
