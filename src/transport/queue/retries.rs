//! Requests that must reach a server which refuses them for now. One is tried again now and then, and all of
//! them when that succeeds.

use super::Queue;
use crate::command::Answer;
use crate::moment::Moment;
use crate::transport::entries::Entry;

/// How often a server is probed that refuses requests which must reach it, and how many more requests are
/// sent with each that succeeds.
const PROBE_MS: i64 = 200;
const RESENT_MAX: usize = 8;

impl Queue {
    /// When [`Self::probe`] is due.
    pub(in crate::transport) fn probe_at(&self) -> Moment {
        self.probe_at
    }

    /// Tries one of the refused requests again, if that is due.
    pub(in crate::transport) fn probe(&mut self, now: Moment) {
        if now >= self.probe_at {
            self.refused.retain_mut(|refused| refused.is_worth_sending(now));
            self.unsent.take_from(&mut self.refused, 1);
            self.probe_at = Moment::NEVER;
            self.plan_probe(now);
        }
    }

    /// A request that undoes another was answered. If it was refused, it is kept for another try, as long as
    /// it must reach the server. Otherwise more of the refused requests are sent.
    pub(super) fn retry(&mut self, entry: Entry, answer: &Answer, now: Moment) {
        if !matches!(answer, Answer::Failed(_)) {
            self.unsent.take_from(&mut self.refused, RESENT_MAX);
        } else if entry.is_worth_sending(now) {
            self.refused.push_back(entry);
        }
        self.plan_probe(now);
    }

    fn plan_probe(&mut self, now: Moment) {
        if self.refused.is_empty() {
            self.probe_at = Moment::NEVER;
        } else if self.probe_at == Moment::NEVER {
            self.probe_at = now.plus_ms(PROBE_MS);
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::super::samples::{NOW, fresh, request, send, settle};
    use super::*;
    use crate::command::Verb;

    #[test]
    fn a_refused_release_is_retried_until_it_succeeds() {
        let mut queue = fresh();
        for _ in 0..3 {
            queue.push(&request(Verb::Release), None, NOW);
        }
        send(&mut queue, NOW);
        let error = redis::parse_redis_value(b"-READONLY no\r\n").unwrap();
        for _ in 0..3 {
            settle(&mut queue, std::slice::from_ref(&error)).unwrap();
        }
        assert_eq!(send(&mut queue, NOW), 0);
        let later = queue.probe_at();
        queue.probe(later);
        let one = send(&mut queue, later);
        assert!(one > 0);
        settle(&mut queue, &[Value::Int(1)]).unwrap();
        // The text of the script is sent once.
        assert!(send(&mut queue, later) > one);
        (0..2).for_each(|_| drop(settle(&mut queue, &[Value::Int(1)]).unwrap()));
        assert!(queue.is_done());
        assert_eq!(queue.probe_at(), Moment::NEVER);
    }

    #[test]
    fn refused_releases_are_probed_and_sent_in_groups() {
        const COUNT: usize = 3 * RESENT_MAX;
        let mut queue = fresh();
        (0..COUNT).for_each(|_| queue.push(&request(Verb::Release), None, NOW));
        send(&mut queue, NOW);
        let error = redis::parse_redis_value(b"-READONLY no\r\n").unwrap();
        let refuse = |queue: &mut Queue| drop(settle(queue, std::slice::from_ref(&error)));
        (0..COUNT).for_each(|_| refuse(&mut queue));
        for nth in 1..=2 {
            let at = NOW.plus_ms(nth * PROBE_MS);
            assert_eq!(queue.probe_at(), at);
            queue.probe(at);
            assert_eq!((queue.unsent.len(), queue.probe_at()), (1, at.plus_ms(PROBE_MS)));
            send(&mut queue, at);
            if nth == 1 {
                refuse(&mut queue);
            }
        }
        settle(&mut queue, &[Value::Int(1)]).unwrap();
        assert_eq!(queue.unsent.len(), RESENT_MAX);
    }

    #[test]
    fn refused_releases_of_expired_keys_are_forgotten() {
        let mut queue = fresh();
        (0..3).for_each(|_| queue.push(&request(Verb::Release), None, NOW));
        send(&mut queue, NOW);
        let error = redis::parse_redis_value(b"-READONLY no\r\n").unwrap();
        (0..3).for_each(|_| drop(settle(&mut queue, std::slice::from_ref(&error)).unwrap()));
        assert_eq!(queue.length(), 3);
        queue.probe(NOW.plus_ms(10_000));
        assert_eq!((queue.length(), queue.probe_at()), (0, Moment::NEVER));
    }
}
