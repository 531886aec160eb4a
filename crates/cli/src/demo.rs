//! `polyclave demo`: runs a cluster for a minute. Node processes make a key that no single machine knows, a
//! client seals and opens a file with it, a node is killed, a client is refused, and this command explains
//! what happened.

mod active;
mod correcting;
mod story;
mod throwaway;

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use polyclave_api::MAX_BLOCKS;
use polyclave_api::{Mode, NewKey, Reason, Right};
use polyclave_client::{Client, Error, Padding};
use polyclave_config::StockSettings;
use polyclave_protocol::catalog;
use polyclave_protocol::protocol::Adversary;
use serde::Serialize;

use throwaway::Throwaway;

use crate::protocols::{self, Chosen, Properties, names_of, properties, threshold};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct Options {
    /// The file to seal and open, under a protocol that makes nothing ahead; it is only read [default: a
    /// sample of 1 MiB]
    file: Option<PathBuf>,

    #[arg(long, value_name = "P", help = protocols::option_help())]
    protocol: Option<String>,

    #[arg(long, value_name = "N", help = protocols::parties_help(5))]
    parties: Option<usize>,

    #[arg(long, value_name = "T", help = protocols::threshold_help("default: 1"))]
    threshold: Option<usize>,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

fn after_help() -> String {
    let others = catalog::serving()
        .skip(1)
        .map(|protocol| format!("  polyclave demo --protocol {:<20}  {}", protocol.name, protocol.summary));
    format!(
        "Examples:\n  \
         polyclave demo                                  five nodes, honest majority, passive: fast\n  \
         polyclave demo FILE --parties 3\n  \
         polyclave demo --parties 2                      two nodes, of which one may cheat\n{}",
        others.collect::<Vec<_>>().join("\n")
    )
}

/// The same with defaults filled in.
struct Arguments {
    file: Option<PathBuf>,
    protocol: String,
    parties: usize,
    threshold: usize,
    liar: Option<Liar>,
    json: bool,
}

/// A node that lies from the beginning. This program has none; the laboratory's demo has.
#[derive(Clone, Copy)]
pub struct Liar {
    /// Its number, counted from 0.
    pub node: usize,
    /// Arguments for its process in addition to those of the other nodes.
    pub arguments: &'static [&'static str],
}

/// The result of the demo.
#[derive(Debug, Serialize)]
pub struct Report {
    protocol: String,
    parties: usize,
    threshold: usize,
    cipher: &'static str,
    mode: &'static str,
    adversary: String,
    /// Whether the nodes' answers are checked; under a passive protocol they are not.
    verified: bool,
    start_ms: f64,
    key_ms: f64,
    check_value: String,
    known_answer: bool,
    bytes: u64,
    seal_seconds: f64,
    open_seconds: f64,
    round_trip: bool,
    change_noticed: bool,
    /// With one node killed; `None` if all nodes are needed.
    served_without_one: Option<bool>,
    refused_by_policy: bool,
    holds: bool,
}

/// FIPS-197, appendix C.1.
const KNOWN_KEY: &str = "000102030405060708090a0b0c0d0e0f";
const KNOWN_PLAINTEXT: &str = "00112233445566778899aabbccddeeff";
const KNOWN_CIPHERTEXT: &str = "69c4e0d86a7b0430d8cdb78070b4c55a";

/// Bytes of the sample.
const SAMPLE_BYTES: u64 = 1 << 20;

/// Runs the command.
pub fn run(options: &Options) -> Result<ExitCode> {
    run_with(options, None)
}

