//! DUKPT with Triple DES (ANSI X9.24-1:2009, annex A).
//!
//! The schedule of DES selects bits, so a key plus a constant costs no more than the key. The two blocks of a
//! step are computed side by side: a step takes 16 layers.

use crate::wiring::{Key, Value, Wiring};

use super::{DukptUsage, WorkingKey};

/// Bytes of a KSN.
pub(super) const KSN_BYTES: usize = 10;

/// The last bits of a KSN are the counter.
const COUNTER_BITS: u32 = 21;
/// Terminals skip counters with more bits set (annex A.3).
const MOST_BITS: u32 = 10;

/// What is added to a key for the left half of the next one (annex A.2).
const GENERATING: [u8; 16] = [0xc0, 0xc0, 0xc0, 0xc0, 0, 0, 0, 0, 0xc0, 0xc0, 0xc0, 0xc0, 0, 0, 0, 0];

fn number(ksn: &[u8]) -> u128 {
    ksn.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

fn counter(ksn: &[u8]) -> u128 {
    number(ksn) & ((1 << COUNTER_BITS) - 1)
}

pub(super) fn check(ksn: &[u8], working: WorkingKey) -> Result<(), String> {
    let set = counter(ksn).count_ones();
    match working {
        WorkingKey::Tdes2 if (1..=MOST_BITS).contains(&set) => Ok(()),
        WorkingKey::Tdes2 => {
            Err(format!("the counter of a KSN has 1 to {MOST_BITS} bits set, this one has {set}"))
        }
        _ => Err("DUKPT with Triple DES derives keys of Triple DES with two keys".into()),
    }
}

/// What is encrypted in each step: the last eight bytes of the KSN with the counter's bits so far.
pub(super) fn registers(ksn: &[u8]) -> Vec<[u8; 8]> {
    let (counter, mut so_far) = (counter(ksn), number(ksn) & !((1 << COUNTER_BITS) - 1));
    let bits = (0..COUNTER_BITS).rev().map(|i| 1 << i).filter(|bit| counter & bit != 0);
    bits.map(|bit| {
        so_far |= bit;
        (so_far as u64).to_be_bytes()
    })
    .collect()
}

/// What the initial key is made of, and the registers.
pub(super) fn public(ksn: &[u8]) -> Vec<u8> {
    let initial = number(ksn) & !((1 << COUNTER_BITS) - 1);
    let initial = ((initial >> 16) as u64).to_be_bytes();
    let mut public = initial.to_vec();
    public.extend(registers(ksn).concat());
    public
}

/// What is added to the transaction's key (annex A.4.1; X9.24-1, table A-1).
fn variant(usage: DukptUsage) -> [u8; 16] {
    let (at, mask) = match usage {
        DukptUsage::Pin => (7, 0xff),
        DukptUsage::MacRequest | DukptUsage::MacBoth => (6, 0xff),
        DukptUsage::MacResponse => (4, 0xff),
        DukptUsage::DataRequest | DukptUsage::DataBoth => (5, 0xff),
        DukptUsage::DataResponse => (3, 0xff),
    };
    let mut variant = [0; 16];
    (variant[at], variant[at + 8]) = (mask, mask);
    variant
}

/// Keys for data go through one more step, so that nobody finds the transaction's key from them.
fn is_encrypted(usage: DukptUsage) -> bool {
    matches!(usage, DukptUsage::DataRequest | DukptUsage::DataResponse | DukptUsage::DataBoth)
}

pub(super) fn working_key(w: &mut Wiring, base: &Key, steps: usize, usage: DukptUsage) -> Key {
    let initial = w.public(8);
    let left = w.encrypt(base, &initial);
    let generating = w.variant(base, &GENERATING);
    let right = w.encrypt(&generating, &initial);
    let mut key = w.concat(&[&left, &right]);
    for _ in 0..steps {
        let register = w.public(8);
        let generating = plus(w, &key, &GENERATING);
        let left = step(w, &generating, &register);
        let right = step(w, &key, &register);
        key = w.concat(&[&left, &right]);
    }
    key = plus(w, &key, &variant(usage));
    let cipher = w.cipher("3des-ede2");
    if is_encrypted(usage) {
        let own = w.expand(&cipher, &key);
        let halves = [w.encrypt(&own, &key.part(0..8)), w.encrypt(&own, &key.part(8..16))];
        key = w.concat(&[&halves[0], &halves[1]]);
    }
    w.expand(&cipher, &key)
}

/// The register plus the right half of a key, encrypted under the left half, plus the right half.
fn step(w: &mut Wiring, key: &Value, register: &Value) -> Value {
    let des = w.cipher("des");
    let (left, right) = (key.part(0..8), key.part(8..16));
    let left = w.expand(&des, &left);
    let block = w.xor(register, &right);
    let block = w.encrypt(&left, &block);
    w.xor(&block, &right)
}

fn plus(w: &mut Wiring, key: &Value, mask: &[u8; 16]) -> Value {
    let mask = w.constant(mask);
    w.xor(key, &mask)
}

pub(super) fn blocks(ksn: &[u8], usage: DukptUsage) -> u64 {
    let more = if is_encrypted(usage) { 2 } else { 0 };
    2 + 2 * u64::from(counter(ksn).count_ones()) + more
}
