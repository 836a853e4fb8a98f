//! Whether a lock changes hands and nobody tells the clients that wait for it.
//!
//! Clients of other libraries send no wake-ups. If they ask for a lock every few milliseconds, a client that
//! sleeps until it is told hardly ever gets it. So after two such hand-overs the client polls, too, until it is
//! told again. It tries to take the lock each time, because a lock that is wanted by many is free for moments only.

use std::mem;

use crate::protocol::moment::Moment;

/// How many hand-overs without a wake-up make a waiter poll.
const ENOUGH: u8 = 2;

/// The mean of its pauses. Other clients ask every 10 to 20 ms, and a waiter here must not ask more often.
const MEAN_MS: i64 = 20;

/// One hand-over may have been the extension of a lock. So after the first one, only this many pauses are so
/// short, as long as there is not a second one.
const TRIAL: u8 = 3;

/// After a wake-up, clients that send none are still about for this long, as far as is known. One more hand-over
/// is enough then.
const RECENT_MS: i64 = 1_000;

/// How long after the last of them it is worth to remember hand-overs while nobody waits.
const REMEMBERED_MS: i64 = 10_000;

/// A poller must look, too, so that it keeps its place in line. This long after the last look it looks again.
const LOOK_MS: i64 = 1_000;

/// How long a manager that polls has the lock again and again before it stands back.
const RUN_MS: i64 = 100;

/// A lock that its holder has had for long is asked for less often: the mean is this part of that time, up to
/// the time after which a waiter looks in any case.
const AGE_PART: i64 = 32;
const MEAN_MAX_MS: i64 = 200;

/// What the waiters of one manager have seen of hand-overs.
#[derive(Clone, Copy, Debug, Default)]
pub struct HandOvers {
    /// How many hand-overs were seen, one after the other, without a wake-up. At most [`ENOUGH`].
    hand_overs: u8,
    /// When the last of them was seen, and whether a waiter has got the lock since then because it was told.
    seen_at: Option<Moment>,
    was_woken: bool,
    /// How many short pauses there were since then.
    trials: u8,
    /// Whether the waiter was told of a release since it last looked.
    was_told: bool,
    /// What the last look found, if the lock was held.
    last: Option<Look>,
    /// Since when this manager has had the lock again and again, as far as is known.
    run_since: Option<Moment>,
}

/// What was found when the lock was held.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// How many waiters stood before this one at the last look, and when that was.
    rank: u32,
    at: Moment,
    /// When the holder was first seen.
    since: Moment,
}

impl HandOvers {
    /// A server has told that the lock is free.
    pub fn note_told(&mut self) {
        self.was_told = true;
    }

    /// A look has found the lock held, with this many waiters before this one; or a try has, which does not
    /// tell the rank. `has_moved_on`: another client seems to hold it than before.
    pub fn note_held(&mut self, has_moved_on: bool, rank: Option<u32>, now: Moment) {
        let was_told = mem::take(&mut self.was_told);
        self.run_since = None;
        // If there are fewer before it now, another waiter was told.
        let is_untold = match self.last {
            // It was told, and the lock went to a client that was not. Where all clients tell, that happens, too.
            _ if was_told => self.known(now) > 0,
            Some(last) => has_moved_on && rank.is_none_or(|rank| rank >= last.rank),
            None => false,
        };
        if is_untold {
            self.count(now);
        } else if self.hand_overs < ENOUGH && self.trials >= TRIAL {
            // It was the extension of a lock.
            self.hand_overs = 0;
        }
        let same = self.last.filter(|_| !has_moved_on && !was_told);
        let since = same.map_or(now, |it| it.since);
        self.last = match (rank, self.last) {
            (Some(rank), _) => Some(Look { rank, at: now, since }),
            (None, last) => last.map(|last| Look { since, ..last }),
        };
    }

    /// A look has found the lock free.
    pub fn note_free(&mut self, now: Moment) {
        if self.last.take().is_some() && !self.was_told {
            self.count(now);
        }
    }

    /// The waiter has got the lock, or has given up. If it was told, the next one does not poll.
    pub fn leave(self) -> Self {
        let trials = if self.was_told { 0 } else { self.trials };
        let was_woken = self.was_woken || self.was_told;
        Self { trials, was_woken, was_told: false, last: None, ..self }
    }

