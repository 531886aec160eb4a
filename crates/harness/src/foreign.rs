//! Inputs as a fuzzer that knows valid ones makes them: changed, cut, lengthened and put together from them,
//! or just random.

use std::ops::Bound;

use bolero::{Driver, ValueGenerator};

/// The longest input.
const MAX: usize = 1 << 16;
/// Changes of one input at most.
const CHANGES: usize = 6;
/// Numbers at which formats have their limits; also as variable-length integers, and as bytes.
const NUMBERS: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    u64::MAX,
];

/// Makes foreign inputs for one format.
pub struct Foreign {
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Foreign {
    /// From valid inputs, others that were kept, and words of the format.
    pub fn new(valid: Vec<Vec<u8>>, kept: Vec<Vec<u8>>, words: &[&str]) -> Foreign {
        let seeds: Vec<Vec<u8>> = valid.into_iter().chain(kept).collect();
        assert!(!seeds.is_empty(), "a target has a valid input");
        let varint = |mut number: u64| {
            let mut bytes = Vec::new();
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
            bytes
        };
        let mut all: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        for number in NUMBERS {
            all.extend([
                varint(number),
                number.to_le_bytes().to_vec(),
                (number as u32).to_le_bytes().to_vec(),
            ]);
            all.extend([(number as u32).to_be_bytes().to_vec(), number.to_string().into_bytes()]);
        }
        Foreign { seeds, words: all }
    }

    /// What is tried as it is.
    pub fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn change(&self, bytes: &mut Vec<u8>, choice: &mut Choice<impl Driver>) -> Option<()> {
        let at = choice.below(bytes.len() + 1)?;
        match choice.below(10)? {
            0 if at < bytes.len() => bytes[at] ^= 1 << choice.below(8)?,
            1 if at < bytes.len() => bytes[at] = choice.byte()?,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, choice.byte()?),
            4 => {
                let end = at + choice.below((bytes.len() - at).min(64) + 1)?;
                bytes.drain(at..end);
            }
            5 => {
                let end = at + choice.below((bytes.len() - at).min(256) + 1)?;
                let again = bytes[at..end].to_vec();
                let to = choice.below(bytes.len() + 1)?;
                bytes.splice(to..to, again);
            }
            6 => {
                let other = &self.seeds[choice.below(self.seeds.len())?];
                let from = choice.below(other.len() + 1)?;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            7 => {
                let word = &self.words[choice.below(self.words.len())?];
                bytes.splice(at..at, word.iter().copied());
            }
            _ => {
                let word = &self.words[choice.below(self.words.len())?];
                let end = (at + word.len()).min(bytes.len());
                bytes.splice(at..end, word.iter().copied());
            }
        }
        bytes.truncate(MAX);
        Some(())
    }
}

impl ValueGenerator for Foreign {
    type Output = Vec<u8>;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Vec<u8>> {
        let mut choice = Choice(driver);
        if choice.below(16)? == 0 {
            return (0..choice.below(64)?).map(|_| choice.byte()).collect();
        }
        let mut bytes = self.seeds[choice.below(self.seeds.len())?].clone();
        for _ in 0..=choice.below(CHANGES)? {
            self.change(&mut bytes, &mut choice)?;
        }
        Some(bytes)
    }
}

/// Decisions of the driver.
struct Choice<'d, D>(&'d mut D);

impl<D: Driver> Choice<'_, D> {
    fn below(&mut self, end: usize) -> Option<usize> {
        self.0.gen_usize(Bound::Included(&0), Bound::Excluded(&end))
    }

    fn byte(&mut self) -> Option<u8> {
        self.0.gen_u8(Bound::Unbounded, Bound::Unbounded)
    }
}
