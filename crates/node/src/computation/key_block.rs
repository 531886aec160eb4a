//! Key blocks of TR-31 on shares (ASC X9 TR 31-2018, sections 5.3.2.1 and 5.3.2.3: the key derivation binding
//! method, versions B and D).
//!
//! From the key that protects the block, CMAC in counter mode makes a key that encrypts and a key that
//! authenticates; both stay shared. The MAC is the CMAC of the header and the plaintext: the key's length,
//! the key and random bytes. The plaintext is encrypted in CBC, with the MAC as the initial block.
//!
//! The header and the ciphertext are public among the nodes. The plaintext never is. When a block is
//! unwrapped, the nodes compare the MAC, by opening a random multiple of the difference
//! ([`is_zero`](polyclave_protocol::service::ElementArithmetic::is_zero)), before anything else is done with
//! the plaintext. So a block that was altered tells nobody more than that, and no key is ever made of it.
//! Only then do they compare the length in the same way. At that point they know that its author has the
//! protecting key.

use polyclave_api::key_block::{KeyBlock, Version, algorithm};
use polyclave_api::{BlockHeader, Derivation, Mode, NewKey, Reason, Refusal};
use polyclave_cipher::key_block::{length, plaintext_bytes};
use polyclave_cipher::{Cells, Cipher};
use polyclave_protocol::Error;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Session};
use polyclave_protocol::service::ServiceSession;

use crate::Result;
use crate::computation::circuits::Circuits;
use crate::computation::cmac::Coding;
use crate::computation::derive;
use crate::computation::key::ExpandedKey;
use crate::computation::pieces::run;

/// What a derived key is for (TR 31-2018, table 1).
const ENCRYPTION: [u8; 2] = [0, 0];
const AUTHENTICATION: [u8; 2] = [0, 1];

/// The two keys of a block.
pub(crate) struct BlockKeys {
    /// Round keys of the key that encrypts.
    pub(crate) encryption: AnyShared,
    /// The key that authenticates.
    pub(crate) authentication: ExpandedKey,
}

/// Blocks of the cipher that wrapping or unwrapping computes: under the protecting key and under the two that
/// it makes.
pub(crate) fn blocks(kek: &Cipher, head_bytes: usize, encrypted_bytes: usize) -> u64 {
    let block = kek.block_bytes;
    let (derived, subkeys) = (2 * kek.key_bytes.div_ceil(block), 1);
    (derived + subkeys + head_bytes / block + 2 * encrypted_bytes / block) as u64
}

