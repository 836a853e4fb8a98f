//! Sockets of a simulated network.

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::Path;

use crate::protocol::moment::Moment;
use crate::world::{self, turns};

/// What a forked child would look for. Nobody forks here.
#[derive(Clone, Debug)]
pub(crate) struct InheritedDescriptor;

impl InheritedDescriptor {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn close_inherited(&self) {}
}

/// One end of a connection. The other end remains when this one is closed.
#[derive(Debug)]
pub(crate) struct Socket(usize);

impl Socket {
    pub(crate) fn to_address(
        address: SocketAddr,
        _visible: &InheritedDescriptor,
    ) -> io::Result<Self> {
        turns::step();
        Ok(Self(world::with(|world| world.connect(address.port()))))
    }

    pub(crate) fn to_path(_path: &Path, _visible: &InheritedDescriptor) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn connected(&self) -> io::Result<()> {
        world::with(|world| world.has_connected(self.0))
    }

    pub(crate) fn is_writable(&self) -> bool {
        world::with(|world| world.readiness(self.0, true)) != 0
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        turns::step();
        world::with(|world| world.send(self.0, bytes))
    }

    pub(crate) fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        turns::step();
        world::with(|world| world.receive(self.0, room))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0 as RawFd
    }

    pub(crate) fn number(&self) -> u64 {
        self.0 as u64
    }

    pub(crate) fn forget(self) {}
}

impl Drop for Socket {
    fn drop(&mut self) {
        world::with(|world| world.close(self.0));
    }
}

/// Wakes the caller of the same client that waits in [`poll`].
#[derive(Debug)]
pub(crate) struct Waker(RawFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(world::with(|world| world.new_bell())))
    }

    pub(crate) fn inherited(&self) -> impl Iterator<Item = InheritedDescriptor> {
        std::iter::empty()
    }

    pub(crate) fn wake(&self) {
        turns::take_turns();
        world::with(|world| world.ring(self.0));
    }

    pub(crate) fn clear(&self) {
        world::with(|world| world.silence(self.0));
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0
    }

    pub(crate) fn forget(self) {}
}

pub(crate) type Watched = libc::pollfd;

pub(crate) fn watch(fd: RawFd, for_writing: bool) -> Watched {
    let events = if for_writing { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
    Watched { fd, events, revents: 0 }
}

/// Plays the world until something is ready, or until the clock of the running client shows `until`.
pub(crate) fn poll(watched: &mut [Watched], until: Moment, _now: Moment) {
    turns::step();
    if !world::with(|world| world.look(watched, until.as_nanos())) {
        turns::pause();
        world::with(|world| world.note_ready(watched));
    }
    turns::step();
}
