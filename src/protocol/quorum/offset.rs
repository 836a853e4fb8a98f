//! By how much a server's clock is ahead of ours, as an interval, and whether somebody has set that clock.
//!
//! A key lives as long as its server's clock says. If that clock is set forward, keys are gone early. The next
//! client that is granted such a key holds it beside the earlier holder.

use super::validity::Drift;
use crate::protocol::moment::Moment;

/// What a server's clock showed, in its own nanoseconds, at some time between these moments of our clock. It
/// showed less than `grain` more than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Showing {
    pub shown: i64,
    pub grain: i64,
    pub sent: Moment,
    pub heard: Moment,
}

/// What a showing says about the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// The clock goes on as before.
    Even,
    /// The clock was set forward, by at least this many milliseconds.
    Forward { ms: i64 },
    /// The clock was set back.
    Back { ms: i64 },
}

/// The interval in which the server's clock minus ours lies, in nanoseconds, as of a moment, and how fast it
/// may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    least: i64,
    most: i64,
    at: Moment,
    /// An older interval, from which the speeds are known.
    anchor: (i64, i64, Moment),
    /// In millionths, as far as known.
    slowest: Option<i64>,
    fastest: Option<i64>,
}

impl Offset {
    /// As long as the speed of a clock is not known, it is assumed to differ from ours by no more than this, in
    /// millionths. It is ten times what crystals do, and twice what NTP slews.
    const USUAL: i64 = 1_000;

    /// The speed of a clock that nobody sets changes by less than this, in millionths, because NTP slews by at
    /// most 500.
    const SLEW: i64 = 500;

    /// A smaller difference is no step. Keys may go early by this much anyway, and it is taken off each
    /// validity.
    const STEP_LEAST: i64 = 2_000_000;

    /// In such a time, clocks do not drift apart by as much as a step.
    const ANSWERED_WITHIN: i64 = 1_000_000_000;

    /// Speeds are known from two showings that are at least this far apart.
    const SPEED_SINCE: i64 = 1_000_000_000;

    /// An older interval is of no use, because the speed has changed since.
    const ANCHOR_FOR: i64 = 3_600_000_000_000;

    pub fn of(showing: &Showing) -> Self {
        Self::read(showing).when_heard(showing, (-Self::USUAL, Self::USUAL))
    }

    /// The interval when the clock was read, which is some time between sending and hearing.
    fn read(showing: &Showing) -> Self {
        let Showing { shown, grain, sent, heard: at } = *showing;
        let least = shown.saturating_sub(at.as_nanos());
        let most = shown.saturating_add(grain).saturating_sub(sent.as_nanos()).max(least);
        Self { least, most, at, anchor: (least, most, at), slowest: None, fastest: None }
    }

    /// The interval at the time of hearing. Both clocks have gone on since the reading, and the answer of a server
    /// that nobody waited for lies unread until the next call, perhaps for hours.
    fn when_heard(self, showing: &Showing, (slowest, fastest): (i64, i64)) -> Self {
        let passed = (showing.heard - showing.sent - Self::ANSWERED_WITHIN).max(0);
        let least = self.least.saturating_add(share(passed, slowest.min(0)));
        let most = self.most.saturating_add(share(passed, fastest.max(0)));
        Self { least, most, anchor: (least, most, self.at), ..self }
    }

    /// Notes what the clock has shown since. It may run faster or slower than ours by this drift.
    pub fn note(&mut self, showing: &Showing, drift: Drift) -> Course {
        const MS: i64 = 1_000_000;
        let new = Self::read(showing);
        let passed = (new.at - self.at).max(0);
        let (slowest, fastest) = self.speeds(drift);
        let least = self.least.saturating_add(share(passed, slowest));
        let most = self.most.saturating_add(share(passed, fastest));
        let (ahead, behind) = (new.least.saturating_sub(most), least.saturating_sub(new.most));
        let heard = new.when_heard(showing, (slowest, fastest));
        if ahead > Self::STEP_LEAST || behind > Self::STEP_LEAST {
            // This may be no more than a fast clock. As long as that is not known, it is taken for a step,
            // once.
            let least = speed(new.least.saturating_sub(self.most), passed);
            let most = speed(new.most.saturating_sub(self.least), passed) + 1 + Self::SLEW;
            let fastest = (ahead.is_positive() && least <= Self::bound(drift)).then_some(most);
            *self = Self { fastest, ..heard };
            return match ahead.is_positive() {
                true => Course::Forward { ms: ahead / MS },
                false => Course::Back { ms: behind / MS },
            };
        }
        (self.least, self.most, self.at) = (least.max(heard.least), most.min(heard.most), heard.at);
        if self.least > self.most {
            (self.least, self.most) = (heard.least, heard.most);
        }
        self.learn_speeds();
        Course::Even
    }

