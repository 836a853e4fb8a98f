//! A connection with its buffers.

use super::wire::Wire;
use crate::protocol::conn::inbox::Inbox;
use crate::protocol::moment::Moment;

/// A connection that is up, with the received data and the data to send.
pub(super) struct Stream {
    pub(super) wire: Wire,
    pub(super) inbox: Inbox,
    pub(super) outbox: Vec<u8>,
    pub(super) heard_at: Moment,
}
