//! Encodes commands as servers read them.

use redis::Cmd;

use super::encoded::Encoded;
use super::script::Script;

/// The most memory that it keeps for later.
const KEPT_MAX: usize = 8 * 1024;

/// Encodes requests, with buffers that are kept: the crate's command would allocate four times for
/// each of three commands that a lock and its release take.
#[derive(Default)]
pub(crate) struct Encoder {
    command: Cmd,
    bytes: Vec<u8>,
    script: Option<Script>,
}

impl Encoder {
    /// Adds a command.
    pub(super) fn put(&mut self, fill: impl FnOnce(&mut Cmd) -> &mut Cmd) {
        fill(&mut self.command).write_packed_command(&mut self.bytes);
        self.command.clear();
    }

    /// Adds a script, which is the first command of its request: `fill` adds the number of its keys, these, and its
    /// arguments. The text is not copied: it is put in when the request is sent ([`Encoded::put`]).
    pub(super) fn put_script(&mut self, script: Script, fill: impl FnOnce(&mut Cmd) -> &mut Cmd) {
        debug_assert!(self.bytes.is_empty() && self.script.is_none());
        self.script = Some(script);
        self.command.arg("").arg("");
        self.put(fill);
    }

    /// What was put since the last time.
    pub(super) fn take(&mut self) -> Encoded {
        let encoded = Encoded::new(self.script.take(), &self.bytes);
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_MAX {
            *self = Self::default();
        }
        encoded
    }
}
