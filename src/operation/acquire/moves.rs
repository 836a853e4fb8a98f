//! How far an attempt to take a permit of a semaphore has come.

use crate::server_set::ServerSet;

/// How often an attempt may move. Attempts whose moves fail again and again stand in each other's way. Then it
/// is better to release everything and to pause.
pub(super) const MOVES_MAX: u32 = 3;

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moves {
    pub(super) count: u32,
    /// The servers that were sent any request that may set a slot.
    pub(super) sent: ServerSet,
    /// The servers that were sent the last move.
    pub(super) moved: ServerSet,
}

impl Moves {
    /// Notes the servers that were sent the last request. Returns the servers that were sent any request.
    pub(super) fn note_sent(&mut self, sent: ServerSet) -> ServerSet {
        (self.sent, self.moved) = (self.sent.plus(sent), sent);
        self.sent
    }
}
