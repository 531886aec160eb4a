//! Clients of gRPC's C core, as in Python, name a Unix socket in `:authority` by its path: `run%2Fkms.sock`,
//! and some others `/run/kms.sock`. That is no authority of HTTP, and h2 breaks off such a request. Neither
//! gRPC over a socket nor the KMS uses the name.
//!
//! So the characters `%` and `/` become `-` in it, before h2 reads it. Nothing else is changed, and no
//! length: so it does not matter to the compression of headers (HPACK, RFC 7541), whose table counts bytes.
//! Names that this filter does not understand pass unchanged, and h2 judges them: a name that is compressed
//! (Huffman), that begins in one frame and ends in another, or that stands behind 16 KiB of other headers.
//! Clients of the C core do not send such names.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes with which a client of HTTP/2 begins, and of the head of a frame.
const PREFACE: usize = 24;
const HEAD: usize = 9;
/// The type of a frame with headers, and its flags for what stands around them.
const HEADERS: u8 = 1;
const PADDED: u8 = 0x08;
const PRIORITY: u8 = 0x20;
/// The most bytes of a frame, unless a server allows more; this one does not.
const MAX: usize = 16 << 10;
/// The name in the static table of HPACK, and as text.
const INDEX: usize = 1;
const NAME: &[u8] = b":authority";

/// See the [module](self).
pub(crate) struct Lenient<S> {
    inner: S,
    filter: Filter,
}

/// What was read. It is passed on once it is known not to be a name, or not to be one any more.
struct Filter {
    held: Vec<u8>,
    /// How many of the held bytes can be passed on.
    ready: usize,
    /// How many of the next bytes are not examined.
    skipped: usize,
}

