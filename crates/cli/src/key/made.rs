//! The options for making a key, and how a key is printed.

use anyhow::{Result, anyhow, bail};
use polyclave_api::{
    KeyInfo, Lifetime, Mode, NewKey, Usage, VersionState, check_new_key, modes_of, most_blocks, usage_of,
    warnings,
};
use polyclave_cipher::{Cipher, hmac};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::names::{modes_that, parse_modes, parse_usage, words};
use crate::options::{cipher, hexadecimal};
use crate::say;

fn modes_help() -> String {
    format!(
        "The modes it is for: {}. ff1 is for a key that tokenizes, tr31 for one that protects key blocks. Use one mode for each key if you can, \
         since some modes undo others; cbc with gcm, ccm or cmac is refused, and {} are always alone [default: gcm, or what --usage needs]",
        modes_that(|_| true),
        modes_that(Mode::is_alone)
    )
}

/// Options and arguments of the command.
#[derive(clap::Args)]
pub struct Properties {
    /// The key's name: letters, digits, '-', '_' or '.'
    name: String,

    /// The cipher; for the mode hmac: hmac-sha-256, hmac-sha-384 or hmac-sha-512 [default: aes-128, or
    /// hmac-sha-256 for that mode]
    #[arg(long, value_name = "C")]
    cipher: Option<String>,

    #[arg(long, value_name = "M,..", help = modes_help())]
    modes: Option<String>,

    /// What it is for: encrypt, decrypt, mac, wrap, unwrap, derive, kdf, tokenize. It can be withdrawn
    /// (`key configure`), and never added [default: all that its modes can do]
    #[arg(long, value_name = "U,..")]
    usage: Option<String>,

    /// Let it leave the nodes, wrapped under another key of theirs. It can be withdrawn (`key configure`),
    /// and without this it never leaves them
    #[arg(long)]
    wrappable: bool,

    /// Let clients choose the nonces under which they encrypt (gcm, ccm, gcm-siv and xaes), and the initial
    /// blocks of cbc. Fixed for ever. Who encrypts under a nonce twice gives both messages away, and who may
    /// encrypt can then decrypt, or with cbc have any block encrypted: take siv or gcm-siv instead if you can
    #[arg(long)]
    caller_nonces: bool,

    /// What people call it: at most 128 bytes
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,

    /// The time, or day (UTC), from which on it only decrypts, verifies and unwraps, such as 2027-12-31
    #[arg(long, value_name = "TIME", value_parser = parse_date)]
    expires: Option<u64>,

    /// Make a session key: it lives for so many seconds, at most 86400, and then nothing is left of it. It is
    /// in no backup
    #[arg(long, value_name = "SECONDS")]
    session: Option<u32>,

    /// What programs keep beside it, in hexadecimal: at most 4096 bytes
    #[arg(long, value_name = "HEX")]
    attributes: Option<String>,

    /// The most blocks that may ever be computed under the key [default: 2^32; 2^20 for blocks of 8 bytes,
    /// 2^48 for xaes]
    #[arg(long, value_name = "BLOCKS")]
    budget: Option<u64>,
}

impl Properties {
    /// A key with these properties, and its cipher. Prints warnings about them on standard error.
    pub fn check(&self) -> Result<(NewKey, Cipher)> {
        let (modes, usage) = self.modes_and_usage()?;
        let usual = if modes == [Mode::Hmac] { hmac::NAMES[0] } else { "aes-128" };
        let cipher = cipher(self.cipher.as_deref().unwrap_or(usual))?;
        let small = cipher.block_bytes < 16;
        let budget_blocks = self.budget.unwrap_or(most_blocks(cipher.block_bytes, &modes));
        let new = NewKey::for_modes(&self.name, &cipher.name, &modes, budget_blocks);
        let (wrappable, caller_nonces, label) = (self.wrappable, self.caller_nonces, self.label.clone());
        let attributes = self.attributes.as_deref().map(|text| hexadecimal("--attributes", text));
        let attributes = attributes.transpose()?.unwrap_or_default();
        let lifetime = self.session.map_or(Lifetime::Stored, |seconds| Lifetime::Session { seconds });
        let key = NewKey { usage, wrappable, caller_nonces, label, attributes, lifetime, ..new };
        let key = NewKey { expires: self.expires, ..key };
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
        for warning in warnings(&key.modes, &key.usage) {
            eprintln!("warning: {warning}.");
        }
        for mode in &key.modes {
            warn(*mode);
        }
        if caller_nonces {
            eprintln!(
                "warning: with nonces of its own a client that may encrypt can also decrypt, and a nonce that is used twice gives both \
                 messages away; with initial blocks of cbc it can have any block encrypted."
            );
        }
        if small {
            let legacy = if cipher.name.contains("des") { "is legacy, with" } else { "has" };
            eprintln!("warning: {} {legacy} blocks of {} bytes only.", cipher.name, cipher.block_bytes);
        }
        Ok((key, cipher))
    }