    /// Whether the waiter polls.
    pub fn polls(&self) -> bool {
        !self.was_woken && self.hand_overs >= ENOUGH
    }

    /// Whether the next waiter would go on with this.
    pub fn is_remembered(&self, now: Moment) -> bool {
        self.seen_at.is_some_and(|seen_at| now.ms_since(seen_at) < REMEMBERED_MS)
    }

    /// Whether it polls, and need not look now.
    pub fn is_to_try(&self, now: Moment) -> bool {
        self.polls() && self.last.is_some_and(|last| now.ms_since(last.at) < LOOK_MS)
    }

    /// How long to pause before the next look or try if the waiter must not rely on being told: the mean,
    /// in milliseconds.
    pub fn pause_ms(&mut self, now: Moment) -> Option<i64> {
        let is_trial = self.trials < TRIAL && self.known(now) > 0;
        if !self.polls() && !is_trial {
            return None;
        }
        self.trials = self.trials.saturating_add(1);
        let age_ms = self.last.map_or(0, |last| now.ms_since(last.since));
        Some((age_ms / AGE_PART).clamp(MEAN_MS, MEAN_MAX_MS))
    }

    /// This manager has released the lock. Whether a caller of it that wants the lock again must give others a
    /// chance first. Clients that poll do not do that, so a poller does it only now and then.
    pub fn is_to_stand_back(&mut self, now: Moment) -> bool {
        let since = *self.run_since.get_or_insert(now);
        let is_to = !self.polls() || now.ms_since(since) >= RUN_MS;
        self.run_since = self.run_since.filter(|_| !is_to);
        is_to
    }

    fn count(&mut self, now: Moment) {
        self.hand_overs = ENOUGH.min(self.known(now) + 1);
        (self.seen_at, self.was_woken, self.trials) = (Some(now), false, 0);
    }

