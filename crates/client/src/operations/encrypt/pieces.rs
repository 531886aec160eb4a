//! Cuts an input into pieces of equal length and marks the last one; and asks about pieces ahead of the
//! answers.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{Read, Write};

use polyclave_api::{MESSAGE, Step};
use zeroize::{Zeroize, Zeroizing};

use crate::session::conversation::Conversation;
use crate::{Error, Result};

/// The most pieces about which nodes are asked before their answers are there.
pub(crate) const WINDOW: usize = 2;

/// Receives the number of bytes done.
pub(crate) type Progress<'p> = &'p mut dyn FnMut(u64);

/// Where an input is.
pub(crate) enum Source<'r> {
    Memory(&'r [u8]),
    Stream(&'r mut dyn Read),
}

/// Part of an input. What was read from a stream is wiped.
pub(crate) struct Piece<'r> {
    pub(crate) data: Cow<'r, [u8]>,
    /// Whether the input ends with it.
    pub(crate) last: bool,
}

impl Piece<'_> {
    /// The whole input, if it can go to the nodes in one step.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        (self.last && (1..=MESSAGE).contains(&self.data.len())).then_some(&*self.data)
    }
}

impl Drop for Piece<'_> {
    fn drop(&mut self) {
        if let Cow::Owned(data) = &mut self.data {
            data.zeroize();
        }
    }
}

/// Reads one piece ahead. An empty input is one empty piece.
pub(crate) struct Pieces<'r> {
    input: Source<'r>,
    bytes: usize,
    ahead: Option<Cow<'r, [u8]>>,
}

impl<'r> Pieces<'r> {
    pub(crate) fn new(mut input: Source<'r>, bytes: usize) -> Result<Self> {
        let first = read(&mut input, bytes)?;
        Ok(Pieces { input, bytes, ahead: Some(first) })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Piece<'r>>> {
        let Some(data) = self.ahead.take() else { return Ok(None) };
        if data.len() == self.bytes {
            self.ahead = Some(read(&mut self.input, self.bytes)?).filter(|after| !after.is_empty());
        }
        let last = self.ahead.is_none();
        Ok(Some(Piece { data, last }))
    }

    /// The next piece; none of an empty input.
    pub(crate) fn next_filled(&mut self) -> Result<Option<Piece<'r>>> {
        Ok(self.next()?.filter(|piece| !piece.data.is_empty()))
    }

    /// Asks the nodes about all further pieces, some of them ahead of the answers, which `take` gets in
    /// order. `asked`: the piece about which they were asked already. `step`: what is asked about a piece,
    /// and how many bytes the answer has.
    pub(crate) fn answered(
        &mut self,
        conversation: &mut Conversation<'_>,
        asked: Option<Piece<'r>>,
        step: impl Fn(&Piece<'_>) -> Result<(Step, usize)>,
        mut take: impl FnMut(&Piece<'_>, Zeroizing<Vec<u8>>) -> Result<()>,
    ) -> Result<()> {
        let mut awaited = VecDeque::new();
        if let Some(piece) = asked {
            awaited.push_back((step(&piece)?.1, piece));
        }
        loop {
            while awaited.len() < WINDOW
                && let Some(piece) = self.next_filled()?
            {
                let (step, due) = step(&piece)?;
                conversation.step(&step)?;
                awaited.push_back((due, piece));
            }
            let Some((due, piece)) = awaited.pop_front() else { return Ok(()) };
            take(&piece, conversation.bytes(due)?)?;
        }
    }
}

fn read<'r>(input: &mut Source<'r>, bytes: usize) -> Result<Cow<'r, [u8]>> {
    match input {
        Source::Memory(data) => {
            let (piece, rest) = data.split_at(bytes.min(data.len()));
            *data = rest;
            Ok(Cow::Borrowed(piece))
        }
        Source::Stream(stream) => {
            let mut data = Vec::with_capacity(bytes);
            stream.take(bytes as u64).read_to_end(&mut data).map_err(Error::reading)?;
            Ok(Cow::Owned(data))
        }
    }
}

/// Adds bytes to as many others.
pub(crate) fn add(sum: &mut [u8], other: &[u8]) {
    sum.iter_mut().zip(other).for_each(|(s, o)| *s ^= o);
}

/// Writes the ciphertext and the tag of a whole message. Returns how many bytes the message has.
pub(crate) fn write_whole(
    (ciphertext, tag): (&[u8], &[u8]),
    output: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<u64> {
    let written = output.write_all(ciphertext).and_then(|()| output.write_all(tag));
    written.and_then(|()| output.flush()).map_err(Error::writing)?;
    progress(ciphertext.len() as u64);
    Ok(ciphertext.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_piece_is_last() {
        for (len, expected) in [(0, vec![0]), (1, vec![1]), (4, vec![4]), (5, vec![4, 1]), (8, vec![4, 4])] {
            let data = vec![7; len];
            for source in [Source::Memory(&data), Source::Stream(&mut &data[..])] {
                let mut pieces = Pieces::new(source, 4).expect("memory can be read");
                let mut lengths = Vec::new();
                while let Some(piece) = pieces.next().expect("memory can be read") {
                    lengths.push(piece.data.len());
                    assert_eq!(piece.last, lengths.len() == expected.len(), "{len}");
                }
                assert_eq!(lengths, expected);
            }
        }
    }
}
