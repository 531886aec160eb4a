//! A PostgreSQL server of a test's own, in a temporary folder, from the programs of Debian's package
//! `postgresql` or any other.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::programs::{ended, skipped};

/// How long a server is waited for, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server; killed when dropped. It listens on a Unix socket alone.
pub struct Postgres {
    programs: PathBuf,
    dir: tempfile::TempDir,
    /// Whose files they are: the server does not run as root.
    user: Option<u32>,
    server: Option<Child>,
    standby: Option<Child>,
    settings: Vec<String>,
    has_own_disk: bool,
}

impl Postgres {
    /// Starts a server with settings such as `fsync=off`. `None`, with a line on standard error, if
    /// PostgreSQL is not installed.
    pub fn start(what: &str, settings: &[&str]) -> Option<Postgres> {
        Postgres::start_on(what, settings, None)
    }

    /// The same on a disk of its own with so many megabytes, which takes the right to mount one.
    pub fn start_on_disk(what: &str, megabytes: u32) -> Option<Postgres> {
        // Little of it is for the log of changes.
        Postgres::start_on(what, &["min_wal_size=32MB", "max_wal_size=32MB"], Some(megabytes))
    }

    fn start_on(what: &str, settings: &[&str], megabytes: Option<u32>) -> Option<Postgres> {
        let Some(programs) = programs() else {
            skipped(what, "PostgreSQL is not installed (initdb, postgres)");
            return None;
        };
        let dir = tempfile::Builder::new().prefix("pg").tempdir().expect("a directory");
        let user = other_than_root();
        if let Some(megabytes) = megabytes
            && !mount(dir.path(), megabytes)
        {
            skipped(what, "no disk of its own can be mounted here");
            return None;
        }
        if let Some(user) = user {
            chown(dir.path(), Some(user), None).expect("given to that user");
        }
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let (server, standby, has_own_disk) = (None, None, megabytes.is_some());
        let mut this = Postgres { programs, dir, user, server, standby, settings, has_own_disk };
        let mut init = this.command("initdb");
        init.arg("-D").arg(this.data()).args([
            "--auth=trust",
            "--username=polyclave",
            "--encoding=UTF8",
            "--no-sync",
        ]);
        let made = ended(&mut init, PATIENCE).expect("it ends");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        this.start_again();
        Some(this)
    }

    /// The URL of a database that is there from the start.
    pub fn url(&self) -> String {
        let socket = self.dir.path().display().to_string().replace('/', "%2F");
        format!("postgresql://polyclave@{socket}/postgres")
    }

