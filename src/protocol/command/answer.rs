//! A server's answer to a request.

use std::fmt;

use redis::{ServerError, Value};

use super::numbers::Fences;
use crate::protocol::failure::Failure;
use crate::protocol::slot_set::SlotSet;

/// A server's answer to a request, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The server did what was asked. Without a request: the connection is up.
    Done,
    /// The server did what was asked, and drew this number as a fencing token.
    Granted { number: i64 },
    /// The same, but its numbers were restored by its clock alone.
    GrantedByClock { number: i64 },
    /// The server did what was asked, except for the number: it has lost its numbers, which was first seen so long
    /// ago.
    Unfenced { ago_ms: i64 },
    /// What the server knows of fencing tokens.
    Fences(Fences),
    /// The server extended the key. `left_ms` is the remaining time before.
    Extended { left_ms: i64 },
    /// The server deleted the key, and woke a waiter.
    Woke,
    /// The key did not exist, or (for a release) was not ours.
    Absent,
    /// The key did not exist, or was not ours. But the same release was sent over another connection, too,
    /// and may have deleted the key there.
    AbsentOrReleased,
    /// The key has another value, and this remaining time if it is known. Below 0: for ever.
    Foreign { left_ms: Option<i64> },
    /// So many readers hold it, and we do not. `left_ms` is the remaining time of the key, if it is known. If
    /// `readers` is 0, their number is not known.
    Shared { readers: i64, left_ms: Option<i64> },
    /// A writer waits, and readers must wait for it: for this long, unless the writer announces itself again.
    WriterWaits { left_ms: i64 },
    /// Of several keys, this one has another value, and this remaining time if it is known. Below 0: for
    /// ever.
    Blocked { place: NthKey, left_ms: Option<i64> },
    /// Of several keys, this one did not exist, and none had another value.
    Lacking { place: NthKey },
    /// The key has this value and this remaining time. Of a long value, only the beginning.
    Found { value: Vec<u8>, left_ms: i64 },
    /// The key is held, with this remaining time (below 0: for ever). We are in its wait queue, behind `rank`
    /// others.
    Enrolled { left_ms: i64, rank: u32 },
    /// The same, and readers hold the key.
    EnrolledBehindReaders { left_ms: i64, rank: u32 },
    /// To a reader: a writer waits, for this long, and we are in the wait queue behind `rank` others.
    EnrolledBehindWriter { left_ms: i64, rank: u32 },
    /// All permits of a semaphore are taken, and we are in its wait queue, behind `rank` others.
    EnrolledForPermit { slots: Slots, rank: u32 },
    /// Of several keys, this one is held (by readers, if `is_shared`), with this remaining time. We are in
    /// its wait queue, behind `rank` others. Without a `rank` we are in no wait queue.
    EnrolledForOne { place: NthKey, left_ms: Option<i64>, rank: Option<u32>, is_shared: bool },
    /// Nobody holds the key, so we are not in the wait queue.
    Free,
    /// To a client that wants a permit of a semaphore.
    Slots(Slots),
    /// To an inspection of a semaphore: the taken slots, in the order of their numbers.
    Permits(Vec<SlotValue>),
    /// No usable answer.
    Failed(Failure),
}

/// Which of several resources, in the order in which they were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NthKey {
    /// From 1.
    pub nth: u16,
    pub of: u16,
}

impl fmt::Display for NthKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resource {} of {}", self.nth, self.of)
    }
}

/// The slots of a semaphore on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The slot that our token has.
    pub got: Option<u16>,
    /// The slots that any token has.
    pub taken: SlotSet,
    /// If our token has none: at least how long the key lives that ends first. Below 0: for ever.
    pub left_ms: i64,
}

/// A taken slot with its remaining time. Of a long value, only the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotValue {
    pub slot: u16,
    pub value: Vec<u8>,
    pub left_ms: i64,
}

/// The maximum number of bytes of a value that are read. Our tokens have 40 bytes, and those of other clients
/// are not much longer. Any other value under the name of a resource is not worth reading.
pub(super) const VALUE_MAX: usize = 128;

impl Answer {
    /// Whether the server did what was asked. A server that has set the key and drawn no number has done that, too:
    /// only as a vote it counts as a failure.
    pub fn is_grant(&self) -> bool {
        matches!(
            self,
            Self::Done
                | Self::Granted { .. }
                | Self::GrantedByClock { .. }
                | Self::Unfenced { .. }
                | Self::Fences(_)
                | Self::Slots(Slots { got: Some(_), .. })
        )
    }

    /// Whether the server's numbers for fencing tokens are to be restored from other servers, now or once more.
    pub(crate) fn asks_to_restore(&self) -> bool {
        matches!(self, Self::GrantedByClock { .. } | Self::Failed(Failure::Unfenced { left_s: 0 }))
    }

    /// Whether nothing was done because another holder's lock is in the way, for one resource or one of
    /// several. Also true if we have no slot of a semaphore.
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

    /// The remaining time of what is in the way, if it is known. Below 0: for ever.
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

    /// The meaning of an error reply.
    pub(super) fn refused(error: &ServerError) -> Self {
        Self::Failed(failure_of(error))
    }
}

/// The meaning of an error reply, in our words.
pub(super) fn failure_of(error: &ServerError) -> Failure {
    Failure::of_error(error.code(), error.details().unwrap_or_default())
}

/// Whether a node of a cluster says that it does not have this slot, or not all of it: the slot is at another node, or on
/// its way there.
pub(crate) fn has_lost_slot(reply: &Value) -> bool {
    let Value::ServerError(error) = reply else { return false };
    matches!(error.code(), "MOVED" | "ASK" | "TRYAGAIN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_that_it_does_not_have_the_slot() {
        for (words, is_lost) in [
            ("-MOVED 300 10.0.0.1:6379", true),
            ("-ASK 300 10.0.0.1:6379", true),
            ("-TRYAGAIN Multiple keys request during rehashing of slot", true),
            ("-CLUSTERDOWN Hash slot not served", false),
            ("-NOPERM no", false),
            ("+OK", false),
        ] {
            let reply = redis::parse_redis_value(format!("{words}\r\n").as_bytes());
            assert_eq!(has_lost_slot(&reply.expect(words)), is_lost, "{words}");
        }
    }
}
