//! The program as a person runs it, in a directory of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How many processors nodes count on that are killed. They make material on half as many streams, whatever
/// the machine has.
const PROCESSORS: usize = 8;
/// Whatever should happen happens in this time, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory in which commands run; gone when dropped.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect("written");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Sets the levels of the stock of a node, which has none of its own.
    pub fn set_stock(&self, node: usize, aes_blocks: usize, des_blocks: usize) {
        self.set_stock_of(&format!("node-{node}"), aes_blocks, des_blocks);
    }

    /// The same for the worker of a directory.
    pub fn set_stock_of(&self, dir: &str, aes_blocks: usize, des_blocks: usize) {
        let path = format!("try/{dir}/node.toml");
        let settings = String::from_utf8(self.read(&path)).expect("it is text");
        let levels = format!("[stock]\naes_blocks = {aes_blocks}\ndes_blocks = {des_blocks}\n");
        let set = settings.replace("[stock]\n", &levels);
        assert_ne!(set, settings, "there is a place for them");
        self.write(&path, set.as_bytes());
    }

    /// Makes a node compute few blocks at a time through garbled circuits, of which it keeps so many, however
    /// near the others are.
    pub fn set_far(&self, node: usize, circuits: usize) {
        let path = format!("try/node-{node}/node.toml");
        let settings = String::from_utf8(self.read(&path)).expect("it is text");
        let usual = format!("from_ms = {}\n", polyclave_config::LatencySettings::FROM_MS);
        let set = settings.replace(&usual, &format!("from_ms = 0\ncircuits = {circuits}\n"));
        assert_ne!(set, settings, "there is a place for it");
        self.write(&path, set.as_bytes());
    }

    /// Sets how many processors the node of a directory counts on.
    pub fn set_processors(&self, dir: &str, processors: usize) {
        let path = format!("try/{dir}/node.toml");
        let settings = String::from_utf8(self.read(&path)).expect("it is text");
        // Above the first table.
        self.write(&path, format!("processors = {processors}\n{settings}").as_bytes());
    }

    /// Names of all files.
    pub fn names(&self) -> Vec<String> {
        self.names_in("")
    }

    /// Names of all files in a directory.
    pub fn names_in(&self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(directory)).expect("a directory");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn command(&self, release: &Release, arguments: &str) -> Command {
        let mut command = Command::new(&release.program);
        command
            .args(arguments.split_whitespace())
            .args(ports_of_a_new_cluster(arguments))
            .current_dir(self.0.path())
            .env("POLYCLAVE_CLIENT", "try/client")
            .env("POLYCLAVE_NEXT_RELEASE", release.ahead.to_string());
        command
    }

    pub fn output(&self, arguments: &str) -> Output {
        self.output_as(&Release::this(), arguments)
    }

    /// The same with a program of another release.
    pub fn output_as(&self, release: &Release, arguments: &str) -> Output {
        self.command(release, arguments).stdin(Stdio::null()).output().expect("the program starts")
    }

    /// The error of a command that must fail with a program of another release.
    pub fn fails_as(&self, release: &Release, arguments: &str) -> String {
        let output = self.output_as(release, arguments);
        assert_eq!(output.status.code(), Some(1), "polyclave {arguments}");
        String::from_utf8(output.stderr).expect("it is text")
    }

    /// What a command that must succeed prints with a program of another release.
    pub fn run_as(&self, release: &Release, arguments: &str) -> String {
        let output = self.output_as(release, arguments);
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// What a command that must succeed prints.
    pub fn run(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "polyclave {arguments}: {error}");
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// The error of a command that must fail.
    pub fn fails(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(1), "polyclave {arguments}");
        let error = String::from_utf8(output.stderr).expect("it is text");
        assert!(error.contains("error: "), "{error}");
        error
    }

    /// What a command makes of its standard input.
    pub fn pipe(&self, arguments: &str, input: &[u8]) -> Vec<u8> {
        let mut child = self
            .command(&Release::this(), arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input).expect("it reads"));
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("written");
        assert!(output.status.success(), "polyclave {arguments}");
        output.stdout
    }

    /// Starts a command that goes on. It can read, but there is nothing to be read.
    pub fn start(&self, arguments: &str) -> Running {
        self.start_with(arguments, &[])
    }

    /// The same with further variables of the environment.
    pub fn start_with(&self, arguments: &str, variables: &[(&str, &PathBuf)]) -> Running {
        start(self.command(&Release::this(), arguments).envs(variables.iter().copied()))
    }

    /// The same with a program of another release.
    pub fn start_as(&self, release: &Release, arguments: &str) -> Running {
        start(&mut self.command(release, arguments))
    }

    /// A cluster of three nodes and a client that may do everything, running.
    pub fn cluster(&self) -> Running {
        self.run("cluster new try --parties 3 --threshold 1");
        self.cluster_again()
    }

    /// The same, once more.
    pub fn cluster_again(&self) -> Running {
        let cluster = self.start("cluster run try");
        cluster.wait_for("all 3 nodes are ready");
        cluster
    }

    /// Makes a cluster in `try` whose nodes make material on several streams. Returns how many nodes it has.
    pub fn cluster_on_several_streams(&self, options: &str) -> usize {
        self.cluster_on_several_streams_as(&Release::this(), options)
    }

    /// The same with a program of another release: settings that a later one writes are unknown to it.
    pub fn cluster_on_several_streams_as(&self, release: &Release, options: &str) -> usize {
        self.run_as(release, &format!("cluster new try {options}"));
        let nodes = self.names_in("try").iter().filter(|name| name.starts_with("node-")).count();
        (1..=nodes).for_each(|node| self.use_several_streams(node));
        nodes
    }

    /// Lets a node make material on several streams. All nodes of its cluster have to, since the one with the
    /// fewest decides.
    pub fn use_several_streams(&self, node: usize) {
        let path = format!("try/node-{node}/node.toml");
        let settings = String::from_utf8(self.read(&path)).expect("it is text");
        // Settings of the node itself stand above the first table.
        self.write(&path, format!("processors = {PROCESSORS}\n{settings}").as_bytes());
    }

    /// What is served over HTTP on a port of this host.
    pub fn fetch(&self, port: u16, path: &str) -> String {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("answered");
        answer
    }

    /// Waits until something holds.
    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn start(command: &mut Command) -> Running {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
    });
    Running { child, lines }
}

