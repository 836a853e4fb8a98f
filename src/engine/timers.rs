//! When what is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::state::Slot;
use crate::moment::Moment;

/// So many entries that are out of date are left where they are.
const STALE_MAX: usize = 1024;

/// The moments that operations wait for. What counts is the moment that a slot says; an entry with another
/// is out of date, and left out when it comes up.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Moment, usize)>>,
}

impl Timers {
    /// The slot at this place says this moment from now on.
    pub(super) fn note(&mut self, place: usize, until: Moment, slots: &[Option<Slot>]) {
        if until == Moment::NEVER {
            return;
        }
        if self.heap.len() >= STALE_MAX + 2 * slots.len() {
            self.heap.retain(|&Reverse((until, place))| is_current(place, until, slots));
        }
        self.heap.push(Reverse((until, place)));
    }

    /// The earliest of them.
    pub(super) fn next(&mut self, slots: &[Option<Slot>]) -> Moment {
        loop {
            match self.heap.peek() {
                None => return Moment::NEVER,
                Some(&Reverse((until, place))) if is_current(place, until, slots) => return until,
                Some(_) => drop(self.heap.pop()),
            }
        }
    }

    /// A place that is due by now. It is taken out, until its slot says another moment.
    pub(super) fn take_due(&mut self, now: Moment, slots: &[Option<Slot>]) -> Option<usize> {
        if self.next(slots) > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, place))| place)
    }
}

fn is_current(place: usize, until: Moment, slots: &[Option<Slot>]) -> bool {
    slots.get(place).and_then(Option::as_ref).is_some_and(|slot| slot.until == until)
}
