//! The functions of the C library for files, and those that files and sockets share.

use std::ffi::{CStr, OsStr, c_char, c_int, c_ulong, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libc::{iovec, off64_t};

use super::{Disk, Gone, Renaming, Write};
use crate::machines::net::calls::{
    close_socket, control, is_socket, read_bytes, read_parts, set, write_bytes, write_parts,
};
use crate::machines::real::{self, fail};
use crate::machines::world::{self, DRIVER, Machine, with};

/// What a sync takes, in nanoseconds.
const SYNC: u64 = 200_000;

unsafe fn path(of: *const c_char) -> PathBuf {
    // SAFETY: the caller gives a text.
    PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(of) }.to_bytes()))
}

/// The machine whose file this is, if the simulation cares for it.
fn keeper_of(path: &Path) -> Option<Machine> {
    let care = |world: &mut world::World| {
        let (machine, root) = (world.machine(), &world.disk.root);
        (machine != DRIVER && !root.as_os_str().is_empty() && path.starts_with(root)).then_some(machine)
    };
    if world::is_inside() { with(care) } else { None }
}

fn opened(path: &Path, flags: c_int, existed: bool, fd: c_int) -> c_int {
    let Some(machine) = keeper_of(path).filter(|_| fd >= 0) else { return fd };
    // SAFETY: it has room for what is known of a file.
    let mut about: libc::stat64 = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::fstat64(fd, &mut about) };
    let is_directory = about.st_mode & libc::S_IFMT == libc::S_IFDIR;
    with(|world| {
        let disk = &mut world.disk;
        if is_directory {
            disk.directories.insert(fd, path.into());
            return;
        }
        let is_new = makes(flags, existed);
        disk.note_open(fd, machine, (about.st_dev, about.st_ino), is_new);
        if !existed && flags & libc::O_CREAT != 0 {
            disk.renamings.push((machine, Renaming::Made(path.into())));
        }
    });
    fd
}

/// Whether opening a file makes it.
fn makes(flags: c_int, existed: bool) -> bool {
    !existed && flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE
}

/// Opens a file, unless it is a new one for which its machine's disk has no room.
fn open_at(at: c_int, name: *const c_char, flags: c_int, mode: usize) -> c_int {
    // SAFETY: the caller gives a text.
    let path = unsafe { path(name) };
    let keeper = keeper_of(&path);
    let existed = keeper.is_some() && path.exists();
    if let Some(machine) = keeper
        && makes(flags, existed)
        && with(|world| world.disk.has_no_room(machine))
    {
        return fail(libc::ENOSPC);
    }
    opened(&path, flags, existed, real::openat64(at, name, flags, mode))
}

/// Sees to it that a write can be undone. Returns whether there is room for it.
fn before_write(fd: c_int, at: u64, new: &[u8]) -> bool {
    !world::is_inside()
        || with(|world| {
            if !world.disk.open.contains_key(&fd) {
                return true;
            }
            let old_len = Disk::length(fd);
            let new_len = old_len.max(at + new.len() as u64);
            if world.disk.is_full(fd, old_len, new_len) {
                return false;
            }
            let old = Disk::content(fd, at, new.len());
            world.disk.note_write(fd, Write { at, old, old_len, new: Some(new.to_vec()), new_len });
            true
        })
}

/// Syncs a file, unless its machine crashes here.
fn sync(fd: c_int, really: fn(c_int) -> c_int) -> c_int {
    if !world::is_inside() {
        return really(fd);
    }
    let crashes = with(|world| {
        let machine = world.machine();
        let left = world.disk.crash_after.get_mut(&machine)?;
        *left = left.saturating_sub(1);
        (*left == 0).then(|| (machine, world.random.below(2) == 0))
    });
    if let Some((machine, true)) = crashes {
        world::crash(machine);
    }
    let until = with(|world| world.now + SYNC + world.random.below(SYNC * 4));
    world::wait("sync", Some(until), |_, _| {});
    with(|world| world.disk.note_sync(fd));
    if let Some((machine, _)) = crashes {
        world::crash(machine);
    }
    // The real file needs no sync: the process that has it goes on.
    0
}

/// Does something to names, and notes it.
fn renaming(path: &Path, act: impl FnOnce() -> c_int, what: impl FnOnce() -> Renaming) -> c_int {
    let Some(machine) = keeper_of(path) else { return act() };
    let what = what();
    let done = act();
    if done == 0 {
        with(|world| world.disk.renamings.push((machine, what)));
    }
    done
}

