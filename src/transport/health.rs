//! Whether enough servers were connected a moment ago. Every call wants to know that before it begins,
//! and with many threads it would be a second time that each of them waits for the mutex.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crate::moment::Moment;

/// For how long what was seen is good enough. A connection that was quiet for longer than a few times
/// this is looked at before it is trusted, so it has to be much less.
const FRESH_MS: i64 = 10;

#[derive(Debug, Default)]
pub(super) struct Health {
    servers: AtomicUsize,
    fresh_until: AtomicI64,
}

impl Health {
    /// So many servers are connected. Called with the mutex held, as is [`Self::spoil`].
    pub(super) fn note(&self, servers: usize, now: Moment) {
        self.servers.store(servers, Ordering::Relaxed);
        self.fresh_until.store(now.plus_ms(FRESH_MS).as_nanos(), Ordering::Release);
    }

    /// A connection was lost: it has to be looked at anew.
    pub(super) fn spoil(&self) {
        self.fresh_until.store(i64::MIN, Ordering::Release);
    }

    /// Whether so many were connected a moment ago, and no connection was lost since.
    pub(super) fn is_good(&self, enough: usize, now: Moment) -> bool {
        now.as_nanos() < self.fresh_until.load(Ordering::Acquire)
            && self.servers.load(Ordering::Relaxed) >= enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_good_for_a_moment_and_until_a_connection_is_lost() {
        let (health, now) = (Health::default(), Moment::from_nanos(1));
        assert!(!health.is_good(0, now));
        health.note(3, now);
        assert!(health.is_good(3, now.plus_ms(FRESH_MS - 1)) && !health.is_good(4, now));
        assert!(!health.is_good(3, now.plus_ms(FRESH_MS)));
        health.spoil();
        assert!(!health.is_good(3, now));
    }
}
