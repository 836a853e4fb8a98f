//! What a waiter and its queue say to each other.

use crate::command::Place;
use crate::moment::Moment;
use crate::transport::ticket::Ticket;

/// How a waiter wants the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// To have it alone.
    Alone,
    /// The same, and others with it: it has to look whether these are free.
    Several,
    /// With all others that want it so.
    Shared,
}

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
    /// This manager has the lock, for so long; if it has it shared, by so many.
    Held { left_ms: i64, readers: usize },
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The head is to be given the turn: it asks at once.
    Ask(Ticket),
    /// The waits of these are to be ended, for them to look: of the head, or of readers, which come together.
    Tell(Vec<Ticket>),
    Nobody,
}

/// What is to be done about what a server has told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// These operations, which wait, are to look at it.
    pub(crate) tell: Vec<Ticket>,
    /// Nobody waits for it: the next in line is to be told.
    pub(crate) pass_on: bool,
}
