//! Why a connection is given up after something was received over it.

use std::fmt;

use super::guard::Forgotten;
use super::reply::ProtocolError;
use crate::protocol::failure::Failure;

/// Why a connection is of no use any more, after what was received over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    ProtocolError(ProtocolError),
    Forgotten(Forgotten),
    /// The server is now a replica, and Sentinels know the master.
    Demoted,
    /// The slot with all keys is at another node of the cluster, or on its way there.
    SlotMoved,
}

impl From<ProtocolError> for CloseReason {
    fn from(protocol_error: ProtocolError) -> Self {
        Self::ProtocolError(protocol_error)
    }
}

impl From<Forgotten> for CloseReason {
    fn from(forgotten: Forgotten) -> Self {
        Self::Forgotten(forgotten)
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProtocolError(it) => it.fmt(f),
            Self::Forgotten(it) => it.fmt(f),
            Self::Demoted => f.write_str("the server became a replica"),
            Self::SlotMoved => Failure::SlotMoved.fmt(f),
        }
    }
}
