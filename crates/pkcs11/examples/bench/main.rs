//! How fast a program of PKCS#11 is: a table for docs/use/pkcs11.md.
//!
//! ```text
//! cargo run --release -p polyclave-pkcs11 --example bench                     three nodes of its own, started for this
//! cargo run --release -p polyclave-pkcs11 --example bench -- --cluster DIR --pin PIN    of `cluster new DIR`, running, its client sealed
//! ```
//!
//! `--json` prints one object. `--only PART` measures one part: start, blocks, threads, megabyte, sessions,
//! objects or memory. `--quick-login` seals as the option of `polyclave client seal` does, which takes a PIN
//! of 20 bytes or more. `--operations`, `--sessions`, `--objects` and `--rounds` say how much.
//! `--module FILE` takes another build of the library, for example an older one.
//!
//! The nodes and the library are in processes of their own, so that threads and memory are those of a program
//! alone.
#![allow(unsafe_code, reason = "it calls the library as programs do")]

mod measures;
mod module;
mod nodes;
mod report;

use std::path::PathBuf;

use nodes::{Nodes, serve};
use report::Report;

/// Any error: it is printed, and ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What is measured, and how much of it.
struct Plan {
    module: PathBuf,
    cluster: Option<PathBuf>,
    pin: String,
    only: Option<String>,
    json: bool,
    rounds: usize,
    sessions: usize,
    objects: usize,
    operations: usize,
    /// Whether its own client is sealed for quick logins.
    is_quick: bool,
}

impl Plan {
    fn read(mut arguments: impl Iterator<Item = String>) -> Outcome<Plan> {
        let mut plan = Plan {
            module: PathBuf::new(),
            cluster: None,
            pin: "a user's PIN of the bench".into(),
            only: None,
            json: false,
            rounds: 300,
            sessions: 10_000,
            objects: 1_000,
            operations: 10_000,
            is_quick: false,
        };
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match name.as_str() {
                "--json" => plan.json = true,
                "--quick-login" => plan.is_quick = true,
                "--module" => plan.module = std::path::absolute(value()?)?,
                "--cluster" => plan.cluster = Some(std::path::absolute(value()?)?),
                "--pin" => plan.pin = value()?,
                "--only" => plan.only = Some(value()?),
                "--rounds" => plan.rounds = value()?.parse::<usize>()?.max(1),
                "--sessions" => plan.sessions = value()?.parse::<usize>()?.max(1),
                "--objects" => plan.objects = value()?.parse::<usize>()?.max(1),
                "--operations" => plan.operations = value()?.parse::<usize>()?.max(10),
                other => {
                    return Err(format!(
                        "no option {other}; see the head of crates/pkcs11/examples/bench/main.rs"
                    )
                    .into());
                }
            }
        }
        if plan.module.as_os_str().is_empty() {
            plan.module = beside()?;
        }
        Ok(plan)
    }

    fn has(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

/// The library of the same build.
fn beside() -> Outcome<PathBuf> {
    let own = std::env::current_exe()?;
    let dir = own.parent().and_then(|examples| examples.parent()).ok_or("this program is in no directory")?;
    let name = "libpolyclave_pkcs11.so";
    let places = [dir.join("deps").join(name), dir.join(name)];
    Ok(places
        .into_iter()
        .find(|path| path.exists())
        .ok_or("the library was not built; name it with --module")?)
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    // The two parts of this program that run in processes of their own.
    match arguments.peek().map(String::as_str) {
        Some("serve") => return serve(&arguments.nth(1).ok_or("serve DIR")?),
        Some("start") => {
            let message: Vec<String> = arguments.skip(1).collect();
            let [module, pin] = message.as_slice() else { return Err("start MODULE PIN".into()) };
            return measures::start_once(module.as_ref(), pin);
        }
        _ => {}
    }
    let plan = Plan::read(arguments)?;
    let nodes = Nodes::start(&plan)?;
    let mut report = Report::new();
    measures::all(&plan, &nodes, &mut report)?;
    report.print(plan.json);
    Ok(())
}
