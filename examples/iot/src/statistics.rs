//! Sum, maximum and count above a threshold, as plain code and as a Boolean circuit of logarithmic depth.
//!
//! The mean is not in the circuit: the number of readings is public, so whoever learns the sum divides.

use polyclave_cipher::boolean::words::{add, choose, less, number, pairwise};
use polyclave_cipher::boolean::{Bit, BooleanBuilder, Word};
use polyclave_cipher::{Cells, Circuit};
use serde::{Deserialize, Serialize};

use crate::encryption::READING_BYTES;

/// Bits of a reading.
const READING_BITS: usize = 8 * READING_BYTES;

/// All that is revealed of readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Of all readings.
    pub sum: u64,
    /// The largest reading.
    pub maximum: u64,
    /// How many readings are larger than the threshold.
    pub above: u64,
}

impl Statistics {
    /// In plain code, by somebody who knows the readings.
    pub fn of(readings: &[u16], threshold: u16) -> Statistics {
        Statistics {
            sum: readings.iter().copied().map(u64::from).sum(),
            maximum: readings.iter().copied().max().unwrap_or(0).into(),
            above: readings.iter().filter(|reading| **reading > threshold).count() as u64,
        }
    }

    /// From the output of [`circuit`] for so many readings.
    pub fn from_cells(cells: &Cells, readings: usize) -> Statistics {
        let mut bits = (0..cells.count()).map(|cell| u64::from(cells.row(cell)[0]));
        let mut number = |width| bits.by_ref().take(width).fold(0, |number, bit| number << 1 | bit);
        let levels = levels(readings);
        Statistics {
            sum: number(READING_BITS + levels),
            maximum: number(READING_BITS),
            above: number(1 + levels),
        }
    }
}

/// `block 0`, `block 1` .. to `statistics`: the sum, the maximum and the count, one after another. Blocks
/// hold so many bits; all of a message are full but the last one, of which the end is ignored.
///
/// ANDs for each reading: 16 and a few for the sum, 58 for the maximum, at most 26 for the threshold, 1 or 2
/// for the count. Sums ripple, one behind the other, in 16 layers and one for each level of the tree; the
/// maximum takes 6 a level.
pub fn circuit(messages: usize, readings: usize, block_bits: usize, threshold: u16) -> Circuit {
    let mut b = BooleanBuilder::new("statistics");
    let blocks = (readings * READING_BITS).div_ceil(block_bits);
    let mut words: Vec<Word> = Vec::new();
    for message in 0..messages {
        let numbers = message * blocks..(message + 1) * blocks;
        let count = block_bits / READING_BITS;
        let of_message = numbers.flat_map(|i| b.input_words(&format!("block {i}"), count, READING_BITS));
        words.extend(of_message.collect::<Vec<_>>().into_iter().take(readings));
    }
    let threshold = number(threshold.into(), READING_BITS);
    let above = words.iter().map(|word| vec![less(&mut b, &threshold, word)]).collect();
    let statistics = [(words.clone(), sum as Join), (words, maximum), (above, sum)]
        .map(|(words, join)| pairwise(words, |x, y| join(&mut b, x, y)).expect("one reading at least"));
    b.output_words("statistics", &statistics);
    b.finish()
}

/// Makes one number of two.
type Join = fn(&mut BooleanBuilder, &Word, &Word) -> Word;

/// Levels of a tree over so many. Each makes a sum one bit longer.
fn levels(count: usize) -> usize {
    count.next_power_of_two().ilog2() as usize
}

/// x + y, one bit longer than x, which is not shorter than y.
fn sum(b: &mut BooleanBuilder, x: &Word, y: &Word) -> Word {
    let [x, y] = [x, y].map(|number| {
        let mut longer = number.clone();
        longer.resize(x.len() + 1, Bit::ZERO);
        longer
    });
    add(b, &[&x, &y])
}

/// The larger one.
fn maximum(b: &mut BooleanBuilder, x: &Word, y: &Word) -> Word {
    let takes_y = less(b, x, y);
    choose(b, takes_y, y, x)
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{AnyMap, cleartext, compile};

    use super::*;

    /// The circuit in the clear: messages of so many readings each, in blocks whose unused ends are full of
    /// ones.
    fn check(readings: &[u16], each: usize, block_bits: usize, threshold: u16) {
        let circuit = circuit(readings.len() / each, each, block_bits, threshold);
        let mut inputs = Vec::new();
        for message in readings.chunks(each) {
            let mut bytes: Vec<u8> = message.iter().flat_map(|reading| reading.to_be_bytes()).collect();
            bytes.resize(bytes.len().next_multiple_of(block_bits / 8), 0xff);
            let blocks = bytes.chunks(block_bits / 8);
            inputs.extend(blocks.map(|block| Cells::from_blocks(block_bits, 1, block).expect("a block")));
        }
        let outputs = cleartext::run(&compile(&circuit, &AnyMap), 1, &inputs).expect("they fit");
        let statistics = Statistics::from_cells(&outputs[0], readings.len());
        assert_eq!(statistics, Statistics::of(readings, threshold), "{readings:?} above {threshold}");
    }

    #[test]
    fn random_readings_of_any_number_give_what_plain_code_gives() {
        for count in 1..20 {
            let readings: Vec<u16> =
                (1..=count).map(|i: u32| (i.wrapping_mul(0x9e37_79b9) >> 13) as u16).collect();
            for threshold in [readings[0], readings[0] ^ 1, 0x8000] {
                check(&readings, readings.len(), 64, threshold);
                check(&readings, 1, 128, threshold);
            }
        }
        let many: Vec<u16> = (0..96u32).map(|i| (i.wrapping_mul(0x85eb_ca6b) >> 9) as u16).collect();
        for each in [1, 3, 4, 8, 12] {
            check(&many, each, 64, 0x7fff);
            check(&many, each, 128, 0x7fff);
        }
    }

    #[test]
    fn equal_readings_and_extreme_thresholds_are_right() {
        for reading in [0, 1, 0x7fff, 0x8000, 0xffff] {
            for threshold in [0, 0x7fff, 0xfffe, 0xffff] {
                check(&[reading; 7], 7, 64, threshold);
            }
        }
    }

    #[test]
    fn maximum_is_found_in_every_place() {
        for place in 0..9 {
            let mut readings = [0x00ff; 9];
            readings[place] = 0x0100;
            check(&readings, 9, 64, 0x00ff);
        }
    }

    #[test]
    fn two_readings_take_as_many_ands_as_promised() {
        // Nothing is above the largest number: the count is decided when the circuit is written.
        let ands = |threshold| circuit(1, 2, 64, threshold).lookups();
        let without_count = ands(u16::MAX);
        assert_eq!(without_count, 16 + 58);
        assert_eq!(ands(0x5555), without_count + 2 * 18 + 1);
        assert!((0..=u16::MAX).step_by(257).all(|threshold| ands(threshold) <= without_count + 2 * 26 + 1));
    }

    #[test]
    fn depth_grows_with_the_logarithm() {
        let layers = |count| circuit(1, count, 64, 1000).layers();
        // Six for each level of the maximum; below that it is the sum that waits for its carries.
        assert_eq!([layers(16), layers(64), layers(256)], [24, 36, 48]);
    }
}
