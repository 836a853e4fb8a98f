//! What to poll a socket for.

use std::os::fd::RawFd;

use crate::system::socket::Socket;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) fd: RawFd,
    /// Whether to wait until it is writable, too.
    pub(crate) for_writing: bool,
    /// Tells the socket from all others that ever had its descriptor.
    pub(crate) socket: u64,
}

impl Interest {
    pub(super) fn of(socket: &Socket, for_writing: bool) -> Self {
        Self { fd: socket.fd(), for_writing, socket: socket.number() }
    }
}
