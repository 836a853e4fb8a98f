//! Sockets that lead to the peer of this run.

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::Path;

use crate::protocol::moment::Moment;
use crate::world;

/// What a forked child would look for. Nobody forks here.
#[derive(Clone, Debug)]
pub(crate) struct InheritedDescriptor;

impl InheritedDescriptor {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn close_inherited(&self) {}
}

/// The near end of a connection, by its number.
#[derive(Debug)]
pub(crate) struct Socket(usize);

impl Socket {
    pub(crate) fn to_address(
        address: SocketAddr,
        _visible: &InheritedDescriptor,
    ) -> io::Result<Self> {
        world::connect(&address.to_string()).map(Self)
    }

    pub(crate) fn to_path(path: &Path, _visible: &InheritedDescriptor) -> io::Result<Self> {
        world::connect(&path.to_string_lossy()).map(Self)
    }

    pub(crate) fn connected(&self) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn is_writable(&self) -> bool {
        world::with(|world| world.is_writable(self.0))
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        world::with(|world| world.send(self.0, bytes))
    }

    pub(crate) fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        world::with(|world| world.receive(self.0, room))
    }

    pub(crate) fn fd(&self) -> RawFd {
        world::fd(self.0)
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

/// Rings; the next [`poll`] notices it.
#[derive(Debug)]
pub(crate) struct Waker;

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn inherited(&self) -> impl Iterator<Item = InheritedDescriptor> {
        std::iter::empty()
    }

    pub(crate) fn wake(&self) {
        world::with(|world| world.rung = true);
    }

    pub(crate) fn clear(&self) {
        world::with(|world| world.rung = false);
    }

    pub(crate) fn fd(&self) -> RawFd {
        world::BELL
    }

    pub(crate) fn forget(self) {}
}

/// A descriptor to wait for, and the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) fd: RawFd,
    pub(crate) for_writing: bool,
    pub(crate) revents: i16,
}

pub(crate) fn watch(fd: RawFd, for_writing: bool) -> Watched {
    Watched { fd, for_writing, revents: 0 }
}

pub(crate) fn poll(watched: &mut [Watched], until: Moment, _now: Moment) {
    world::with(|world| world.wait(watched, until));
}