    /// Runs statements, and returns what they print.
    pub fn run(&self, statements: &str) -> String {
        let mut client = self.command("psql");
        client
            .args(["-X", "-q", "-A", "-t", "-U", "polyclave", "-d", "postgres", "-c", statements, "-h"])
            .arg(self.dir.path());
        let output = ended(&mut client, PATIENCE).expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Ends the connections of stores, as a network does that is cut, and waits until the server has closed
    /// them: it is asked to end a connection and does so a little later.
    pub fn cut(&self) {
        let stores = "pg_stat_activity WHERE application_name = 'polyclave'";
        let ended = self.run(&format!("SELECT pg_terminate_backend(pid), pid FROM {stores}"));
        let until = Instant::now() + PATIENCE;
        for process in ended.lines().filter_map(|row| row.strip_prefix("t|")) {
            while Path::new("/proc").join(process).exists() {
                assert!(Instant::now() < until, "PostgreSQL does not end a connection");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Starts the server once more.
    pub fn start_again(&mut self) {
        let mut server = self.command("postgres");
        server.arg("-D").arg(self.data()).arg("-k").arg(self.dir.path()).args(["-c", "listen_addresses="]);
        for setting in &self.settings {
            server.args(["-c", setting]);
        }
        let log =
            fs::File::options().create(true).append(true).open(self.dir.path().join("log")).expect("a log");
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.server = Some(server.spawn().expect("it starts"));
        let mut asks = self.command("pg_isready");
        asks.args(["-q", "-h"]).arg(self.dir.path());
        let until = Instant::now() + PATIENCE;
        while !ended(&mut asks, PATIENCE).is_some_and(|output| output.status.success()) {
            assert!(Instant::now() < until, "PostgreSQL does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills the server, which loses nothing that it has confirmed.
    pub fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        // SIGQUIT: it ends its processes at once, as after a crash, and recovers at the next start.
        signal(&[server.id()], "-QUIT");
        server.wait().expect("it ends");
    }

    /// Takes a copy of the server as it is now, as a replica has it that has not received more.
    pub fn copy(&self) {
        let mut copying = self.command("pg_basebackup");
        copying.arg("-D").arg(self.replica()).args(["-U", "polyclave", "-X", "stream", "-c", "fast", "-h"]);
        let copied = ended(copying.arg(self.dir.path()), PATIENCE).expect("it ends");
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    }

    /// Kills the server, and has the copy take its place.
    pub fn fail_over(&mut self) {
        self.kill();
        fs::remove_dir_all(self.data()).expect("removed");
        fs::rename(self.replica(), self.data()).expect("put in place");
        self.start_again();
    }

    /// From now on each commit waits until a second server has it, too.
    pub fn replicate(&mut self) {
        let mut copying = self.command("pg_basebackup");
        copying
            .args(["-R", "-U", "polyclave", "-X", "stream", "-c", "fast", "-D"])
            .arg(self.replica())
            .arg("-h");
        let copied = ended(copying.arg(self.dir.path()), PATIENCE).expect("it ends");
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let mut standby = self.command("postgres");
        standby.arg("-D").arg(self.replica()).arg("-k").arg(self.replica()).args(["-c", "listen_addresses="]);
        standby.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.standby = Some(standby.spawn().expect("it starts"));
        self.run("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.run("SELECT pg_reload_conf()");
        let until = Instant::now() + PATIENCE;
        while self.run("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1" {
            assert!(Instant::now() < until, "the standby does not stream");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills the server, promotes the second one, and lets it answer in the place of the first one.
    pub fn promote(&mut self) {
        self.kill();
        let mut standby = self.standby.take().expect("there is one");
        let mut promoting = self.command("pg_ctl");
        let promoted = ended(promoting.args(["promote", "-w", "-D"]).arg(self.replica()), PATIENCE);
        let promoted = promoted.expect("it ends");
        assert!(promoted.status.success(), "{}", String::from_utf8_lossy(&promoted.stderr));
        signal(&[standby.id()], "-INT");
        standby.wait().expect("it ends");
        fs::remove_dir_all(self.data()).expect("removed");
        fs::rename(self.replica(), self.data()).expect("put in place");
        self.start_again();
    }

    /// Fills the disk of its own.
    pub fn fill_disk(&self) {
        let mut file = fs::File::create(self.filler()).expect("made");
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    }

    /// Makes room on it again.
    pub fn make_room(&self) {
        fs::remove_file(self.filler()).expect("removed");
    }

    fn filler(&self) -> PathBuf {
        self.dir.path().join("filler")
    }

    fn replica(&self) -> PathBuf {
        self.dir.path().join("replica")
    }

    /// Stops all processes of the server where they are. Nothing answers any more, and no connection ends.
    pub fn pause(&self) {
        signal(&self.processes(), "-STOP");
    }

    /// Lets them go on.
    pub fn go_on(&self) {
        signal(&self.processes(), "-CONT");
    }

    fn processes(&self) -> Vec<u32> {
        let server = self.server.as_ref().expect("it runs").id();
        let children =
            fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        [server].into_iter().chain(children).collect()
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.dir.path());
        if let Some(user) = self.user {
            command.uid(user);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.go_on();
        }
        self.kill();
        if let Some(mut standby) = self.standby.take() {
            signal(&[standby.id()], "-QUIT");
            let _ = standby.wait();
        }
        if self.has_own_disk {
            // What remains of it ends with the machine.
            let _ = Command::new("umount").arg(self.dir.path()).status();
        }
    }
}

/// Mounts a disk in memory.
fn mount(at: &Path, megabytes: u32) -> bool {
    let mut mounting = Command::new("mount");
    mounting.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "polyclave-test"]).arg(at);
    mounting.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn signal(processes: &[u32], signal: &str) {
    let ids = processes.iter().map(u32::to_string);
    // One of them may have ended meanwhile.
    let _ = Command::new("kill").arg(signal).args(ids).stderr(Stdio::null()).status();
}

/// The folder of the newest programs.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    versions.sort();
    folders.extend(versions.into_iter().rev());
    folders.into_iter().find(|folder| {
        ["initdb", "postgres", "psql", "pg_isready"].iter().all(|name| folder.join(name).exists())
    })
}

/// For root: the number of a user who may own the server's files.
fn other_than_root() -> Option<u32> {
    let mine = fs::metadata("/proc/self").expect("there");
    if std::os::unix::fs::MetadataExt::uid(&mine) != 0 {
        return None;
    }
    let users = fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default();
    let number = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        line.split(':').nth(2)?.parse().ok()
    };
    Some(number("postgres").or_else(|| number("nobody")).unwrap_or(65534))
}