/// The same with a node that lies. Nodes are started by the command `node run` of the calling program.
pub fn run_with(options: &Options, liar: Option<Liar>) -> Result<ExitCode> {
    let chosen = protocols::chosen(options.protocol.as_deref(), options.parties, 5);
    let Options { file, json, .. } = options;
    if !json {
        chosen.tell();
    }
    let Chosen { protocol, nodes: parties, .. } = chosen;
    let threshold = threshold(&protocol, parties, options.threshold, 1)?;
    let arguments = &Arguments { file: file.clone(), protocol, parties, threshold, liar, json: *json };
    let properties = properties(&arguments.protocol, parties, threshold)?;
    ensure!(
        liar.is_none() || properties.guarantees_output,
        "--cheat is for a protocol with guaranteed output, whose nodes correct each other ({}): under {} {}",
        names_of(Adversary::GuaranteedOutput),
        arguments.protocol,
        if properties.verifies { "cheating ends in a refusal" } else { "nobody would notice" }
    );
    if properties.keeps_stock {
        ensure!(
            file.is_none(),
            "{} encrypts a short message in the demo, no file: its material would take too long to make",
            arguments.protocol
        );
        return match properties.guarantees_output {
            true => correcting::run(arguments, &properties),
            false => active::run(arguments, &properties),
        };
    }
    let (mut input, bytes) = open(arguments)?;
    if !arguments.json {
        story::opening(arguments, bytes);
    }
    let report = perform(arguments, &properties, &mut input, bytes)?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&report)?),
        false => story::closing(&report),
    }
    ensure!(report.holds, "something is wrong: this is a defect, please report it with the output above");
    Ok(ExitCode::SUCCESS)
}

/// The file, or the sample if no file was given.
fn open(arguments: &Arguments) -> Result<(BufReader<File>, u64)> {
    let Some(path) = &arguments.file else {
        let mut sample = tempfile::tempfile().context("cannot make a temporary file")?;
        let text = b"Nobody holds this key. ";
        let content: Vec<u8> = text.iter().copied().cycle().take(SAMPLE_BYTES as usize).collect();
        sample.write_all(&content).and_then(|()| sample.rewind()).context("cannot write a temporary file")?;
        return Ok((BufReader::new(sample), SAMPLE_BYTES));
    };
    let named = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(named)?;
    let metadata = file.metadata().with_context(named)?;
    ensure!(metadata.is_file(), "{} is no regular file; give a file to seal", path.display());
    Ok((BufReader::new(file), metadata.len()))
}

fn perform(
    arguments: &Arguments,
    properties: &Properties,
    input: &mut BufReader<File>,
    bytes: u64,
) -> Result<Report> {
    let tell = !arguments.json;
    let began = Instant::now();
    let mut cluster = Throwaway::start(
        &arguments.protocol,
        arguments.parties,
        arguments.threshold,
        &StockSettings::default(),
    )?;
    let start_ms = milliseconds(began.elapsed());
    let client = cluster.client()?;

    let began = Instant::now();
    let key = client.generate(new_key("demo", Mode::Gcm))?;
    let key_ms = milliseconds(began.elapsed());
    let check_value = hex::encode(&key.check_value);
    if tell {
        story::key_made(arguments, start_ms, key_ms, &check_value);
    }

    let known_answer = known_answer(&client)?;
    if tell {
        story::known_answer(known_answer);
    }

    let bar = progress(2 * bytes, arguments.json);
    let began = Instant::now();
    let mut sealed = tempfile::tempfile().context("cannot make a temporary file")?;
    client.seal("demo", input, &mut BufWriter::new(&mut sealed), &mut |done| bar.set_position(done))?;
    let seal_seconds = began.elapsed().as_secs_f64();
    sealed.rewind()?;
    input.rewind()?;
    let began = Instant::now();
    let mut compared = Comparison { expected: input, equal: true };
    let opened = client.open_sealed("demo", &mut BufReader::new(&sealed), &mut compared, &mut |done| {
        bar.set_position(bytes + done);
    })?;
    let open_seconds = began.elapsed().as_secs_f64();
    let round_trip = compared.equal && opened == bytes;
    bar.finish_and_clear();
    if tell {
        story::sealed_and_opened(bytes, seal_seconds, open_seconds, round_trip);
    }

    let change_noticed = change_is_noticed(&client, &mut sealed)?;
    if tell {
        story::change(change_noticed);
    }
    let served_without_one = match cluster.spare() {
        Some(node) => {
            cluster.kill(node)?;
            let fresh = cluster.client()?;
            let mut again = Vec::new();
            fresh.seal("demo", &mut &KNOWN_PLAINTEXT.as_bytes()[..], &mut again, &mut |_| ())?;
            let mut back = Vec::new();
            fresh.open_sealed("demo", &mut &again[..], &mut back, &mut |_| ())?;
            Some(back == KNOWN_PLAINTEXT.as_bytes())
        }
        None => None,
    };
    if tell {
        story::without_one(arguments, served_without_one);
    }
    let refusal = refusal(&cluster)?;
    if tell {
        story::refused(refusal.as_deref());
    }
    let refused_by_policy = refusal.is_some();
    let holds = known_answer
        && round_trip
        && change_noticed
        && served_without_one != Some(false)
        && refused_by_policy;
    Ok(Report {
        protocol: arguments.protocol.clone(),
        parties: arguments.parties,
        threshold: arguments.threshold,
        cipher: "aes-128",
        mode: "gcm",
        adversary: cluster.adversary.clone(),
        verified: properties.verifies,
        start_ms,
        key_ms,
        check_value,
        known_answer,
        bytes,
        seal_seconds,
        open_seconds,
        round_trip,
        change_noticed,
        served_without_one,
        refused_by_policy,
        holds,
    })
}

