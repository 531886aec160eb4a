//! Machines that are directories of one host, or layers over it with the package (`installed.rs`), and what
//! is replaced in commands so that they run there.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Output, Stdio};
use std::time::{Duration, Instant};

use super::installed::{self, Installed};
use super::page::{Command, Group};
use crate::common::free_range;

/// Ports of each machine. The first stands for port 7000 of the page.
const PORTS: u16 = 24;
const FIRST: u16 = 7000;
/// Directories of the page that are directories of a machine.
const DIRECTORIES: [&str; 5] = ["/var/lib/", "/srv/", "/etc/", "/media/", "/root/"];
/// Where pages find `examples/`.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What stands on the page for a fingerprint.
const FINGERPRINT: &str = "'acorn zigzag ..'";
/// Commands that only ask, or that change nothing as long as a node has not read what its operator wrote.
/// What they answer may need a moment.
const QUESTIONS: [&str; 9] = [
    "node status",
    "client status",
    "client rotate ~/.polyclave --finish",
    "key list",
    "key show",
    "cluster show",
    "audit verify",
    "policy check",
    "curl ",
];

/// A command that goes on beside others.
struct GoesOn {
    text: String,
    child: Child,
    /// Whether it ends by itself.
    ends: bool,
}

/// The machines of a page, each made when it is named first.
pub struct Machines {
    root: tempfile::TempDir,
    /// If the package is installed on them. Otherwise they are directories in `root`.
    installed: Option<Installed>,
    /// By machine: what stands for port 7000.
    ports: RefCell<HashMap<String, u16>>,
    nodes: HashMap<String, Child>,
    /// By machine: the fingerprint of the cluster file that was defined or updated there last.
    fingerprints: HashMap<String, String>,
    patience: Duration,
}

impl Machines {
    /// What a command prints that only asks, and one that goes on, is waited for as long.
    pub fn new(patience: Duration) -> Machines {
        let root = tempfile::tempdir().expect("a temporary directory");
        let (installed, ports, nodes, fingerprints) = Default::default();
        Machines { root, installed, ports, nodes, fingerprints, patience }
    }

    /// The same with the package on each machine.
    pub fn installed(installed: Installed, patience: Duration) -> Machines {
        let mut machines = Machines::new(patience);
        machines.installed = Some(installed);
        machines
    }

    /// Runs the commands of a block. What goes on is ended afterwards.
    pub fn run(&mut self, groups: &[Group]) -> Result<(), String> {
        let mut going_on = Vec::new();
        let outcome = groups.iter().try_for_each(|group| {
            group.machines.iter().try_for_each(|machine| {
                group.commands.iter().try_for_each(|command| {
                    self.command(machine, command, &mut going_on)
                        .map_err(|e| format!("line {}, on {machine}: {}: {e}", command.line, command.text))
                })
            })
        });
        going_on.into_iter().fold(outcome, |outcome, child| outcome.and(self.finish(child)))
    }

    /// The ends of what the nodes logged.
    pub fn logs(&self) -> String {
        let log = |name: &String| {
            let text = fs::read_to_string(self.home(name).join("journal")).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("-- {name}:\n{}\n", lines[lines.len().saturating_sub(15)..].join("\n"))
        };
        self.nodes.keys().map(log).collect()
    }

    fn home(&self, machine: &str) -> PathBuf {
        match &self.installed {
            Some(installed) => installed.root(machine).join(&installed::home(machine)[1..]),
            None => self.root.path().join(machine),
        }
    }

    /// Makes a machine when it is named first.
    fn prepare(&self, machine: &str) -> Result<(), String> {
        match &self.installed {
            Some(installed) => installed.machine(machine),
            None => DIRECTORIES.iter().try_for_each(|directory| {
                fs::create_dir_all(self.home(machine).join(&directory[1..])).map_err(|e| e.to_string())
            }),
        }
    }

