//! The conversation with an arbiter: a Sentinel, or a node of a cluster. It says who it is, which other arbiters it knows,
//! and which server is the owner of a voter's place.

use redis::Value;

use super::cluster::ClusterQuery;
use super::heard::Heard;
use super::sentinel::SentinelQuery;
use crate::protocol::electors::Electors;
use crate::protocol::moment::Moment;

/// A conversation with one arbiter.
pub(crate) enum ArbiterQuery {
    Sentinel(SentinelQuery),
    Node(ClusterQuery),
}

impl ArbiterQuery {
    /// Asks which server is the owner.
    pub(crate) fn ask(&mut self, now: Moment, outbox: &mut Vec<u8>) {
        match self {
            Self::Sentinel(query) => query.ask(now, outbox),
            Self::Node(query) => query.ask(now, outbox),
        }
    }

    /// Whom it is with.
    pub(crate) fn kind(&self) -> Electors {
        match self {
            Self::Sentinel(_) => Electors::Sentinels,
            Self::Node(_) => Electors::Nodes,
        }
    }

    /// Whether an answer is owed.
    pub(crate) fn is_owed(&self) -> bool {
        match self {
            Self::Sentinel(query) => query.is_owed(),
            Self::Node(query) => query.is_owed(),
        }
    }

    /// Whether the arbiter has answered anything.
    pub(crate) fn has_begun(&self) -> bool {
        match self {
            Self::Sentinel(query) => query.has_begun(),
            Self::Node(query) => query.has_begun(),
        }
    }

    /// Handles the next reply.
    pub(crate) fn handle_reply(&mut self, reply: &Value) -> Heard {
        match self {
            Self::Sentinel(query) => query.handle_reply(reply),
            Self::Node(query) => query.handle_reply(reply),
        }
    }
}
