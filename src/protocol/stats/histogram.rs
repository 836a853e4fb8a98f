//! Histograms of durations. The bounds are fixed, so nothing is allocated and histograms can be added up.

/// The upper bounds of the buckets, in microseconds. The last bucket has none.
pub const BOUNDS_US: [i64; BUCKETS - 1] = [
    25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

pub const BUCKETS: usize = 21;

/// A histogram of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    pub count: u64,
    pub sum_us: i64,
    /// The number of durations in each bucket: at most its bound, and more than the bound of the bucket
    /// before it.
    pub buckets: [u64; BUCKETS],
}

impl Histogram {
    /// Counts one more duration.
    pub(crate) fn observe(&mut self, us: i64) {
        self.buckets[BOUNDS_US.partition_point(|&bound| bound < us)] += 1;
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(own, it)| *own += it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_includes_its_bound() {
        for (place, &bound) in BOUNDS_US.iter().enumerate() {
            let mut histogram = Histogram::default();
            for us in [bound - 1, bound, bound + 1] {
                histogram.observe(us);
            }
            assert_eq!((histogram.buckets[place], histogram.buckets[place + 1]), (2, 1), "{bound}");
            assert_eq!((histogram.count, histogram.sum_us), (3, 3 * bound));
        }
        let mut histogram = Histogram::default();
        histogram.observe(0);
        histogram.observe(i64::MAX);
        histogram.observe(1);
        assert_eq!((histogram.buckets[0], histogram.buckets[BUCKETS - 1]), (2, 1));
        assert_eq!(histogram.sum_us, i64::MAX);
    }

    #[test]
    fn bucket_bounds_grow() {
        assert!(BOUNDS_US.is_sorted_by(|one, two| one < two));
    }

    #[test]
    fn histograms_add_up() {
        let (mut one, mut two, mut both) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        one.observe(3);
        [700, 90_000_000].iter().for_each(|&us| two.observe(us));
        [3, 700, 90_000_000].iter().for_each(|&us| both.observe(us));
        one.add(&two);
        assert_eq!(one, both);
    }
}
