//! What is wrong with a server, for programs. The words about it are for people.

use crate::protocol::failure::Failure;
use crate::protocol::refusal::Refusal;

/// What is wrong with a server that cannot be used, has no vote, or has one that is not worth as much as others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// No program listens at its address.
    ConnectionRefused,
    /// The resolver does not know its host name.
    UnknownName,
    /// Its Sentinels, or the nodes of its cluster, do not say where it is.
    OwnerUnknown,
    /// Its certificate is not accepted.
    Certificate,
    /// It needs a password, and there is none.
    NoPassword,
    /// It does not accept the user or the password.
    WrongPassword,
    /// The user lacks a right.
    NoPermission,
    /// It is a replica.
    Replica,
    /// It is a Sentinel.
    Sentinel,
    /// It may evict locks when its memory is full.
    MayEvict,
    /// It is in the list under another name, too.
    SameServer,
    /// Another program uses the key of the guard.
    GuardKey,
    /// A newer version of this library has written the key of the guard.
    NewerVersion,
    /// It lost its data a moment ago.
    LostData,
    /// Its clock jumped a moment ago.
    ClockJumped,
    /// It has a vote, but a loss of its data is not noticed: the user lacks a right.
    NotGuarded,
    /// It has a vote, but it is a node of a Redis Cluster, even if the cluster has no other one. Such a node has only
    /// the keys of its slots.
    ClusterNode,
    /// It has a vote, but another program uses the key of the fencing counters.
    FenceKey,
    /// The words say what.
    Other,
}

impl Trouble {
    pub(crate) fn of_failure(failure: &Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => Self::of_refusal(*refusal),
            Failure::Forgot { .. } => Self::LostData,
            Failure::Stepped { .. } => Self::ClockJumped,
            _ => Self::Other,
        }
    }

    fn of_refusal(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoAuth => Self::NoPassword,
            Refusal::WrongPass | Refusal::WrongPassword | Refusal::NoPasswordSet => {
                Self::WrongPassword
            }
            Refusal::NoPermission { .. } => Self::NoPermission,
            Refusal::ReadOnly | Refusal::Replica => Self::Replica,
            Refusal::Sentinel => Self::Sentinel,
            Refusal::MayEvict => Self::MayEvict,
            _ => Self::Other,
        }
    }
}
