//! The demo under a protocol whose nodes correct each other. It makes a key and encrypts a known answer and a
//! message. Then it kills a node; or one node sends wrong shares in every opening from the beginning.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use parking_lot::Mutex;
use polyclave_api::{Mode, Right};
use polyclave_client::{Client, Padding};
use polyclave_config::StockSettings;
use polyclave_protocol::PartySet;
use serde::Serialize;

use super::active::{LEVEL, MESSAGE, decrypt, encrypt, fill, new_key};
use super::throwaway::Throwaway;
use super::{Arguments, KNOWN_CIPHERTEXT, KNOWN_KEY, KNOWN_PLAINTEXT, denied, milliseconds};
use crate::protocols::Properties;
use crate::say;

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
    key_ms: f64,
    check_value: String,
    known_answer: bool,
    encrypt_ms: f64,
    round_trip: bool,
    /// The node that cheats, if there is one.
    cheater: Option<String>,
    /// By node: the nodes that it has outvoted.
    outvoted: Vec<Vec<String>>,
    /// With one node killed, if none cheats.
    served_without_one: Option<bool>,
    /// What the client was told then.
    remarks: Vec<String>,
    refused_by_policy: bool,
    holds: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, properties: &Properties) -> Result<ExitCode> {
    let report = perform(arguments, properties)?;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    }
    ensure!(report.holds, "something is wrong: this is a defect, please report it with the output above");
    Ok(ExitCode::SUCCESS)
}

