//! How long a lock is valid. All times are integers, and nothing overflows.

use crate::protocol::moment::Moment;

/// The longest TTL: ten years of 365 days. It is longer than any lock needs, and short enough that every sum of
/// times fits into 64 bits of nanoseconds and into what servers accept.
pub const TTL_MAX_MS: i64 = 10 * 365 * 24 * 3600 * 1000;

/// This is taken off in addition to the drift. A server expires keys by a clock of whole milliseconds that it
/// reads once per command, so a key may go up to 2 ms early.
const EXPIRY_PRECISION_MS: i64 = 2;

/// How much faster a server's clock may run than ours, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift(f64);

impl Drift {
    /// One percent, the value of the Redlock page.
    pub const DEFAULT: Self = Self(0.01);

    /// What servers report about the end of a key may differ from the true end by this much.
    pub const PRECISION_MS: i64 = EXPIRY_PRECISION_MS;

    /// A factor of at least 0 and less than 1.
    pub fn new(factor: f64) -> Option<Self> {
        (0.0..1.0).contains(&factor).then_some(Self(factor))
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// What must be taken off a span of `ms` so that the rest is certain.
    pub fn allowance_ms(self, ms: i64) -> i64 {
        self.share_ms(ms).saturating_add(EXPIRY_PRECISION_MS)
    }

    /// By how much a span of `ms` may be shorter on a server's clock.
    pub fn share_ms(self, ms: i64) -> i64 {
        // A double counts integers exactly up to 2^53, and TTL_MAX_MS is far below that.
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
        let share = (ms as f64 * self.0).ceil() as i64;
        share
    }

    /// The part of a TTL that is certain; 0 or less if there is none.
    pub fn validity_ms(self, ttl_ms: i64) -> i64 {
        ttl_ms.saturating_sub(self.allowance_ms(ttl_ms))
    }

    /// Until when a lock is valid if its first request was sent at `start` or later.
    pub fn deadline(self, start: Moment, ttl_ms: i64) -> Moment {
        start.plus_ms(self.validity_ms(ttl_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drift_is_rounded_up() {
        assert_eq!(Drift::DEFAULT.validity_ms(10_000), 9_898);
        assert_eq!(Drift::DEFAULT.validity_ms(1), -2);
        assert_eq!(Drift::DEFAULT.validity_ms(3), 0);
        assert_eq!(Drift::DEFAULT.validity_ms(4), 1);
        assert_eq!(Drift::DEFAULT.validity_ms(101), 97);
    }

    #[test]
    fn no_ttl_overflows() {
        assert_eq!(TTL_MAX_MS, 315_360_000_000);
        assert!(Drift::DEFAULT.validity_ms(i64::MAX) > 0);
        assert!(Drift::DEFAULT.validity_ms(i64::MIN) < 0);
        let far = Drift::DEFAULT.deadline(Moment::from_nanos(1 << 62), TTL_MAX_MS);
        assert!(far > Moment::from_nanos(1 << 62));
    }

    #[test]
    fn a_drift_factor_is_a_fraction() {
        assert_eq!(Drift::new(0.25).map(Drift::factor), Some(0.25));
        assert!(Drift::new(0.0).is_some());
        assert!([-0.1, 1.0, f64::NAN, f64::INFINITY].iter().all(|&it| Drift::new(it).is_none()));
    }
}
