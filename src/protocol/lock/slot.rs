//! Which slot of a semaphore a lock has, and what is known when that slot is taken.

use crate::protocol::lock_kind::Target;
use crate::protocol::server_set::ServerSet;

/// The slot that was taken.
#[derive(Debug)]
pub(super) struct Permit {
    pub(super) key: Target,
    pub(super) slot: u16,
}

/// What is known of the servers when a slot is taken.
pub(crate) struct Granted<'a> {
    /// The servers that have the slot.
    pub(crate) voters: ServerSet,
    /// The servers that were sent any request that may set the slot.
    pub(crate) sent: ServerSet,
    /// The slots that were given by the servers that were asked last.
    pub(crate) given: &'a [(usize, Option<u16>)],
}
