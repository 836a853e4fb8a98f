//! No thread is started in this world.

use std::io;

pub(crate) struct Thread;

pub(crate) fn start(_name: &str, _body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn await_end(_thread: Thread) {}
