//! The functions of the C library for sockets.

use std::ffi::{CStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;

use libc::{
    AF_INET, AF_UNIX, EAGAIN, EBADF, ECONNRESET, EINPROGRESS, EINVAL, EISCONN, ENOENT, ENOTCONN, EPIPE,
    MSG_DONTWAIT, MSG_PEEK, SO_ERROR, SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET, iovec, sockaddr, sockaddr_in,
    sockaddr_un, socklen_t, timeval,
};

use super::{Address, FIRST, Link, Net, Packet, Socket};
use crate::machines::real::fail;
use crate::machines::world::{self, with};

/// Whether a descriptor is one of a simulated socket, used in a simulation.
pub(crate) fn is_socket(descriptor: c_int) -> bool {
    descriptor >= FIRST && world::is_inside()
}

/// Does something with a socket.
fn on<T>(descriptor: c_int, work: impl FnOnce(&mut Socket) -> Result<T, c_int>) -> Result<T, c_int> {
    with(|world| world.net.socket(descriptor).ok_or(EBADF).and_then(|(_, socket)| work(socket)))
}

fn done(result: Result<(), c_int>) -> c_int {
    result.map_or_else(fail, |()| 0)
}

unsafe fn address(of: *const sockaddr, len: socklen_t) -> Result<Address, c_int> {
    // SAFETY: the caller promises an address of this length.
    unsafe {
        match c_int::from((*of).sa_family) {
            AF_INET => Ok(Address::Port(u16::from_be((*of.cast::<sockaddr_in>()).sin_port))),
            AF_UNIX if len as usize > size_of::<libc::sa_family_t>() => {
                let path = CStr::from_ptr((*of.cast::<sockaddr_un>()).sun_path.as_ptr());
                Ok(Address::File(std::ffi::OsStr::from_bytes(path.to_bytes()).into()))
            }
            _ => Err(EINVAL),
        }
    }
}

unsafe fn tell(address: &Address, unix: bool, to: *mut sockaddr, len: *mut socklen_t) {
    // SAFETY: the caller gives room for an address, as large as `len` says: Rust's library gives that of the
    // largest.
    unsafe {
        if unix {
            let mut un: sockaddr_un = std::mem::zeroed();
            un.sun_family = AF_UNIX as _;
            let mut size = size_of::<libc::sa_family_t>();
            if let Address::File(path) = address {
                let bytes = path.as_os_str().as_bytes();
                for (to, byte) in un.sun_path.iter_mut().zip(bytes) {
                    *to = *byte as _;
                }
                size += bytes.len() + 1;
            }
            let room = (*len as usize).min(size_of::<sockaddr_un>());
            std::ptr::copy_nonoverlapping(std::ptr::from_ref(&un).cast::<u8>(), to.cast(), room);
            *len = size as socklen_t;
        } else {
            let mut of: sockaddr_in = std::mem::zeroed();
            of.sin_family = AF_INET as _;
            of.sin_addr.s_addr = u32::from_be_bytes([127, 0, 0, 1]).to_be();
            if let Address::Port(port) = address {
                of.sin_port = port.to_be();
            }
            let room = (*len as usize).min(size_of::<sockaddr_in>());
            std::ptr::copy_nonoverlapping(std::ptr::from_ref(&of).cast::<u8>(), to.cast(), room);
            *len = size_of::<sockaddr_in>() as socklen_t;
        }
    }
}

/// Sends bytes. Returns how many.
fn send_bytes(descriptor: c_int, bytes: &[u8], flags: c_int) -> isize {
    let begin = with(|world| world.now);
    loop {
        enum Next {
            Sent(usize),
            Wait(u64, u64, Option<u64>),
        }
        let next = with(|world| {
            let (id, socket) = world.net.socket(descriptor).ok_or(EBADF)?;
            let Link::Open { peer } = socket.link else { return Err(ENOTCONN) };
            if socket.reset {
                return Err(ECONNRESET);
            }
            if socket.shut {
                return Err(EPIPE);
            }
            let (waits, limit) = (socket.waits && flags & MSG_DONTWAIT == 0, socket.limits[1]);
            if world.net.is_deserted(id) {
                return Err(EPIPE);
            }
            let count = world.net.room(peer).min(bytes.len());
            if count == 0 && !bytes.is_empty() {
                let until = limit.map(|limit| begin + limit);
                let is_over = until.is_some_and(|until| until <= world.now);
                return if waits && !is_over { Ok(Next::Wait(id, peer, until)) } else { Err(EAGAIN) };
            }
            Net::send(world, id, Packet::Bytes(bytes[..count].to_vec()));
            Ok(Next::Sent(count))
        });
        match next {
            Ok(Next::Sent(count)) => return count as isize,
            Ok(Next::Wait(id, peer, until)) => Net::wait_for(&[id, peer], until),
            Err(error) => return fail(error) as isize,
        }
    }
}

/// Receives bytes. Returns how many; 0 at the end.
fn receive_bytes(descriptor: c_int, bytes: &mut [u8], flags: c_int) -> isize {
    let begin = with(|world| world.now);
    loop {
        let next = with(|world| {
            let (id, socket) = world.net.socket(descriptor).ok_or(EBADF)?;
            let Link::Open { .. } = socket.link else { return Err(ENOTCONN) };
            let count = socket.arrived.len().min(bytes.len());
            if count > 0 {
                for (to, from) in bytes.iter_mut().zip(&socket.arrived) {
                    *to = *from;
                }
                if flags & MSG_PEEK == 0 {
                    socket.arrived.drain(..count);
                    Net::touch(world, id);
                }
                return Ok(Ok(count));
            }
            match socket {
                _ if bytes.is_empty() => Ok(Ok(0)),
                Socket { reset: true, .. } => Err(ECONNRESET),
                Socket { ended: true, .. } => Ok(Ok(0)),
                _ => {
                    let until = socket.limits[0].map(|limit| begin + limit);
                    let is_over = until.is_some_and(|until| until <= world.now);
                    let waits = socket.waits && flags & MSG_DONTWAIT == 0;
                    if waits && !is_over { Ok(Err((id, until))) } else { Err(EAGAIN) }
                }
            }
        });
        match next {
            Ok(Ok(count)) => return count as isize,
            Ok(Err((id, until))) => Net::wait_for(&[id], until),
            Err(error) => return fail(error) as isize,
        }
    }
}

/// Sends from several places.
pub(crate) unsafe fn write_parts(descriptor: c_int, parts: *const iovec, count: c_int) -> isize {
    // SAFETY: the caller gives so many.
    let parts = unsafe { std::slice::from_raw_parts(parts, count as usize) };
    let mut all = Vec::new();
    for part in parts {
        // SAFETY: each is so long.
        all.extend_from_slice(unsafe {
            std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len)
        });
    }
    send_bytes(descriptor, &all, 0)
}

