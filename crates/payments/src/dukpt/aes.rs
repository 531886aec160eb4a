//! DUKPT with AES (ANSI X9.24-3:2017, section 6).
//!
//! A key is derived by encrypting public blocks under the key before it. A step takes a key schedule and an
//! encryption, which runs alongside.

use crate::wiring::{Key, Wiring};

use super::{DukptUsage, WorkingKey};

/// Bytes of a KSN: the initial key's id and the counter.
pub(super) const KSN_BYTES: usize = 12;

/// Terminals skip counters with more bits set (section 6.4).
const MOST_BITS: u32 = 16;

/// Bytes of a block.
const BLOCK: usize = 16;

/// Usages in derivation data (section 6.2, table 2).
const INITIAL: u16 = 0x8001;
const DERIVING: u16 = 0x8000;

fn usage_code(usage: DukptUsage) -> u16 {
    match usage {
        DukptUsage::Pin => 0x1000,
        DukptUsage::MacRequest => 0x2000,
        DukptUsage::MacResponse => 0x2001,
        DukptUsage::MacBoth => 0x2002,
        DukptUsage::DataRequest => 0x3000,
        DukptUsage::DataResponse => 0x3001,
        DukptUsage::DataBoth => 0x3002,
    }
}

/// Algorithms in derivation data (table 3).
fn algorithm_code(key: WorkingKey) -> u16 {
    match key {
        WorkingKey::Tdes2 => 0,
        WorkingKey::Tdes3 => 1,
        WorkingKey::Aes128 => 2,
        WorkingKey::Aes192 => 3,
        WorkingKey::Aes256 => 4,
    }
}

fn of_bytes(key_bytes: usize) -> WorkingKey {
    match key_bytes {
        16 => WorkingKey::Aes128,
        24 => WorkingKey::Aes192,
        _ => WorkingKey::Aes256,
    }
}

fn counter(ksn: &[u8]) -> u32 {
    ksn[8..].iter().fold(0, |counter, byte| counter << 8 | u32::from(*byte))
}

pub(super) fn check(ksn: &[u8], working: WorkingKey, base_bytes: usize) -> Result<(), String> {
    let set = counter(ksn).count_ones();
    if !(1..=MOST_BITS).contains(&set) {
        return Err(format!("the counter of a KSN has 1 to {MOST_BITS} bits set, this one has {set}"));
    }
    match working > WorkingKey::Tdes3 && working.bytes() > base_bytes {
        true => Err("a derived key is not longer than the base derivation key".into()),
        false => Ok(()),
    }
}

/// The counter with its bits so far, for each step.
pub(super) fn counters(ksn: &[u8]) -> Vec<u32> {
    let (counter, mut so_far) = (counter(ksn), 0);
    let bits = (0..32).rev().map(|i| 1 << i).filter(|bit| counter & bit != 0);
    bits.map(|bit| {
        so_far |= bit;
        so_far
    })
    .collect()
}

/// The blocks that are encrypted for one key (section 6.3.3).
fn derivation_data(key: WorkingKey, usage: u16, context: [u8; 8]) -> Vec<u8> {
    let blocks = key.bytes().div_ceil(BLOCK);
    let block = |number: usize| {
        let mut data = vec![1, number as u8];
        data.extend(usage.to_be_bytes());
        data.extend(algorithm_code(key).to_be_bytes());
        data.extend((8 * key.bytes() as u16).to_be_bytes());
        data.extend(context);
        data
    };
    (1..=blocks).flat_map(block).collect()
}

pub(super) fn public(ksn: &[u8], working: WorkingKey, base_bytes: usize, usage: DukptUsage) -> Vec<u8> {
    let id: [u8; 8] = ksn[..8].try_into().expect("a KSN was checked");
    let base = of_bytes(base_bytes);
    let context = |counter: u32| {
        let mut context = id;
        context.rotate_left(4);
        context[4..].copy_from_slice(&counter.to_be_bytes());
        context
    };
    let mut public = derivation_data(base, INITIAL, id);
    let counters = counters(ksn);
    public.extend(counters.iter().flat_map(|counter| derivation_data(base, DERIVING, context(*counter))));
    public.extend(derivation_data(working, usage_code(usage), context(counter(ksn))));
    public
}

pub(super) fn working_key(w: &mut Wiring, base: &Key, steps: usize, working: WorkingKey) -> Key {
    let intermediate = of_bytes(base.cipher.key_bytes);
    let mut key = base.clone();
    for _ in 0..=steps {
        key = derived(w, &key, intermediate);
    }
    derived(w, &key, working)
}

fn derived(w: &mut Wiring, key: &Key, new: WorkingKey) -> Key {
    let parts: Vec<_> = (0..new.bytes().div_ceil(BLOCK))
        .map(|_| {
            let data = w.public(BLOCK);
            w.encrypt(key, &data)
        })
        .collect();
    let whole = w.concat(&parts.iter().collect::<Vec<_>>());
    let cipher = w.cipher(new.cipher());
    w.expand(&cipher, &whole.part(0..new.bytes()))
}

pub(super) fn blocks(ksn: &[u8], working: WorkingKey, base_bytes: usize) -> u64 {
    let each = |key: WorkingKey| key.bytes().div_ceil(BLOCK) as u64;
    let steps = 1 + u64::from(counter(ksn).count_ones());
    steps * each(of_bytes(base_bytes)) + each(working)
}
