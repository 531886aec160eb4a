//! How fast a gateway is, over three nodes under `shamir`: a table for docs/use/vault.md.
//!
//! ```text
//! cargo run --release -p polyclave-gateway --example gateway-bench    --json prints one object
//! ```
//!
//! The nodes are in a process of their own. The gateway and those who ask it are in this one, which makes the
//! gateway slower, not faster.

mod kms;
mod nodes;
mod transit;

use std::net::TcpStream;
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey};
use polyclave_client::Client;
use polyclave_config::{ClientDir, TOKEN_RIGHTS};
use polyclave_gateway::{Running, make_token};

use kms::Kms;
use nodes::{Nodes, serve};
use transit::Connection;

/// Any error: it is printed, and ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Requests of which the median is taken.
const ROUNDS: usize = 300;
/// Clients that ask at once, and for how long.
const CLIENTS: usize = 8;
const SECONDS: u64 = 10;
/// Values of one request for tokens.
const BATCH: usize = 1000;
/// What the gateway tokenizes.
const TRANSFORM: &str = r#"
[[transform.role]]
name = "bench"
transformations = ["email"]

[[transform.transformation]]
name = "email"
key = "tokens"
template = "builtin/email"
tweak_source = "internal"
"#;
/// The key of the KMS.
const KEY: &str = "kubernetes";

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("serve") => serve(&arguments.next().ok_or("serve needs a directory")?),
        None => measure(false),
        Some("--json") => measure(true),
        Some(other) => Err(format!("no option {other}; there is --json").into()),
    }
}

fn measure(json: bool) -> Outcome<()> {
    let nodes = Nodes::start("shamir")?;
    let client = Client::open(&ClientDir::open(&nodes.client)?)?;
    client.generate(NewKey::for_modes(KEY, "aes-256", &[Mode::Gcm], 1 << 32))?;
    client.generate(NewKey::for_modes("tokens", "aes-256", &[Mode::Ff1], 1 << 32))?;
    let (token, entry) = make_token("bench", &TOKEN_RIGHTS, &["*".into()])?;
    let (file, socket) = (nodes.dir().join("gateway.toml"), nodes.dir().join("kms.sock"));
    let text = format!(
        "client = {:?}\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[kms]]\nname = \"api-server\"\nsocket = {socket:?}\nkey = {KEY:?}\n{TRANSFORM}\n{}",
        nodes.client,
        entry.to_text()
    );
    std::fs::write(&file, text)?;
    let gateway = Running::start(&file)?;
    let address = gateway.addresses()[0];
    let mut one = Connection::open(address, &token)?;
    one.post("/v1/transit/keys/bench", "{}")?;
    let encrypt = median(ROUNDS, || one.encrypt(32).map(drop))?;
    let ciphertext = one.encrypt(32)?;
    let decrypt = median(ROUNDS, || one.decrypt(&ciphertext))?;
    let mib = median(5, || one.encrypt(1 << 20).map(drop))?;
    let items = (0..BATCH).map(|n| serde_json::json!({ "value": format!("user{n:04}@example.org") }));
    let batch = serde_json::json!({ "batch_input": items.collect::<Vec<_>>() }).to_string();
    let tokenize = median(20, || one.post("/v1/transform/encode/bench", &batch).map(drop))?;
    let at_once = at_once(|| Connection::open(address, &token))?;
    let kms = Kms::connect(&socket)?;
    let kms_encrypt = median(ROUNDS, || kms.encrypt(&[7; 32]).map(drop))?;
    let encrypted = kms.encrypt(&[7; 32])?;
    let kms_decrypt = median(ROUNDS, || kms.decrypt(&encrypted))?;
    drop(nodes);
    let began = Instant::now();
    if kms.encrypt(&[7; 32]).is_ok() {
        return Err("it encrypted without nodes".into());
    }
    let gone = began.elapsed();
    let rows = [
        ("transit, encrypt 32 bytes, one client (median of 300)", ms(encrypt), "6 ms"),
        ("transit, decrypt 32 bytes, one client (median of 300)", ms(decrypt), ""),
        ("transit, encrypt 1 MiB, one client (median of 5)", ms(mib), ""),
        ("transit, encrypt 32 bytes, eight clients", format!("{at_once:.0} a second"), "300 a second"),
        ("transform, encode a batch of 1,000 (median of 20)", ms(tokenize), "200 ms"),
        ("KMS, encrypt 32 bytes (median of 300)", ms(kms_encrypt), "20 ms"),
        ("KMS, decrypt 32 bytes (median of 300)", ms(kms_decrypt), "20 ms"),
        ("KMS, an error when all nodes are gone", ms(gone), "3 s"),
    ];
    match json {
        true => {
            let fields =
                rows.iter().map(|(what, figure, _)| ((*what).to_owned(), figure.clone().into())).collect();
            println!("{}", serde_json::Value::Object(fields));
        }
        false => {
            println!("| what | measured | wanted |\n|---|---|---|");
            rows.iter().for_each(|(what, figure, wanted)| println!("| {what} | {figure} | {wanted} |"));
        }
    }
    Ok(())
}

fn ms(took: Duration) -> String {
    format!("{:.1} ms", took.as_secs_f64() * 1e3)
}

/// The median time of something, after it was done a few times.
fn median(rounds: usize, mut work: impl FnMut() -> Outcome<()>) -> Outcome<Duration> {
    for _ in 0..rounds.min(20) {
        work()?;
    }
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        work()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[rounds / 2])
}

/// Encryptions of eight clients in a second.
fn at_once(open: impl Fn() -> Outcome<Connection<TcpStream>> + Sync) -> Outcome<f64> {
    let began = Instant::now();
    let until = began + Duration::from_secs(SECONDS);
    let work = || -> Outcome<u64> {
        let (mut connection, mut count) = (open()?, 0);
        while Instant::now() < until {
            connection.encrypt(32)?;
            count += 1;
        }
        Ok(count)
    };
    let counts = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect::<Outcome<Vec<u64>>>()
    })?;
    Ok(counts.iter().sum::<u64>() as f64 / began.elapsed().as_secs_f64())
}
