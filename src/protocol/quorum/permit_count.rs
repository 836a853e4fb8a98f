//! How many permits of a semaphore are taken? Each slot is examined as a resource of its own.

use super::ballot::{Ballot, Vote};
use super::holders::{Finding, Holders};
use crate::protocol::moment::Moment;

/// What the servers have on each slot.
#[derive(Clone, Debug)]
pub struct PermitCount {
    slots: Vec<Holders>,
    ballot: Ballot,
}

impl PermitCount {
    /// A count in which no server has answered yet.
    pub fn new(of: u16, servers: usize) -> Self {
        let slots = (0..of).map(|_| Holders::new(servers)).collect();
        Self { slots, ballot: Ballot::new(servers) }
    }

    /// Counts a server that has these values on these slots, each until the given moment. Returns whether the
    /// count is decided.
    pub fn handle_values(
        &mut self,
        server: usize,
        mut values: impl Iterator<Item = (u16, Vec<u8>, Moment)>,
    ) -> bool {
        self.ballot.cast(server, Vote::Yes);
        let mut next = values.next();
        for (slot, holders) in (0..).zip(&mut self.slots) {
            let value = next.take_if(|it| it.0 == slot).map(|(_, value, until)| (value, until));
            if value.is_some() {
                next = values.next();
            }
            holders.handle_value(server, value);
        }
        self.is_decided()
    }

    /// Counts a server that gave no usable answer. Returns whether the count is decided.
    pub fn handle_silence(&mut self, server: usize) -> bool {
        self.ballot.cast(server, Vote::Unusable);
        for holders in &mut self.slots {
            holders.handle_silence(server);
        }
        self.is_decided()
    }

    /// Whether enough was heard of every slot.
    pub fn is_decided(&self) -> bool {
        self.slots.iter().all(|holders| holders.finding().is_some())
    }

    /// How many slots are held on a quorum. None if that cannot be said of one of the slots.
    pub fn count(&self) -> Option<u16> {
        let mut count = 0;
        for holders in &self.slots {
            match holders.finding() {
                Some(Finding::Locked) => count += 1,
                Some(Finding::Free | Finding::Mixed) => {}
                Some(Finding::Unreachable) | None => return None,
            }
        }
        Some(count)
    }

    /// When the first of the held slots ends, if it is neither extended nor released.
    pub fn first_end(&self) -> Option<Moment> {
        self.slots.iter().filter_map(Holders::locked_until).min()
    }

    /// Whether the servers that have not answered cannot change [`Self::first_end`] by more than a moment.
    pub fn is_end_sure(&self) -> bool {
        self.slots.iter().all(Holders::is_end_sure)
    }

    /// Which servers have answered.
    pub fn ballot(&self) -> &Ballot {
        &self.ballot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: i64) -> Moment {
        Moment::from_nanos(0).plus_ms(ms)
    }

    fn say(taken: &mut PermitCount, server: usize, slots: &[(u16, &str, i64)]) -> bool {
        let values = slots.iter().map(|&(slot, value, ms)| (slot, value.into(), at_ms(ms)));
        taken.handle_values(server, values)
    }

    #[test]
    fn a_slot_on_a_quorum_is_taken() {
        let mut taken = PermitCount::new(3, 3);
        assert!(!say(&mut taken, 0, &[(0, "a", 9), (1, "b", 7)]));
        // Slot 1 belongs to another client here, and may belong to either client on the third server.
        assert!(!say(&mut taken, 1, &[(0, "a", 8), (1, "c", 7)]));
        assert_eq!(taken.count(), None);
        assert!(say(&mut taken, 2, &[(1, "c", 5), (2, "d", 1)]));
        assert_eq!((taken.count(), taken.first_end()), (Some(2), Some(at_ms(5))));
        assert!(taken.is_end_sure());
        let mut taken = PermitCount::new(1, 3);
        say(&mut taken, 0, &[(0, "a", 900)]);
        assert!(say(&mut taken, 1, &[(0, "a", 700)]) && !taken.is_end_sure());
    }

    #[test]
    fn a_slot_with_three_holders_is_not_taken() {
        let mut taken = PermitCount::new(1, 3);
        for (server, value) in ["a", "b", "c"].into_iter().enumerate() {
            say(&mut taken, server, &[(0, value, 9)]);
        }
        assert_eq!((taken.count(), taken.first_end()), (Some(0), None));
    }

    #[test]
    fn without_a_quorum_the_count_is_unknown() {
        let mut taken = PermitCount::new(2, 3);
        assert!(!taken.handle_silence(0));
        assert!(taken.handle_silence(1));
        assert_eq!(taken.count(), None);
        let mut taken = PermitCount::new(2, 3);
        assert!(!taken.handle_silence(0));
        assert!(!say(&mut taken, 1, &[]));
        assert!(say(&mut taken, 2, &[]));
        assert_eq!((taken.count(), taken.first_end()), (Some(0), None));
    }
}