fn new_key(name: &str, mode: Mode) -> NewKey {
    NewKey::for_modes(name, "aes-128", &[mode], MAX_BLOCKS)
}

/// Imports the key from the standard and encrypts its block.
fn known_answer(client: &Client) -> Result<bool> {
    client.import(new_key("fips-197", Mode::Ecb), &hex::decode(KNOWN_KEY)?)?;
    let plaintext = hex::decode(KNOWN_PLAINTEXT)?;
    let ciphertext = client.key("fips-197")?.ecb().padding(Padding::None).encrypt(&plaintext)?;
    Ok(hex::encode(ciphertext) == KNOWN_CIPHERTEXT)
}

/// Flips a bit in the middle of the sealed file, and tries to open it.
fn change_is_noticed(client: &Client, sealed: &mut File) -> Result<bool> {
    let middle = sealed.metadata()?.len() / 2;
    let mut byte = [0];
    sealed.seek(SeekFrom::Start(middle))?;
    sealed.read_exact(&mut byte)?;
    byte[0] ^= 1;
    sealed.seek(SeekFrom::Start(middle))?;
    sealed.write_all(&byte)?;
    sealed.rewind()?;
    let opened = client.open_sealed("demo", &mut BufReader::new(&*sealed), &mut std::io::sink(), &mut |_| ());
    Ok(matches!(opened, Err(Error::Unauthentic(_))))
}

/// What a client that may only list keys is told when it wants to encrypt; `None` if it was allowed to.
fn refusal(cluster: &Throwaway) -> Result<Option<String>> {
    let auditor = cluster.other_client("auditor", &[Right::List])?;
    denied(auditor.seal("demo", &mut &[0; 16][..], &mut std::io::sink(), &mut |_| ()))
}

/// What a client is told if the policy forbids something; `None` if it was done.
fn denied<T>(outcome: polyclave_client::Result<T>) -> Result<Option<String>> {
    match outcome {
        Err(e @ Error::Refused { .. }) => {
            let denied = matches!(&e, Error::Refused { refusal, .. } if refusal.reason == Reason::Denied);
            Ok(denied.then(|| e.to_string()))
        }
        Err(e) => Err(e.into()),
        Ok(_) => Ok(None),
    }
}

/// A writer that compares what is written with a file.
struct Comparison<'f> {
    expected: &'f mut BufReader<File>,
    equal: bool,
}

impl Write for Comparison<'_> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let mut expected = vec![0; data.len()];
        self.equal &= self.expected.read_exact(&mut expected).is_ok() && expected == data;
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn progress(bytes: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} sealed and opened, {eta} left");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
