//! This world has no descriptor for event loops: a caller that waits for events calls the library.

use std::io;
use std::os::fd::RawFd;

use crate::protocol::moment::Moment;

#[derive(Debug)]
pub(crate) enum ReadinessDescriptor {}

impl ReadinessDescriptor {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn fd(&self) -> RawFd {
        match *self {}
    }

    pub(crate) fn set_timer(&self, _due: Moment) {}

    pub(crate) fn add(&self, _fd: RawFd, _for_writing: bool) -> bool {
        true
    }

    pub(crate) fn change(&self, _fd: RawFd, _for_writing: bool) -> bool {
        true
    }

    pub(crate) fn forget(&self, _fd: RawFd) {}
}
