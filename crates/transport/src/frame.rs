//! Messages as frames: four bytes of length, big-endian, then that many bytes.
//!
//! Both sides know every length beforehand; the header only proves that they agree. A message that is longer
//! than the frame limit travels as several frames. All but the last have exactly the limit. An empty message
//! is one empty frame. No memory is allocated because a peer announced a length.

use crate::broken::Broken;
use crate::buffer::Buffer;
use crate::socket::Socket;

const HEADER: usize = 4;
/// The most that is discarded at once: what one TLS record holds.
const WASTE: usize = 16 << 10;

/// How much of one message has passed, in either direction.
#[derive(Default)]
pub(crate) struct Passage {
    /// Where the current frame starts within the message.
    start: usize,
    /// Bytes of the current frame that have passed, header included.
    passed: usize,
    header: [u8; HEADER],
}

impl Passage {
    /// Passes a piece of `message` to the socket; true once all of it has been passed.
    pub(crate) fn send(
        &mut self,
        socket: &mut Socket,
        message: &[u8],
        max_frame: usize,
    ) -> Result<bool, Broken> {
        let len = self.frame_len(message.len(), max_frame);
        self.header = (len as u32).to_be_bytes();
        let head = &self.header[self.passed.min(HEADER)..];
        let body = &message[self.start + self.passed.saturating_sub(HEADER)..self.start + len];
        self.passed += socket.write(head, body)?;
        Ok(self.turn(len, message.len()))
    }

    /// Takes a piece of a message for `into` from the socket; true once all of it is there.
    pub(crate) fn receive(
        &mut self,
        socket: &mut Socket,
        into: &mut [u8],
        max_frame: usize,
    ) -> Result<bool, Broken> {
        let len = self.frame_len(into.len(), max_frame);
        let head = &mut self.header[self.passed.min(HEADER)..];
        let body = &mut into[self.start + self.passed.saturating_sub(HEADER)..self.start + len];
        self.passed += socket.read(head, body)?;
        self.check(len, max_frame)?;
        Ok(self.turn(len, into.len()))
    }

    /// [`Passage::receive`] for a message of `message` bytes that is discarded.
    pub(crate) fn skip(
        &mut self,
        socket: &mut Socket,
        message: usize,
        max_frame: usize,
    ) -> Result<bool, Broken> {
        let len = self.frame_len(message, max_frame);
        let due = len - self.passed.saturating_sub(HEADER);
        let head = &mut self.header[self.passed.min(HEADER)..];
        self.passed += socket.read(head, &mut [0; WASTE][..due.min(WASTE)])?;
        self.check(len, max_frame)?;
        Ok(self.turn(len, message))
    }

    /// Appends, in its encoded form, the part of `message` that the socket has not taken.
    pub(crate) fn keep_rest(mut self, message: &[u8], max_frame: usize, kept: &mut Buffer) {
        loop {
            let len = self.frame_len(message.len(), max_frame);
            kept.append(&(len as u32).to_be_bytes()[self.passed.min(HEADER)..]);
            kept.append(&message[self.start + self.passed.saturating_sub(HEADER)..self.start + len]);
            self.passed = HEADER + len;
            if self.turn(len, message.len()) {
                return;
            }
        }
    }

    /// Whether the header, if it has arrived, announces the length that is due.
    fn check(&self, len: usize, max_frame: usize) -> Result<(), Broken> {
        if self.passed >= HEADER {
            let claim = u32::from_be_bytes(self.header) as usize;
            if claim > max_frame {
                let message =
                    format!("a frame that claims {claim} bytes where at most {max_frame} are allowed");
                return Err(Broken::Misbehaved(message));
            }
            if claim != len {
                return Err(Broken::Misbehaved(format!("a message of {claim} bytes where {len} were due")));
            }
        }
        Ok(())
    }

    fn frame_len(&self, message: usize, max_frame: usize) -> usize {
        (message - self.start).min(max_frame)
    }

    /// Goes to the next frame if this one is complete; true if it was the last.
    fn turn(&mut self, len: usize, message: usize) -> bool {
        if self.passed < HEADER + len {
            return false;
        }
        self.start += len;
        self.passed = 0;
        self.start == message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::tests::pair;

    const MAX: usize = 1000;

    /// What a receiver of `due` bytes makes of these bytes from its peer.
    fn receive(sent: &[u8], due: usize) -> Result<Vec<u8>, Broken> {
        let (mut a, mut b) = pair();
        assert_eq!(a.write(sent, &[]), Ok(sent.len()));
        let (mut into, mut passage) = (vec![0; due], Passage::default());
        while !passage.receive(&mut b, &mut into, MAX)? {}
        Ok(into)
    }

    #[test]
    fn a_frame_is_its_length_and_its_bytes() {
        assert_eq!(receive(b"\0\0\0\x03abc", 3).as_deref(), Ok(&b"abc"[..]));
        assert_eq!(receive(b"\0\0\0\0", 0).as_deref(), Ok(&b""[..]));
    }

    #[test]
    fn a_frame_that_claims_too_much_is_refused_whatever_is_due() {
        for due in [3, MAX, 10 * MAX] {
            let refused = receive(b"\xff\xff\xff\xffabc", due);
            assert!(
                matches!(&refused, Err(Broken::Misbehaved(message)) if message.contains("4294967295")),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_frame_of_another_length_is_refused_before_all_of_it_is_there() {
        let refused = receive(b"\0\0\0\x09abc", 10);
        assert_eq!(refused, Err(Broken::Misbehaved("a message of 9 bytes where 10 were due".into())));
    }

    #[test]
    fn a_cut_message_continues_in_the_next_frame() {
        let mut sent = vec![0, 0, 3, 232];
        sent.extend([1; MAX]);
        sent.extend([0, 0, 0, 2, 2, 2]);
        let expected = [[1; MAX].as_slice(), &[2, 2]].concat();
        assert_eq!(receive(&sent, MAX + 2), Ok(expected));
    }
}
