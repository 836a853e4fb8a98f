//! Where operations wait until they may go on: at most so many questions are open at a time, and one turn of the
//! engine takes at most so many steps.

use std::collections::VecDeque;

use crate::protocol::op_id::OpId;
use crate::protocol::operation::{Event, Urgency};
use crate::protocol::room::Room;

/// Why an operation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It begins.
    Begins,
    /// Another operation has ended its wait.
    IsCalled,
    /// Its wait is over.
    IsDue,
}

/// One of the lanes. Operations in the same lane go on in the order in which they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane(usize);

/// Operations that keep a lock alive go before all others, because a lock that is not extended in time is lost.
const KEEPING: Lane = Lane(0);
const LANES: usize = 5;

impl Lane {
    pub(super) fn of(urgency: Urgency, reason: Reason) -> Self {
        match (urgency, reason) {
            (Urgency::Keeps, _) => KEEPING,
            (Urgency::Holds, _) => Self(1),
            (Urgency::Wants, Reason::Begins) => Self(2),
            (Urgency::Wants, Reason::IsCalled) => Self(3),
            (Urgency::Wants, Reason::IsDue) => Self(4),
        }
    }

    /// The bit of this lane in [`super::state::Slot::lanes`].
    pub(super) fn bit(self) -> u8 {
        1 << self.0
    }
}

/// The operations that wait, and the events that let them go on.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: [VecDeque<(OpId, Event)>; LANES],
    /// The lane from which the last one was taken.
    last: usize,
}

impl Lanes {
    pub(super) fn push(&mut self, lane: Lane, ticket: OpId, event: Event) {
        self.lanes[lane.0].push_back((ticket, event));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }

    pub(super) fn has_any_in(&self, lane: Lane) -> bool {
        !self.lanes[lane.0].is_empty()
    }

    /// Takes the next one. The lanes behind the first one take turns: a crowd in one of them does not keep the
    /// others waiting.
    pub(super) fn pop(&mut self) -> Option<(Lane, OpId, Event)> {
        let others = (1..LANES).map(|ahead| 1 + (self.last + ahead - 1) % (LANES - 1));
        let lane = [KEEPING.0].into_iter().chain(others).find(|&it| !self.lanes[it].is_empty())?;
        if lane != KEEPING.0 {
            self.last = lane;
        }
        let (ticket, event) = self.lanes[lane].pop_front()?;
        self.lanes[lane].give_back();
        Some((Lane(lane), ticket, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASONS: [Reason; 3] = [Reason::Begins, Reason::IsCalled, Reason::IsDue];

    fn push(lanes: &mut Lanes, lane: Lane, number: usize) {
        lanes.push(lane, OpId::new(number, 1), Event::TimeOut);
    }

    fn places(lanes: &mut Lanes) -> Vec<usize> {
        std::iter::from_fn(|| lanes.pop()).map(|it| it.1.place()).collect()
    }

    #[test]
    fn keeping_a_lock_goes_first_and_others_take_turns() {
        let mut lanes = Lanes::default();
        assert!(lanes.is_empty() && lanes.pop().is_none());
        (0..3).for_each(|it| push(&mut lanes, Lane::of(Urgency::Wants, Reason::IsCalled), it));
        (10..12).for_each(|it| push(&mut lanes, Lane::of(Urgency::Holds, Reason::Begins), it));
        (20..22).for_each(|it| push(&mut lanes, Lane::of(Urgency::Wants, Reason::Begins), it));
        (30..31).for_each(|it| push(&mut lanes, Lane::of(Urgency::Wants, Reason::IsDue), it));
        (90..92).for_each(|it| push(&mut lanes, Lane::of(Urgency::Keeps, Reason::IsDue), it));
        assert_eq!(places(&mut lanes), [90, 91, 10, 20, 0, 30, 11, 21, 1, 2]);
        assert!(lanes.is_empty());
    }

    #[test]
    fn a_call_with_a_lock_has_one_lane() {
        for urgency in [Urgency::Keeps, Urgency::Holds] {
            let lanes = REASONS.map(|reason| Lane::of(urgency, reason));
            assert!(lanes.iter().all(|it| *it == lanes[0]));
        }
        let mut lanes = REASONS.map(|reason| Lane::of(Urgency::Wants, reason)).to_vec();
        lanes.extend([Urgency::Keeps, Urgency::Holds].map(|it| Lane::of(it, Reason::IsDue)));
        let bits = lanes.iter().fold(0, |bits, lane| bits | lane.bit());
        assert_eq!(bits, 0b11111, "each lane has a bit of its own");
    }
}
