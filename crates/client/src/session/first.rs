//! What a client says first about a use of a key: with its request if it can, because that saves a round
//! trip.
//!
//! Input goes to the nodes under a mask. Under protocols where a client can deal a mask
//! ([`polyclave_protocol::dealt`]), it draws a new one for each request, and the input goes with the request,
//! if it is not long. Else it goes as soon as the nodes have sent a mask.

use polyclave_api::{End, Step};
use polyclave_protocol::PartySet;
use polyclave_protocol::dealt::DealtMask;
use zeroize::Zeroizing;

use crate::{Error, Result};

/// The most bytes of input that go with a request.
const AT_ONCE: usize = 16 << 10;

/// What is said first.
#[derive(Clone, Copy)]
pub(crate) enum First<'f> {
    /// Nothing yet.
    Nothing,
    /// A step.
    Step(&'f Step),
    /// Input under a mask.
    Masked(Masked<'f>),
    /// A whole message, if this client can deal its mask; else a step.
    Message { message: &'f [u8], otherwise: &'f Step },
}

/// Input that goes under a mask.
#[derive(Clone, Copy)]
pub(crate) struct Masked<'f> {
    pub(crate) data: &'f [u8],
    /// Bytes of the next mask; 0 if there will be no more.
    pub(crate) next: usize,
    /// For CMAC: how the message ends.
    pub(crate) end: End,
}

impl Masked<'_> {
    /// The step, under a mask of the same length.
    pub(crate) fn under(&self, mask: &[u8]) -> Result<Step> {
        Ok(Step::Masked { data: under(mask, self.data)?, next: self.next as u32, end: self.end })
    }
}

impl<'f> First<'f> {
    /// A step, if there is one.
    pub(crate) fn of(step: Option<&'f Step>) -> First<'f> {
        step.map_or(First::Nothing, First::Step)
    }

    /// What goes with the request, and the mask that this client deals for it. `components` are those of the
    /// protocol.
    pub(crate) fn with_request(&self, components: &[PartySet]) -> Result<(Option<Step>, Option<DealtMask>)> {
        if components.is_empty() || self.is_long() {
            return Ok((self.step().cloned(), None));
        }
        let deal = |bytes: usize| -> Result<(DealtMask, Zeroizing<Vec<u8>>)> {
            let dealt = DealtMask::draw(components)?;
            let mask = dealt.mask(bytes);
            Ok((dealt, mask))
        };
        Ok(match self {
            First::Nothing | First::Step(_) => (self.step().cloned(), None),
            First::Masked(masked) => {
                let (dealt, mask) = deal(masked.data.len())?;
                (Some(masked.under(&mask)?), Some(dealt))
            }
            First::Message { message, .. } => {
                let (dealt, mask) = deal(message.len())?;
                (Some(Step::Message { masked: under(&mask, message)? }), Some(dealt))
            }
        })
    }

    /// Whether it would take so long to send that a round trip more does not count, and that nodes which have
    /// the request already would wait for the others.
    fn is_long(&self) -> bool {
        matches!(self, First::Masked(masked) if masked.data.len() > AT_ONCE)
    }

    fn step(&self) -> Option<&Step> {
        match self {
            First::Step(step) | First::Message { otherwise: step, .. } => Some(step),
            First::Nothing | First::Masked(_) => None,
        }
    }
}

/// Adds a mask of the same length to data.
pub(crate) fn under(mask: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    if mask.len() != data.len() {
        return Err(Error::Answers(format!("{} bytes where {} were due", mask.len(), data.len())));
    }
    Ok(data.iter().zip(mask).map(|(d, m)| d ^ m).collect())
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::Party;

    use super::*;

    fn components() -> Vec<PartySet> {
        (0..3).map(|j| [Party(j), Party((j + 2) % 3)].into_iter().collect()).collect()
    }

    #[test]
    fn input_goes_with_the_request_only_under_a_new_mask_of_the_client() {
        let masked = First::Masked(Masked { data: &[7; 32], next: 16, end: End::No });
        assert!(matches!(masked.with_request(&[]), Ok((None, None))));
        let sent = [(); 2].map(|()| match masked.with_request(&components()) {
            Ok((Some(Step::Masked { data, next: 16, end: End::No }), Some(dealt))) => {
                assert_eq!(under(&dealt.mask(32), &data).ok(), Some(vec![7; 32]));
                data
            }
            _ => panic!("it goes with the request"),
        });
        assert_ne!(sent[0], sent[1], "each request has a mask of its own");
        for (len, goes) in [(AT_ONCE, true), (AT_ONCE + 16, false)] {
            let masked = First::Masked(Masked { data: &vec![7; len], next: 0, end: End::No });
            let (step, dealt) = masked.with_request(&components()).expect("random bytes");
            assert_eq!((step.is_some(), dealt.is_some()), (goes, goes), "{len}");
        }
    }

    #[test]
    fn a_whole_message_goes_where_the_client_deals_and_else_a_step() {
        let first = First::Message { message: b"a message", otherwise: &Step::Keystream { bytes: 9 } };
        assert!(matches!(first.with_request(&[]), Ok((Some(Step::Keystream { bytes: 9 }), None))));
        let Ok((Some(Step::Message { masked }), Some(dealt))) = first.with_request(&components()) else {
            panic!("it goes whole")
        };
        assert_eq!(under(&dealt.mask(9), &masked).ok().as_deref(), Some(&b"a message"[..]));
    }
}
