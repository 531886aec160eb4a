//! `key seal-import` and `key import-sealed`: a key goes from a machine without a network to the nodes, and
//! who carries it learns nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, ensure};
use polyclave_api::Lifetime;
use polyclave_cipher::{AnyMap, Cells, Cipher, cleartext, compile, hmac, modes};
use polyclave_client::hmac_check_value;
use polyclave_config::{Cluster, Moment, load_sealed_key, save_sealed_key, seal_import};
use polyclave_transport::CertificateDer;

use super::import::read;
use super::kcv::ParityOption;
use super::made::{Properties, json, tell};
use crate::client_option::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example, on a machine without a network:\n  \
    polyclave key seal-import zone-master --modes cmac --key-file zone.hex --cluster cluster.toml --expect 'acorn zigzag ..' --out zone.sealed\n\n\
    The file has a part of the key for each node, sealed to the node's certificate (HPKE, RFC 9180). Only all nodes together have the key. \
    Anybody who may import can then give it to the nodes: `polyclave key import-sealed zone.sealed`. Compare the check value that both commands \
    print. A file counts once, and ends. When a node's certificate or address changes, the key has to be sealed anew. \
    It says nothing of who sealed it: give it to somebody whom you trust not to replace it by a file of another key.")]
pub struct SealArguments {
    #[command(flatten)]
    properties: Properties,

    /// The file with the key, in hexadecimal, readable only by you; `-` for standard input
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,

    #[command(flatten)]
    parity: ParityOption,

    /// The cluster file of the nodes
    #[arg(long, value_name = "FILE")]
    cluster: PathBuf,

    /// The fingerprint that it must have, as the operators of the nodes told you: 64 hexadecimal digits or 16
    /// words
    #[arg(long, value_name = "FINGERPRINT")]
    expect: String,

    /// Hours until it cannot be imported any more
    #[arg(long, value_name = "H", default_value_t = 168, value_parser = clap::value_parser!(u32).range(1..=8760))]
    hours: u32,

    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "Every node opens its own part, and the nodes add the parts on shares: neither they nor this client see the key. Nothing is kept \
    if the key's check value is another one than the file says, because a node is wrong or the file is. Whoever had the key where it \
    was sealed still has it."
)]
pub struct ImportArguments {
    /// The file that `key seal-import` made
    file: PathBuf,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Seals a key.
pub fn seal(arguments: &SealArguments) -> Result<ExitCode> {
    let cluster = Cluster::load(&arguments.cluster)?;
    let fingerprint = cluster.fingerprint();
    fingerprint
        .check(&arguments.expect)
        .with_context(|| format!("{} is refused", arguments.cluster.display()))?;
    let (new, cipher) = arguments.properties.check()?;
    ensure!(new.parts() == 1, "a key for siv is two keys, and cannot be sealed; import it with `key import`");
    ensure!(new.lifetime == Lifetime::Stored, "a session key cannot be sealed; leave out --session");
    let mut key = read(&arguments.key_file, &cipher, 1)?;
    arguments.parity.apply(&cipher, &mut key)?;
    let check = check_value(&cipher, &key)?;
    let not_after = Moment::now().seconds() + u64::from(arguments.hours) * 3600;
    let first = |card: &polyclave_config::Card| card.certificates.first().cloned();
    let certificates: Option<Vec<CertificateDer<'static>>> = cluster.cards().iter().map(first).collect();
    let certificates =
        certificates.ok_or_else(|| anyhow!("a node of the cluster file has no certificate"))?;
    let certificates: Vec<&CertificateDer<'_>> = certificates.iter().collect();
    let (name, nodes) = (new.name.clone(), certificates.len());
    let sealed = seal_import(new, &key, check.clone(), (fingerprint.bytes(), &certificates), not_after)?;
    save_sealed_key(&sealed, &arguments.out)?;
    say!("{name} is sealed to {nodes} nodes in {}", arguments.out.display());
    say!("  check value  {}", hex::encode(check));
    say!("  until        {}", Moment::from_seconds(not_after));
    say!("Next, anywhere: polyclave key import-sealed {}", arguments.out.display());
    Ok(ExitCode::SUCCESS)
}

/// Imports a sealed key.
pub fn import(arguments: &ImportArguments) -> Result<ExitCode> {
    let sealed = load_sealed_key(&arguments.file)?;
    let info = arguments.client.open()?.import_sealed(sealed)?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}

/// The check value that nodes compute of a key. Here the key is in the clear, and tables are looked up by it:
/// on a machine that runs nothing else.
fn check_value(cipher: &Cipher, key: &[u8]) -> Result<Vec<u8>> {
    if let Some(hash) = hmac::hash_of(&cipher.name) {
        return Ok(hmac_check_value(hash, key));
    }
    let port = &cipher.key_schedule.inputs()[0];
    let key = Cells::from_blocks(port.cells.len(), port.bits, key)?;
    let round_keys = cleartext::run(&compile(&cipher.key_schedule, &AnyMap), 1, &[key])?.remove(0);
    let block = &cipher.encrypt.inputs()[0];
    let zero = Cells::zero(block.cells.len(), block.bits, 1);
    let check = cleartext::run(&compile(&modes::check_value(cipher), &AnyMap), 1, &[zero, round_keys])?;
    Ok(check.first().ok_or_else(|| anyhow!("a check value without bytes"))?.to_blocks())
}
