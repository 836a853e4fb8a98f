//! What a waiter and its queue tell each other.

use crate::protocol::command::NthKey;
use crate::protocol::lock_kind::Target;
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::server_set::ServerSet;

/// How often the head looks whether the lock was released through another manager, which tells no waiter here.
pub(super) const LOOK_MS: i64 = 100;

/// How a waiter wants the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// It wants the resource alone.
    Alone,
    /// It wants the resource alone, and other resources with it. It must look whether those are free.
    Several,
    /// It shares the resource with all others that want it shared.
    Shared,
}

/// How a waiter asks for permission to ask the servers.
#[derive(Clone, Copy)]
pub(crate) struct TurnRequest {
    /// It asks even if this manager has the lock, and even if it should stand back.
    pub(crate) is_urgent: bool,
    /// It asks out of turn, too, because what the head was told may be old.
    pub(crate) is_last: bool,
}

/// Whether a waiter may ask the servers now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// It may ask, and counts as asking.
    MayAsk,
    /// This manager has the lock for this long. If it has the lock shared, by this many readers.
    Held { left_ms: i64, readers: usize },
    /// It is not its turn.
    NotYet,
    /// One of several resources is in the way. This manager has its lock for this long, or it is not the
    /// waiter's turn there.
    Blocked { place: NthKey, left_ms: Option<i64> },
}

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The end of its pause, if it is the head and somebody else has the lock.
    pub(crate) pause_until: Moment,
    /// When it gives up in any case.
    pub(crate) until: Moment,
}

/// What happens to the queue when a lock is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The head must be given the turn. It asks at once.
    Ask(OpId),
    /// The waits of these waiters must be ended, so that they look. They are the head, or readers, which come
    /// together.
    Tell(Vec<OpId>),
    Nobody,
}

/// A place in line that is given up, and the servers that must be told.
pub(crate) type Left = (Target, ServerSet);

/// What must be done about a server's message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// These waiting operations must look at it.
    pub(crate) tell: Vec<OpId>,
    /// Nobody waits for it, so the next client in line must be told.
    pub(crate) pass_on: bool,
}