    /// How many hand-overs without a wake-up count.
    fn known(&self, now: Moment) -> u8 {
        let is_recent = || self.seen_at.is_some_and(|seen_at| now.ms_since(seen_at) < RECENT_MS);
        match self.was_woken {
            true => self.hand_overs.min(u8::from(is_recent())),
            false => self.hand_overs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: i64) -> Moment {
        Moment::from_nanos(1_000_000_000).plus_ms(ms)
    }

    fn pause_ms(untold: &mut HandOvers, ms: i64) -> Option<i64> {
        untold.pause_ms(at_ms(ms))
    }

    /// Looks that found the lock held, as first in line, every millisecond. Each is whether the holder was
    /// another one.
    fn looks(looks: &[bool]) -> HandOvers {
        let mut untold = HandOvers::default();
        let times = looks.iter().zip(0..);
        times.for_each(|(&has_moved_on, ms)| untold.note_held(has_moved_on, Some(0), at_ms(ms)));
        untold
    }

    #[test]
    fn a_waiter_polls_after_two_hand_overs() {
        let pauses = |mut untold: HandOvers| [1, 2, 3, 4].map(|ms| pause_ms(&mut untold, ms));
        assert_eq!(pauses(looks(&[false])), [None; 4]);
        assert_eq!(pauses(looks(&[true])), [None; 4], "nothing was seen before");
        let trial = [Some(20), Some(20), Some(20), None];
        assert_eq!(pauses(looks(&[false, true])), trial);
        assert_eq!(pauses(looks(&[false, true, false, false])), trial);
        assert_eq!(pauses(looks(&[false, true, true])), [Some(20); 4]);
        assert_eq!(pauses(looks(&[false, true, false, true])), [Some(20); 4]);
        let mut extended = looks(&[false, true]);
        (1..5).for_each(|ms| _ = pause_ms(&mut extended, ms));
        [false, true].iter().for_each(|&it| extended.note_held(it, Some(0), at_ms(5)));
        assert_eq!(pauses(extended), trial, "an extension now and then is no hand-over");
    }

    #[test]
    fn one_wake_up_ends_the_polling() {
        let trial = [Some(20), Some(20), Some(20), None];
        let mut untold = looks(&[false, true, true]);
        untold.note_told();
        untold.note_free(at_ms(4));
        let mut next = untold.leave();
        assert!(!next.polls());
        assert_eq!([5, 6, 7, 8].map(|ms| pause_ms(&mut next, ms)), trial);
        next.note_told();
        next = next.leave();
        let pauses = [1_001, 1_002].map(|ms| pause_ms(&mut { next }, ms));
        assert_eq!(pauses, [Some(20), None]);
        // Much later, one hand-over is not enough.
        [false, true].iter().for_each(|&it| next.note_held(it, Some(0), at_ms(2_000)));
        assert!(!next.polls());
        // It was told in vain. That is a hand-over to a client that was not told.
        untold = looks(&[false, true, true]);
        untold.note_told();
        untold.note_held(true, Some(0), at_ms(4));
        assert!(untold.polls());
        untold = looks(&[false]);
        untold.note_told();
        untold.note_held(false, Some(0), at_ms(4));
        assert_eq!(pause_ms(&mut untold, 5), None);
    }

    #[test]
    fn a_hand_over_to_another_waiter_does_not_count() {
        let mut untold = HandOvers::default();
        (0..9).for_each(|ms| untold.note_held(true, Some(8 - ms), at_ms(i64::from(ms))));
        assert_eq!(pause_ms(&mut untold, 9), None);
        (0..3).for_each(|ms| untold.note_held(true, Some(4), at_ms(ms)));
        assert_eq!(pause_ms(&mut untold, 9), Some(20));
    }

    #[test]
    fn a_free_lock_counts_as_a_hand_over() {
        let mut untold = looks(&[false, true]);
        untold.note_free(at_ms(4));
        let mut next = untold.leave();
        next.note_held(true, Some(0), at_ms(3));
        assert_eq!([4, 5, 6, 7].map(|ms| pause_ms(&mut next, ms)), [Some(20); 4]);
        // It had not stood in line, so nobody could tell it.
        let mut untold = HandOvers::default();
        (0..3).for_each(|_| untold.note_free(at_ms(1)));
        assert_eq!(pause_ms(&mut untold, 1), None);
    }

    #[test]
    fn pauses_grow_while_one_client_holds_the_lock() {
        let mut untold = looks(&[false, true, true]);
        let long = [600, 1_000, 3_202, 6_402, 100_000].map(|ms| pause_ms(&mut untold, ms));
        assert_eq!(long, [Some(20), Some(31), Some(100), Some(200), Some(200)]);
    }

    #[test]
    fn a_poller_mostly_tries_and_sometimes_looks() {
        let mut untold = looks(&[false, true, true]);
        untold.note_held(true, None, at_ms(500));
        let is_to_try = [500, 1_001, 1_002].map(|ms| untold.is_to_try(at_ms(ms)));
        assert_eq!(is_to_try, [true, true, false]);
        assert!(!looks(&[false, true]).is_to_try(at_ms(2)), "it does not poll yet");
        assert!(!untold.leave().is_to_try(at_ms(500)), "it does not stand in line");
    }

    #[test]
    fn a_poller_rarely_stands_back() {
        let mut untold = looks(&[false, true]);
        assert!([3, 4, 5].iter().all(|&ms| untold.is_to_stand_back(at_ms(ms))), "it does not poll");
        untold.note_held(true, Some(0), at_ms(10));
        let stands_back = [10, 60, 109, 110, 111, 210, 211];
        let stands_back = stands_back.map(|ms| untold.is_to_stand_back(at_ms(ms)));
        assert_eq!(stands_back, [false, false, false, true, false, false, true]);
        // Another client had it.
        let mut times = [212, 300].map(|ms| untold.is_to_stand_back(at_ms(ms)));
        untold.note_held(true, None, at_ms(600));
        times[1] |= untold.is_to_stand_back(at_ms(620));
        assert_eq!(times, [false, false]);
    }

    #[test]
    fn hand_overs_are_remembered_for_ten_seconds() {
        let untold = looks(&[false, true]);
        assert_eq!(
            [1, 10_000, 10_001].map(|ms| untold.is_remembered(at_ms(ms))),
            [true, true, false]
        );
        assert!(!looks(&[false, false]).is_remembered(at_ms(1)));
    }
}
