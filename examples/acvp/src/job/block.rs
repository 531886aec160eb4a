//! Modes without authentication: ECB, CBC and CTR.

use anyhow::{Result, ensure};

use super::{Asked, Chain, Job, Plan, Task, bytes, not_supported};

/// Of Triple DES: 400 keys, and 10,000 blocks under each.
const TOO_MANY: &str = "a Monte Carlo test of Triple DES takes 4,000,000 blocks, each after the one before: \
                        this program does not run it";

pub(super) fn ecb(asked: &Asked<'_>, algorithm: &str) -> Result<Plan> {
    let ((cipher, key), encrypts) = (asked.key(algorithm)?, asked.encrypts()?);
    let data = whole_blocks(asked.data(encrypts)?, block_bytes(cipher))?;
    let task = match asked.group.test_type.as_str() {
        "AFT" => Task::Ecb { encrypts, data },
        "MCT" if cipher.starts_with("3des") => return not_supported(TOO_MANY),
        "MCT" => Task::MonteCarlo { encrypts, chain: Chain::Ecb, data: one_block(data)? },
        other => return other_type(other),
    };
    Ok(Plan::Ask(Job { cipher, key, task }))
}

pub(super) fn cbc(asked: &Asked<'_>, algorithm: &str) -> Result<Plan> {
    let ((cipher, key), encrypts) = (asked.key(algorithm)?, asked.encrypts()?);
    let block = block_bytes(cipher);
    let data = whole_blocks(asked.data(encrypts)?, block)?;
    let initial = initial_block(asked, block)?;
    let task = match asked.group.test_type.as_str() {
        "AFT" => Task::Cbc { encrypts, initial, data },
        "MCT" if cipher.starts_with("3des") => return not_supported(TOO_MANY),
        "MCT" => Task::MonteCarlo { encrypts, chain: Chain::Cbc(initial), data: one_block(data)? },
        other => return other_type(other),
    };
    Ok(Plan::Ask(Job { cipher, key, task }))
}

pub(super) fn ctr(asked: &Asked<'_>) -> Result<Plan> {
    let ((cipher, key), encrypts) = (asked.aes_key()?, asked.encrypts()?);
    let data = asked.data(encrypts)?;
    if asked.group.test_type != "AFT" {
        return other_type(&asked.group.test_type);
    }
    let bits = asked.test.payload_len.unwrap_or(8 * data.len() as u64);
    ensure!(
        bits.div_ceil(8) == data.len() as u64,
        "{bits} bits are not the {} bytes that it has",
        data.len()
    );
    if !bits.is_multiple_of(8) {
        return not_supported("nodes encrypt whole bytes, and these data have other bits");
    }
    let counter = match asked.test.iv {
        None if encrypts => None,
        _ => Some(initial_block(asked, 16)?),
    };
    Ok(Plan::Ask(Job { cipher, key, task: Task::Ctr { encrypts, counter, data } }))
}

fn block_bytes(cipher: &str) -> usize {
    if cipher.starts_with("3des") { 8 } else { 16 }
}

fn initial_block(asked: &Asked<'_>, block: usize) -> Result<Vec<u8>> {
    let initial = bytes("iv", asked.test.iv.as_deref())?;
    ensure!(initial.len() == block, "its iv has {} bytes, and a block has {block}", initial.len());
    Ok(initial)
}

fn whole_blocks(data: Vec<u8>, block: usize) -> Result<Vec<u8>> {
    let len = data.len();
    ensure!(len > 0 && len.is_multiple_of(block), "{len} bytes are no blocks of {block} bytes");
    Ok(data)
}

fn one_block(data: Vec<u8>) -> Result<Vec<u8>> {
    ensure!(data.len() == 16, "a Monte Carlo test begins with one block, and this has {} bytes", data.len());
    Ok(data)
}

fn other_type(test_type: &str) -> Result<Plan> {
    not_supported(format!("this program does no tests of type {test_type:?} in this mode"))
}
