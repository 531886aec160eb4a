//! How fast KMS of AWS is served: the figures of docs/use/xks.md.
//!
//! ```text
//! cargo run --release -p polyclave-gateway --example xks-bench [PROTOCOL]     `replicated` if none is given
//! ```
//!
//! Three nodes, the gateway with TLS and those who ask it are on one machine, the nodes in a process of their
//! own. Each of eight clients has one connection of TLS that stays open, as KMS has, and signs every request.
//! `encrypt with CDIV` is what KMS asks for when it makes a data key: an encryption and a decryption.

#[path = "../gateway-bench/nodes.rs"]
mod nodes;
#[path = "../../tests/it/common/sign.rs"]
mod sign;
mod signed;
#[expect(dead_code, reason = "a connection is opened otherwise here")]
#[path = "../gateway-flood/tls.rs"]
mod tls;

use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey, Right};
use polyclave_client::Client;
use polyclave_config::ClientDir;
use polyclave_gateway::{Running, make_access_key, make_certificate};

use nodes::{Nodes, serve};
use signed::Connection;

/// Any error: it is printed, and ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How long nodes have before they are asked: under `replicated-active` they first make what their standby
/// pairs keep in stock, and share the key with them.
const REST: Duration = Duration::from_secs(60);
/// Clients that ask at once, and for how long.
const CLIENTS: usize = 8;
const WARM_UP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(10);

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("serve") => serve(&arguments.next().ok_or("serve needs a directory")?),
        protocol => measure(protocol.unwrap_or("replicated")),
    }
}

fn measure(protocol: &str) -> Outcome<()> {
    let nodes = Nodes::start(protocol)?;
    let client = Client::open(&ClientDir::open(&nodes.client)?)?;
    client.generate(NewKey::for_modes("orders", "aes-256", &[Mode::Gcm], 1 << 32))?;
    let at = |name: &str| nodes.dir().join(name);
    let (certificate, key) = make_certificate(&["localhost".into()], 1)?;
    std::fs::write(at("tls.crt"), &certificate)?;
    polyclave_config::private::write(&at("tls.key"), key.as_bytes())?;
    let rights = [Right::Encrypt, Right::Decrypt];
    let (secret, entry) = make_access_key("kms", &rights, &["orders".into()], &at("kms.secret"))?;
    polyclave_config::private::write(&at("kms.secret"), secret.as_bytes())?;
    let text = format!(
        "client = {:?}\n[[listener]]\naddress = \"127.0.0.1:0\"\ncertificate = \"tls.crt\"\nkey = \"tls.key\"\n\
         [[xks]]\npath = \"/kms/xks/v1\"\nanswer_ms = 5000\n[[xks.key]]\nid = \"orders\"\nkey = \"orders\"\n{}",
        nodes.client,
        entry.to_text()
    );
    std::fs::write(at("gateway.toml"), text)?;
    let gateway = Running::start(&at("gateway.toml"))?;
    let address = gateway.addresses()[0];
    let open = || Connection::open(address, (&entry.id, &secret));
    println!(
        "| {protocol}, {CLIENTS} clients over TLS | a second | p50 | p99 | over 250 ms |\n|---|---|---|---|---|"
    );
    let sealed = open()?.encrypt(false)?;
    std::thread::sleep(REST);
    row("encrypt 32 bytes", &open, |connection| connection.encrypt(false).map(drop))?;
    row("encrypt 32 bytes with CDIV", &open, |connection| connection.encrypt(true).map(drop))?;
    row("decrypt 32 bytes", &open, |connection| connection.decrypt(&sealed))
}

/// Prints what clients meet that ask for the same all the time.
fn row(
    what: &str,
    open: &(impl Fn() -> Outcome<Connection> + Sync),
    ask: impl Fn(&mut Connection) -> Outcome<()> + Sync,
) -> Outcome<()> {
    let began = Instant::now();
    let work = || -> Outcome<Vec<Duration>> {
        let (mut connection, mut times) = (open()?, Vec::new());
        while began.elapsed() < WARM_UP + MEASURED {
            let asked = Instant::now();
            ask(&mut connection)?;
            if asked >= began + WARM_UP {
                times.push(asked.elapsed());
            }
        }
        Ok(times)
    };
    let times = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect::<Outcome<Vec<_>>>()
    })?;
    let mut times = times.concat();
    times.sort_unstable();
    let part = |hundredths: usize| times[(times.len() - 1) * hundredths / 100].as_secs_f64() * 1e3;
    let late = times.iter().filter(|time| **time > Duration::from_millis(250)).count();
    let a_second = times.len() as f64 / MEASURED.as_secs_f64();
    println!(
        "| {what} | {a_second:.0} | {:.1} ms | {:.1} ms | {late} of {} |",
        part(50),
        part(99),
        times.len()
    );
    Ok(())
}