impl<S> Lenient<S> {
    pub(crate) fn new(inner: S) -> Lenient<S> {
        Lenient { inner, filter: Filter::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lenient<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Lenient { inner, filter } = self.get_mut();
        while filter.ready == 0 {
            let mut bytes = [0; 4096];
            let mut read = ReadBuf::new(&mut bytes);
            std::task::ready!(Pin::new(&mut *inner).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                // It ends in the middle of a frame, or has ended.
                filter.ready = filter.held.len();
                break;
            }
            filter.take(read.filled());
        }
        let bytes = filter.ready.min(buffer.remaining());
        buffer.put_slice(&filter.held[..bytes]);
        filter.held.drain(..bytes);
        filter.ready -= bytes;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Lenient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl Default for Filter {
    fn default() -> Filter {
        Filter { held: Vec::new(), ready: 0, skipped: PREFACE }
    }
}

impl Filter {
    fn take(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        loop {
            let skipped = self.skipped.min(self.held.len() - self.ready);
            self.ready += skipped;
            self.skipped -= skipped;
            let waiting = &mut self.held[self.ready..];
            let Some((&mut [a, b, c, kind, flags, ..], frame)) = waiting.split_first_chunk_mut::<HEAD>()
            else {
                return;
            };
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if kind == HEADERS && length <= MAX {
                let Some(frame) = frame.get_mut(..length) else { return };
                rename(fields(flags, frame));
            }
            self.skipped = HEAD + length;
        }
    }
}

/// The fields of a frame with headers, without what stands around them.
fn fields(flags: u8, frame: &mut [u8]) -> &mut [u8] {
    let has = |flag: u8| flags & flag != 0;
    let padding = if has(PADDED) { frame.first().copied().unwrap_or_default().into() } else { 0 };
    let start = usize::from(has(PADDED)) + if has(PRIORITY) { 5 } else { 0 };
    let end = frame.len().saturating_sub(padding);
    frame.get_mut(start..end).unwrap_or_default()
}

/// Turns the name in `:authority` among some fields into a valid authority, if it is not valid.
fn rename(mut fields: &mut [u8]) {
    while let Some(&mut first) = fields.first_mut() {
        let bits = match first {
            // A field of a table.
            0x80.. => 7,
            // One that both sides remember.
            0x40.. => 6,
            // The size of the table.
            0x20.. => 5,
            _ => 4,
        };
        let Some((index, mut rest)) = integer(fields, bits) else { return };
        if matches!(first, 0x80.. | 0x20..0x40) {
            fields = rest;
            continue;
        }
        let is_authority = if index == 0 {
            let Some((name, is_plain, after)) = string(rest) else { return };
            rest = after;
            is_plain && name == NAME
        } else {
            index == INDEX
        };
        let Some((value, is_plain, after)) = string(rest) else { return };
        if is_authority && is_plain {
            value.iter_mut().filter(|byte| matches!(byte, b'%' | b'/')).for_each(|byte| *byte = b'-');
        }
        fields = after;
    }
}

/// An integer whose first part has `bits` bits, and the bytes behind it.
fn integer(bytes: &mut [u8], bits: u32) -> Option<(usize, &mut [u8])> {
    let most = (1 << bits) - 1;
    let (first, mut rest) = bytes.split_first_mut()?;
    let mut value = usize::from(*first) & most;
    if value < most {
        return Some((value, rest));
    }
    // More than a frame has bytes is not meant.
    for shift in [0, 7, 14] {
        let (next, after) = rest.split_first_mut()?;
        value += usize::from(*next & 0x7f) << shift;
        rest = after;
        if *next < 0x80 {
            return Some((value, rest));
        }
    }
    None
}

/// A string, whether it is not compressed, and what follows.
fn string(bytes: &mut [u8]) -> Option<(&mut [u8], bool, &mut [u8])> {
    let is_plain = *bytes.first()? < 0x80;
    let (length, rest) = integer(bytes, 7)?;
    let (string, rest) = rest.split_at_mut_checked(length)?;
    Some((string, is_plain, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of a type with flags.
    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn preface() -> Vec<u8> {
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()
    }

    /// What is passed on of bytes that arrive so many at a time.
    fn passed(bytes: &[u8], at_once: usize) -> Vec<u8> {
        let (mut filter, mut passed) = (Filter::default(), Vec::new());
        for some in bytes.chunks(at_once) {
            filter.take(some);
            passed.extend(filter.held.drain(..filter.ready));
            filter.ready = 0;
        }
        passed.extend(filter.held);
        passed
    }

    fn literal(first: &[u8], name: &[u8], value: &[u8]) -> Vec<u8> {
        let name = if name.is_empty() { vec![] } else { [&[name.len() as u8], name].concat() };
        [first, &name, &[value.len() as u8], value].concat()
    }

    #[test]
    fn a_socket_s_path_becomes_a_name_in_every_form_of_a_field() {
        // `:method POST` and `:path` of the static table, as C core sends them, around the authority.
        let path = literal(&[0x44], b"", b"/v2.KeyManagementService/Status");
        for (first, name) in
            [(0x41, &b""[..]), (0x01, b""), (0x11, b""), (0x40, NAME), (0x00, NAME), (0x10, NAME)]
        {
            let fields = |value: &[u8]| [vec![0x83], literal(&[first], name, value), path.clone()].concat();
            let (given, wanted) = (fields(b"run%2Fkms%2esock"), fields(b"run-2Fkms-2esock"));
            for (flags, before, after) in
                [(4, &b""[..], &b""[..]), (0x0c, b"\x03", b"%//"), (0x2c, b"\x01\0\0\0\0\x07", b"/")]
            {
                let whole = |fields: &[u8]| {
                    let headers = frame(HEADERS, flags, &[before, fields, after].concat());
                    [preface(), frame(4, 0, &[]), headers, frame(0, 1, b"/%/"), frame(HEADERS, 4, fields)]
                        .concat()
                };
                for at_once in [1, 7, 64, 4096] {
                    assert_eq!(
                        passed(&whole(&given), at_once),
                        whole(&wanted),
                        "{first:#x} {flags:#x} {at_once}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_not_understood_passes_as_it_is() {
        let path = literal(&[0x44], b"", b"/a/b");
        let compressed = [&[0x41, 0x80 | 8][..], b"//%%//%%"].concat();
        let cut = [&[0x41, 100][..], b"run%2F"].concat();
        let endless = [0x41, 0x7f, 0xff, 0xff, 0xff, 0xff, b'/'];
        for fields in [&path[..], &compressed, &cut, &endless, &[0x3f, 0xff], &[0x41], &[0xff]] {
            let whole = [preface(), frame(HEADERS, 4, fields), frame(9, 4, b"/%")].concat();
            assert_eq!(passed(&whole, 5), whole, "{fields:?}");
        }
        let short = [preface(), vec![0, 0, 9, 1]].concat();
        assert_eq!(passed(&short, 3), short, "the end in the middle of a frame");
    }

    /// Whatever arrives, no byte but `%` and `/` is changed, and it does not matter how it arrives.
    #[test]
    fn fuzz() {
        let fields = [vec![0x83], literal(&[0x41], b"", b"run%2Fkms.sock")].concat();
        let valid =
            [preface(), frame(HEADERS, 0x2c, &[&b"\x01\0\0\0\0\x07"[..], &fields, b"/"].concat())].concat();
        polyclave_harness::fuzz!("kms-authorities", &[], vec![valid], |bytes: &[u8]| {
            let whole = passed(bytes, usize::MAX);
            let same =
                |(given, passed): (&u8, &u8)| given == passed || (b"%/".contains(given) && *passed == b'-');
            assert!(whole.len() == bytes.len() && bytes.iter().zip(&whole).all(same));
            assert_eq!(passed(bytes, 3), whole);
        });
    }
}
