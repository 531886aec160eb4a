//! Has three nodes, each a process of its own, compute long streams under every cipher that they serve, and
//! prints rates and the most memory that a node held:
//!
//! ```sh
//! cargo run --release -p polyclave-client --example long_requests           # 16 MiB of Triple DES, 1 MiB of the others
//! cargo run --release -p polyclave-client --example long_requests aes-128 skinny-128-128
//! ```
//!
//! For each cipher first one client encrypts all of it in counter mode, then eight at once an eighth each,
//! every one of them twice to compare. Ends with an error if a request fails or a node held 400 MB or more.

use std::error::Error;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey};
use polyclave_cipher::catalog;
use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_node::{Running, local};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CLIENTS: usize = 8;
const MIB: usize = 1 << 20;
const MAX_BYTES: u64 = 400_000_000;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [word, dir] if word == "node" => node(Path::new(dir)),
        chosen => measure(chosen),
    }
}

/// One node, until the process that started it is gone.
fn node(dir: &Path) -> Outcome<()> {
    let running = Running::start(NodeDir::open(dir)?)?;
    stdin().read_to_end(&mut Vec::new())?;
    running.stop();
    Ok(())
}

/// The processes of the nodes; they end with this one.
struct Nodes(Vec<Child>);

impl Nodes {
    fn start(dirs: &[PathBuf]) -> Outcome<Nodes> {
        let program = std::env::current_exe()?;
        let start = |dir: &PathBuf| Command::new(&program).arg("node").arg(dir).stdin(Stdio::piped()).spawn();
        Ok(Nodes(dirs.iter().map(start).collect::<Result<_, _>>()?))
    }

    /// The most memory that one of them held since this was last asked.
    fn most_bytes(&self) -> Outcome<u64> {
        let mut most = 0;
        for node in &self.0 {
            let status = std::fs::read_to_string(format!("/proc/{}/status", node.id()))?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:"))
                .ok_or("no VmHWM: this needs Linux")?;
            most = most.max(1024 * line.trim().trim_end_matches("kB").trim().parse::<u64>()?);
            std::fs::write(format!("/proc/{}/clear_refs", node.id()), "5")?;
        }
        Ok(most)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &mut self.0 {
            drop(node.stdin.take());
            let _ = node.wait();
        }
    }
}

fn measure(chosen: &[String]) -> Outcome<()> {
    let dir = tempfile::tempdir()?;
    let local = local::create(&dir.path().join("cluster"), "shamir", 3, 1)?;
    let nodes = Nodes::start(&local.nodes)?;
    let client = Client::open(&ClientDir::open(&local.client)?)?;
    let until = Instant::now() + Duration::from_secs(30);
    while !client
        .status()
        .iter()
        .all(|(_, status)| status.as_ref().is_ok_and(|s| s.set_up && s.connected.len() == 3))
    {
        if Instant::now() > until {
            return Err("the nodes did not come up within 30 s".into());
        }
        sleep(Duration::from_millis(100));
    }
    let mut too_large = Vec::new();
    println!("{:16} {:>6} {:>12} {:>12} {:>10}", "cipher", "MiB", "one, MB/s", "eight, MB/s", "MB a node");
    for cipher in catalog::all().into_iter().filter(|cipher| cipher.key_bytes > 0 && cipher.tweak_bytes == 0)
    {
        if !chosen.is_empty() && !chosen.contains(&cipher.name) {
            continue;
        }
        let mib: usize = if cipher.name == "3des-ede3" { 16 } else { 1 };
        nodes.most_bytes()?;
        // A key with blocks of 8 bytes may encrypt 8 MiB: as many keys as it takes, and others to decrypt and
        // for eight clients.
        let budget_blocks = if cipher.block_bytes < 16 { 1 << 20 } else { 1 << 32 };
        let new_key =
            |name: &str| client.generate(NewKey::for_modes(name, &cipher.name, &[Mode::Ctr], budget_blocks));
        let began = Instant::now();
        let mut making = Duration::ZERO;
        for part in 0..mib.div_ceil(8) {
            let (name, made) = (format!("{}-one-{part}", cipher.name), Instant::now());
            new_key(&name)?;
            making += made.elapsed();
            encrypt(&client, &name, mib.min(8) * MIB)?;
        }
        let one = began.elapsed() - making;
        let keys: Vec<String> = (0..CLIENTS).map(|i| format!("{}-of-eight-{i}", cipher.name)).collect();
        keys.iter().try_for_each(|name| new_key(name).map(drop))?;
        let began = Instant::now();
        scope(|scope| {
            let threads: Vec<_> = keys
                .iter()
                .map(|name| {
                    let client = &client;
                    scope.spawn(move || {
                        let bytes = mib * MIB / CLIENTS;
                        let (counter, ciphertext) = encrypt(client, name, bytes)?;
                        let back = client.key(name)?.ctr().decrypt(&counter, &ciphertext)?;
                        if back[..] != data(bytes) {
                            Err("decrypted to something else")?
                        }
                        Outcome::Ok(())
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread failed")?)
        })?;
        let eight = began.elapsed();
        let most = nodes.most_bytes()?;
        let rate = |times: f64, time: Duration| times * (mib * MIB) as f64 / 1e6 / time.as_secs_f64();
        let (one, eight) = (rate(1.0, one), rate(2.0, eight));
        println!("{:16} {mib:>6} {one:>12.3} {eight:>12.3} {:>10.0}", cipher.name, most as f64 / 1e6);
        if most >= MAX_BYTES {
            too_large.push(cipher.name);
        }
    }
    match too_large.is_empty() {
        true => Ok(()),
        false => Err(format!("a node held {MAX_BYTES} bytes or more with {}", too_large.join(", ")).into()),
    }
}

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// The first counter block, and the ciphertext.
fn encrypt(client: &Client, key: &str, bytes: usize) -> Outcome<(Vec<u8>, Vec<u8>)> {
    let mut counter = client.key(key)?.ctr().encrypt(&data(bytes))?;
    let ciphertext = counter.split_off(16);
    Ok((counter, ciphertext))
}
