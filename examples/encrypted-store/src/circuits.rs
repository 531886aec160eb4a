//! What the nodes evaluate. Blocks of AES are 16 cells of 8 bits, a lane each; numbers are cells of one bit,
//! the first one of a byte its most significant.

use polyclave_cipher::boolean::words::{add, less, number, pairwise};
use polyclave_cipher::boolean::{BooleanBuilder, Word};
use polyclave_cipher::{Builder, Cipher, Circuit, Matrix, Wire, catalog};

use crate::record::BLOCK;

/// Bits of a block, and of a number.
const BLOCK_BITS: usize = 8 * BLOCK;
const NUMBER_BITS: usize = 64;
/// Cells of the round keys.
const ROUND_KEYS: usize = 11 * BLOCK;

fn aes() -> Cipher {
    catalog::find("aes-128").expect("the catalog has it")
}

/// What every node draws, `contribution` for each, to `round_keys` and `hash_key`, the encryption of the
/// block `zero`.
pub fn key(nodes: usize) -> Circuit {
    let mut b = Builder::new("key");
    let drawn: Vec<Vec<Wire>> = (0..nodes).map(|_| b.uniform_input("contribution", BLOCK, 8)).collect();
    let zero = b.uniform_input("zero", BLOCK, 8);
    let key: Vec<Wire> = (0..BLOCK).map(|i| b.xor(&drawn.iter().map(|d| d[i]).collect::<Vec<_>>())).collect();
    let round_keys = b.call(&aes().key_schedule, &[&key]).remove(0);
    let hash_key = b.call(&aes().encrypt, &[&zero, &round_keys]).remove(0);
    b.output("round_keys", &round_keys);
    b.output("hash_key", &hash_key);
    b.finish()
}

/// `round_keys` and `counter` to `block`: what covers a tag.
pub fn cover() -> Circuit {
    let mut b = Builder::new("cover");
    let keystream = keystream(&mut b);
    b.output("block", &keystream);
    b.finish()
}

/// `round_keys`, `counter` and a `share` of the record's block from every node, of which the sum (XOR) is the
/// block, to `ciphertext`.
pub fn sealing_of_shares(nodes: usize) -> Circuit {
    let mut b = Builder::new("sealing of shares");
    let mut block = keystream(&mut b);
    for _ in 0..nodes {
        let share = b.input("share", BLOCK, 8);
        block = b.xor_each(&block, &share);
    }
    b.output("ciphertext", &block);
    b.finish()
}

/// `round_keys`, `counter` and a block of `numbers` in bits to `ciphertext`.
pub fn sealing_of_numbers() -> Circuit {
    let mut b = Builder::new("sealing of numbers");
    let keystream = keystream(&mut b);
    let numbers = b.input("numbers", BLOCK_BITS, 1);
    let ciphertext: Vec<Wire> = keystream
        .iter()
        .zip(numbers.chunks(8))
        .map(|(byte, bits)| {
            let bits = bits.iter().enumerate().map(|(i, bit)| (*bit, Matrix::place(8, 7 - i as u8)));
            b.linear(bits.chain([(*byte, Matrix::identity(8))]).collect(), 0)
        })
        .collect();
    b.output("ciphertext", &ciphertext);
    b.finish()
}

/// `round_keys`, `counter` and `ciphertext` to `numbers`, in bits: a block of a record, decrypted and still
/// shared.
pub fn opening() -> Circuit {
    let mut b = Builder::new("opening");
    let keystream = keystream(&mut b);
    let ciphertext = b.input("ciphertext", BLOCK, 8);
    let bytes = keystream.iter().zip(&ciphertext);
    let numbers: Vec<Wire> = bytes
        .flat_map(|(x, y)| (0..8).rev().map(|i| [(*x, Matrix::bit(8, i)), (*y, Matrix::bit(8, i))]))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|terms| b.linear(terms.to_vec(), 0))
        .collect();
    b.output("numbers", &numbers);
    b.finish()
}

fn keystream(b: &mut Builder) -> Vec<Wire> {
    let round_keys = b.uniform_input("round_keys", ROUND_KEYS, 8);
    let counter = b.input("counter", BLOCK, 8);
    b.call(&aes().encrypt, &[&counter, &round_keys]).remove(0)
}

/// `numbers` of every chosen record to `totals`, of incomes and debts, in the same form, and `decision`:
/// whether the debts of all are more than the limit. All in one lane.
pub fn decision(records: usize, limit: u64) -> Circuit {
    let mut b = BooleanBuilder::new("decision");
    let words: Vec<Vec<Word>> = (0..records).map(|_| b.input_words("numbers", 2, NUMBER_BITS)).collect();
    let [income, debts] = [0, 1].map(|field| {
        let of_each = words.iter().map(|record| record[field].clone()).collect();
        pairwise(of_each, |x, y| add(&mut b, &[x, y])).expect("one record at least")
    });
    let limit = number(limit, NUMBER_BITS);
    let above = less(&mut b, &limit, &debts);
    b.output_words("totals", &[income, debts]);
    b.output("decision", &[above]);
    b.finish()
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{AnyMap, Cells, cleartext, compile};

    use super::*;

    #[test]
    fn totals_and_decisions_are_those_of_plain_code() {
        let records = [(5, 7), (1 << 40, 3), (0, (1 << 47) + 1), (u32::MAX.into(), 12)];
        for count in 1..=4 {
            let debts: u64 = records[..count].iter().map(|r| r.1).sum();
            let income: u64 = records[..count].iter().map(|r: &(u64, u64)| r.0).sum();
            for limit in [0, debts - 1, debts, debts + 1, u64::MAX] {
                let block = |r: &(u64, u64)| [r.0.to_be_bytes(), r.1.to_be_bytes()].concat();
                let cells = records[..count].iter().map(|r| Cells::from_blocks(BLOCK_BITS, 1, &block(r)));
                let cells: Vec<Cells> = cells.map(|cells| cells.expect("a block")).collect();
                let compiled = compile(&decision(count, limit), &AnyMap);
                let outputs = cleartext::run(&compiled, 1, &cells).expect("they fit");
                assert_eq!(outputs[0].to_blocks(), block(&(income, debts)));
                assert_eq!(outputs[1].row(0), [u8::from(debts > limit)]);
            }
        }
    }
}
