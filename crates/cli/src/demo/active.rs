//! The demo under a protocol that verifies, for which the nodes make material ahead. It makes a key, encrypts
//! a message and a known answer, asks for more than the stock holds, kills and restarts a node, and refuses a
//! client.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use polyclave_api::MAX_BLOCKS;
use polyclave_api::{Mode, NewKey, NodeStatus, Right};
use polyclave_client::{Client, Error, Padding};
use polyclave_config::StockSettings;
use serde::Serialize;

use super::throwaway::Throwaway;
use super::{Arguments, denied, milliseconds};
use crate::protocols::Properties;
use crate::{say, stock};

/// The level of the stock: enough for any one step of the demo.
pub(super) const LEVEL: usize = 12;
/// The time limit for the stock to be full, or for nodes to be ready again.
const PATIENCE: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(super) const MESSAGE: &[u8] = b"No party ever held this key, and none of them saw this text.";

/// RFC 4493, example 2, and SP 800-38A, F.1.1: the same key and block.
const KNOWN_KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const KNOWN_BLOCK: &str = "6bc1bee22e409f96e93d7e117393172a";
const KNOWN_CIPHERTEXT: &str = "3ad77bb40d7a3660a89ecaf32466ef97";
const KNOWN_MAC: &str = "070a16b46b4d4144f79bdd9dd04a287c";

/// The result of the demo.
#[derive(Debug, Serialize)]
struct Report {
    protocol: String,
    parties: usize,
    threshold: usize,
    cipher: &'static str,
    adversary: String,
    verified: bool,
    start_ms: f64,
    fill_seconds: f64,
    stock_blocks: usize,
    key_ms: f64,
    check_value: String,
    encrypt_ms: f64,
    decrypt_ms: f64,
    round_trip: bool,
    mac_ms: f64,
    known_answer: bool,
    known_mac: bool,
    /// For more blocks than the stock ever holds.
    served_beyond_stock: bool,
    beyond_stock_ms: f64,
    /// What a client is told while a node is gone.
    refused_without_one: Option<String>,
    served_when_back: bool,
    refused_by_policy: bool,
    holds: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, properties: &Properties) -> Result<ExitCode> {
    let tell = !arguments.json;
    let Arguments { protocol, parties, threshold, .. } = arguments;
    if tell {
        say!("A key that nobody holds\n");
        say!("{parties} node processes on this machine, each with its own keys, files and shares. They");
        say!(
            "talk over TLS 1.3. All of them take part in everything; what any {threshold} of them see reveals nothing, and"
        );
        say!("whatever {threshold} of them do, an answer is right or there is none.");
        say!("{protocol}: {}.\n", properties.adversary);
    }
    let levels = StockSettings::of(LEVEL, 0);
    let began = Instant::now();
    let mut cluster = Throwaway::start(protocol, *parties, *threshold, &levels)?;
    let start_ms = milliseconds(began.elapsed());
    let client = cluster.client()?;
    if tell {
        say!(
            "1. The nodes started and made their MAC keys and transfers ({start_ms:.0} ms). Now they make material, from which"
        );
        say!(
            "   they make the cipher's tables, for {LEVEL} blocks of AES. It stays in memory and is used once."
        );
    }
    let began = Instant::now();
    fill(&client, arguments.json)?;
    let fill_seconds = began.elapsed().as_secs_f64();
    if tell {
        say!("   It took {fill_seconds:.1} s: {:.2} blocks/s.", LEVEL as f64 / fill_seconds.max(1e-9));
    }

    let began = Instant::now();
    let key = client.generate(new_key("demo", &[Mode::Ctr]))?;
    let key_ms = milliseconds(began.elapsed());
    let check_value = hex::encode(&key.check_value);
    if tell {
        say!(
            "\n2. They made a key ({key_ms:.0} ms): the sum of what each drew, expanded and checked on shares."
        );
        say!("   check value     {check_value}");
    }

    let began = Instant::now();
    let encrypted = encrypt(&client, MESSAGE)?;
    let (counter, ciphertext) = encrypted.split_at(16);
    let encrypt_ms = milliseconds(began.elapsed());
    let began = Instant::now();
    let round_trip = decrypt(&client, counter, ciphertext)? == MESSAGE;
    let decrypt_ms = milliseconds(began.elapsed());
    if tell {
        say!(
            "\n3. A message of {} bytes was encrypted in counter mode ({encrypt_ms:.0} ms) and decrypted ({decrypt_ms:.0} ms).",
            MESSAGE.len()
        );
        say!("   {}", if round_trip { "Every byte came back." } else { "The bytes DID NOT come back." });
    }

    fill(&client, true)?;
    let began = Instant::now();
    let (known_answer, known_mac) = known_answers(&client)?;
    let mac_ms = milliseconds(began.elapsed());
    if tell {
        say!(
            "\n4. Known answers (SP 800-38A and RFC 4493), with a key that this client imported: it was in one place once."
        );
        say!("   key             {KNOWN_KEY}\n   block           {KNOWN_BLOCK}");
        say!("   encrypted       {KNOWN_CIPHERTEXT}\n   CMAC            {KNOWN_MAC}");
        say!(
            "   {}",
            if known_answer && known_mac {
                "As published."
            } else {
                "WRONG: the nodes computed something else."
            }
        );
    }

    let began = Instant::now();
    let served_beyond_stock = encrypt(&client, &vec![0; 32 * LEVEL])?.len() == 16 + 32 * LEVEL;
    let beyond_stock_ms = milliseconds(began.elapsed());
    if tell {
        say!("\n5. The client asked for {} blocks, twice what the stock holds when it is full.", 2 * LEVEL);
        say!(
            "   {} ({beyond_stock_ms:.0} ms).",
            if served_beyond_stock {
                "It was served piece by piece as the nodes made more"
            } else {
                "It was NOT served"
            }
        );
    }

    cluster.kill(parties - 1)?;
    let refused_without_one = match encrypt(&cluster.client()?, MESSAGE) {
        Err(e) if e.may_pass() => Some(e.to_string()),
        Err(e) => return Err(e.into()),
        Ok(_) => None,
    };
    cluster.restart(parties - 1)?;
    let fresh = cluster.client()?;
    fill(&fresh, true)?;
    let served_when_back = decrypt(&fresh, counter, ciphertext)? == MESSAGE;
    if tell {
        say!("\n6. Node {parties} was killed, without warning. All nodes are needed.");
        say!("   {}", refused_without_one.as_deref().unwrap_or("They served WITHOUT it."));
        say!(
            "   It was started again; the nodes gave up their material, made more, and decrypted the message: {}.",
            if served_when_back { "nothing was lost" } else { "it was LOST" }
        );
    }

    let auditor = cluster.other_client("auditor", &[Right::List])?;
    let message = denied(encrypt(&auditor, MESSAGE))?;
    if tell {
        say!("\n7. Another client, which may only list keys, asked to encrypt with this one.");
        say!("   {}", message.as_deref().unwrap_or("It was NOT refused."));
        say!("   Every node decides by its own policy; no single node can start anything.");
        say!("\nSecurity: {}.", properties.adversary);
        say!(
            "All of this ran on one machine, started by one command that could have read everything: it shows how the nodes"
        );
        say!("work together, it does not separate trust.");
    }
    let refused_by_policy = message.is_some();
    let holds = round_trip
        && known_answer
        && known_mac
        && served_beyond_stock
        && refused_without_one.is_some()
        && served_when_back
        && refused_by_policy;
    let report = Report {
        protocol: protocol.clone(),
        parties: *parties,
        threshold: *threshold,
        cipher: "aes-128",
        adversary: properties.adversary.clone(),
        verified: properties.verifies,
        start_ms,
        fill_seconds,
        stock_blocks: LEVEL,
        key_ms,
        check_value,
        encrypt_ms,
        decrypt_ms,
        round_trip,
        mac_ms,
        known_answer,
        known_mac,
        served_beyond_stock,
        beyond_stock_ms,
        refused_without_one,
        served_when_back,
        refused_by_policy,
        holds,
    };
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    }
    ensure!(holds, "something is wrong: this is a defect, please report it with the output above");
    Ok(ExitCode::SUCCESS)
}

