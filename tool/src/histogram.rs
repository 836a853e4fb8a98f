//! Durations, drawn with bars.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::time;

/// The measurements, from the shortest to the longest.
pub(crate) struct Histogram {
    times: Vec<Duration>,
}

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

impl Histogram {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { times }
    }

    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }

    /// The duration that `part` of a thousand measurements do not exceed.
    pub(crate) fn permille(&self, part: usize) -> Duration {
        let place = (self.times.len() * part).div_ceil(1000).saturating_sub(1);
        self.times.get(place).copied().unwrap_or_default()
    }

    /// Buckets, each a quarter longer than the one before: the end of the bucket, and its number of
    /// measurements.
    fn buckets(&self) -> Vec<(Duration, usize)> {
        let Some(first) = self.times.first() else { return Vec::new() };
        let mut end = first.max(&Duration::from_micros(1)).mul_f64(1.25);
        let mut buckets = vec![(end, 0)];
        for time in &self.times {
            while *time > end {
                end = end.mul_f64(1.25);
                buckets.push((end, 0));
            }
            if let Some(last) = buckets.last_mut() {
                last.1 += 1;
            }
        }
        buckets
    }

    /// One line for each bucket, with bars of at most `width` columns.
    pub(crate) fn draw(&self, width: usize) -> String {
        let buckets = self.buckets();
        let most = buckets.iter().map(|it| it.1).max().unwrap_or(1).max(1);
        let mut text = String::new();
        for (end, count) in buckets {
            let eighths = (count * width * 8).div_ceil(most);
            let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
            let pad = width.saturating_sub(bar.chars().count());
            let _ =
                writeln!(text, "  ≤ {:>8}  {bar}{}  {count}", time::short(end), " ".repeat(pad));
        }
        text
    }

    pub(crate) fn as_json(&self) -> Value {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let buckets =
            self.buckets().into_iter().map(|it| json!({"up_to_us": us(it.0), "count": it.1}));
        json!({"count": self.count(), "p50_us": us(self.permille(500)), "p90_us": us(self.permille(900)),
            "p99_us": us(self.permille(990)), "p999_us": us(self.permille(999)),
            "max_us": us(self.permille(1000)), "buckets": buckets.collect::<Vec<_>>()})
    }

    /// A summary in one line.
    pub(crate) fn summary(&self) -> String {
        let part = |permille| time::short(self.permille(permille));
        let (half, most, nearly, all) = (part(500), part(900), part(990), part(1000));
        format!("p50 {half}, p90 {most}, p99 {nearly}, max {all}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measurement_is_in_a_bucket_and_bars_fit() {
        let times = (1..=1000).map(Duration::from_micros).collect();
        let histogram = Histogram::new(times);
        assert_eq!(histogram.buckets().iter().map(|it| it.1).sum::<usize>(), 1000);
        assert_eq!(histogram.permille(500), Duration::from_micros(500));
        assert_eq!(histogram.permille(1000), Duration::from_micros(1000));
        for line in histogram.draw(20).lines() {
            assert!(line.matches(['█', '▏', '▎', '▍', '▌', '▋', '▊', '▉']).count() <= 20, "{line}");
        }
        assert_eq!(Histogram::new(Vec::new()).draw(20), "");
    }
}