/// A program `polyclave` of a release: the one that is tested, which can pretend to be of a later release, or
/// one that was built before.
pub struct Release {
    program: PathBuf,
    /// As which release after its own it speaks.
    ahead: u8,
}

impl Release {
    /// The program that is tested.
    pub fn this() -> Release {
        Release::ahead(0)
    }

    /// The same, as if it were so many releases later.
    pub fn ahead(ahead: u8) -> Release {
        Release { program: env!("CARGO_BIN_EXE_polyclave").into(), ahead }
    }

    /// Two releases that follow each other: the one before the tested program and that program, if
    /// `POLYCLAVE_OLD_PROGRAM` names a program (`scripts/mixed-versions`); else the tested program, and itself
    /// as if it were the next release.
    pub fn two() -> (Release, Release) {
        match std::env::var_os("POLYCLAVE_OLD_PROGRAM") {
            Some(program) => (Release { program: program.into(), ahead: 0 }, Release::this()),
            None => (Release::this(), Release::ahead(1)),
        }
    }

    /// The release that it says it is.
    pub fn name(&self) -> String {
        match self.ahead {
            0 => {
                let version =
                    Command::new(&self.program).arg("--version").output().expect("it starts").stdout;
                let version = String::from_utf8_lossy(&version).into_owned();
                version.split_whitespace().nth(1).unwrap_or_default().trim_end_matches(',').into()
            }
            ahead => format!("release + {ahead}"),
        }
    }

    /// Whether it pretends to be of a release that does not exist.
    pub fn pretends(&self) -> bool {
        self.ahead > 0
    }
}

