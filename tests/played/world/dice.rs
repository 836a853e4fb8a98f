//! Random numbers that are the same again with the same seed.

#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Separate dice for one of many, so that its rolls do not affect the others.
    pub(crate) fn of(seed: u64, kind: u64, which: usize) -> Self {
        let mut dice = Self(seed ^ (kind << 56) ^ ((which as u64 + 1) << 40));
        Self(dice.roll())
    }

    /// The next number of Steele, Lea and Flood's SplitMix64.
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        it ^ (it >> 31)
    }

    /// From `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        let span = most.abs_diff(least) + 1;
        least + (self.roll() % span) as i64
    }

    /// Less than `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.roll() % count as u64) as usize
    }

    /// True once in this many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.roll().is_multiple_of(times)
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
