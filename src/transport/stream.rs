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
    /// To whom it leads, if its grants count only while the Sentinels confirm that.
    pub(super) owner: Option<Owner>,
}
