//! Encodes commands as servers read them.

use redis::Cmd;

use super::script::Script;
use super::wire_form::Encoded;

/// The most memory that an encoder keeps for later.
const KEPT_MAX: usize = 8 * 1024;

/// Encodes requests, with buffers that are kept. The crate's command would allocate four times for each of
/// the three commands of a lock and its release.
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

    /// Adds a script, which must be the first command of its request. `fill` adds the number of its keys, the
    /// keys, and its arguments. The text is not copied here but inserted when the request is sent
    /// ([`Encoded::put`]).
    pub(super) fn put_script(&mut self, script: Script, fill: impl FnOnce(&mut Cmd) -> &mut Cmd) {
        debug_assert!(self.bytes.is_empty() && self.script.is_none());
        self.script = Some(script);
        self.command.arg("").arg("");
        self.put(fill);
    }

    /// Returns what was added since the last call.
    pub(super) fn take(&mut self) -> Encoded {
        let encoded = Encoded::new(self.script.take(), &self.bytes);
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_MAX {
            *self = Self::default();
        }
        encoded
    }
}