    /// What is not given follows from the other: by default a key is for gcm.
    fn modes_and_usage(&self) -> Result<(Vec<Mode>, Vec<Usage>)> {
        let modes = self.modes.as_deref().map(parse_modes).transpose()?;
        let usage = self.usage.as_deref().map(parse_usage).transpose()?;
        Ok(match (modes, usage) {
            (Some(modes), Some(usage)) => (modes, usage),
            (Some(modes), None) => (modes.clone(), usage_of(&modes)),
            (None, None) => (vec![Mode::Gcm], usage_of(&[Mode::Gcm])),
            (None, Some(usage)) => (modes_of(&usage), usage),
        })
    }
}

/// Warns on standard error about what a mode does not protect.
pub fn warn(mode: Mode) {
    mode.caution().iter().for_each(|why| eprintln!("warning: {why}."));
}

/// A key as JSON.
pub fn json(info: &KeyInfo) -> serde_json::Value {
    let properties = &info.properties;
    serde_json::json!({
        "name": properties.name,
        "id": hex::encode(info.id),
        "cipher": properties.cipher,
        "modes": properties.modes,
        "usage": properties.usage,
        "wrappable": properties.wrappable,
        "attributes": hex::encode(&properties.attributes),
        "caller_nonces": properties.caller_nonces,
        "label": properties.label,
        "expires": properties.expires,
        "ends": info.ends(),
        "origin": info.origin,
        "budget_blocks": properties.budget_blocks,
        "component": info.component.as_ref().map(|c| serde_json::json!({ "number": c.number, "of": c.of })),
        "check_value": hex::encode(&info.check_value),
        "made": info.made,
        "version": info.version,
        "state": info.state,
        "least_version": info.least_version,
        "deletable": info.deletable,
        "revision": info.revision,
        "account": hex::encode(info.account),
    })
}

/// A key as text for people.
pub fn tell(info: &KeyInfo) {
    let properties = &info.properties;
    say!("{}", properties.name);
    if !properties.label.is_empty() {
        say!("  label        {}", properties.label);
    }
    say!("  version      {}, {}", info.version, standing(info));
    say!("  made         {}", date(info.made));
    if let Some(expires) = properties.expires {
        say!("  expires      {}", date(expires));
    }
    if let Some(ends) = info.ends() {
        let what = if info.is_of_session() { "a session key" } else { "unless it is combined before" };
        say!("  ends         {} ({what})", date(ends));
    }
    if let Some(part) = &info.component {
        say!(
            "  component    {} of {}: it can be used for nothing except to combine it",
            part.number,
            part.of
        );
    }
    say!("  cipher       {}", properties.cipher);
    let modes = words(&properties.modes);
    say!("  modes        {}", if modes.is_empty() { "none" } else { &modes });
    say!("  usage        {}", words(&properties.usage));
    say!(
        "  leaves       {}",
        if properties.wrappable { "wrapped under another key (wrappable)" } else { "never" }
    );
    if properties.caller_nonces {
        say!("  nonces       clients may choose them, or initial blocks");
    }
    if !properties.attributes.is_empty() {
        say!("  attributes   {} bytes", properties.attributes.len());
    }
    say!("  origin       {}", info.origin);
    if info.account != info.id {
        say!("  account      {} (spent together with the key of this id)", hex::encode(info.account));
    }
    say!("  budget       {} blocks in its whole life", properties.budget_blocks);
    say!("  check value  {}", hex::encode(&info.check_value));
    say!("  id           {}", hex::encode(info.id));
}

/// What a version may be used for, in a word. An expiry is read by this machine's clock.
pub fn standing(info: &KeyInfo) -> String {
    let is_past =
        |expires: u64| i64::try_from(expires).is_ok_and(|e| e <= OffsetDateTime::now_utc().unix_timestamp());
    match info.state {
        _ if info.version < info.least_version => format!("{}, below the least version", info.state),
        VersionState::Active if info.properties.expires.is_some_and(is_past) => "expired".into(),
        state => state.to_string(),
    }
}

/// Parses a time as people write it.
fn parse_date(text: &str) -> Result<u64> {
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let time = OffsetDateTime::parse(&whole, &Rfc3339)
        .map_err(|_| anyhow!("'{text}' is no time; write 2027-12-31 or 2027-12-31T18:00:00Z"))?;
    Ok(u64::try_from(time.unix_timestamp())?)
}

/// A time as text for people.
pub fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
    let text = time.and_then(|time| time.format(&Rfc3339).ok());
    text.unwrap_or_else(|| format!("{seconds} seconds after 1970"))
}
