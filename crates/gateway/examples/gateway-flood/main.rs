//! Floods of a gateway, and what becomes of another caller meanwhile: a table for docs/use/vault.md.
//!
//! ```text
//! cargo run --release -p polyclave-gateway --example gateway-flood [PART]     only floods whose name has this part
//! ```
//!
//! Three nodes, the gateway, and all callers are on one machine. So floods also take processors from the one
//! who is measured. Nodes, gateway, flood and the one who is measured are processes with sessions of their
//! own, among which Linux divides processors evenly, as if each were a machine. Quiet times and times under a
//! flood alternate, since the machine may have other work: only their ratio counts.

mod doors;
mod floods;
#[expect(dead_code, reason = "nothing is decrypted here")]
#[path = "../gateway-bench/kms.rs"]
mod kms;
mod measured;
#[path = "../gateway-bench/nodes.rs"]
mod nodes;
mod tls;
#[expect(dead_code, reason = "nothing is decrypted here")]
#[path = "../gateway-bench/transit.rs"]
mod transit;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey, Right};
use polyclave_client::Client;
use polyclave_config::{ClientDir, TOKEN_RIGHTS};
use polyclave_gateway::{Running, make_certificate, make_token};

use floods::{FLOODS, Flood, Target};
use measured::Measured;
use nodes::{Nodes, serve};
use transit::Connection;

/// Any error: it is printed, and ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How often quiet and flood alternate, and how long each lasts.
const ROUNDS: usize = 3;
const QUIET: Duration = Duration::from_secs(2);
const FLOODED: Duration = Duration::from_secs(5);
/// What a flood takes to begin, and to be over.
const BETWEEN: Duration = Duration::from_secs(1);

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("serve"), Some(dir)) => apart().and_then(|()| serve(&dir)),
        (Some("gateway"), Some(file)) => apart().and_then(|()| gateway(&file)),
        (Some("flood"), Some(file)) => apart().and_then(|()| flood(&file)),
        (part, None) => measure(part.unwrap_or_default()),
        _ => Err("it takes a part of the name of a flood".into()),
    }
}

/// Makes this process a session of its own.
fn apart() -> Outcome<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Floods what a file says until standard input ends, and prints how many answers it had.
fn flood(file: &str) -> Outcome<()> {
    let target = Target::read(Path::new(file))?;
    let flood = FLOODS.iter().find(|flood| flood.what == target.what).ok_or("there is no such flood")?;
    std::thread::scope(|scope| {
        scope.spawn(|| (flood.run)(&target));
        let ended = std::io::stdin().read_to_end(&mut Vec::new());
        target.stop.store(true, Relaxed);
        ended
    })?;
    println!("{}", target.answers.load(Relaxed));
    Ok(())
}

/// Runs the gateway of a file until standard input ends.
fn gateway(file: &str) -> Outcome<()> {
    let running = Running::start(Path::new(file))?;
    println!("{} {}", running.addresses()[0], running.addresses()[1]);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(running);
    Ok(())
}

/// A gateway in a process of its own, until this is dropped.
struct Gateway {
    child: Child,
    plain: SocketAddr,
    tls: SocketAddr,
}

