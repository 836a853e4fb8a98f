//! The sockets of this process, according to the system.

use std::fs;
use std::mem;
use std::os::fd::RawFd;

/// Whether this process has a connection to that port of this machine that neither end has closed.
/// `/proc/net/tcp` cannot be used: a reader may miss an existing connection while others come and go.
pub(crate) fn is_connected_to(port: u16) -> bool {
    let open = fs::read_dir("/proc/self/fd").expect("Linux has it");
    let numbers = open.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    numbers.into_iter().any(|fd| peer_port(fd) == Some(port) && !is_closed_there(fd))
}

/// The port at the other end, if this is a connected TCP socket.
fn peer_port(fd: RawFd) -> Option<u16> {
    // SAFETY: all bytes of this structure may be zero.
    let mut address: libc::sockaddr_in = unsafe { mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of_val(&address)).expect("it is small");
    // SAFETY: the pointers are to an address and to its length. Any number may be used as a descriptor.
    let result = unsafe { libc::getpeername(fd, (&raw mut address).cast(), &raw mut length) };
    let is_tcp = result == 0 && i32::from(address.sin_family) == libc::AF_INET;
    is_tcp.then(|| u16::from_be(address.sin_port))
}

fn is_closed_there(fd: RawFd) -> bool {
    let mut watched = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: the pointer is to one pollfd.
    unsafe { libc::poll(&raw mut watched, 1, 0) > 0 }
}
