//! When what is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::moment::Moment;

/// So many entries that are out of date are left where they are.
const STALE_MAX: usize = 1024;

/// The moments that operations wait for, by their places. What counts is what is said of a place when it is
/// asked for; an entry with another moment is out of date, and left out when it comes up.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Moment, usize)>>,
}

impl Timers {
    /// This is said of the place from now on, of which there are so many.
    pub(super) fn note(
        &mut self,
        place: usize,
        until: Moment,
        places: usize,
        said: impl Fn(usize) -> Moment,
    ) {
        if until == Moment::NEVER {
            return;
        }
        if self.heap.len() >= STALE_MAX + 2 * places {
            self.heap.retain(|&Reverse((until, place))| said(place) == until);
        }
        self.heap.push(Reverse((until, place)));
    }

    /// The earliest of them.
    pub(super) fn next(&mut self, said: impl Fn(usize) -> Moment) -> Moment {
        loop {
            match self.heap.peek() {
                None => return Moment::NEVER,
                Some(&Reverse((until, place))) if said(place) == until => return until,
                Some(_) => drop(self.heap.pop()),
            }
        }
    }

    /// A place that is due by now. It is taken out, until another moment is said of it.
    pub(super) fn take_due(
        &mut self,
        now: Moment,
        said: impl Fn(usize) -> Moment,
    ) -> Option<usize> {
        if self.next(said) > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, place))| place)
    }
}