    fn learn_speeds(&mut self) {
        let (least, most, at) = self.anchor;
        let since = self.at - at;
        if since >= Self::SPEED_SINCE {
            self.slowest = Some(speed(self.least.saturating_sub(most), since) - 1 - Self::SLEW);
            self.fastest = Some(speed(self.most.saturating_sub(least), since) + 1 + Self::SLEW);
        }
        if since >= Self::ANCHOR_FOR {
            self.anchor = (self.least, self.most, self.at);
        }
    }

    /// The least and the greatest speed, in millionths.
    fn speeds(&self, drift: Drift) -> (i64, i64) {
        let bound = Self::bound(drift);
        let slowest = self.slowest.unwrap_or(-Self::USUAL).clamp(-bound, bound);
        let fastest = self.fastest.unwrap_or(Self::USUAL).clamp(-bound, bound);
        (slowest, fastest)
    }

    /// By how much a clock that shows this may be ahead of where this one would be by now, in milliseconds.
    pub fn ahead_ms(&self, showing: &Showing, drift: Drift) -> i64 {
        let new = Self::of(showing);
        let passed = (new.at - self.at).max(0);
        let least = self.least.saturating_add(share(passed, self.speeds(drift).0));
        new.most.saturating_sub(least).max(0) / 1_000_000 + 1
    }

    /// Whether a clock that shows this is ahead of where this one would be by now, by as much as a step.
    pub fn is_behind(&self, showing: &Showing, drift: Drift) -> bool {
        let new = Self::read(showing);
        let passed = (new.at - self.at).max(0);
        let most = self.most.saturating_add(share(passed, self.speeds(drift).1));
        new.least.saturating_sub(most) > Self::STEP_LEAST
    }

    /// When the clock was last heard.
    pub fn heard_at(&self) -> Moment {
        self.at
    }

    /// A drift, in millionths.
    fn bound(drift: Drift) -> i64 {
        drift.share_ms(1_000_000)
    }

    /// The server's clock minus ours, in nanoseconds: the middle of the interval.
    pub fn middle_ns(&self) -> i64 {
        self.least.midpoint(self.most)
    }

    /// What the server's clock shows now at most, in milliseconds.
    pub fn shown_ms(&self, now: Moment) -> i64 {
        self.most.saturating_add(now.as_nanos()) / 1_000_000
    }
}

/// This many millionths of a time.
fn share(time: i64, millionths: i64) -> i64 {
    // The usual case, without a division of 128 bits.
    if let Some(product) = time.checked_mul(millionths) {
        return product / 1_000_000;
    }
    i64::try_from(i128::from(time) * i128::from(millionths) / 1_000_000).unwrap_or(i64::MAX)
}

