//! The options for making a key, and how a key is printed.

use anyhow::{Result, bail};
use polyclave_cipher::Cipher;
use polyclave_node::{MOST_BLOCKS, MOST_SMALL_BLOCKS, check_new_key};
use polyclave_transport::wire::{KeyInfo, Mode, NewKey, warnings};

use crate::names::{parse_modes, words};
use crate::options::cipher;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
pub struct Properties {
    /// The key's name: letters, digits, '-', '_' or '.'
    name: String,

    /// The cipher
    #[arg(long, value_name = "C", default_value = "aes-128")]
    cipher: String,

    /// What the key is for: gcm, ctr, cbc, cmac or ecb. Use one mode for each key if you can, since some modes undo others; cbc with gcm or
    /// cmac is refused
    #[arg(long, value_name = "M,..", default_value = "gcm")]
    modes: String,

    /// The most blocks that may ever be computed under the key [default: 2^32; 2^20 for blocks of 8 bytes]
    #[arg(long, value_name = "BLOCKS")]
    budget: Option<u64>,
}

impl Properties {
    /// A key with these properties, and its cipher. Prints warnings about them on standard error.
    pub fn check(&self) -> Result<(NewKey, Cipher)> {
        let cipher = cipher(&self.cipher)?;
        let modes = parse_modes(&self.modes)?;
        let small = cipher.block_bytes < 16;
        let budget_blocks = self.budget.unwrap_or(if small { MOST_SMALL_BLOCKS } else { MOST_BLOCKS });
        let key = NewKey { name: self.name.clone(), cipher: cipher.name.clone(), modes, budget_blocks };
        if let Err(wrong) = check_new_key(&key, &cipher) {
            bail!("{wrong}");
        }
        if key.modes.len() > 1 {
            eprintln!(
                "warning: a key for several modes ({}): what one mode allows can break another. Better make one \
                 key for each.",
                words(&key.modes)
            );
        }
        for warning in warnings(&key.modes) {
            eprintln!("warning: {warning}.");
        }
        for mode in &key.modes {
            warn(*mode);
        }
        if small {
            let legacy = if cipher.name.contains("des") { "is legacy, with" } else { "has" };
            eprintln!("warning: {} {legacy} blocks of {} bytes only.", cipher.name, cipher.block_bytes);
        }
        Ok((key, cipher))
    }
}

/// Warns on standard error about what a mode does not protect.
pub fn warn(mode: Mode) {
    match mode {
        Mode::Ctr | Mode::Cbc => eprintln!(
            "warning: {mode} authenticates nothing: somebody who can change the ciphertext can change the data unnoticed."
        ),
        Mode::Ecb => eprintln!(
            "warning: ecb authenticates nothing, and shows which blocks are equal: do not encrypt data with it."
        ),
        Mode::Gcm | Mode::Cmac => {}
    }
}

/// A key as JSON.
pub fn json(info: &KeyInfo) -> serde_json::Value {
    let properties = &info.properties;
    serde_json::json!({
        "name": properties.name,
        "id": hex::encode(info.id),
        "cipher": properties.cipher,
        "modes": properties.modes,
        "origin": info.origin,
        "budget_blocks": properties.budget_blocks,
        "check_value": hex::encode(&info.check_value),
        "made": info.made,
    })
}

/// A key as text for people.
pub fn tell(info: &KeyInfo) {
    let properties = &info.properties;
    say!("{}", properties.name);
    say!("  cipher       {}", properties.cipher);
    say!("  modes        {}", words(&properties.modes));
    say!("  origin       {}", origin(info));
    say!("  budget       {} blocks in its whole life", properties.budget_blocks);
    say!("  check value  {}", hex::encode(&info.check_value));
    say!("  id           {}", hex::encode(info.id));
}

/// The origin of a key.
pub fn origin(info: &KeyInfo) -> &'static str {
    match info.origin {
        polyclave_transport::wire::Origin::Generated => "generated",
        polyclave_transport::wire::Origin::Imported => "imported",
    }
}
