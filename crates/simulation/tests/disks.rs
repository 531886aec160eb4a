//! What a simulated disk has room for.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use polyclave_simulation::machines::clock::sleep;
use polyclave_simulation::machines::disk::{Room, set_room, set_root};
use polyclave_simulation::machines::{Machine, simulate, spawn_on};

/// Tries to change an old file in place, to make it longer and then shorter, to append to it, and to make a
/// new one. Returns what there was room for.
fn attempts(dir: &Path, new: &str) -> Vec<bool> {
    let old = dir.join("old");
    let file = fs::OpenOptions::new().read(true).write(true).open(&old).expect("it is there");
    let appended = fs::OpenOptions::new().append(true).open(&old).expect("it is there");
    let done = [
        file.write_all_at(&[1; 100], 0),
        file.write_all_at(&[2; 100], 950),
        file.set_len(2_000),
        std::io::Write::write_all(&mut &appended, &[3; 10]),
        fs::write(dir.join(new), [4; 10]),
        file.set_len(1_000),
    ];
    let is_done = |done: &std::io::Result<()>| match done {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
            false
        }
    };
    done.iter().map(is_done).collect()
}

/// The same on a machine, from the thread that drives the simulation.
fn attempts_on(machine: Machine, dir: &Path, new: &'static str) -> Vec<bool> {
    let (tell, told) = channel();
    let dir = PathBuf::from(dir);
    spawn_on(machine, move || tell.send(attempts(&dir, new)).expect("it is waited for"));
    sleep(Duration::from_secs(1));
    told.recv().expect("it ends")
}

#[test]
fn a_full_disk_refuses_what_needs_room_and_takes_it_again_later() {
    let temporary = tempfile::tempdir().expect("a directory");
    let dir = temporary.path();
    fs::write(dir.join("old"), [0; 1_000]).expect("written");
    let (ours, theirs) = (Machine(1), Machine(2));
    let (seen, _) = simulate(1, || {
        set_root(dir);
        let mut seen = Vec::new();
        for (room, new) in [(Room::ForOldFiles, "a"), (Room::None, "b"), (Room::Enough, "c")] {
            set_room(ours, room);
            seen.push(attempts_on(ours, dir, new));
        }
        set_room(ours, Room::None);
        seen.push(attempts_on(theirs, dir, "d"));
        seen
    });
    let (all, nothing) = (vec![true; 6], vec![false, false, false, false, false, true]);
    let in_place = vec![true, false, false, false, false, true];
    assert_eq!(seen, [in_place, nothing, all.clone(), all]);
    // A file for which there was no room is not there.
    assert!(!dir.join("a").exists() && !dir.join("b").exists() && dir.join("c").exists());
}
