//! Sealing of a file of any length: chunks under one key, in order, the last one marked.
//!
//! This is the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár 2015) over XChaCha20-Poly1305. The
//! nonce of a chunk is the file's random id (16 bytes) and the chunk's number. The additional data says
//! whether the chunk is the last. So no chunk can be changed, moved, left out or taken from another file, and
//! the end cannot be cut off.

use std::io::{self, BufRead, Read, Write};

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use polyclave_protocol::session::random_bytes;
use zeroize::{Zeroize, Zeroizing};

use super::Secret;

const MAGIC: &[u8; 16] = b"polyclave bak 1\n";
const CHUNK: usize = 64 << 10;
const TAG: usize = 16;

/// The key and the nonces of a file's chunks.
struct Chunks {
    cipher: XChaCha20Poly1305,
    file: [u8; 16],
    number: u64,
}

impl Chunks {
    fn new(key: &Secret, file: [u8; 16]) -> Chunks {
        let key = key.derive("polyclave 2026 node backup");
        Chunks { cipher: XChaCha20Poly1305::new((&*key).into()), file, number: 0 }
    }

    fn nonce(&mut self) -> XNonce {
        let mut nonce = XNonce::default();
        nonce[..16].copy_from_slice(&self.file);
        nonce[16..].copy_from_slice(&self.number.to_le_bytes());
        self.number += 1;
        nonce
    }
}

/// Seals what is written to it.
pub(super) struct Sealing<W> {
    to: W,
    chunks: Chunks,
    open: Zeroizing<Vec<u8>>,
}

impl<W: Write> Sealing<W> {
    pub(super) fn new(mut to: W, key: &Secret) -> io::Result<Sealing<W>> {
        let mut file = [0; 16];
        random_bytes(&mut file).map_err(io::Error::other)?;
        to.write_all(MAGIC)?;
        to.write_all(&file)?;
        let open = Zeroizing::new(Vec::with_capacity(CHUNK + TAG));
        Ok(Sealing { to, chunks: Chunks::new(key, file), open })
    }

    /// Seals the last chunk. Without it the file cannot be opened.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.seal(true)?;
        Ok(self.to)
    }

    fn seal(&mut self, last: bool) -> io::Result<()> {
        let nonce = self.chunks.nonce();
        let sealed = self.chunks.cipher.encrypt_in_place(&nonce, &about(last), &mut *self.open);
        sealed.map_err(|_| io::Error::other("a chunk cannot be sealed"))?;
        self.to.write_all(&self.open)?;
        self.open.clear();
        Ok(())
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk is sealed only when more data follows: the last chunk must be marked as the last.
        if self.open.len() == CHUNK && !bytes.is_empty() {
            self.seal(false)?;
        }
        let n = bytes.len().min(CHUNK - self.open.len());
        self.open.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens what [`Sealing`] sealed. Returns only authentic data, and reports the end only at the true end.
pub(super) struct Opening<R> {
    from: R,
    chunks: Chunks,
    open: Zeroizing<Vec<u8>>,
    given: usize,
    ended: bool,
}

impl<R: BufRead> Opening<R> {
    pub(super) fn new(mut from: R, key: &Secret) -> io::Result<Opening<R>> {
        let mut magic = [0; 16];
        let mut file = [0; 16];
        from.read_exact(&mut magic)?;
        from.read_exact(&mut file)?;
        if magic != *MAGIC {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a backup of this version"));
        }
        let open = Zeroizing::new(Vec::with_capacity(CHUNK + TAG));
        Ok(Opening { from, chunks: Chunks::new(key, file), open, given: 0, ended: false })
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        self.open.zeroize();
        self.given = 0;
        let most = (CHUNK + TAG) as u64;
        (&mut self.from).take(most).read_to_end(&mut self.open)?;
        self.ended = self.from.fill_buf()?.is_empty();
        let nonce = self.chunks.nonce();
        let opened = self.chunks.cipher.decrypt_in_place(&nonce, &about(self.ended), &mut *self.open);
        opened.map_err(|_| {
            self.open.clear();
            io::Error::new(io::ErrorKind::InvalidData, "damaged, or sealed under another key")
        })
    }
}

impl<R: BufRead> Read for Opening<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given == self.open.len() && !self.ended {
            self.next_chunk()?;
        }
        let n = out.len().min(self.open.len() - self.given);
        out[..n].copy_from_slice(&self.open[self.given..][..n]);
        self.given += n;
        Ok(n)
    }
}

fn about(last: bool) -> [u8; 17] {
    let mut about = [u8::from(last); 17];
    about[..16].copy_from_slice(MAGIC);
    about
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(bytes: &[u8]) -> Vec<u8> {
        let mut sealing = Sealing::new(Vec::new(), &Secret::from_bytes([1; 32])).expect("begun");
        sealing.write_all(bytes).expect("written");
        sealing.finish().expect("finished")
    }

    fn open(sealed: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Opening::new(sealed, &Secret::from_bytes([1; 32]))?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn every_length_comes_back() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5] {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            assert_eq!(open(&seal(&bytes)).expect("opens"), bytes, "{len}");
        }
    }

    #[test]
    fn chunks_cannot_be_cut_swapped_or_repeated() {
        let sealed = seal(&vec![5; 3 * CHUNK]);
        let chunk = CHUNK + TAG;
        let part = |i: usize| &sealed[32 + i * chunk..32 + (i + 1) * chunk];
        let head = &sealed[..32];
        assert_eq!([head, part(0), part(1), part(2)].concat(), sealed);
        for wrong in [
            [head, part(0), part(1)].concat(),
            [head, part(1), part(0), part(2)].concat(),
            [head, part(0), part(0), part(1), part(2)].concat(),
            [head, part(0), part(2)].concat(),
            [&sealed[..], &[0]].concat(),
            sealed[..40].to_vec(),
            head.to_vec(),
        ] {
            assert!(open(&wrong).is_err());
        }
    }
}
