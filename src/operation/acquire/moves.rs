//! How far an attempt to have a permit of a semaphore has come.

use crate::server_set::ServerSet;

/// How often an attempt moves. Those that come to nothing again and again stand in each other's way: then it is better
/// to let go of everything, and to pause.
pub(super) const MOVES_MAX: u32 = 3;

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moves {
    pub(super) count: u32,
    /// The servers that were sent anything that may set a slot.
    pub(super) sent: ServerSet,
    /// Those that were sent the last move.
    pub(super) moved: ServerSet,
}

impl Moves {
    /// These were sent what was asked last. Returns those that were sent anything.
    pub(super) fn note_sent(&mut self, sent: ServerSet) -> ServerSet {
        (self.sent, self.moved) = (self.sent.plus(sent), sent);
        self.sent
    }
}
