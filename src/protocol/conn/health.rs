//! Whether enough servers were connected a moment ago. Every call checks this before it begins.

use crate::protocol::moment::Moment;

/// How long an observation stays valid. A connection that was quiet for longer than a few times this value is
/// checked before it is trusted, so this must be much less.
const FRESH_MS: i64 = 10;

#[derive(Debug)]
pub(crate) struct Health {
    servers: usize,
    fresh_until: Moment,
}

impl Default for Health {
    fn default() -> Self {
        Self { servers: 0, fresh_until: Moment::from_nanos(i64::MIN) }
    }
}

impl Health {
    /// Notes that so many servers are connected.
    pub(crate) fn note(&mut self, servers: usize, now: Moment) {
        (self.servers, self.fresh_until) = (servers, now.plus_ms(FRESH_MS));
    }

    /// A connection was lost, so the connections must be checked again.
    pub(crate) fn spoil(&mut self) {
        *self = Self::default();
    }

    /// Whether so many servers were connected a moment ago, and no connection was lost since.
    pub(crate) fn is_good(&self, enough: usize, now: Moment) -> bool {
        now < self.fresh_until && self.servers >= enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_lasts_a_moment_or_until_a_lost_connection() {
        let (mut health, now) = (Health::default(), Moment::from_nanos(1));
        assert!(!health.is_good(0, now));
        health.note(3, now);
        assert!(health.is_good(3, now.plus_ms(FRESH_MS - 1)) && !health.is_good(4, now));
        assert!(!health.is_good(3, now.plus_ms(FRESH_MS)));
        health.spoil();
        assert!(!health.is_good(3, now));
    }
}
