//! A connection as such.

use super::inbox::Inbox;
use super::wire::Wire;
use crate::moment::Moment;

/// A connection that is up, with what was received and what is to be sent.
pub(super) struct Stream {
    pub(super) wire: Wire,
    pub(super) inbox: Inbox,
    pub(super) outbox: Vec<u8>,
    pub(super) heard_at: Moment,
}
