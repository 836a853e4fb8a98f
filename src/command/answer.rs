//! What a server says to a request.

use std::fmt;

use redis::ServerError;

use crate::failure::Failure;
use crate::slot_set::SlotSet;

/// What a server says to a request, or why it says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It did what was asked. To no request at all: the connection is up.
    Done,
    /// It did what was asked, and drew this number as a fencing token.
    Granted { number: i64 },
    /// It extended the key, which had so long to live before.
    Extended { left_ms: i64 },
    /// It deleted the key, and has woken somebody who waits for it.
    Woke,
    /// The key was not there, or (to a release) not ours.
    Absent,
    /// The key was not there, or not ours; but the same release went over another connection, too, and may
    /// have deleted it there.
    AbsentOrReleased,
    /// The key has another value, and so long to live if that is known. Below 0: for ever.
    Foreign { left_ms: Option<i64> },
    /// So many readers have it, not we; and how long the key has to live, if that is known. 0: nobody knows how many.
    Shared { readers: i64, left_ms: Option<i64> },
    /// A writer waits, and readers are to wait for it: so long, unless it says so again.
    WriterWaits { left_ms: i64 },
    /// Of several keys, this one has another value, and so long to live if that is known. Below 0: for ever.
    Blocked { place: Place, left_ms: Option<i64> },
    /// Of several keys, this one was not there, and none had another value.
    Lacking { place: Place },
    /// The key has this value, and so long to live. Of a long one, the beginning.
    Found { value: Vec<u8>, left_ms: i64 },
    /// Somebody has the key, for so long still (below 0: for ever), and we stand in line for it, behind so many.
    Enrolled { left_ms: i64, rank: u32 },
    /// All permits of a semaphore are taken, and we stand in line for one, behind so many.
    EnrolledForPermit { slots: Slots, rank: u32 },
    /// Of several keys, somebody has this one (readers, if it is told so), for so long still, and we stand in its line, behind
    /// so many; in none, where that is not told.
    EnrolledForOne { place: Place, left_ms: Option<i64>, rank: Option<u32>, is_shared: bool },
    /// Nobody has the key, so we do not stand in line.
    Free,
    /// To whoever wants a permit of a semaphore.
    Slots(Slots),
    /// To whoever looks at a semaphore: the slots that are taken, in the order of their numbers.
    Permits(Vec<SlotValue>),
    /// No usable answer.
    Failed(Failure),
}

/// Which of several resources, in the order in which they were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub nth: u16,
    pub of: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resource {} of {}", self.nth, self.of)
    }
}

/// The slots of a semaphore, as one server has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The slot that our token has.
    pub got: Option<u16>,
    /// Those that anybody has.
    pub taken: SlotSet,
    /// If our token has none: how long the key lives, at least, that ends first. Below 0: for ever.
    pub left_ms: i64,
}

/// A slot that somebody has, for so long. Of a long value, the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotValue {
    pub slot: u16,
    pub value: Vec<u8>,
    pub left_ms: i64,
}

/// How much of a value is looked at. A token of ours has 40 bytes, others' have not many more,
/// and what else may stand under the name of a resource is not worth reading.
pub(super) const VALUE_MAX: usize = 128;

impl Answer {
    /// Whether it did what was asked.
    pub fn is_grant(&self) -> bool {
        matches!(self, Self::Done | Self::Granted { .. } | Self::Slots(Slots { got: Some(_), .. }))
    }

    /// Whether somebody else's lock is in the way, or that of one of several resources, so that nothing was done; or we have
    /// no slot of a semaphore.
    pub fn is_foreign(&self) -> bool {
        matches!(
            self,
            Self::Foreign { .. }
                | Self::Blocked { .. }
                | Self::Shared { .. }
                | Self::WriterWaits { .. }
                | Self::Slots(Slots { got: None, .. })
                | Self::EnrolledForPermit { .. }
                | Self::EnrolledForOne { .. }
        )
    }

    /// How long what is in the way has to live, if that is known. Below 0: for ever.
    pub(crate) fn in_the_way_ms(&self) -> Option<i64> {
        match *self {
            Self::Foreign { left_ms }
            | Self::Blocked { left_ms, .. }
            | Self::EnrolledForOne { left_ms, .. }
            | Self::Shared { left_ms, .. } => left_ms,
            Self::WriterWaits { left_ms }
            | Self::Slots(Slots { left_ms, .. })
            | Self::EnrolledForPermit { slots: Slots { left_ms, .. }, .. } => Some(left_ms),
            _ => None,
        }
    }

    /// What an error reply means.
    pub(super) fn refused(error: &ServerError) -> Self {
        Self::Failed(failure_of(error))
    }
}

/// What an error reply means, in our words.
pub(super) fn failure_of(error: &ServerError) -> Failure {
    Failure::of_error(error.code(), error.details().unwrap_or_default())
}
