//! `polyclave demo` as a person runs it, and what happens when a party dies, stops, or is left alone.

use std::path::PathBuf;
use std::process::{Command, Output};

fn polyclave(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polyclave")).args(arguments).output().expect("the program starts")
}

fn json(output: &Output) -> serde_json::Value {
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {error}"))
}

/// A file of pseudorandom bytes, removed at the end of the test.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, bytes: usize) -> TestFile {
        let path = std::env::temp_dir().join(format!("polyclave-test-{}-{name}", std::process::id()));
        let content: Vec<u8> = (0..bytes).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        std::fs::write(&path, content).expect("the temporary directory is writable");
        TestFile(path)
    }

    /// A file of zeros that takes no room on the disk.
    #[cfg(target_os = "linux")]
    fn sparse(name: &str, bytes: u64) -> TestFile {
        let file = TestFile::new(name, 0);
        let opened = std::fs::File::create(&file.0).expect("the temporary directory is writable");
        opened.set_len(bytes).expect("a sparse file");
        file
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain name")
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn files_of_every_size_come_back() {
    for bytes in [0, 1, 16, 17, 300_000] {
        let file = TestFile::new(&format!("size-{bytes}"), bytes);
        let before = std::fs::read(&file.0).expect("it is there");
        let output = polyclave(&["demo", file.path(), "--json"]);
        assert!(output.status.success());
        let summary = json(&output);
        assert_eq!(summary["bytes"], bytes);
        for field in ["round_trip", "known_answer", "holds"] {
            assert_eq!(summary[field], true, "{field} of {bytes} bytes");
        }
        assert_eq!(summary["verified"], false, "shamir is passive");
        assert_eq!(std::fs::read(&file.0).expect("it is there"), before);
    }
}

#[test]
fn the_story_is_told() {
    let output = polyclave(&["demo"]);
    assert!(output.status.success());
    let story = String::from_utf8(output.stdout).expect("it is text");
    for part in
        ["69c4e0d86a7b0430d8cdb78070b4c55a", "Every byte came back", "Passive", "Party 2 keeps", "blocks/s"]
    {
        assert!(story.contains(part), "{part} is missing:\n{story}");
    }
}

#[test]
fn five_parties_and_other_inversions_work() {
    let file = TestFile::new("five", 5000);
    for more in [
        &["--parties", "5", "--threshold", "2"][..],
        &["--parties", "4", "--inversion", "carried-squares"],
        &["--inversion", "masked-exponentiation"],
    ] {
        let output = polyclave(&[&["demo", file.path(), "--json"], more].concat());
        assert_eq!(json(&output)["holds"], true, "{more:?}");
    }
}

#[test]
fn what_cannot_work_is_said_and_fails() {
    for (arguments, reason) in [
        (&["demo", "/no/such/file"][..], "cannot read /no/such/file"),
        (&["demo", "/"], "no regular file"),
        (&["demo", "--parties", "2"], "3 to 9 parties, not 2"),
        (&["demo", "--parties", "300"], "3 to 9 parties, not 300"),
        (&["demo", "--parties", "5", "--threshold", "3"], "from 1 to 2"),
        (&["demo", "--protocol", "rot13"], "no protocol 'rot13'"),
        (&["demo", "--protocol", "cleartext"], "cleartext"),
        (&["demo", "--inversion", "guess"], "no inversion 'guess'"),
        (&["party"], "started by"),
    ] {
        let output = polyclave(arguments);
        let told =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(told.contains(reason), "{arguments:?} says: {told}");
        assert!(!told.contains("panicked"), "{arguments:?} says: {told}");
    }
}

/// Faults of real processes, found and signalled the Linux way.
#[cfg(target_os = "linux")]
mod faults {
    use super::*;
    use std::process::{Child, Stdio};
    use std::time::{Duration, Instant};

    /// Long enough to be interrupted.
    const BYTES: u64 = 256 << 20;

    fn start(file: &TestFile) -> Child {
        Command::new(env!("CARGO_BIN_EXE_polyclave"))
            .args(["demo", file.path(), "--timeout", "3"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    /// Process ids of the parties, once all of them are at work.
    fn parties(demo: &Child) -> Vec<u32> {
        let list = format!("/proc/{0}/task/{0}/children", demo.id());
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let children = std::fs::read_to_string(&list).unwrap_or_default();
            let ids: Vec<u32> = children.split_whitespace().filter_map(|id| id.parse().ok()).collect();
            if ids.len() == 3 {
                std::thread::sleep(Duration::from_millis(500));
                return ids;
            }
            assert!(Instant::now() < deadline, "the parties did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(name: &str, process: u32) {
        let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    fn runs(process: u32) -> bool {
        // A zombie is no running process.
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        status.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
    }

    fn assert_all_end(processes: &[u32]) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while processes.iter().any(|p| runs(*p)) {
            assert!(Instant::now() < deadline, "a party outlived its command");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn error_of(demo: Child) -> String {
        let output = demo.wait_with_output().expect("it ends");
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("it is text")
    }

    #[test]
    fn a_killed_party_is_named_and_ends_all() {
        let file = TestFile::sparse("killed", BYTES);
        let demo = start(&file);
        let parties = parties(&demo);
        signal("KILL", parties[2]);
        let error = error_of(demo);
        assert!(error.contains("party 3"), "{error}");
        assert_all_end(&parties);
    }

    #[test]
    fn a_stopped_party_is_named_within_the_limit_and_ends_all() {
        let file = TestFile::sparse("stopped", BYTES);
        let demo = start(&file);
        let parties = parties(&demo);
        let began = Instant::now();
        signal("STOP", parties[1]);
        let error = error_of(demo);
        assert!(error.contains("party 2 did not answer within 3s"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
        assert_all_end(&parties);
    }

    #[test]
    fn all_parties_stopped_is_noticed_and_ends_all() {
        let file = TestFile::sparse("all-stopped", BYTES);
        let demo = start(&file);
        let parties = parties(&demo);
        let began = Instant::now();
        parties.iter().for_each(|p| signal("STOP", *p));
        let error = error_of(demo);
        assert!(error.contains("no sign of life"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
        assert_all_end(&parties);
    }

    /// Standard output that is closed early, or full, is no reason to panic.
    #[test]
    fn output_that_goes_nowhere_ends_the_command_in_order() {
        let commands: [&[&str]; 3] = [&["demo"], &["reproduce", "damgard-keller-2010", "1"], &["--help"]];
        for arguments in commands {
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
            let output = Command::new(env!("CARGO_BIN_EXE_polyclave")).args(arguments).stdout(full).output();
            let output = output.expect("the program starts");
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(!error.contains("panicked"), "{arguments:?}: {error}");
            let mut child = Command::new(env!("CARGO_BIN_EXE_polyclave"))
                .args(arguments)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program starts");
            drop(child.stdout.take());
            let error = child.wait_with_output().expect("it ends").stderr;
            let error = String::from_utf8_lossy(&error);
            assert!(!error.contains("panicked"), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn no_party_outlives_a_killed_command() {
        let file = TestFile::sparse("orphans", BYTES);
        let mut demo = start(&file);
        let parties = parties(&demo);
        signal("KILL", demo.id());
        demo.wait().expect("it ends");
        assert_all_end(&parties);
    }
}