fn perform(arguments: &Arguments, properties: &Properties) -> Result<Report> {
    let tell = |text: &str| {
        if !arguments.json {
            say!("{text}");
        }
    };
    let Arguments { protocol, parties, threshold, liar, .. } = arguments;
    let cheater = liar.map(|liar| liar.node);
    tell(&format!("A key that nobody holds, at nodes of which {threshold} may lie or be gone\n"));
    tell(&format!(
        "{parties} node processes on this machine, each with its own keys, files and share of what is to come. They talk over TLS\n\
         1.3. What any {threshold} of them see tells nothing; and whatever {threshold} of them send, or do not send, the answers\n\
         are right and they come.\n{protocol}: {}.\n",
        properties.adversary
    ));
    if let Some(liar) = liar {
        tell(&format!(
            "Node {} is the same program, started with {}: in every opening of a request it sends its peers wrong\nshares.\n",
            liar.node + 1,
            liar.arguments.join(" ")
        ));
    }
    let levels = StockSettings::of(LEVEL, 0);
    let began = Instant::now();
    let mut cluster = Throwaway::start_with(protocol, *parties, *threshold, &levels, *liar)?;
    let start_ms = milliseconds(began.elapsed());
    let remarks = Arc::new(Mutex::new(Vec::new()));
    let heard = remarks.clone();
    let client = cluster.client()?.on_remark(move |remark| {
        heard.lock().push(remark.to_owned());
    });
    let began = Instant::now();
    fill(&client, true)?;
    let fill_seconds = began.elapsed().as_secs_f64();
    tell(&format!(
        "1. The nodes started ({start_ms:.0} ms), and made material for {LEVEL} blocks of AES ({fill_seconds:.1} s). That takes all \
         of\n   them. What was wrong with it would have been found by all, and thrown away."
    ));

    let began = Instant::now();
    let key = client.generate(new_key("demo", &[Mode::Ctr]))?;
    let key_ms = milliseconds(began.elapsed());
    let check_value = hex::encode(&key.check_value);
    tell(&format!(
        "\n2. They made a key ({key_ms:.0} ms): the sum of what each drew, under a mask that nobody else knew.\n   check value     \
         {check_value}"
    ));

    fill(&client, true)?;
    let known_answer = known_answer(&client)?;
    tell(&format!(
        "\n3. A known answer (FIPS-197, C.1), with a key that this client brought: once, it was in one place.\n   key             \
         {KNOWN_KEY}\n   plaintext       {KNOWN_PLAINTEXT}\n   ciphertext      {KNOWN_CIPHERTEXT}\n   {}",
        if known_answer { "As published." } else { "WRONG: the nodes computed something else." }
    ));

    fill(&client, true)?;
    let began = Instant::now();
    let (counter, ciphertext) = message(&client)?;
    let encrypt_ms = milliseconds(began.elapsed());
    let round_trip = decrypt(&client, &counter, &ciphertext)? == MESSAGE;
    tell(&format!(
        "\n4. A message of {} bytes was encrypted in counter mode ({encrypt_ms:.0} ms) and decrypted.\n   {}",
        MESSAGE.len(),
        if round_trip { "Every byte came back." } else { "The bytes DID NOT come back." }
    ));

    let outvoted = outvoted(&client);
    let mut served_without_one = None;
    let others_saw = match cheater {
        Some(cheater) => {
            let name = client.cluster().cards()[cheater].name.clone();
            let saw = |(node, names): (usize, &Vec<String>)| node == cheater || *names == [name.clone()];
            let all_saw = outvoted.iter().enumerate().all(saw);
            tell("\n5. What each node says of the others' shares (polyclave client status):");
            for (card, names) in client.cluster().cards().iter().zip(&outvoted) {
                let said = if names.is_empty() {
                    "nothing".into()
                } else {
                    format!("outvoted {}", names.join(", "))
                };
                tell(&format!("   {:<15} {said}", card.name));
            }
            tell(&format!(
                "   {name} was wrong every time. Three of four shares that agree fix a value, so it changed nothing: the answers\n   \
                 above are those that were published. What {name} says itself counts for nothing."
            ));
            all_saw
        }
        None => {
            fill(&client, true)?;
            cluster.kill(parties - 1)?;
            let served = decrypt(&client, &counter, &ciphertext)? == MESSAGE;
            served_without_one = Some(served);
            tell(&format!(
                "\n5. Node {parties} was killed, without warning, and the message decrypted again.\n   {}",
                if served { "Every byte came back." } else { "The bytes DID NOT come back." }
            ));
            let remarks = remarks.lock();
            remarks.iter().for_each(|remark| tell(&format!("   note: {remark}")));
            !remarks.is_empty() && outvoted.iter().all(Vec::is_empty)
        }
    };

    let auditor = cluster.other_client("auditor", &[Right::List])?;
    let text = denied(encrypt(&auditor, MESSAGE))?;
    tell("\n6. Another client, which may only list keys, asked to encrypt with this one.");
    tell(&format!("   {}", text.as_deref().unwrap_or("It was NOT refused.")));
    tell(&format!(
        "   Every node decides by its own policy.\n\nSecurity: {}.\nAll of this ran on one machine, started by one command that could \
         have read everything: it shows how the nodes\nwork together, it does not separate trust.",
        properties.adversary
    ));
    let refused_by_policy = text.is_some();
    let remarks = remarks.lock().clone();
    Ok(Report {
        protocol: protocol.clone(),
        parties: *parties,
        threshold: *threshold,
        cipher: "aes-128",
        adversary: properties.adversary.clone(),
        verified: properties.verifies,
        start_ms,
        fill_seconds,
        key_ms,
        check_value,
        known_answer,
        encrypt_ms,
        round_trip,
        cheater: cheater.map(|cheater| client.cluster().cards()[cheater].name.clone()),
        outvoted,
        served_without_one,
        remarks,
        refused_by_policy,
        holds: known_answer
            && round_trip
            && others_saw
            && served_without_one != Some(false)
            && refused_by_policy,
    })
}

/// First counter block and ciphertext of the message.
fn message(client: &Client) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut counter = encrypt(client, MESSAGE)?;
    let ciphertext = counter.split_off(16);
    Ok((counter, ciphertext))
}

/// Imports the key from the standard and encrypts its block.
fn known_answer(client: &Client) -> Result<bool> {
    client.import(new_key("fips-197", &[Mode::Ecb]), &hex::decode(KNOWN_KEY)?)?;
    fill(client, true)?;
    let plaintext = hex::decode(KNOWN_PLAINTEXT)?;
    let ciphertext = client.key("fips-197")?.ecb().padding(Padding::None).encrypt(&plaintext)?;
    Ok(hex::encode(ciphertext) == KNOWN_CIPHERTEXT)
}

/// By node: the names of the nodes that it has outvoted.
fn outvoted(client: &Client) -> Vec<Vec<String>> {
    let names = |nodes: PartySet| nodes.iter().map(|p| client.node_name(p).to_owned()).collect();
    let said = client
        .status()
        .into_iter()
        .map(|(_, status)| status.map_or_else(|_| Vec::new(), |s| names(s.outvoted)));
    said.collect()
}
