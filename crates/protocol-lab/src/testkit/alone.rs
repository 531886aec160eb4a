//! Networks for one party alone, to time it without the other: one that discards everything, and one that
//! replays a tape.

use std::hint::black_box;

use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, Result};

/// Discards everything that is sent, and receives nothing, at once: buffers for received messages stay
/// unchanged.
pub struct Nobody(
    /// The party that is alone.
    pub Party,
);

impl Net for Nobody {
    fn me(&self) -> Party {
        self.0
    }

    fn parties(&self) -> usize {
        2
    }

    fn send(&mut self, _: Party, message: &[u8]) -> Result<()> {
        black_box(message);
        Ok(())
    }

    fn recv(&mut self, _: Party, into: &mut [u8]) -> Result<()> {
        black_box(into);
        Ok(())
    }

    fn exchange(&mut self, _: &[&[u8]], _: &mut [&mut [u8]]) -> Result<()> {
        Ok(())
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        Ok(Box::new(Nobody(self.0)))
    }
}

/// Records in memory what one party sends without waiting for answers. The other party receives it
/// afterwards.
pub struct Tape {
    me: Party,
    said: Vec<u8>,
    heard: usize,
}

impl Tape {
    /// An empty one for who speaks.
    pub fn new(speaker: Party) -> Tape {
        Tape { me: speaker, said: Vec::new(), heard: 0 }
    }

    /// Empties it for who speaks. Its memory stays.
    pub fn erase_for(&mut self, speaker: Party) {
        self.said.clear();
        (self.me, self.heard) = (speaker, 0);
    }

    /// Back to the beginning, for who listens.
    pub fn rewind_for(&mut self, listener: Party) {
        (self.me, self.heard) = (listener, 0);
    }

    /// Bytes on it.
    pub fn len(&self) -> usize {
        self.said.len()
    }

    /// Whether nothing is on it.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }
}

impl Net for Tape {
    fn me(&self) -> Party {
        self.me
    }

    fn parties(&self) -> usize {
        2
    }

    fn send(&mut self, _: Party, message: &[u8]) -> Result<()> {
        self.said.extend_from_slice(message);
        Ok(())
    }

    fn recv(&mut self, _: Party, into: &mut [u8]) -> Result<()> {
        let missing = || Error::misuse("the tape has ended");
        let message = self.said.get(self.heard..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(message.ok_or_else(missing)?);
        self.heard += into.len();
        Ok(())
    }

    fn exchange(&mut self, _: &[&[u8]], _: &mut [&mut [u8]]) -> Result<()> {
        Err(Error::misuse("nobody answers on a tape"))
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        Err(Error::misuse("a tape has one track"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_gives_back_what_was_said_and_then_ends() {
        let mut tape = Tape::new(Party(0));
        tape.send(Party(1), b"one").expect("room");
        tape.send(Party(1), b"two").expect("room");
        let mut heard = [0; 4];
        for _ in 0..2 {
            tape.rewind_for(Party(1));
            tape.recv(Party(0), &mut heard).expect("it is there");
            assert_eq!(&heard, b"onet");
        }
        assert!(tape.recv(Party(0), &mut heard).is_err());
        tape.erase_for(Party(0));
        assert!(tape.is_empty());
    }
}