pub(super) fn new_key(name: &str, modes: &[Mode]) -> NewKey {
    NewKey::for_modes(name, "aes-128", modes, MAX_BLOCKS)
}

/// First counter block and ciphertext.
pub(super) fn encrypt(client: &Client, data: &[u8]) -> Result<Vec<u8>, Error> {
    client.key("demo")?.ctr().encrypt(data)
}

pub(super) fn decrypt(client: &Client, counter: &[u8], ciphertext: &[u8]) -> Result<Vec<u8>> {
    Ok(client.key("demo")?.ctr().decrypt(counter, ciphertext)?.to_vec())
}

/// Imports the key from the standards, once for each mode, because ecb undoes cmac. Returns whether its block
/// is encrypted, and its code computed, as published.
fn known_answers(client: &Client) -> Result<(bool, bool)> {
    for (name, mode) in [("known", Mode::Ecb), ("known-mac", Mode::Cmac)] {
        client.import(new_key(name, &[mode]), &hex::decode(KNOWN_KEY)?)?;
    }
    let block = hex::decode(KNOWN_BLOCK)?;
    let ciphertext = client.key("known")?.ecb().padding(Padding::None).encrypt(&block)?;
    let code = client.key("known-mac")?.cmac(&block)?;
    Ok((hex::encode(ciphertext) == KNOWN_CIPHERTEXT, hex::encode(&code) == KNOWN_MAC))
}

/// Waits until the stock is full, and shows its progress.
pub(super) fn fill(client: &Client, quiet: bool) -> Result<()> {
    let bar = match quiet {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(LEVEL as u64).with_style(
            ProgressStyle::with_template("{bar:40} material for {pos} of {len} blocks, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        ),
    };
    let until = Instant::now() + PATIENCE;
    loop {
        let statuses: Vec<NodeStatus> = client.status().into_iter().filter_map(|(_, s)| s.ok()).collect();
        if statuses.iter().any(|status| status.quarantined) {
            bail!("a check failed among the nodes");
        }
        let least = statuses.iter().filter_map(|status| {
            status.stock.iter().filter(|kind| kind.level > 0).map(|kind| kind.blocks.min(kind.level)).min()
        });
        bar.set_position(least.min().unwrap_or(0));
        let all = statuses.len() == client.cluster().nodes();
        if all && statuses.iter().all(|status| status.prepared && stock::is_full(&status.stock)) {
            bar.finish_and_clear();
            return Ok(());
        }
        if Instant::now() > until {
            let held = statuses.first().map(|status| stock::describe(&status.stock)).unwrap_or_default();
            return Err(anyhow::anyhow!("the stock was not full within {PATIENCE:?}: {held}"))
                .context("see the nodes' logs");
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
