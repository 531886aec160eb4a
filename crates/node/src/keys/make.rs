//! Making keys, by generation or import, and computing once everything that their modes will need.
//!
//! Generation: every node draws a key from its operating system and shares it. The new key is the sum. No t nodes know it if at least one
//! other node drew its part at random, and it is never assembled. Import: the client gets a random shared mask, checks it, and sends its
//! key under it, the same to every node. So no client can make nodes hold a sharing of a wrong degree.

use crate::Result;
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
use polyclave_transport::wire::{Mode, NewKey, why_apart};
use zeroize::Zeroizing;

use crate::computation::circuits::Circuits;
use crate::computation::pieces::run;
use crate::keys::key::ExpandedKey;

/// The most characters of a key's name.
const MOST_NAME: usize = 64;

/// The most blocks under one key of a cipher with blocks of 8 bytes. With more, equal blocks become likely enough to distinguish the
/// output.
pub const MOST_SMALL_BLOCKS: u64 = 1 << 20;

/// The most blocks under one key of another cipher: with random nonces of 96 bits, at most 2^32 messages (SP 800-38D, section 8.3), each of
/// at least one block.
pub const MOST_BLOCKS: u64 = 1 << 32;

/// Checks whether a key can be made with these properties. The error says what is wrong.
pub fn check_new_key(key: &NewKey, cipher: &Cipher) -> Result<(), String> {
    let named = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if key.name.is_empty() || key.name.len() > MOST_NAME || !key.name.chars().all(named) {
        return Err(format!(
            "a key's name has 1 to {MOST_NAME} letters, digits, '-', '_' or '.', not '{}'",
            key.name
        ));
    }
    if key.modes.is_empty() || !key.modes.is_sorted_by(|a, b| a < b) {
        return Err("a key is made for one mode at least, each named once".into());
    }
    if let Some(why) = why_apart(&key.modes) {
        return Err(why);
    }
    if cipher.key_bytes == 0 {
        return Err(format!("{} is a permutation without a key; nodes have no use for it", cipher.name));
    }
    let gives_tweaks = |mode: &Mode| matches!(mode, Mode::Ctr | Mode::Ecb);
    if let Some(mode) = key.modes.iter().find(|mode| cipher.tweak_bytes != 0 && !gives_tweaks(mode)) {
        return Err(format!(
            "{} takes a tweak with each block, which only ctr and ecb give, not {mode}",
            cipher.name
        ));
    }
    if cipher.block_bytes != 16 && key.modes.contains(&Mode::Gcm) {
        return Err(format!("gcm needs blocks of 16 bytes, {} has {}", cipher.name, cipher.block_bytes));
    }
    if cipher.decrypt.is_none() && key.modes.iter().any(|m| matches!(m, Mode::Cbc | Mode::Ecb)) {
        return Err(format!("{} has no decryption, which cbc and ecb need", cipher.name));
    }
    let most = if cipher.block_bytes < 16 { MOST_SMALL_BLOCKS } else { MOST_BLOCKS };
    if key.budget_blocks == 0 || key.budget_blocks > most {
        return Err(format!("the budget of a key of {} is 1 to {most} blocks", cipher.name));
    }
    Ok(())
}

/// A key that no one knows. All nodes take part.
pub(crate) fn generate(
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuits: &Circuits,
) -> Result<AnyShared> {
    let cipher = &circuits.cipher;
    let port = &cipher.key_schedule.inputs()[0];
    let wanted = circuits.key_schedule.inputs()[0].views();
    let sum = compile_with_views(&sum_of_keys(cipher, net.parties()), protocol, |_| wanted.clone());
    let mut own = Zeroizing::new(vec![0; cipher.key_bytes]);
    random_bytes(&mut own)?;
    let own =
        Cells::from_blocks(port.cells.len(), port.bits, &own).map_err(|e| Error::System(e.to_string()))?;
    let me = net.me();
    let inputs: Vec<_> =
        Party::all(net.parties()).map(|p| if p == me { Input::Mine(&own) } else { Input::From(p) }).collect();
    Ok(run(protocol, net, &sum, 1, &inputs)?.remove(0))
}

