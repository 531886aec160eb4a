//! Disks: what a file loses when its machine crashes.
//!
//! Files are real, in a directory of the simulation. Of each write that no sync has followed, the old bytes
//! are kept. At a crash some of these writes are undone, whole or in parts of sectors, and some renames and
//! new names of files with them, as a disk without power may do. Then the files are closed.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fs::Permissions;
use std::path::{Path, PathBuf};

use crate::machines::random::Random;
use crate::machines::real;
use crate::machines::world::{Machine, World};

mod calls;

/// What a disk writes as one.
const SECTOR: usize = 512;

/// A file: which one was opened first has the lowest. (Numbers of a real disk differ from run to run, and are
/// given again to other files.)
type FileId = u64;

/// A write that no sync has followed.
struct Write {
    at: u64,
    /// What was there, as far as the file went.
    old: Vec<u8>,
    old_len: u64,
    /// What was written; `None` if the length was set.
    new: Option<Vec<u8>>,
    new_len: u64,
}

/// A change of names that no sync of the directory has followed.
enum Renaming {
    Made(PathBuf),
    Moved { from: PathBuf, to: PathBuf, replaced: Option<Gone> },
    Removed { path: PathBuf, gone: Option<Gone> },
}

/// A file whose name was taken away.
struct Gone {
    content: Vec<u8>,
    permissions: Permissions,
}

impl Gone {
    /// What is there under a name now, if it can be read.
    fn at(path: &Path) -> Option<Gone> {
        let (content, about) = (std::fs::read(path).ok()?, std::fs::metadata(path).ok()?);
        Some(Gone { content, permissions: about.permissions() })
    }

    fn put_back(self, path: &Path) -> std::io::Result<()> {
        std::fs::write(path, self.content)?;
        std::fs::set_permissions(path, self.permissions)
    }
}

impl Renaming {
    fn directory(&self) -> Option<&Path> {
        match self {
            Renaming::Made(path) | Renaming::Moved { to: path, .. } | Renaming::Removed { path, .. } => {
                path.parent()
            }
        }
    }
}

/// Writes to a file that may be lost.
struct Dirty {
    machine: Machine,
    /// A descriptor of its own, by which they are undone.
    descriptor: i32,
    writes: Vec<Write>,
}

/// What is open, and what is not synced.
#[derive(Default)]
pub(crate) struct Disk {
    /// Files outside of it are not touched at a crash.
    pub(crate) root: PathBuf,
    /// By device and number of the real disk.
    files: BTreeMap<(u64, u64), FileId>,
    found: FileId,
    open: BTreeMap<i32, (Machine, FileId)>,
    directories: BTreeMap<i32, PathBuf>,
    dirty: BTreeMap<FileId, Dirty>,
    renamings: Vec<(Machine, Renaming)>,
    /// By machine: after how many more syncs it crashes.
    pub(crate) crash_after: BTreeMap<Machine, u64>,
    /// Whether syncs do nothing, as on a disk that lies.
    lies: bool,
    /// By machine: what there is room for, if not for everything.
    room: BTreeMap<Machine, Room>,
}

/// What a disk has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// For everything.
    Enough,
    /// For changes of files that are as long as before.
    ForOldFiles,
    /// For nothing, as where a changed block takes a new place.
    None,
}

impl Disk {
    /// Whether the disk of a file has no room for a write that leaves the file with another length.
    fn is_full(&self, fd: i32, old_len: u64, new_len: u64) -> bool {
        let Some((machine, _)) = self.open.get(&fd) else { return false };
        match self.room.get(machine) {
            None | Some(Room::Enough) => false,
            Some(Room::ForOldFiles) => new_len > old_len,
            Some(Room::None) => true,
        }
    }

    /// Whether a machine has no room for a new file.
    fn has_no_room(&self, machine: Machine) -> bool {
        self.room.get(&machine).is_some_and(|room| *room != Room::Enough)
    }

    fn note_open(&mut self, fd: i32, machine: Machine, real: (u64, u64), is_new: bool) {
        if is_new {
            self.files.remove(&real);
        }
        let found = &mut self.found;
        let id = self.files.entry(real).or_insert_with(|| {
            *found += 1;
            *found
        });
        self.open.insert(fd, (machine, *id));
    }

    fn note_write(&mut self, fd: i32, write: Write) {
        let Some((machine, id)) = self.open.get(&fd) else { return };
        let dirty = self.dirty.entry(*id).or_insert_with(|| {
            // Opened anew: with a descriptor that appends, everything would be written at the end.
            let path = format!("/proc/self/fd/{fd}\0");
            let flags = libc::O_RDWR | libc::O_CLOEXEC;
            let descriptor = real::open64(path.as_ptr().cast(), flags, 0);
            assert!(descriptor >= 0, "no descriptor for a simulated disk");
            Dirty { machine: *machine, descriptor, writes: Vec::new() }
        });
        // An operator's program may have written before the node.
        dirty.machine = *machine;
        dirty.writes.push(write);
    }

    /// What is in a file now.
    fn content(fd: i32, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let read = real::pread64(fd, bytes.as_mut_ptr().cast::<c_void>(), len, at as i64);
        bytes.truncate(read.max(0) as usize);
        bytes
    }

