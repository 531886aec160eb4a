//! Which trace a request belongs to: the part of W3C's Trace Context that goes with a request to every node.
//!
//! It says nothing but two random numbers and whether somebody wants the trace recorded. Nodes decide nothing
//! by it. It is part of the request, so the nodes compare it with the rest.

use serde::{Deserialize, Serialize};

/// Bytes of a `traceparent` of version 00: version, trace, parent and flags, and the dashes between them.
const LENGTH: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;
/// The most bytes of one of a later version, which may say more behind these.
const MOST: usize = 512;
/// The flag that says that the caller may have recorded its part.
const SAMPLED: u8 = 1;

/// The trace of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    /// The number of the trace, which all its parts have in common.
    pub trace: [u8; 16],
    /// The number of the part of it that asks.
    pub parent: [u8; 8],
    /// Whether the caller wants it recorded.
    pub sampled: bool,
}

impl TraceContext {
    /// Reads the value of a header or variable `traceparent` (W3C Trace Context, level 1, section 3.2).
    /// `None` if it is not valid: a request without a trace is answered all the same.
    ///
    /// ```
    /// use polyclave_api::TraceContext;
    ///
    /// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let trace = TraceContext::parse(text.as_bytes()).expect("it is valid");
    /// assert_eq!((trace.number(), trace.sampled), ("4bf92f3577b34da6a3ce929d0e0e4736".into(), true));
    /// ```
    pub fn parse(traceparent: &[u8]) -> Option<TraceContext> {
        let (known, more) = traceparent.split_at_checked(LENGTH)?;
        let [v1, v0, b'-', trace @ .., f1, f0] = known else { return None };
        let (trace, parent) = (trace.get(..32)?, trace.strip_suffix(b"-")?.get(32..)?.strip_prefix(b"-")?);
        let version = byte(*v1, *v0)?;
        // Version 00 ends here. Later ones may go on behind a dash; ff is none.
        let goes_on = version > 0 && more.first() == Some(&b'-') && traceparent.len() <= MOST;
        if version == 0xff || !(more.is_empty() || goes_on) {
            return None;
        }
        let sampled = byte(*f1, *f0)? & SAMPLED != 0;
        let context = TraceContext { trace: bytes(trace)?, parent: bytes(parent)?, sampled };
        context.is_valid().then_some(context)
    }

    /// Whether it has both numbers: 0 stands for none.
    pub fn is_valid(&self) -> bool {
        self.trace != [0; 16] && self.parent != [0; 8]
    }

    /// The number of the trace in hexadecimal, as logs and other programs show it.
    pub fn number(&self) -> String {
        hex::encode(self.trace)
    }
}

/// Bytes in lower-case hexadecimal, in pairs.
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let mut bytes = [0; N];
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (to, [high, low]) in bytes.iter_mut().zip(pairs) {
        *to = byte(*high, *low)?;
    }
    Some(bytes)
}

fn byte(high: u8, low: u8) -> Option<u8> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parse(text: &str) -> Option<TraceContext> {
        TraceContext::parse(text.as_bytes())
    }

    #[test]
    fn a_traceparent_is_read() {
        let trace = parse(GOOD).expect("it is that of the specification");
        assert_eq!(trace.parent, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert_eq!((trace.number().as_str(), trace.sampled), (&GOOD[3..35], true));
        let flags = |flags: &str| parse(&format!("{}{flags}", &GOOD[..53])).map(|trace| trace.sampled);
        assert_eq!(
            [flags("00"), flags("02"), flags("03"), flags("ff")].map(Option::unwrap),
            [false, false, true, true]
        );
    }

    #[test]
    fn what_the_specification_calls_invalid_is_none() {
        let with = |at: usize, c: char| {
            let mut text: Vec<char> = GOOD.chars().collect();
            text[at] = c;
            text.into_iter().collect::<String>()
        };
        for at in 0..GOOD.len() {
            assert_eq!(parse(&with(at, 'g')), None, "{at}");
            assert_eq!(parse(&with(at, 'A')), None, "{at}");
            assert_eq!(parse(&GOOD[..at]), None, "{at}");
        }
        for text in [
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_later_version_may_say_more() {
        let later = GOOD.replacen("00", "cc", 1);
        assert_eq!(parse(&later), parse(GOOD));
        assert_eq!(parse(&format!("{later}-what-the-future-will-be-like")), parse(GOOD));
        assert_eq!(parse(&format!("{later}.what-the-future-will-be-like")), None);
        assert_eq!(parse(&format!("{later}-{}", "x".repeat(MOST))), None, "too long");
    }
}
