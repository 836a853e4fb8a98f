//! The deadlines of operations.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::protocol::moment::Moment;
use crate::protocol::room::Room;

/// How many outdated entries may stay in the heap, beside two per place.
const STALE_MAX: usize = 1024;

/// The moments that operations wait for, by their places. A callback gives the current moment of a place. A
/// heap entry with another moment is outdated, and is dropped when it comes up.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Moment, usize)>>,
}

impl Timers {
    /// Notes that this place is now due at `until`. `places` is the number of places.
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
            self.heap.give_back();
        }
        self.heap.push(Reverse((until, place)));
    }

    /// The earliest of the moments.
    pub(super) fn next(&mut self, said: impl Fn(usize) -> Moment) -> Moment {
        loop {
            match self.heap.peek() {
                None => return Moment::NEVER,
                Some(&Reverse((until, place))) if said(place) == until => return until,
                Some(_) => {
                    self.heap.pop();
                    self.heap.give_back();
                }
            }
        }
    }

    /// Returns a place that is due by now. Its entry is removed until another moment is noted for the place.
    pub(super) fn take_due(
        &mut self,
        now: Moment,
        said: impl Fn(usize) -> Moment,
    ) -> Option<usize> {
        if self.next(said) > now {
            return None;
        }
        let Reverse((_, place)) = self.heap.pop()?;
        self.heap.give_back();
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: i64) -> Moment {
        Moment::from_nanos(nanos)
    }

    #[test]
    fn the_last_timer_of_a_place_counts() {
        let mut timers = Timers::default();
        timers.note(0, at(5), 1, |_| at(5));
        timers.note(0, at(7), 1, |_| at(7));
        assert_eq!(timers.next(|_| at(7)), at(7));
        assert_eq!(timers.take_due(at(6), |_| at(7)), None);
        assert_eq!(timers.take_due(at(7), |_| at(7)), Some(0));
        assert_eq!(timers.take_due(at(8), |_| at(7)), None);
        timers.note(0, Moment::NEVER, 1, |_| Moment::NEVER);
        assert!(timers.heap.is_empty());
    }

    #[test]
    fn stale_timers_are_dropped() {
        const PLACES: usize = 3;
        const MANY: usize = STALE_MAX + 2 * PLACES;
        let mut timers = Timers::default();
        for nth in 1..=MANY {
            timers.note(0, at(nth as i64), PLACES, |_| at(nth as i64));
            assert_eq!(timers.heap.len(), nth);
        }
        // Until now the last entry of place 0 was valid.
        timers.note(1, at(9), PLACES, |place| if place == 1 { at(9) } else { at(MANY as i64) });
        assert_eq!(timers.heap.len(), 2);
    }
}