/// How many millionths of a time a change is.
fn speed(change: i64, time: i64) -> i64 {
    let time = time.max(1);
    if let Some(product) = change.checked_mul(1_000_000) {
        return product / time;
    }
    i64::try_from(i128::from(change) * 1_000_000 / i128::from(time)).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A showing that was sent at `sent_ms` and answered within 1 ms. The server is ahead by `ahead_ms` and
    /// shows whole milliseconds.
    fn showing(sent_ms: i64, ahead_ms: i64) -> Showing {
        let sent = Moment::from_nanos(sent_ms * MS);
        let shown = (sent_ms + ahead_ms) * MS;
        Showing { shown, grain: MS, sent, heard: sent.plus_ms(1) }
    }

    /// The courses of a clock that is ahead by the second number at the time of the first, both in
    /// milliseconds.
    fn courses(ahead: &[(i64, i64)]) -> Vec<Course> {
        let mut offset = Offset::of(&showing(ahead[0].0, ahead[0].1));
        ahead[1..]
            .iter()
            .map(|&(at, ahead)| offset.note(&showing(at, ahead), Drift::DEFAULT))
            .collect()
    }

    /// This includes a time of three centuries, where the product is too large for 64 bits.
    #[test]
    fn a_share_is_right_for_short_and_long_times() {
        for time in [3_000_000, 9_000_000_000_000_000_000] {
            assert_eq!(share(time, 500_000), time / 2);
            assert_eq!(share(time, -1_000), -time / 1_000);
        }
    }

    #[test]
    fn a_free_running_clock_is_even() {
        use Course::Even;
        assert_eq!(courses(&[(0, 70), (1, 70), (1_000, 70), (100_000, 70)]), [Even; 3]);
        // A thousandth faster, or slower. And ahead by as much as a key may go early.
        assert_eq!(courses(&[(0, 0), (50_000, 50), (100_000, 100)]), [Even; 2]);
        assert_eq!(courses(&[(0, 0), (50_000, -50), (100_000, -100)]), [Even; 2]);
        assert_eq!(courses(&[(0, 0), (10, 3), (20, 0)]), [Even; 2]);
    }

    /// The server has answered at once, and nobody has waited for the answer.
    #[test]
    fn an_unread_answer_says_nothing_about_the_clock() {
        let drift = Drift::DEFAULT;
        let unread = |sent_ms, heard_ms| {
            let sent = Moment::from_nanos(sent_ms * MS);
            let heard = Moment::from_nanos(heard_ms * MS);
            Showing { shown: sent_ms * MS, grain: MS, sent, heard }
        };
        for ahead_ms in [50, -50] {
            let mut offset = Offset::of(&showing(0, 0));
            assert_eq!(offset.note(&unread(2, 100_000), drift), Course::Even);
            assert_eq!(offset.note(&showing(102_000, ahead_ms), drift), Course::Even);
            let mut offset = Offset::of(&unread(2, 100_000));
            assert_eq!(offset.note(&showing(102_000, ahead_ms), drift), Course::Even);
        }
    }

    #[test]
    fn a_step_of_the_clock_is_detected() {
        use Course::{Back, Even, Forward};
        // An answer within 1 ms leaves 2 ms open, and 2 ms more are no step.
        assert_eq!(courses(&[(0, 0), (10, 5), (20, 5)]), [Forward { ms: 2 }, Even]);
        assert_eq!(courses(&[(0, 0), (10, 3_600_000)]), [Forward { ms: 3_599_997 }]);
        assert_eq!(courses(&[(0, 0), (10, -1_000), (20, -1_000)]), [Back { ms: 997 }, Even]);
        // Also for a clock that has run evenly for long.
        assert_eq!(courses(&[(0, 0), (5_000, 0), (5_001, 6)]), [Even, Forward { ms: 3 }]);
    }

    /// The clock is faster by a hundredth, as it may be. That is not known of it at first.
    #[test]
    fn the_speed_of_a_clock_is_learned() {
        use Course::{Even, Forward};
        let fast = [(0, 0), (10_000, 99), (20_000, 198), (30_000, 297)];
        let seen = courses(&[&fast[..], &[(90_000, 891)]].concat());
        assert!(matches!(seen[..], [Forward { ms: 80..99 }, Even, Even, Even]), "{seen:?}");
        // From then on, a step of 60 ms is seen after a minute. A hundredth of that minute would be 600 ms.
        let set = courses(&[&fast[..], &[(90_000, 891 + 60)]].concat());
        assert!(matches!(set[3], Forward { ms: 10..60 }), "{set:?}");
        // A clock that has gone evenly for long is not mistaken for one that may have become a thousandth
        // faster.
        let even = courses(&[(0, 0), (50_000, 0), (100_000, 0), (160_000, 52)]);
        assert!(matches!(even[..], [Even, Even, Forward { ms: 10..30 }]), "{even:?}");
        // A clock that is faster than allowed is never mistaken for one that goes evenly.
        let too_fast = courses(&[(0, 0), (10_000, 200), (20_000, 400), (30_000, 600)]);
        assert!(!too_fast.contains(&Even), "{too_fast:?}");
    }

    /// Neither a step back nor a step that no drift explains tells how fast a clock goes.
    #[test]
    fn a_step_of_the_clock_is_no_speed() {
        use Course::{Even, Forward};
        assert_eq!(courses(&[(0, 0), (10, -1_000), (60_000, -1_000)])[1], Even);
        let set = courses(&[(0, 0), (10, 3_600_000), (60_000, 3_600_200)]);
        assert!(matches!(set[1], Forward { ms: 100..200 }), "{set:?}");
        // A step that a drift explains does: from then on the speed may change by as much as a clock is slewed.
        assert_eq!(courses(&[(0, 0), (10_000, 99), (20_000, 202)])[1], Even);
    }

    #[test]
    fn a_speed_is_learned_over_an_hour() {
        use Course::{Even, Forward};
        let even = (0..21).map(|nth| (nth * 500, 0));
        let seen = courses(&even.chain([(100_000, 80)]).collect::<Vec<_>>());
        assert!(matches!(seen[20], Forward { ms: 5..30 }), "{seen:?}");
        // A clock that has gone evenly may be slewed back as well.
        assert_eq!(courses(&[(0, 0), (50_000, 0), (100_000, 0), (160_000, -20)]), [Even; 3]);
        // If no time has passed, no speed is known, however far the clock was set.
        let set = courses(&[(0, 0), (0, 36_000_000), (60_000, 36_000_050)]);
        assert_eq!(set[1], Even);
    }

    #[test]
    fn a_step_exceeds_the_early_end_of_a_key() {
        use Course::{Back, Even, Forward};
        // No time passes, so that the speed of the clock leaves nothing open: 2 ms of the answers, and 2 ms
        // more.
        assert_eq!(courses(&[(0, 0), (0, 4)]), [Even]);
        assert_eq!(courses(&[(0, 0), (0, -4)]), [Even]);
        let by = |ns: i64| {
            let shown = Showing { shown: ns, ..showing(0, 0) };
            Offset::of(&showing(0, 0)).note(&shown, Drift::DEFAULT)
        };
        assert_eq!([by(4 * MS + 1), by(-4 * MS - 1)], [Forward { ms: 2 }, Back { ms: 2 }]);
    }

    #[test]
    fn two_readings_at_one_moment_agree() {
        let mut offset = Offset::of(&showing(0, 0));
        assert_eq!(offset.note(&showing(0, 2), Drift::DEFAULT), Course::Even);
        assert_eq!((offset.least, offset.most), (MS, MS));
    }

    /// Rounding must not cut off a speed that the clock may have.
    #[test]
    fn the_speed_is_rounded_outward() {
        const SINCE: i64 = 7_000;
        let after = |ahead: i64| {
            let mut offset = Offset::of(&showing(0, 0));
            offset.note(&showing(SINCE, ahead), Drift::DEFAULT);
            (offset.slowest, offset.fastest)
        };
        // The clock is ahead by this, plus or minus 2 ms. And it may be slewed.
        let is_faster = |speed: Option<i64>, ahead: i64| {
            (speed.unwrap() - Offset::SLEW) * SINCE > (ahead + 2) * 1_000_000
        };
        let is_slower = |speed: Option<i64>, ahead: i64| {
            (speed.unwrap() + Offset::SLEW) * SINCE < (ahead - 2) * 1_000_000
        };
        assert!(is_faster(after(3).1, 3) && is_slower(after(-3).0, -3));
        // This may be no step, but a fast clock.
        let (slowest, fastest) = after(60);
        assert!(slowest.is_none() && is_faster(fastest, 60), "{fastest:?}");
    }

    #[test]
    fn close_readings_leave_an_interval() {
        let mut offset = Offset::of(&showing(0, 0));
        assert_eq!(offset.note(&showing(10, 3), Drift::DEFAULT), Course::Even);
        let new = Offset::of(&showing(10, 3));
        assert_eq!((offset.least, offset.most), (new.least, new.most), "{offset:?}");
    }

    #[test]
    fn the_interval_narrows_with_each_reading() {
        let slow = Showing { heard: Moment::from_nanos(900 * MS), ..showing(0, 0) };
        let mut offset = Offset::of(&slow);
        assert_eq!(offset.note(&showing(1_000, 400), Drift::DEFAULT), Course::Forward { ms: 397 });
        let mut offset = Offset::of(&slow);
        assert_eq!(offset.note(&showing(1_000, 0), Drift::DEFAULT), Course::Even);
        assert_eq!(offset.note(&showing(1_001, 6), Drift::DEFAULT), Course::Forward { ms: 3 });
        // A slow answer does not widen the interval.
        let slow = Showing { heard: Moment::from_nanos(1_900 * MS), ..showing(1_002, 6) };
        assert_eq!(offset.note(&slow, Drift::DEFAULT), Course::Even);
        assert_eq!(offset.note(&showing(1_003, 12), Drift::DEFAULT), Course::Forward { ms: 4 });
        // An answer that was carried out late does not widen it either.
        let late = Showing { shown: 18_012 * MS, heard: Moment::from_nanos(18_000 * MS), ..slow };
        let mut offset = Offset::of(&showing(1_003, 12));
        assert_eq!(offset.note(&late, Drift::DEFAULT), Course::Even);
        let set = offset.note(&showing(18_001, 112), Drift::DEFAULT);
        assert!(matches!(set, Course::Forward { ms: 70..100 }), "{set:?}");
    }

    #[test]
    fn the_clock_is_estimated_between_two_readings() {
        let offset = Offset::of(&showing(0, 70));
        assert_eq!(offset.middle_ns(), 70 * MS);
        let shown = offset.shown_ms(Moment::from_nanos(100 * MS));
        assert!((170..=171).contains(&shown), "{shown}");
    }

    #[test]
    fn a_speed_does_not_overflow() {
        let century_ns = 100 * 365 * 86_400_000 * MS;
        for (change, time, expected) in [
            (century_ns, century_ns, 1_000_000),
            (-century_ns, 2 * century_ns, -500_000),
            (i64::MAX, 1, i64::MAX / 2),
        ] {
            assert_eq!(speed(change, time), expected);
        }
    }
}