/// A command that goes on; killed when dropped.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    /// Waits until it prints a line with this in it; returns all until then.
    pub fn wait_for(&self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut seen = String::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line =
                self.lines.recv_timeout(left).unwrap_or_else(|e| panic!("no '{part}' ({e}) in:\n{seen}"));
            seen += &line;
            seen.push('\n');
            if line.contains(part) {
                return seen;
            }
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().expect("kill is there");
        assert!(status.success());
    }

    /// Kills it at once, and does not wait until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("it was started here");
    }

    /// Gives it something to read.
    pub fn feed(&mut self, bytes: &[u8]) {
        let input = self.child.stdin.as_mut().expect("piped, and not ended");
        input.write_all(bytes).and_then(|()| input.flush()).expect("it reads");
    }

    /// There is no more to be read; waits for it, and whether it succeeded.
    pub fn finish(mut self) -> bool {
        drop(self.child.stdin.take());
        self.ended().success()
    }

    /// Waits until it has ended.
    fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it has a file open that is on its way to this name, or to none yet.
    pub fn has_open(&self, name: &str) -> bool {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        let links = fds.into_iter().flatten().flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
        links.into_iter().any(|link| {
            let link = link.to_string_lossy().into_owned();
            link.ends_with(" (deleted)") || link.contains(&format!("/.{name}."))
        })
    }

    /// The processor time that it has taken.
    pub fn processor_time(&self) -> Duration {
        processor_time(&self.child.id().to_string(), 0)
    }

    /// After it was killed.
    pub fn wait_until_gone(&mut self) {
        // Not `wait`, which ends its standard input first: a command might still do what it is for.
        self.ended();
    }

    /// Asks it to end, and expects that it does so in order.
    pub fn end(mut self) {
        self.signal("-TERM");
        let status = self.ended();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells threads to stop when it is dropped, after a panic too.
pub struct StopAtEnd<'s>(pub &'s AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The processor time of all commands that have ended.
pub fn processor_time_of_commands() -> Duration {
    processor_time("self", 2)
}

/// Two fields of `/proc/ID/stat`, in hundredths of a second: a process's own user and system time, and behind
/// those what its children took.
fn processor_time(id: &str, skip: usize) -> Duration {
    let message = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("there is such a process");
    let (_, fields) = message.rsplit_once(')').expect("its name");
    let fields = fields.split_whitespace().skip(11 + skip).take(2);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(10 * ticks)
}

/// Ports of a range of its own.
pub fn free_ports(count: u16) -> Vec<u16> {
    let first = free_range(count);
    (first..first + count).collect()
}

/// The first of so many consecutive ports. Nobody else takes one while its node is down: they lie above those
/// that `cluster new` and the tests of other crates choose from, and below those that Linux gives to outgoing
/// connections. Tests of this process take different ones.
pub fn free_range(count: u16) -> u16 {
    const FIRST: u16 = 24_000;
    const END: u16 = 32_768;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Another process starts at another port.
    let start = FIRST + (std::process::id() as u16).wrapping_mul(97) % 1_500;
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    std::iter::repeat_with(|| start + TAKEN.fetch_add(count, Relaxed))
        .take_while(|first| first + count <= END)
        .find(|first| (*first..first + count).all(is_free))
        .expect("a free range of ports below 32768")
}

/// What gives a new cluster ports that no other process takes while its nodes are down.
fn ports_of_a_new_cluster(arguments: &str) -> Vec<String> {
    if !arguments.starts_with("cluster new ") || arguments.contains("--first-port") {
        return Vec::new();
    }
    // Without a number there are four at most.
    let mut words = arguments.split_whitespace().skip_while(|word| *word != "--parties");
    let nodes = words.nth(1).and_then(|number| number.parse().ok()).unwrap_or(4).min(16);
    let mut words = arguments.split_whitespace().skip_while(|word| *word != "--workers");
    let workers: u16 = words.nth(1).and_then(|number| number.parse().ok()).unwrap_or(1);
    vec!["--first-port".into(), free_range(3 * nodes * workers).to_string()]
}

/// Bytes that look random.
pub fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

/// Permission bits.
pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}
