//! By how much a server's clock is ahead of ours, as an interval: and so whether somebody has set it.
//!
//! A key lives as long as its server's clock says. If that is set forward, keys are gone early, and whoever is
//! granted such a key has it beside its holder.

use crate::moment::Moment;

/// What a server's clock showed, in nanoseconds of its own, at some time between these moments of ours. It showed
/// less than `grain` more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Showing {
    pub shown: i64,
    pub grain: i64,
    pub sent: Moment,
    pub heard: Moment,
}

/// What was found out by a showing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// It goes on as it did.
    Even,
    /// It was set forward, by so many milliseconds at least.
    Forward { ms: i64 },
    /// It was set back.
    Back { ms: i64 },
}

/// The interval in which the server's clock less ours lies, in nanoseconds, as of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    least: i64,
    most: i64,
    at: Moment,
}

impl Offset {
    /// Clocks that nobody sets differ in speed by less than 1 / this: crystals by 0.01 %, and by 0.05 % what NTP slews.
    const SLEW_PART: i64 = 1_000;

    /// Less than that is no step: keys may go so early as it is, which is taken off each validity.
    const STEP_LEAST: i64 = 2_000_000;

    pub fn of(showing: &Showing) -> Self {
        let Showing { shown, grain, sent, heard } = *showing;
        let least = shown.saturating_sub(heard.as_nanos());
        let most = shown.saturating_add(grain).saturating_sub(sent.as_nanos());
        Self { least, most: most.max(least), at: heard }
    }

    /// The clock has shown this since.
    pub fn note(&mut self, showing: &Showing) -> Course {
        const MS: i64 = 1_000_000;
        let new = Self::of(showing);
        let slew = (new.at - self.at).max(0) / Self::SLEW_PART;
        let (least, most) = (self.least.saturating_sub(slew), self.most.saturating_add(slew));
        let (ahead, behind) = (new.least.saturating_sub(most), least.saturating_sub(new.most));
        if ahead > Self::STEP_LEAST || behind > Self::STEP_LEAST {
            *self = new;
            return match ahead > 0 {
                true => Course::Forward { ms: ahead / MS },
                false => Course::Back { ms: behind / MS },
            };
        }
        let (least, most) = (least.max(new.least), most.min(new.most));
        *self = if least <= most { Self { least, most, at: new.at } } else { new };
        Course::Even
    }

    /// What the server's clock shows now, at the most, in milliseconds.
    pub fn shown_ms(&self, now: Moment) -> i64 {
        self.most.saturating_add(now.as_nanos()) / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Sent at so many milliseconds, answered within 1 ms; the server is ahead by so much, and shows whole
    /// milliseconds.
    fn showing(sent_ms: i64, ahead_ms: i64) -> Showing {
        let sent = Moment::from_nanos(sent_ms * MS);
        let shown = (sent_ms + ahead_ms) * MS;
        Showing { shown, grain: MS, sent, heard: sent.plus_ms(1) }
    }

    /// The courses of clocks that are ahead by so much at these milliseconds.
    fn courses(ahead: &[(i64, i64)]) -> Vec<Course> {
        let mut offset = Offset::of(&showing(ahead[0].0, ahead[0].1));
        ahead[1..].iter().map(|&(at, ahead)| offset.note(&showing(at, ahead))).collect()
    }

    #[test]
    fn a_clock_that_nobody_sets_goes_evenly() {
        use Course::Even;
        assert_eq!(courses(&[(0, 70), (1, 70), (1_000, 70), (100_000, 70)]), [Even; 3]);
        // A thousandth faster, or slower; and by as much as a key may go early.
        assert_eq!(courses(&[(0, 0), (50_000, 50), (100_000, 100)]), [Even; 2]);
        assert_eq!(courses(&[(0, 0), (50_000, -50), (100_000, -100)]), [Even; 2]);
        assert_eq!(courses(&[(0, 0), (10, 3), (20, 0)]), [Even; 2]);
    }

    #[test]
    fn a_clock_that_is_set_is_seen() {
        use Course::{Back, Even, Forward};
        // What was answered within 1 ms leaves 2 ms open, and 2 more are no step.
        assert_eq!(courses(&[(0, 0), (10, 5), (20, 5)]), [Forward { ms: 2 }, Even]);
        assert_eq!(courses(&[(0, 0), (10, 3_600_000)]), [Forward { ms: 3_599_997 }]);
        assert_eq!(courses(&[(0, 0), (10, -1_000), (20, -1_000)]), [Back { ms: 997 }, Even]);
        // Also by one that has run evenly for long.
        assert_eq!(courses(&[(0, 0), (5_000, 0), (5_001, 6)]), [Even, Forward { ms: 3 }]);
    }

    #[test]
    fn the_interval_narrows_with_each_showing() {
        let slow = Showing { heard: Moment::from_nanos(900 * MS), ..showing(0, 0) };
        let mut offset = Offset::of(&slow);
        assert_eq!(offset.note(&showing(1_000, 400)), Course::Forward { ms: 397 });
        let mut offset = Offset::of(&slow);
        assert_eq!(offset.note(&showing(1_000, 0)), Course::Even);
        assert_eq!(offset.note(&showing(1_001, 6)), Course::Forward { ms: 3 });
        // A slow answer widens nothing.
        let slow = Showing { heard: Moment::from_nanos(9_000 * MS), ..showing(1_002, 6) };
        assert_eq!(offset.note(&slow), Course::Even);
        assert_eq!(offset.note(&showing(1_003, 12)), Course::Forward { ms: 4 });
    }

    #[test]
    fn what_a_clock_shows_is_known_between_two_showings() {
        let offset = Offset::of(&showing(0, 70));
        let shown = offset.shown_ms(Moment::from_nanos(100 * MS));
        assert!((170..=171).contains(&shown), "{shown}");
    }
}