impl BlockKeys {
    pub(crate) fn derive(
        kek: &ExpandedKey,
        of_kek: &Circuits,
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<BlockKeys> {
        let mut round_keys = |purpose, protocol: &mut AnyServiceSession| -> Result<AnyShared> {
            let how = binding(purpose, &of_kek.cipher)?;
            let key = derive::derive(&how, kek, (of_kek, of_kek), protocol, net)?;
            Ok(run(protocol, net, &of_kek.of_cipher()?.key_schedule, 1, &[Input::Shared(&key)])?.remove(0))
        };
        let encryption = round_keys(ENCRYPTION, protocol)?;
        let round_keys = round_keys(AUTHENTICATION, protocol)?;
        let zero = of_kek.zero()?;
        let inputs = [Input::Public(&zero), Input::Shared(&round_keys)];
        let mut values = run(protocol, net, &of_kek.chained()?.subkeys, 1, &inputs)?;
        let (k2, k1) = (values.remove(2), values.remove(1));
        let authentication =
            ExpandedKey { round_keys, second: None, subkeys: Some((k1, k2)), hash_key: None };
        Ok(BlockKeys { encryption, authentication })
    }

    /// The MAC of the header and the blocks of the plaintext.
    pub(crate) fn code(
        &self,
        of_kek: &Circuits,
        (head, plain): (&[u8], &[AnyShared]),
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<AnyShared> {
        let (chain, last) = (&of_kek.chained()?.chain, of_kek.keys.code_of_block(of_kek, protocol)?);
        let coding = Coding { key: &self.authentication, of_key: of_kek, chain, last: &last };
        let head: Vec<Cells> = head
            .chunks(of_kek.cipher.block_bytes)
            .map(|block| of_kek.blocks(block))
            .collect::<Result<_>>()?;
        let blocks: Vec<Input<'_, AnyShared>> =
            head.iter().map(Input::Public).chain(plain.iter().map(Input::Shared)).collect();
        coding.of_blocks(&blocks, (1, true), protocol, net)
    }
}

/// The header of a block for a key. The error says why the key does not leave so.
pub(crate) fn head(
    header: &BlockHeader,
    kek: &NewKey,
    key: &NewKey,
    (of_kek, of_key): (&Cipher, &Cipher),
) -> Result<Vec<u8>, String> {
    let version = protecting(kek)?;
    header.may_leave_as(key)?;
    let algorithm = algorithm(&key.cipher)
        .ok_or_else(|| format!("key blocks hold keys of AES, DES and Triple DES, not of {}", key.cipher))?;
    version.protects(algorithm)?;
    if of_key.key_bytes > of_kek.key_bytes && algorithm == b'A' {
        return Err(format!("a key of {} is too long to be protected by one of {}", key.cipher, kek.cipher));
    }
    Ok(header.text(version, algorithm, plaintext_bytes(of_key, of_kek.block_bytes)))
}

/// Refuses to make a key of a block that does not allow it.
pub(crate) fn may_become(
    block: &KeyBlock,
    kek: &NewKey,
    new: &NewKey,
    cipher: &Cipher,
) -> Result<(), String> {
    let version = protecting(kek)?;
    if block.version != version {
        return Err(format!("the key block has another version than blocks under the key '{}'", kek.name));
    }
    block.header.may_become(new)?;
    block.holds(&new.cipher, cipher.key_bytes)
}

/// The version of the blocks that a key protects.
fn protecting(kek: &NewKey) -> Result<Version, String> {
    let version = Version::under(&kek.cipher).filter(|_| kek.modes.contains(&Mode::Tr31));
    version.ok_or_else(|| format!("the key '{}' was not made for key blocks (mode tr31)", kek.name))
}

/// How a key of a block is derived (TR 31-2018, table 1): counter, purpose, a separator, algorithm and length
/// of the derived key.
fn binding(purpose: [u8; 2], kek: &Cipher) -> Result<Derivation> {
    let algorithm: u8 = match kek.name.as_str() {
        "3des-ede2" => 0,
        "3des-ede3" => 1,
        "aes-128" => 2,
        "aes-192" => 3,
        "aes-256" => 4,
        other => return Err(Error::misuse(format!("{other} protects no key blocks"))),
    };
    let after = [&purpose[..], &[0, 0, algorithm], &length(kek.key_bytes)].concat();
    Ok(Derivation::Counter { before: Vec::new(), counter_bits: 8, after })
}

/// One answer for every block that is not authentic.
fn unauthentic() -> Refusal {
    Refusal::new(
        Reason::Unauthentic,
        "the key block does not authenticate: it was altered, or it was made under another key",
    )
}

/// The key in a block; a refusal if it does not authenticate, or holds a key of another length.
pub(crate) fn unwrap(
    block: &KeyBlock,
    kek: &ExpandedKey,
    (of_kek, of_new): (&Circuits, &Circuits),
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Result<AnyShared, Refusal>> {
    let unit = of_kek.cipher.block_bytes;
    let (lanes, circuits) =
        (block.encrypted.len() / unit, of_kek.keys.unwrap_block(of_kek, of_new, protocol)?);
    let keys = BlockKeys::derive(kek, of_kek, protocol, net)?;

    let previous = [&block.mac, &block.encrypted[..unit * (lanes - 1)]].concat();
    let (encrypted, previous) = (of_kek.blocks(&block.encrypted)?, of_kek.blocks(&previous)?);
    let inputs = [Input::Public(&encrypted), Input::Public(&previous), Input::Shared(&keys.encryption)];
    let plain = run(protocol, net, &circuits.decrypt, lanes, &inputs)?.remove(0);
    let plain: Vec<AnyShared> = (0..lanes).map(|lane| protocol.select_lanes(&plain, &[lane])).collect();

    let code = keys.code(of_kek, (&block.head, &plain), protocol, net)?;
    let mac = of_kek.blocks(&block.mac)?;
    let check =
        run(protocol, net, &circuits.whole, 1, &[Input::Shared(&code), Input::Public(&mac)])?.remove(0);
    let check = protocol.elements(&check, net)?;
    if !protocol.arithmetic().is_zero(&check, net)? {
        return Ok(Err(unauthentic()));
    }

    let mut first = length(of_new.cipher.key_bytes).to_vec();
    first.resize(unit, 0);
    let (first, inputs) = (of_kek.blocks(&first)?, Input::Shared(&plain[0]));
    let check = run(protocol, net, &circuits.length, 1, &[inputs, Input::Public(&first)])?.remove(0);
    let check = protocol.elements(&check, net)?;
    if !protocol.arithmetic().is_zero(&check, net)? {
        let message =
            format!("the key block holds a key of another length than {} takes", of_new.cipher.name);
        return Ok(Err(Refusal::new(Reason::Key, message)));
    }
    let parts: Vec<Input<'_, AnyShared>> =
        plain.iter().take(circuits.key.inputs().len()).map(Input::Shared).collect();
    Ok(Ok(run(protocol, net, &circuits.key, 1, &parts)?.remove(0)))
}