impl Gateway {
    fn start(file: &Path) -> Outcome<Gateway> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child =
            command.arg("gateway").arg(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut message = String::new();
        BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut message)?;
        let (plain, tls) = message.trim().split_once(' ').ok_or("it did not start")?;
        Ok(Gateway { child, plain: plain.parse()?, tls: tls.parse()? })
    }

    /// What the system says of its memory, in MB.
    fn memory(&self, name: &str) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("it is told")?;
        let kib: u64 = line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB").parse()?;
        Ok(kib * 1024 / 1_000_000)
    }

    /// Processor time that it has taken so far.
    fn processor(&self) -> Outcome<Duration> {
        let message = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = message.rsplit(')').next().ok_or("it is told")?.split_whitespace().collect();
        // `utime` and `stime`, in hundredths of a second on Linux.
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        Ok(Duration::from_millis(10 * ticks))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It stops when its input ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn measure(part: &str) -> Outcome<()> {
    let nodes = Nodes::start("shamir")?;
    let client = Client::open(&ClientDir::open(&nodes.client)?)?;
    client.generate(NewKey::for_modes("kubernetes", "aes-256", &[Mode::Gcm], 1 << 32))?;
    let all = ["*".to_owned()];
    let (honest, entry) = make_token("bench", &TOKEN_RIGHTS, &all)?;
    let (bad, bad_entry) = make_token("flood", &[Right::Encrypt, Right::Observe, Right::List], &all)?;
    let [file, socket, certificate, key] =
        ["gateway.toml", "kms.sock", "tls.crt", "tls.key"].map(|name| nodes.dir().join(name));
    let (made, private) = make_certificate(&["localhost".into()], 1)?;
    std::fs::write(&certificate, made)?;
    std::fs::write(&key, private.as_bytes())?;
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))?;
    let text = format!(
        "client = {:?}\n\n[[listener]]\naddress = \"127.0.0.1:0\"\n\n[[listener]]\naddress = \"127.0.0.1:0\"\ncertificate = \"tls.crt\"\n\
         key = \"tls.key\"\n\n[[kms]]\nname = \"api-server\"\nsocket = \"kms.sock\"\nkey = \"kubernetes\"\n\n{}\n{}",
        nodes.client,
        entry.to_text(),
        bad_entry.to_text()
    );
    std::fs::write(&file, text)?;
    let begun = Gateway::start(&file)?;
    Connection::open(begun.plain, &honest)?.post("/v1/transit/keys/bench", "{}")?;
    drop(begun);
    println!(
        "| flood | encryption: quiet | under it: median (times as long), longest | answer without nodes: quiet | under it | not served | the flood's answers a second | processor of the gateway | most memory | 5 s later |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for flood in FLOODS.iter().filter(|flood| flood.what.contains(part)) {
        let gateway = Gateway::start(&file)?;
        let said = nodes.dir().join("flood");
        let [plain, tls] = [gateway.plain, gateway.tls].map(|address| address.to_string());
        let message = [flood.what, &plain, &tls, &socket.display().to_string(), &bad].join("\n");
        std::fs::write(&said, message)?;
        println!("{}", row(flood, &gateway, &said, &honest)?);
    }
    Ok(())
}

/// Quiet times and times under one flood, alternately.
fn row(flood: &Flood, gateway: &Gateway, said: &Path, honest: &str) -> Outcome<String> {
    let address = if flood.is_of_tls { gateway.tls } else { gateway.plain };
    let new = || Measured::new(address, honest, flood.is_of_tls);
    let (mut quiet, mut under, mut took, mut answers) = (new(), new(), Duration::ZERO, 0);
    let mut lasted = Duration::ZERO;
    for _ in 0..ROUNDS {
        quiet.ask_for(QUIET);
        let before = gateway.processor()?;
        let began = Instant::now();
        let mut flooding = Command::new(std::env::current_exe()?);
        let mut flooding =
            flooding.arg("flood").arg(said).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        std::thread::sleep(BETWEEN);
        under.ask_for(FLOODED);
        // It stops when its input ends.
        drop(flooding.stdin.take());
        let message = flooding.wait_with_output()?.stdout;
        answers += std::str::from_utf8(&message)?.trim().parse::<usize>()?;
        took += gateway.processor()? - before;
        lasted += began.elapsed();
        std::thread::sleep(BETWEEN);
    }
    std::thread::sleep(5 * BETWEEN);
    let (most, later) = (gateway.memory("VmHWM")?, gateway.memory("VmRSS")?);
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let times = |quiet: Duration, under: Duration| under.as_secs_f64() / quiet.as_secs_f64();
    let (encryption, own) = ((quiet.encryption(), under.encryption()), (quiet.own(), under.own()));
    Ok(format!(
        "| {} | {} | {} ({:.1}), {} | {} | {} ({:.1}) | {} | {:.1} | {:.0} % | {most} MB | {later} MB |",
        flood.what,
        ms(encryption.0.0),
        ms(encryption.1.0),
        times(encryption.0.0, encryption.1.0),
        ms(encryption.1.1),
        ms(own.0.0),
        ms(own.1.0),
        times(own.0.0, own.1.0),
        quiet.failed + under.failed,
        answers as f64 / lasted.as_secs_f64(),
        took.as_secs_f64() / lasted.as_secs_f64() * 100.0,
    ))
}