    fn command(
        &mut self,
        machine: &str,
        command: &Command,
        going_on: &mut Vec<GoesOn>,
    ) -> Result<(), String> {
        self.prepare(machine)?;
        let words: Vec<&str> = command.text.split_whitespace().collect();
        match &words[..] {
            ["systemctl", order, "polyclave-node"] => return self.service(machine, order),
            ["scp", from, to] => return self.copy(machine, from, to),
            _ => {}
        }
        let text = self.replaced(machine, &command.text);
        if let Some(text) = text.strip_suffix('&') {
            let ends = command.prints.is_empty();
            return self
                .start(machine, text, command)
                .map(|child| going_on.push(GoesOn { text: command.text.clone(), child, ends }));
        }
        let asks = QUESTIONS.iter().any(|question| command.text.contains(question));
        let until = Instant::now() + if asks { self.patience } else { Duration::ZERO };
        loop {
            let output = self.shell(machine, &text).output().map_err(|e| e.to_string())?;
            let message = message_of(&output);
            match self.judged(machine, command, output.status.success(), &message) {
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(300)),
                Err(e) => return Err(format!("{e}\n{message}")),
                Ok(()) => {
                    self.note_fingerprint(machine, &command.text, &message);
                    return Ok(());
                }
            }
        }
    }

    fn judged(&self, machine: &str, command: &Command, succeeded: bool, message: &str) -> Result<(), String> {
        if succeeded != command.refuses.is_empty() {
            return Err(if succeeded { "it should fail" } else { "it failed" }.into());
        }
        let expected = command.prints.iter().chain(&command.refuses);
        let mut lacking = expected.filter(|expected| !has_line(message, &self.replaced(machine, expected)));
        lacking.next().map_or(Ok(()), |lacking| Err(format!("it does not print `{lacking}`")))
    }

    /// A command that goes on until the end of the block.
    fn start(&self, machine: &str, text: &str, command: &Command) -> Result<Child, String> {
        let log = self.home(machine).join(format!("line-{}", command.line));
        // A command in the same line of another page may have left one.
        let _ = fs::remove_file(&log);
        let file = || File::options().create(true).append(true).open(&log).expect("a file");
        let mut process = self.shell(machine, &format!("exec {text}"));
        let child = process.stdout(file()).stderr(file()).spawn().map_err(|e| e.to_string())?;
        let until = Instant::now() + self.patience;
        loop {
            let message = fs::read_to_string(&log).unwrap_or_default();
            match self.judged(machine, command, true, &message) {
                Ok(()) => return Ok(child),
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(100)),
                Err(e) => {
                    end(child);
                    return Err(format!("{e}\n{message}"));
                }
            }
        }
    }

    /// Ends what goes on, or waits until it has ended by itself in success.
    fn finish(&self, GoesOn { text, mut child, ends }: GoesOn) -> Result<(), String> {
        if !ends {
            end(child);
            return Ok(());
        }
        let until = Instant::now() + self.patience;
        loop {
            match child.try_wait().map_err(|e| e.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{text}: it has failed: {status}")),
                None if Instant::now() > until => {
                    end(child);
                    return Err(format!("{text}: it does not end"));
                }
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// As the unit does it.
    fn service(&mut self, machine: &str, order: &str) -> Result<(), String> {
        if !["start", "stop", "restart"].contains(&order) {
            return Err("the test can start, stop and restart".into());
        }
        let running = self.nodes.remove(machine);
        match (order, &running) {
            ("start", Some(_)) => return Err("it runs already".into()),
            ("stop", None) => return Err("it does not run".into()),
            _ => running.into_iter().for_each(end),
        }
        if order == "stop" {
            return Ok(());
        }
        let journal = self.home(machine).join("journal");
        let file = || File::options().create(true).append(true).open(&journal).expect("a file");
        let mut process = match &self.installed {
            Some(installed) => installed.unit(machine),
            None => {
                self.shell(machine, &self.replaced(machine, "exec polyclave node run /var/lib/polyclave"))
            }
        };
        let child = process.stdout(file()).stderr(file()).spawn().map_err(|e| e.to_string())?;
        self.nodes.insert(machine.into(), child);
        Ok(())
    }

    fn copy(&self, machine: &str, from: &str, to: &str) -> Result<(), String> {
        let path = |place: &str| {
            let (host, path) = place.split_once(':').unwrap_or((machine, place));
            let machine = host.strip_suffix(".example").unwrap_or(host);
            match (&self.installed, path.strip_prefix('/')) {
                (Some(installed), Some(path)) => installed.root(machine).join(path),
                _ => self.home(machine).join(self.replaced(machine, path)),
            }
        };
        let (from, to) = (path(from), path(to));
        fs::copy(&from, &to).map(drop).map_err(|e| format!("{}: {e}", from.display()))
    }

    fn shell(&self, machine: &str, text: &str) -> Process {
        if let Some(installed) = &self.installed {
            let mut process = installed.shell(machine, text);
            process.stdin(Stdio::null());
            return process;
        }
        let home = self.home(machine);
        let program = Path::new(env!("CARGO_BIN_EXE_polyclave"));
        let programs = program.parent().expect("in a directory").display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let mut process = Process::new("bash");
        process
            .args(["-euo", "pipefail", "-c", text])
            .current_dir(&home)
            .env("HOME", &home)
            .env("PATH", path)
            .env("POLYCLAVE_CLIENT", home.join(".polyclave"))
            .stdin(Stdio::null());
        process
    }

    fn note_fingerprint(&mut self, machine: &str, text: &str, message: &str) {
        let fingerprint = message.lines().find_map(|line| line.trim_start().strip_prefix("fingerprint "));
        if let Some(fingerprint) = fingerprint.filter(|_| text.starts_with("polyclave cluster ")) {
            self.fingerprints.insert(machine.into(), fingerprint.trim().into());
        }
    }

    /// A text of the page as it has to be on a machine.
    fn replaced(&self, machine: &str, text: &str) -> String {
        let fingerprint = self.fingerprints.get(machine).or_else(|| self.fingerprints.get("alice"));
        let mut text = match fingerprint {
            Some(fingerprint) => text.replace(FINGERPRINT, fingerprint),
            None => text.into(),
        };
        if self.installed.is_none() {
            let home = self.home(machine);
            for directory in DIRECTORIES {
                text = text.replace(directory, &format!("{}{directory}", home.display()));
            }
        }
        text = text.replace("examples/", &format!("{SOURCES}/examples/"));
        self.with_ports(machine, &text)
    }

    fn first_port(&self, machine: &str) -> u16 {
        *self.ports.borrow_mut().entry(machine.into()).or_insert_with(|| free_range(PORTS))
    }

    fn with_ports(&self, machine: &str, text: &str) -> String {
        let is_of_host = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        let mut done = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(':') {
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            let host = &before[before.rfind(|c| !is_of_host(c)).map_or(0, |i| i + 1)..];
            let digits = &after[..after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())];
            let of = match host {
                "0.0.0.0" | "127.0.0.1" => Some(machine),
                host => host.strip_suffix(".example"),
            };
            match of.zip(digits.parse::<u16>().ok()) {
                Some((machine, port)) if (FIRST..FIRST + PORTS).contains(&port) => {
                    let port = self.first_port(machine) + port - FIRST;
                    done += &format!("{}127.0.0.1:{port}", &before[..before.len() - host.len()]);
                    rest = &after[digits.len()..];
                }
                _ => {
                    done += &rest[..=at];
                    rest = after;
                }
            }
        }
        done + rest
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.nodes.drain().for_each(|(_, child)| end(child));
    }
}

/// Asks a process that was started here to end, and waits for it.
fn end(mut child: Child) {
    // It may have ended.
    let _ = Process::new("kill").arg(child.id().to_string()).stderr(Stdio::null()).status();
    let until = Instant::now() + Duration::from_secs(30);
    while child.try_wait().is_ok_and(|status| status.is_none()) {
        if Instant::now() > until {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn message_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Whether a line has a text in it, in which `..` stands for anything.
fn has_line(message: &str, expected: &str) -> bool {
    message.lines().any(|line| {
        let mut rest = line;
        expected.split("..").all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    })
}
