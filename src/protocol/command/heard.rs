//! What an arbiter says: a Sentinel, or a node of a cluster.

use super::identity::RunId;
use crate::protocol::failure::Failure;
use crate::protocol::moment::Moment;

/// A server's host and port, as an arbiter names them. They must be checked before they are quoted.
pub(crate) type Location = (String, u16);

/// The result of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing that matters.
    Nothing,
    /// Who the arbiter is, if it says so.
    Identity(Option<RunId>),
    Others(Vec<Location>),
    Owner(OwnerReport),
    /// All of this at once.
    Map(ClusterMap),
    Refused(Failure),
}

/// What an arbiter says of the owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OwnerReport {
    pub(crate) at: Location,
    pub(crate) epoch: u64,
    /// How many other arbiters it knows.
    pub(crate) others: usize,
    /// Whether it is making another server the owner. Then the address and the epoch may not belong together.
    pub(crate) is_moving: bool,
    pub(crate) asked_at: Moment,
}

/// What a node says of the cluster.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClusterMap {
    pub(crate) id: Option<RunId>,
    pub(crate) others: Vec<(RunId, Location)>,
    /// None if no node owns the slot. Its host is empty if that is the node itself, and it does not know where it is.
    pub(crate) owner: Option<OwnerReport>,
}
