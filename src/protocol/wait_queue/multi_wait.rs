//! The state of a waiter that wants several resources at once.

use super::waitlist::Waitlist;
use crate::protocol::moment::Moment;

pub(super) struct MultiWait {
    pub(super) thread: Option<usize>,
    /// The queues in which it stands: one bit for each of the resources.
    pub(super) queues: u128,
    /// Since when others could have used the resources that are free.
    pub(super) holds_up_since: Option<Moment>,
    /// Its place on the servers. On each server, the place is in the line of one of the resources.
    pub(super) line: Waitlist,
    /// The resources in whose lines it may stand: one bit for each.
    pub(super) lined: u128,
}

impl MultiWait {
    pub(super) fn new(thread: Option<usize>) -> Self {
        Self { thread, queues: 0, holds_up_since: None, line: Waitlist::default(), lined: 0 }
    }
}
