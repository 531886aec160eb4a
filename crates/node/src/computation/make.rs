//! Making keys, by generation or import, and computing once everything that their modes will need.
//!
//! Generation: every node draws a key from its operating system and shares it. The new key is the sum. No t
//! nodes know it if at least one other node drew its part at random, and it is never assembled. Import: the
//! client gets a random shared mask, checks it, and sends its key under it, the same to every node. So no
//! client can make nodes hold a sharing of a wrong degree. A sealed key: every node shares the part that was
//! sealed to it, and the key is the sum, as in generation.

use polyclave_api::{CheckKind, NewKey};

use crate::Result;
use polyclave_cipher::keyed::key_shape;
use polyclave_cipher::{Builder, Cells, Cipher, Circuit, compile_with_views};
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::evaluate::release;
use polyclave_protocol::ghash::GhashKey;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::service::ServiceSession;
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Error, Party};
use zeroize::Zeroizing;

use crate::computation::circuits::{Circuits, Own};
use crate::computation::key::ExpandedKey;
use crate::computation::pieces::run;

/// A key that no one knows. All nodes take part.
pub(crate) fn generate(
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuits: &Circuits,
) -> Result<AnyShared> {
    let mut own = Zeroizing::new(vec![0; circuits.cipher.key_bytes]);
    random_bytes(&mut own)?;
    sum_of_parts(protocol, net, circuits, &own)
}

/// The sum of one part from every node. This node's is `own`.
pub(crate) fn sum_of_parts(
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuits: &Circuits,
    own: &[u8],
) -> Result<AnyShared> {
    let cipher = &circuits.cipher;
    let (count, bits) = key_shape(cipher);
    let wanted = circuits.key.views();
    let sum = compile_with_views(&sum_of_keys(cipher, net.parties()), protocol, |_| wanted.clone());
    let own = Cells::from_blocks(count, bits, own).map_err(|e| Error::System(e.to_string()))?;
    let me = net.me();
    let inputs: Vec<_> =
        Party::all(net.parties()).map(|p| if p == me { Input::Mine(&own) } else { Input::From(p) }).collect();
    Ok(run(protocol, net, &sum, 1, &inputs)?.remove(0))
}

/// The sum of one key from every party.
pub(crate) fn sum_of_keys(cipher: &Cipher, parties: usize) -> Circuit {
    let (count, bits) = key_shape(cipher);
    let mut b = Builder::new("sum of keys");
    let keys: Vec<_> =
        Party::all(parties).map(|p| b.uniform_input(&format!("key of {p}"), count, bits)).collect();
    let sum: Vec<_> = (0..count).map(|i| b.xor(&keys.iter().map(|key| key[i]).collect::<Vec<_>>())).collect();
    b.output("key", &sum);
    b.finish()
}

/// Expands a shared key, or the two keys of a mode that takes two: round keys, what its modes and usages need
/// of E(0), and its check value, which is the only value that is opened. The check value of two keys consists
/// of the check values of both. It shows some bytes of the CMAC of zeros under the first key. 88 bits of the
/// beginning of SIV's code are then still unknown, and no code of a message equals it.
pub(crate) fn expand(
    keys: &[AnyShared],
    new: &NewKey,
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuits: &Circuits,
) -> Result<(ExpandedKey, Vec<u8>)> {
    let (expanded, checks) = expand_unopened(keys, new, protocol, net, circuits)?;
    let check_value = open_check_value(&checks, protocol, net)?;
    Ok((expanded, check_value))
}

/// The same, without the opening: the check values are still shared. All material that this takes is taken
/// when it returns.
pub(crate) fn expand_unopened(
    keys: &[AnyShared],
    new: &NewKey,
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuits: &Circuits,
) -> Result<(ExpandedKey, Vec<AnyShared>)> {
    let (mut all_round_keys, mut checks) = (Vec::new(), Vec::new());
    for key in keys {
        let (round_keys, check) = match circuits.own() {
            Own::Cipher(own) => {
                let round_keys = run(protocol, net, &own.key_schedule, 1, &[Input::Shared(key)])?.remove(0);
                let check = unopened_check_value(CheckKind::Cmac, &round_keys, protocol, net, circuits)?;
                (round_keys, check)
            }
            Own::Hmac(hashing) => hashing.expand(key, protocol, net)?,
        };
        all_round_keys.push(round_keys);
        checks.push(check);
    }
    Ok((complete(all_round_keys, new, protocol, net, circuits)?, checks))
}

/// The check value of a key, or of the two keys of a mode that takes two, from its round keys. It is opened.
pub(crate) fn check_value(
    kind: CheckKind,
    all_round_keys: &[&AnyShared],
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuits: &Circuits,
) -> Result<Vec<u8>> {
    let mut checks = Vec::new();
    for round_keys in all_round_keys {
        checks.push(unopened_check_value(kind, round_keys, protocol, net, circuits)?);
    }
    open_check_value(&checks, protocol, net)
}

/// The check value from round keys. A key for HMAC has one kind only.
fn unopened_check_value(
    kind: CheckKind,
    round_keys: &AnyShared,
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuits: &Circuits,
) -> Result<AnyShared> {
    let encrypted_zeros;
    let circuit = match (circuits.own(), kind) {
        (Own::Hmac(hashing), _) => return hashing.check_values((round_keys, 1), protocol, net),
        (Own::Cipher(own), CheckKind::Cmac) => &own.check_value,
        (Own::Cipher(_), CheckKind::Zeros) => {
            encrypted_zeros = circuits.keys.encrypted_zeros(circuits, protocol)?;
            &*encrypted_zeros
        }
    };
    let zero = circuits.zero()?;
    let inputs = [Input::Public(&zero), Input::Shared(round_keys)];
    Ok(run(protocol, net, circuit, 1, &inputs)?.remove(0))
}

/// Opens the check value of an expanded key.
pub(crate) fn open_check_value(
    checks: &[AnyShared],
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Vec<u8>> {
    let mut check_value = Vec::new();
    for check in checks {
        let opened = release(protocol, check, Owner::All, net)?;
        let unopened = || Error::System("the check value was not opened".into());
        check_value.extend(opened.ok_or_else(unopened)?.accept().to_blocks());
    }
    // Before anything of the key is stored: otherwise an error here would appear under every later use.
    protocol.check(net)?;
    Ok(check_value)
}

/// What a key's modes and usages need besides its round keys, or those of its two parts.
fn complete(
    all_round_keys: Vec<AnyShared>,
    new: &NewKey,
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuits: &Circuits,
) -> Result<ExpandedKey> {
    let mut all_round_keys = all_round_keys.into_iter();
    let round_keys = all_round_keys.next().ok_or_else(|| Error::misuse("a key without a part"))?;
    let second = all_round_keys.next();
    let (mut subkeys, mut hash_key) = (None, None);
    let hashes = new.needs_hash_key();
    if hashes || new.needs_subkeys() {
        let zero = circuits.zero()?;
        let inputs = [Input::Public(&zero), Input::Shared(&round_keys)];
        let mut values = run(protocol, net, &circuits.chained()?.subkeys, 1, &inputs)?.into_iter();
        if let (Some(h), Some(k1), Some(k2)) = (values.next(), values.next(), values.next()) {
            if hashes {
                let h = protocol.elements(&h, net)?;
                hash_key = Some(GhashKey::derive(protocol.arithmetic(), &h, net)?);
            }
            subkeys = new.needs_subkeys().then_some((k1, k2));
        }
    }
    Ok(ExpandedKey { round_keys, second, subkeys, hash_key })
}