    fn length(fd: i32) -> u64 {
        // SAFETY: it has room for what is known of a file.
        let mut about: libc::stat64 = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let told = unsafe { libc::fstat64(fd, &mut about) };
        if told == 0 { about.st_size as u64 } else { 0 }
    }

    /// Everything of a file, or of a directory's names, is on the disk.
    fn note_sync(&mut self, fd: i32) {
        if self.lies {
            return;
        }
        if let Some((_, id)) = self.open.get(&fd)
            && let Some(dirty) = self.dirty.remove(id)
        {
            real::close(dirty.descriptor);
        }
        if let Some(directory) = self.directories.get(&fd).cloned() {
            self.renamings.retain(|(_, renaming)| renaming.directory() != Some(&directory));
        }
    }

    /// Loses what a disk may lose.
    pub(crate) fn crash(world: &mut World, machine: Machine) {
        let (disk, random) = (&mut world.disk, &mut world.random);
        disk.crash_after.remove(&machine);
        let dirty: Vec<FileId> =
            disk.dirty.iter().filter(|(_, dirty)| dirty.machine == machine).map(|(id, _)| *id).collect();
        for id in dirty {
            if let Some(dirty) = disk.dirty.remove(&id) {
                lose(&dirty, random);
                real::close(dirty.descriptor);
            }
        }
        let (its, others) =
            std::mem::take(&mut disk.renamings).into_iter().partition(|(of, _)| *of == machine);
        disk.renamings = others;
        let its: Vec<(Machine, Renaming)> = its;
        let kept = random.below(its.len() as u64 + 1) as usize;
        for (_, renaming) in its.into_iter().skip(kept).rev() {
            undo(renaming);
        }
        let open: Vec<i32> =
            disk.open.iter().filter(|(_, (of, _))| *of == machine).map(|(fd, _)| *fd).collect();
        for fd in open {
            disk.open.remove(&fd);
            real::close(fd);
        }
    }
}

/// Gives a file a content that it may have after a crash. Each sector is as it was after some of the writes.
/// The length is that after some of them, too; what lies beyond the old end is at least as new as the length,
/// because file systems make a file longer after its data are there.
fn lose(dirty: &Dirty, random: &mut Random) {
    let fd = dirty.descriptor;
    for write in dirty.writes.iter().rev() {
        put(fd, write.at, &write.old);
        real::ftruncate64(fd, write.old_len as i64);
    }
    let synced = Disk::content(fd, 0, Disk::length(fd) as usize);
    let count = dirty.writes.len();
    let version = |random: &mut Random| random.below(count as u64 + 1) as usize;
    // All writes survive, none, those before one, or of each sector those before some.
    let (how, until) = (random.below(4), version(random));
    let of_length = match how {
        0 => count,
        1 => 0,
        _ => until,
    };
    let (mut image, mut kept) = (synced.clone(), synced.clone());
    let mut length = synced.len();
    let mut versions = BTreeMap::new();
    for (write, number) in dirty.writes.iter().zip(1..) {
        image.resize(write.new_len as usize, 0);
        if number <= of_length {
            length = image.len();
        }
        let Some(new) = &write.new else { continue };
        let (from, to) = (write.at as usize, write.at as usize + new.len());
        image[from..to].copy_from_slice(new);
        for sector in from / SECTOR..to.div_ceil(SECTOR) {
            let end = ((sector + 1) * SECTOR).min(image.len());
            let of_sector = versions.entry(sector).or_insert_with(|| match how {
                3 if end <= synced.len() => version(random),
                3 => version(random).max(of_length),
                _ => of_length,
            });
            if number <= *of_sector {
                kept.resize(kept.len().max(end), 0);
                kept[sector * SECTOR..end].copy_from_slice(&image[sector * SECTOR..end]);
            }
        }
    }
    kept.resize(length, 0);
    put(fd, 0, &kept);
    real::ftruncate64(fd, length as i64);
}

fn put(fd: i32, at: u64, bytes: &[u8]) {
    if !bytes.is_empty() {
        let written = real::pwrite64(fd, bytes.as_ptr().cast::<c_void>(), bytes.len(), at as i64);
        assert!(written == bytes.len() as isize, "a simulated disk is full");
    }
}

fn undo(renaming: Renaming) {
    // A name that is gone already has nothing to undo.
    let _ = match renaming {
        Renaming::Made(path) => std::fs::remove_file(path),
        Renaming::Moved { from, to, replaced } => {
            let moved = std::fs::rename(&to, from);
            replaced.map_or(moved, |gone| gone.put_back(&to))
        }
        Renaming::Removed { path, gone } => gone.map_or(Ok(()), |gone| gone.put_back(&path)),
    };
}

/// Says where the files are that machines lose parts of when they crash.
pub fn set_root(root: &Path) {
    crate::machines::world::with(|world| world.disk.root = root.into());
}

/// Has a machine crash at one of its next syncs: after so many more, before or after what is synced is safe.
pub fn crash_after_syncs(machine: Machine, more: u64) {
    crate::machines::world::with(|world| world.disk.crash_after.insert(machine, more));
}

/// Sets what a machine's disk has room for.
pub fn set_room(machine: Machine, room: Room) {
    crate::machines::world::with(|world| world.disk.room.insert(machine, room));
}

/// Has syncs of all machines do nothing. So what relies on them breaks, which shows that a simulation
/// notices.
pub fn lie() {
    crate::machines::world::with(|world| world.disk.lies = true);
}
