//! Who says which server has the place of a voter: the Sentinels of a master, or the nodes of a cluster.

use std::fmt;
use std::sync::Arc;

use super::address::Address;
use super::cluster_slot::{self, ClusterSlot};
use super::sentinels::{self, Sentinels};
use crate::protocol::command::arbiter::ArbiterQuery;
use crate::protocol::command::cluster::ClusterQuery;
use crate::protocol::command::handshake::Credentials;
use crate::protocol::command::sentinel::SentinelQuery;
use crate::protocol::electors::Electors;

/// Who says it, as the URL names them.
#[derive(Clone, PartialEq)]
pub(crate) enum Electorate {
    Sentinels(Arc<Sentinels>),
    Nodes(Arc<ClusterSlot>),
}

impl Electorate {
    /// Those that the URL names. They know the others.
    pub(crate) fn places(&self) -> &[Address] {
        match self {
            Self::Sentinels(it) => it.places(),
            Self::Nodes(it) => it.seeds(),
        }
    }

    /// How many are asked at most.
    pub(crate) fn count_max(&self) -> usize {
        match self {
            Self::Sentinels(_) => sentinels::COUNT_MAX,
            Self::Nodes(_) => cluster_slot::COUNT_MAX,
        }
    }

    pub(crate) fn kind(&self) -> Electors {
        match self {
            Self::Sentinels(_) => Electors::Sentinels,
            Self::Nodes(_) => Electors::Nodes,
        }
    }

    /// The voter's name for people, without its address.
    pub(crate) fn voter(&self) -> String {
        match self {
            Self::Sentinels(it) => it.master().to_owned(),
            Self::Nodes(it) => format!("tag {}", it.tag()),
        }
    }

    /// What all keys of the voter have before their names.
    pub(crate) fn key_prefix(&self) -> Vec<u8> {
        match self {
            Self::Sentinels(_) => Vec::new(),
            Self::Nodes(it) => format!("{{{}}}", it.tag()).into_bytes(),
        }
    }

    /// Whether both may be about the same voter.
    pub(crate) fn are_related(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sentinels(mine), Self::Sentinels(theirs)) => mine.are_related(theirs),
            (Self::Nodes(mine), Self::Nodes(theirs)) => mine.are_related(theirs),
            _ => false,
        }
    }

    /// Begins a conversation with one of them. Nodes have the login of the voter. Sentinels have one of their own. The bytes
    /// to send are appended to the outbox.
    pub(crate) fn query(
        &self,
        has_tls: bool,
        login: Option<&Credentials>,
        outbox: &mut Vec<u8>,
    ) -> ArbiterQuery {
        match self {
            Self::Sentinels(it) => {
                let query = SentinelQuery::new(it.master(), it.credentials(), outbox);
                ArbiterQuery::Sentinel(query)
            }
            Self::Nodes(it) => {
                ArbiterQuery::Node(ClusterQuery::new(it.slot(), has_tls, login, outbox))
            }
        }
    }
}

impl fmt::Display for Electorate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sentinels(it) => it.fmt(f),
            Self::Nodes(it) => it.fmt(f),
        }
    }
}
