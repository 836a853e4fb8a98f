//! Questions about the slots of a semaphore: to take one, and to find out which are held.

use std::sync::Arc;

use super::permits::Found;
use super::{Count, Question};
use crate::held_lock::HeldLock;
use crate::moment::Moment;
use crate::quorum::permits::Permits;
use crate::quorum::round::Outcome;
use crate::quorum::taken::Taken;
use crate::server_set::ServerSet;

impl Question {
    /// An attempt to take one of this many permits.
    pub(crate) fn permit(hold: Arc<HeldLock>, of: u16, servers: usize) -> Self {
        let permits = Permits::new(of, hold.token().share_of(of), hold.deadline(), servers);
        Self { attempt: Some(hold), ..Self::new(Count::Permits(permits)) }
    }

    /// The slot that was taken, or that can be.
    pub(crate) fn slot(&self) -> Found {
        let Count::Permits(permits) = &self.count else { return Found::Nothing };
        match (self.outcome(), permits.leader(), permits.next()) {
            (Outcome::Reached, Some((slot, servers)), _) => {
                Found::Had(slot, ServerSet::from_bits(servers))
            }
            (_, _, Some(slot)) => Found::MayMove(slot),
            _ => Found::Nothing,
        }
    }

    /// The question how many permits are taken.
    pub(crate) fn taken(of: u16, servers: usize) -> Self {
        Self::new(Count::Taken(Taken::new(of, servers)))
    }

    /// How many permits are taken, and when the first of them ends. None if the servers cannot say.
    pub(crate) fn permits_taken(&self) -> Option<(u16, Option<Moment>)> {
        let Count::Taken(taken) = &self.count else { return None };
        Some((taken.count()?, taken.first_end()))
    }

    /// The slot that each server has given us, for the servers that have answered.
    pub(crate) fn slots_given(&self) -> Vec<(usize, Option<u16>)> {
        let Count::Permits(permits) = &self.count else { return Vec::new() };
        permits.given().collect()
    }
}