/// Receives into several places.
pub(crate) unsafe fn read_parts(descriptor: c_int, parts: *const iovec, count: c_int) -> isize {
    // SAFETY: the caller gives so many.
    let parts = unsafe { std::slice::from_raw_parts(parts, count as usize) };
    let mut all = vec![0; parts.iter().map(|part| part.iov_len).sum()];
    let received = receive_bytes(descriptor, &mut all, 0);
    let mut rest = &all[..received.max(0) as usize];
    for part in parts {
        let (now, later) = rest.split_at(rest.len().min(part.iov_len));
        // SAFETY: it has room for so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), part.iov_base.cast(), now.len()) };
        rest = later;
    }
    received
}

/// Sends, as `write` does.
pub(crate) unsafe fn write_bytes(descriptor: c_int, bytes: *const c_void, len: usize) -> isize {
    // SAFETY: the caller gives so many bytes.
    send_bytes(descriptor, unsafe { std::slice::from_raw_parts(bytes.cast(), len) }, 0)
}

/// Receives, as `read` does.
pub(crate) unsafe fn read_bytes(descriptor: c_int, bytes: *mut c_void, len: usize) -> isize {
    // SAFETY: the caller gives room for so many bytes.
    receive_bytes(descriptor, unsafe { std::slice::from_raw_parts_mut(bytes.cast(), len) }, 0)
}

/// Closes a descriptor of a socket.
pub(crate) fn close_socket(descriptor: c_int) -> c_int {
    with(|world| Net::close(world, descriptor));
    0
}

/// `fcntl` of a socket.
pub(crate) fn control(descriptor: c_int, command: c_int, arg: usize) -> c_int {
    let result = with(|world| {
        let (id, socket) = world.net.socket(descriptor).ok_or(EBADF)?;
        match command {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => Ok(world.net.describe(id)),
            libc::F_GETFL => Ok(libc::O_RDWR | if socket.waits { 0 } else { libc::O_NONBLOCK }),
            libc::F_SETFL => {
                socket.waits = arg as c_int & libc::O_NONBLOCK == 0;
                Ok(0)
            }
            libc::F_GETFD => Ok(libc::FD_CLOEXEC),
            libc::F_SETFD => Ok(0),
            _ => Err(EINVAL),
        }
    });
    result.unwrap_or_else(fail)
}

