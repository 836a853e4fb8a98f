//! How far an attempt to take a permit of a semaphore has come.

use crate::protocol::operation::round::Round;
use crate::protocol::server_set::ServerSet;

/// How often an attempt may move. Attempts whose moves fail again and again stand in each other's way. Then it
/// is better to release everything and to pause.
pub(super) const MOVES_MAX: u32 = 3;

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moves {
    pub(super) count: u32,
    /// The servers that were sent any request that may set a slot.
    pub(super) sent: ServerSet,
    /// The servers whose answer to such a request is not known. They may carry it out at any time, also after a
    /// request that they get later over another connection.
    unheard: ServerSet,
}

impl Moves {
    /// Notes the servers that were sent the last request. Returns the servers that were sent any request.
    pub(super) fn note_sent(&mut self, sent: ServerSet) -> ServerSet {
        self.sent = self.sent.plus(sent);
        self.sent
    }

    /// The servers that the next move may be sent to: no other request that may set a slot is under way there.
    /// `round` is about the last request.
    pub(super) fn next(&mut self, round: &Round, servers: usize) -> ServerSet {
        let heard = round.slots_given().into_iter().map(|(server, _)| server).collect();
        self.unheard = self.unheard.plus(self.sent.minus(heard));
        ServerSet::first(servers).minus(self.unheard)
    }
}
