//! What a waiter and its queue say to each other.

use crate::command::Place;
use crate::moment::Moment;
use crate::transport::ticket::Ticket;

/// How a waiter asks to be let ask the servers.
#[derive(Clone, Copy)]
pub(crate) struct Manners {
    /// Even if this manager has the lock, and although it would be better manners to stand back.
    pub(crate) is_urgent: bool,
    /// Out of turn, too: what the head was told may be old.
    pub(crate) is_last: bool,
}

/// Whether a waiter may ask the servers now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// It may, and is taken to do it.
    MayAsk,
    /// This manager has the lock, for so long.
    Held { left_ms: i64 },
    /// It is not its turn.
    NotYet,
    /// One of several resources is in the way: this manager has its lock, for so long; or it is not its turn there.
    Blocked { place: Place, left_ms: Option<i64> },
}

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The end of its pause, if it is the head and somebody else has the lock.
    pub(crate) pause_until: Moment,
    /// When it gives up in any case.
    pub(crate) until: Moment,
}

/// What becomes of the queue when a lock is let go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The head is to be given the turn: it asks at once.
    Ask(Ticket),
    /// The wait of the head is to be ended, for it to look.
    Tell(Ticket),
    Nobody,
}

/// What is to be done about what a server has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// This operation, which waits, is to look at it.
    Tell(Ticket),
    /// Nobody waits for it: the next in line is to be told.
    PassOn,
    /// It is noted, or known.
    Nothing,
}