/// `ioctl` of a socket.
pub(crate) unsafe fn set(descriptor: c_int, request: libc::c_ulong, arg: usize) -> c_int {
    match request {
        libc::FIONBIO => {
            // SAFETY: the caller gives a number.
            let waits = unsafe { *(arg as *const c_int) } == 0;
            done(on(descriptor, |socket| {
                socket.waits = waits;
                Ok(())
            }))
        }
        libc::FIOCLEX => 0,
        _ => fail(EINVAL),
    }
}

replace! {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
        if !world::is_inside() {
            // SAFETY: the call takes numbers only.
            return unsafe { libc::syscall(libc::SYS_socket, domain, kind, protocol) as c_int };
        }
        let fd = with(|world| { let machine = world.machine(); world.net.open(machine, domain == AF_UNIX) });
        if kind & libc::SOCK_NONBLOCK != 0 {
            let _ = on(fd, |socket| { socket.waits = false; Ok(()) });
        }
        fd
    }

    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int {
        if !world::is_inside() {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_socketpair, domain, kind, protocol, pair) as c_int };
        }
        let made = with(|world| { let machine = world.machine(); world.net.open_pair(machine) });
        // SAFETY: the caller gives room for two.
        unsafe { (*pair, *pair.add(1)) = (made[0], made[1]) };
        0
    }

    fn bind(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
        if !is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_bind, fd, to, len) as c_int };
        }
        // SAFETY: as the caller promises.
        let address = match unsafe { address(to, len) } { Ok(address) => address, Err(e) => return fail(e) };
        // A file of a socket, to which nobody listens any more in the real system.
        if let Address::File(path) = &address
            && let Err(e) = world::really(|| std::os::unix::net::UnixListener::bind(path))
        {
            return fail(e.raw_os_error().unwrap_or(EINVAL));
        }
        done(with(|world| {
            let (id, _) = world.net.socket(fd).ok_or(EBADF)?;
            world.net.bind(id, address)
        }))
    }

    fn listen(fd: c_int, backlog: c_int) -> c_int {
        if !is_socket(fd) {
            // SAFETY: the call takes numbers only.
            return unsafe { libc::syscall(libc::SYS_listen, fd, backlog) as c_int };
        }
        done(on(fd, |socket| {
            socket.link = Link::Listening { backlog: Default::default() };
            Ok(())
        }))
    }

    fn accept4(fd: c_int, from: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
        if !is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_accept4, fd, from, len, flags) as c_int };
        }
        loop {
            let next = with(|world| {
                let (id, listener) = world.net.socket(fd).ok_or(EBADF)?;
                let waits = listener.waits;
                let Link::Listening { backlog } = &mut listener.link else { return Err(EINVAL) };
                match backlog.pop_front() {
                    Some(accepted) => Ok(Ok(world.net.describe(accepted))),
                    None if waits => Ok(Err(id)),
                    None => Err(EAGAIN),
                }
            });
            match next {
                Ok(Ok(accepted)) => {
                    let nonblocking = flags & libc::SOCK_NONBLOCK != 0;
                    let other = on(accepted, |socket| {
                        socket.waits = !nonblocking;
                        Ok((socket.other.clone(), socket.unix))
                    });
                    if let (Ok((other, unix)), false) = (other, from.is_null()) {
                        // SAFETY: as the caller promises.
                        unsafe { tell(&other, unix, from, len) };
                    }
                    return accepted;
                }
                Ok(Err(id)) => Net::wait_for(&[id], None),
                Err(error) => return fail(error),
            }
        }
    }

    fn connect(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
        if !is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_connect, fd, to, len) as c_int };
        }
        // SAFETY: as the caller promises.
        let to = match unsafe { address(to, len) } { Ok(address) => address, Err(e) => return fail(e) };
        if let Address::File(path) = &to && !path.exists() {
            return fail(ENOENT);
        }
        let begun = with(|world| {
            let (id, socket) = world.net.socket(fd).ok_or(EBADF)?;
            match socket.link {
                Link::New => {}
                Link::Open { .. } => return Err(EISCONN),
                _ => return Err(libc::EALREADY),
            }
            let waits = socket.waits;
            Net::connect(world, id, to);
            if waits { Ok(id) } else { Err(EINPROGRESS) }
        });
        let id = match begun { Ok(id) => id, Err(e) => return fail(e) };
        loop {
            match on(fd, |socket| match socket.link {
                Link::Open { .. } => Ok(true),
                Link::Failed(error) => Err(error),
                _ => Ok(false),
            }) {
                Ok(true) => return 0,
                Ok(false) => Net::wait_for(&[id], None),
                Err(error) => return fail(error),
            }
        }
    }

    fn shutdown(fd: c_int, how: c_int) -> c_int {
        if !is_socket(fd) {
            // SAFETY: the call takes numbers only.
            return unsafe { libc::syscall(libc::SYS_shutdown, fd, how) as c_int };
        }
        done(with(|world| {
            let (id, socket) = world.net.socket(fd).ok_or(EBADF)?;
            let Link::Open { .. } = socket.link else { return Err(ENOTCONN) };
            if how != libc::SHUT_WR {
                socket.ended = true;
            }
            if how != libc::SHUT_RD && !socket.shut {
                socket.shut = true;
                Net::send(world, id, Packet::End);
            }
            Net::touch(world, id);
            Ok(())
        }))
    }

    fn send(fd: c_int, bytes: *const c_void, len: usize, flags: c_int) -> isize {
        if !is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_sendto, fd, bytes, len, flags, 0, 0) as isize };
        }
        // SAFETY: the caller gives so many bytes.
        send_bytes(fd, unsafe { std::slice::from_raw_parts(bytes.cast(), len) }, flags)
    }

    fn recv(fd: c_int, bytes: *mut c_void, len: usize, flags: c_int) -> isize {
        if !is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_recvfrom, fd, bytes, len, flags, 0, 0) as isize };
        }
        // SAFETY: the caller gives room for so many bytes.
        receive_bytes(fd, unsafe { std::slice::from_raw_parts_mut(bytes.cast(), len) }, flags)
    }

    fn getsockname(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
        if !is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_getsockname, fd, to, len) as c_int };
        }
        // SAFETY: as the caller promises.
        done(on(fd, |socket| Ok((socket.own.clone(), socket.unix)))
            .map(|(address, unix)| unsafe { tell(&address, unix, to, len) }))
    }

    fn getpeername(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
        if !is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_getpeername, fd, to, len) as c_int };
        }
        let other = on(fd, |socket| match socket.link {
            Link::Open { .. } => Ok((socket.other.clone(), socket.unix)),
            _ => Err(ENOTCONN),
        });
        // SAFETY: as the caller promises.
        done(other.map(|(address, unix)| unsafe { tell(&address, unix, to, len) }))
    }

    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int {
        if !is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_setsockopt, fd, level, name, value, len) as c_int };
        }
        let which = match (level, name) {
            (SOL_SOCKET, SO_RCVTIMEO) => 0,
            (SOL_SOCKET, SO_SNDTIMEO) => 1,
            // What the others change is not simulated.
            _ => return 0,
        };
        // SAFETY: the value of these is a time.
        let time = unsafe { &*value.cast::<timeval>() };
        let limit = time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        done(on(fd, |socket| {
            socket.limits[which] = (limit > 0).then_some(limit);
            Ok(())
        }))
    }

    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int {
        if !is_socket(fd) {
            // SAFETY: as the caller promises.
            return unsafe { libc::syscall(libc::SYS_getsockopt, fd, level, name, value, len) as c_int };
        }
        let number = match (level, name) {
            (SOL_SOCKET, SO_ERROR) => on(fd, |socket| match socket.link {
                Link::Failed(error) => Ok(error),
                _ if socket.reset => Ok(ECONNRESET),
                _ => Ok(0),
            }),
            (SOL_SOCKET, SO_RCVTIMEO | SO_SNDTIMEO) => {
                let which = usize::from(name == SO_SNDTIMEO);
                return done(on(fd, |socket| {
                    let limit = socket.limits[which].unwrap_or(0) as i64;
                    // SAFETY: the caller gives room for a time.
                    unsafe { *value.cast() = timeval { tv_sec: limit / 1_000_000_000, tv_usec: limit / 1_000 % 1_000_000 } };
                    Ok(())
                }));
            }
            _ => Ok(1),
        };
        match number {
            // SAFETY: the caller gives room for a number.
            Ok(number) => unsafe {
                *value.cast::<c_int>() = number;
                *len = 4;
                0
            },
            Err(error) => fail(error),
        }
    }
}
