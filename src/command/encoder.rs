//! Encodes commands as servers read them.

use redis::Cmd;

/// The most memory that it keeps for later.
const KEPT_MAX: usize = 8 * 1024;

/// Encodes requests, with buffers that are kept: the crate's command would allocate four times for
/// each of three commands that a lock and its release take.
#[derive(Default)]
pub(crate) struct Encoder {
    command: Cmd,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Adds a command.
    pub(super) fn put(&mut self, fill: impl FnOnce(&mut Cmd) -> &mut Cmd) {
        fill(&mut self.command).write_packed_command(&mut self.bytes);
        self.command.clear();
    }

    /// What was put since the last time.
    pub(super) fn take(&mut self) -> Box<[u8]> {
        let bytes = Box::from(&*self.bytes);
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_MAX {
            *self = Self::default();
        }
        bytes
    }
}
