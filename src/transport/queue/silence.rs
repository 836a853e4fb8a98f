//! How long an answer is waited for before another connection is opened, and before this one is given up.

use super::Queue;
use crate::moment::Moment;
use crate::transport::timeouts::Timeouts;

/// The minimum time to wait for an answer before the connection is given up as dead.
const SILENCE_MIN_MS: i64 = 5_000;

/// How long an answer must be owed before another connection is opened: at least so many milliseconds, and at
/// least so many reply timeouts.
const OVERDUE_MIN_MS: i64 = 1_000;
const OVERDUE_TIMEOUTS: i64 = 4;

impl Queue {
    /// When the oldest unanswered request was sent.
    pub(in crate::transport) fn owes_since(&self) -> Option<Moment> {
        self.awaiting.front().map(|entry| entry.since)
    }

    /// When the oldest request has been unanswered for so long that another connection is opened.
    pub(in crate::transport) fn overdue_at(&self, timeouts: &Timeouts) -> Moment {
        let Some(oldest) = self.awaiting.front() else { return Moment::NEVER };
        let reply_ms = timeouts.reply_ms(oldest.request.ttl_ms());
        let most_ms = reply_ms.saturating_mul(OVERDUE_TIMEOUTS).max(OVERDUE_MIN_MS);
        oldest.since.plus_ms(most_ms)
    }

    /// A request with this TTL is sent now.
    pub(super) fn bear_silence(&mut self, ttl_ms: i64, now: Moment) {
        let enough = now.plus_ms(ttl_ms.max(SILENCE_MIN_MS));
        self.silent_until = self.silent_until.max(Some(enough));
    }

    /// The server has sent something, so the connection is alive.
    pub(in crate::transport) fn hear(&mut self, now: Moment) {
        let enough = now.plus_ms(SILENCE_MIN_MS);
        self.silent_until = self.silent_until.max(Some(enough));
    }

    /// When a silent server is given up: once the longest TTL in flight is over.
    pub(in crate::transport) fn give_up_at(&self) -> Option<Moment> {
        if self.awaiting.is_empty() { None } else { self.silent_until }
    }

    /// Whether the server has been silent for so long that it is given up.
    pub(in crate::transport) fn is_silent(&self, now: Moment) -> bool {
        self.give_up_at().is_some_and(|at| now >= at)
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::super::samples::{NOW, fresh, request, send, settle};
    use super::*;
    use crate::command::Verb;

    #[test]
    fn silence_is_tolerated_for_the_longest_ttl() {
        let mut queue = fresh();
        assert_eq!(queue.give_up_at(), None);
        queue.push(&request(Verb::Acquire), None, NOW);
        send(&mut queue, NOW);
        assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(10_000)));
        queue.hear(NOW.plus_ms(9_000));
        assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(14_000)));
        // A request that was answered does not lengthen the wait for the next one.
        settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
        assert_eq!(queue.give_up_at(), None);
        queue.push(&request(Verb::Acquire), None, NOW);
        send(&mut queue, NOW);
        assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(10_000)));
    }

    #[test]
    fn a_short_ttl_does_not_shorten_the_wait_for_a_longer_one() {
        let mut queue = fresh();
        queue.push(&request(Verb::Acquire), None, NOW);
        send(&mut queue, NOW);
        queue.bear_silence(1, NOW.plus_ms(100));
        assert_eq!(queue.give_up_at(), Some(NOW.plus_ms(10_000)));
    }

    #[test]
    fn an_answer_is_overdue_after_four_reply_timeouts() {
        let timeouts = Timeouts::default();
        let mut queue = fresh();
        assert_eq!(queue.overdue_at(&timeouts), Moment::NEVER);
        queue.push(&request(Verb::Acquire), None, NOW.plus_ms(-700));
        assert_eq!(queue.overdue_at(&timeouts), Moment::NEVER, "it was not even sent");
        send(&mut queue, NOW);
        queue.push(&request(Verb::Acquire), None, NOW.plus_ms(5));
        send(&mut queue, NOW.plus_ms(5));
        // The default reply timeout is a twentieth of the TTL of 10 s.
        for (set_ms, overdue_ms) in [(0, 2_000), (1, 1_000), (250, 1_000), (251, 1_004)] {
            timeouts.set(1_500, set_ms);
            assert_eq!(queue.overdue_at(&timeouts), NOW.plus_ms(overdue_ms), "{set_ms}");
        }
        timeouts.set(1_500, i64::MAX);
        assert_eq!(queue.overdue_at(&timeouts), Moment::NEVER);
        // After an answer the next request counts, whatever it is.
        timeouts.set(1_500, 0);
        settle(&mut queue, &[Value::Okay, Value::Int(10_000)]).unwrap();
        assert_eq!(queue.overdue_at(&timeouts), NOW.plus_ms(2_005));
    }
}
