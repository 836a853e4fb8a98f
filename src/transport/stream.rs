//! A connection with its buffers.

use super::arbiters::Owner;
use super::wire::Wire;
use crate::protocol::conn::inbox::Inbox;
use crate::protocol::moment::Moment;

/// A connection that is up, with the received data and the data to send.
pub(super) struct Stream {
    pub(super) wire: Wire,
    pub(super) inbox: Inbox,
    pub(super) outbox: Vec<u8>,
    pub(super) heard_at: Moment,
    /// To which master it leads, if Sentinels watch it, and whether its grants count only while they confirm that.
    pub(super) master: Option<Owner>,
    pub(super) needs_majority: bool,
}
