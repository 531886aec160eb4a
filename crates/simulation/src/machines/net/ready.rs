//! What a socket can do now, and waiting for it.

use std::ffi::c_int;

use libc::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLRDHUP, nfds_t, pollfd, sigset_t, timespec};

use super::{FIRST, Link, Net, SocketId};
use crate::machines::clock;
use crate::machines::real;
use crate::machines::world;

impl Net {
    /// What `poll` says of a descriptor. `None` if it is unknown.
    fn events(&self, descriptor: i32) -> Option<i16> {
        let id = *self.descriptors.get(&descriptor)?;
        let socket = self.sockets.get(&id)?;
        Some(match &socket.link {
            Link::New => POLLOUT | POLLHUP,
            Link::Listening { backlog } if backlog.is_empty() => 0,
            Link::Listening { .. } => POLLIN,
            Link::Connecting => 0,
            Link::Failed(_) => POLLERR | POLLHUP | POLLIN | POLLOUT,
            Link::Open { peer } => {
                let mut events = 0;
                if !socket.arrived.is_empty() || socket.ended {
                    events |= POLLIN;
                }
                if socket.ended {
                    events |= POLLRDHUP;
                }
                if socket.ended && (socket.shut || self.is_deserted(id)) {
                    events |= POLLHUP;
                }
                if socket.reset {
                    events |= POLLERR | POLLHUP;
                }
                if self.room(*peer) > 0 || self.is_deserted(id) || socket.reset {
                    events |= POLLOUT;
                }
                events
            }
        })
    }

    /// Waits until something happens to one of some sockets, or until a moment.
    pub(crate) fn wait_for(ids: &[SocketId], until: Option<u64>) {
        world::wait("network", until, |world, me| {
            for id in ids {
                world.net.await_by(*id, me);
            }
        });
    }
}

fn poll_until(fds: &mut [pollfd], until: Option<u64>) -> c_int {
    loop {
        let (count, ids, now) = world::with(|world| {
            let mut ids = Vec::new();
            for fd in fds.iter_mut() {
                fd.revents = match world.net.events(fd.fd) {
                    _ if fd.fd < 0 => 0,
                    None => POLLNVAL,
                    Some(events) => events & (fd.events | POLLERR | POLLHUP),
                };
                ids.extend(world.net.descriptors.get(&fd.fd).copied());
                // Room is made when the peer reads.
                if let Some((_, super::Socket { link: Link::Open { peer }, .. })) = world.net.socket(fd.fd) {
                    ids.push(*peer);
                }
            }
            world.now += 1_000;
            (fds.iter().filter(|fd| fd.revents != 0).count(), ids, world.now)
        });
        if count > 0 {
            return count as c_int;
        }
        if until.is_some_and(|until| until <= now) {
            return 0;
        }
        Net::wait_for(&ids, until);
    }
}

fn is_simulated(fds: &[pollfd]) -> bool {
    world::is_inside() && fds.iter().all(|fd| fd.fd < 0 || fd.fd >= FIRST)
}

/// `poll`.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the caller gives so many.
    let all = unsafe { std::slice::from_raw_parts_mut(fds, if fds.is_null() { 0 } else { count as usize }) };
    if !is_simulated(all) {
        return real::poll(fds, count, timeout);
    }
    let until = (timeout >= 0).then(|| world::with(|world| world.now) + timeout as u64 * 1_000_000);
    poll_until(all, until)
}

/// `ppoll`.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    // SAFETY: the caller gives so many.
    let all = unsafe { std::slice::from_raw_parts_mut(fds, if fds.is_null() { 0 } else { count as usize }) };
    if !is_simulated(all) {
        return real::ppoll(fds, count, timeout, signals);
    }
    // SAFETY: the caller gives a time or nothing.
    let until = unsafe { timeout.as_ref() }.map(clock::after);
    poll_until(all, until)
}