replace! {
    fn read(fd: c_int, bytes: *mut c_void, len: usize) -> isize {
        if is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { read_bytes(fd, bytes, len) };
        }
        real::read(fd, bytes, len)
    }

    fn write(fd: c_int, bytes: *const c_void, len: usize) -> isize {
        if is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { write_bytes(fd, bytes, len) };
        }
        if fd > 2 {
            let appends = real::fcntl(fd, libc::F_GETFL, 0) & libc::O_APPEND != 0;
            // SAFETY: the call takes numbers only.
            let at = if appends { Disk::length(fd) as i64 } else { unsafe { libc::lseek64(fd, 0, libc::SEEK_CUR) } };
            if at >= 0 {
                // SAFETY: the caller gives so many bytes.
                let new = unsafe { std::slice::from_raw_parts(bytes.cast(), len) };
                if !before_write(fd, at as u64, new) {
                    return fail(libc::ENOSPC) as isize;
                }
            }
        }
        real::write(fd, bytes, len)
    }

    fn readv(fd: c_int, parts: *const iovec, count: c_int) -> isize {
        if is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { read_parts(fd, parts, count) };
        }
        real::readv(fd, parts, count)
    }

    fn writev(fd: c_int, parts: *const iovec, count: c_int) -> isize {
        if is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { write_parts(fd, parts, count) };
        }
        real::writev(fd, parts, count)
    }

    fn pwrite64(fd: c_int, bytes: *const c_void, len: usize, at: off64_t) -> isize {
        // SAFETY: the caller gives so many bytes.
        if !before_write(fd, at as u64, unsafe { std::slice::from_raw_parts(bytes.cast(), len) }) {
            return fail(libc::ENOSPC) as isize;
        }
        real::pwrite64(fd, bytes, len, at)
    }

    fn ftruncate64(fd: c_int, len: off64_t) -> c_int {
        let is_full = world::is_inside()
            && with(|world| {
                let (old_len, new_len) = (Disk::length(fd), len as u64);
                // A shorter file takes no room.
                if new_len > old_len && world.disk.is_full(fd, old_len, new_len) {
                    return true;
                }
                if world.disk.open.contains_key(&fd) {
                    let old = Disk::content(fd, new_len, old_len.saturating_sub(new_len) as usize);
                    world.disk.note_write(fd, Write { at: new_len, old, old_len, new: None, new_len });
                }
                false
            });
        if is_full { fail(libc::ENOSPC) } else { real::ftruncate64(fd, len) }
    }

    fn fsync(fd: c_int) -> c_int {
        sync(fd, real::fsync)
    }

    fn fdatasync(fd: c_int) -> c_int {
        sync(fd, real::fdatasync)
    }

    fn close(fd: c_int) -> c_int {
        if is_socket(fd) {
            return close_socket(fd);
        }
        if world::is_inside() {
            with(|world| {
                world.disk.open.remove(&fd);
                world.disk.directories.remove(&fd);
            });
        }
        real::close(fd)
    }

    fn fcntl(fd: c_int, command: c_int, arg: usize) -> c_int {
        if is_socket(fd) {
            return control(fd, command, arg);
        }
        let made = real::fcntl(fd, command, arg);
        if made >= 0 && matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) && world::is_inside() {
            with(|world| {
                if let Some(same) = world.disk.open.get(&fd).copied() {
                    world.disk.open.insert(made, same);
                }
            });
        }
        made
    }

    fn ioctl(fd: c_int, request: c_ulong, arg: usize) -> c_int {
        if is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { set(fd, request, arg) };
        }
        real::ioctl(fd, request, arg)
    }

    fn open64(name: *const c_char, flags: c_int, mode: usize) -> c_int {
        open_at(libc::AT_FDCWD, name, flags, mode)
    }

    fn openat64(at: c_int, name: *const c_char, flags: c_int, mode: usize) -> c_int {
        open_at(at, name, flags, mode)
    }

    fn openat(at: c_int, name: *const c_char, flags: c_int, mode: usize) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { openat64(at, name, flags, mode) }
    }

    fn open(name: *const c_char, flags: c_int, mode: usize) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { open64(name, flags, mode) }
    }

    fn rename(from: *const c_char, to: *const c_char) -> c_int {
        // SAFETY: the caller gives texts.
        let (old, new) = unsafe { (path(from), path(to)) };
        let act = || real::rename(from, to);
        renaming(&new, act, || Renaming::Moved { replaced: Gone::at(&new), from: old, to: new.clone() })
    }

    fn unlink(name: *const c_char) -> c_int {
        // SAFETY: the caller gives a text.
        let path = unsafe { path(name) };
        if !path.is_file() {
            return real::unlink(name);
        }
        let act = || real::unlink(name);
        renaming(&path, act, || Renaming::Removed { gone: Gone::at(&path), path: path.clone() })
    }

    fn linkat(at: c_int, from: *const c_char, to_at: c_int, to: *const c_char, flags: c_int) -> c_int {
        // SAFETY: the caller gives a text.
        let path = unsafe { path(to) };
        renaming(&path, || real::linkat(at, from, to_at, to, flags), || Renaming::Made(path.clone()))
    }
}
