//! Clocks that may be ahead, run too fast or too slow, stand still or step.

pub(crate) const MS: i64 = 1_000_000;

/// The time that a clock shows, as a function of true time; both in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// In the order of their beginnings. The first begins before everything else.
    stretches: Vec<Stretch>,
}

/// From `from` on, the clock shows `shown`, and advances by `per_million` for each million.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: i64,
    shown: i64,
    per_million: i64,
}

impl Stretch {
    fn read(&self, time: i64) -> i64 {
        let passed = time - self.from;
        self.shown + passed + passed * (self.per_million - MS) / MS
    }

    /// The first time at which it shows this or more, if it moves.
    fn when(&self, shown: i64) -> Option<i64> {
        let ahead = i128::from(shown) - i128::from(self.shown);
        let rate = i128::from(self.per_million);
        let passed = (ahead * i128::from(MS) + rate - 1).checked_div(rate)?;
        Some(i64::try_from(i128::from(self.from) + passed.max(0)).unwrap_or(i64::MAX))
    }
}

impl Clock {
    pub(crate) fn new(ahead: i64, per_million: i64) -> Self {
        Self { stretches: vec![Stretch { from: 0, shown: ahead, per_million }] }
    }

    pub(crate) fn read(&self, time: i64) -> i64 {
        let stretch = self.stretches.iter().rev().find(|it| it.from <= time);
        stretch.map_or(0, |it| it.read(time))
    }

    /// The first time at which it shows this or more, if it never steps back.
    pub(crate) fn when(&self, shown: i64) -> i64 {
        let ends = self.stretches.iter().skip(1).map(|it| it.from).chain([i64::MAX]);
        let reached = self.stretches.iter().zip(ends);
        let mut reached = reached.filter_map(|(it, end)| it.when(shown).filter(|&at| at < end));
        reached.next().unwrap_or(i64::MAX)
    }

    /// When it will show this, if nothing more happens to it.
    pub(crate) fn will_show(&self, shown: i64) -> i64 {
        self.stretches.last().and_then(|it| it.when(shown)).unwrap_or(i64::MAX)
    }

    /// It steps by this amount.
    pub(crate) fn step(&mut self, now: i64, by: i64) {
        self.begin(now, by, self.rate());
    }

    /// Whether it was set back in this time.
    pub(crate) fn was_set_back_within(&self, from: i64, until: i64) -> bool {
        self.steps_within(from, until).any(|by| by < 0)
    }

    /// Whether it was set forward in this time.
    pub(crate) fn was_set_forward_within(&self, from: i64, until: i64) -> bool {
        self.steps_within(from, until).any(|by| by > 0)
    }

    fn steps_within(&self, from: i64, until: i64) -> impl Iterator<Item = i64> {
        let starts =
            self.stretches.windows(2).filter(move |it| (from..=until).contains(&it[1].from));
        starts.map(|it| it[1].shown - it[0].read(it[1].from))
    }

    /// It stands still for this time.
    pub(crate) fn stand_still(&mut self, now: i64, ns: i64) {
        let rate = self.rate();
        self.begin(now, 0, 0);
        self.begin(now + ns, 0, rate);
    }

    fn begin(&mut self, from: i64, by: i64, per_million: i64) {
        let shown = self.read(from) + by;
        self.stretches.push(Stretch { from, shown, per_million });
    }

    /// Its rate when it moves.
    fn rate(&self) -> i64 {
        self.stretches.iter().map(|it| it.per_million).find(|&it| it > 0).unwrap_or(MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_clock_can_be_inverted() {
        let mut clock = Clock::new(7 * MS, 1_010_000);
        clock.stand_still(500 * MS, 100 * MS);
        for shown in [8 * MS, 300 * MS + 1, 500 * MS, 900 * MS] {
            let at = clock.when(shown);
            assert!(clock.read(at) >= shown && clock.read(at - 1) < shown, "{shown}");
        }
        clock.step(2_000 * MS, -100 * MS);
        assert_eq!(clock.read(2_000 * MS) - clock.read(2_000 * MS - 100), 101 - 100 * MS);
    }
}
