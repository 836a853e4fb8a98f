//! Which slot of a semaphore a lock has, and what is known when that is had.

use crate::lock_kind::Target;
use crate::server_set::ServerSet;

/// The slot that is had.
#[derive(Debug)]
pub(super) struct Permit {
    pub(super) key: Target,
    pub(super) slot: u16,
    /// The servers that were asked to move there: what these said before that is old.
    pub(super) moved: ServerSet,
}

/// What is known of the servers when a slot is had.
pub(crate) struct Granted<'a> {
    /// Those that have it.
    pub(crate) voters: ServerSet,
    /// Those that were sent anything that may set it.
    pub(crate) sent: ServerSet,
    /// Those that were asked to move there.
    pub(crate) moved: ServerSet,
    /// What slot has been given by those that were asked last.
    pub(crate) given: &'a [(usize, Option<u16>)],
}