/// The sum of one key from every party.
fn sum_of_keys(cipher: &Cipher, parties: usize) -> Circuit {
    let port = &cipher.key_schedule.inputs()[0];
    let mut b = Builder::new("sum of keys");
    let keys: Vec<_> = Party::all(parties)
        .map(|p| b.uniform_input(&format!("key of {p}"), port.cells.len(), port.bits))
        .collect();
    let sum: Vec<_> =
        (0..port.cells.len()).map(|i| b.xor(&keys.iter().map(|key| key[i]).collect::<Vec<_>>())).collect();
    b.output("key", &sum);
    b.finish()
}

/// Expands a shared key: round keys, what its modes need of E(0), and its check value, which is the only value that is opened.
pub(crate) fn expand(
    key: &AnyShared,
    modes: &[Mode],
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
    circuits: &Circuits,
) -> Result<(ExpandedKey, Vec<u8>)> {
    let round_keys = run(protocol, net, &circuits.key_schedule, 1, &[Input::Shared(key)])?.remove(0);
    let zero = circuits.zero();
    let inputs = || [Input::Public(&zero), Input::Shared(&round_keys)];
    let check = run(protocol, net, &circuits.check_value, 1, &inputs())?.remove(0);
    let check = release(protocol, &check, Owner::All, net)?;
    let check =
        check.ok_or_else(|| Error::System("the check value was not opened".into()))?.accept().to_blocks();

    let (mut subkeys, mut hash_key) = (None, None);
    if modes.iter().any(|mode| matches!(mode, Mode::Cmac | Mode::Gcm)) {
        let mut values = run(protocol, net, &circuits.chained()?.subkeys, 1, &inputs())?.into_iter();
        if let (Some(h), Some(k1), Some(k2)) = (values.next(), values.next(), values.next()) {
            if modes.contains(&Mode::Gcm) {
                let h = protocol.elements(&h, net)?;
                hash_key = Some(GhashKey::derive(protocol.arithmetic(), &h, net)?);
            }
            subkeys = modes.contains(&Mode::Cmac).then_some((k1, k2));
        }
    }
    // Before any of it is stored: otherwise an error here would appear under every later use.
    protocol.check(net)?;
    Ok((ExpandedKey { round_keys, subkeys, hash_key }, check))
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::catalog;

    use super::*;

    #[test]
    fn no_key_is_made_for_cbc_with_gcm_or_cmac() {
        let cipher = catalog::find("aes-128").expect("the catalog has it");
        let checked = |modes: &[Mode]| {
            let modes = modes.to_vec();
            check_new_key(
                &NewKey { name: "k".into(), cipher: "aes-128".into(), modes, budget_blocks: 1 },
                &cipher,
            )
        };
        for undone in [Mode::Gcm, Mode::Cmac] {
            let mut pair = [undone, Mode::Cbc];
            pair.sort();
            let told = checked(&pair).expect_err("refused");
            assert!(told.starts_with(&format!("cbc undoes {undone} under the same key")), "{told}");
        }
        assert_eq!(checked(&[Mode::Gcm, Mode::Cmac]), Ok(()));
        assert_eq!(checked(&[Mode::Ctr, Mode::Cbc, Mode::Ecb]), Ok(()));
    }

    #[test]
    fn keys_are_made_for_ciphers_with_a_key_and_for_modes_that_give_their_tweak() {
        let checked = |name: &str, mode| {
            let cipher = catalog::find(name).expect("the catalog has it");
            let key = NewKey { name: "k".into(), cipher: name.into(), modes: vec![mode], budget_blocks: 1 };
            check_new_key(&key, &cipher)
        };
        for name in ["skinny-64-128", "mantis7", "craft"] {
            assert_eq!((checked(name, Mode::Ctr), checked(name, Mode::Ecb)), (Ok(()), Ok(())));
        }
        assert_eq!(checked("skinny-64-128", Mode::Cmac), Ok(()));
        let refused = |name: &str, mode| checked(name, mode).expect_err("it is refused");
        assert!(refused("wage-permutation", Mode::Ctr).contains("a permutation without a key"));
        for mode in [Mode::Gcm, Mode::Cbc, Mode::Cmac] {
            assert!(refused("craft", mode).contains(&format!("only ctr and ecb give, not {mode}")));
        }
    }
}
