//! Where this manager stands in line for one resource, on the servers, and what it was told there.
//!
//! All waiters of the manager have one place there: the head of their queue asks for it, and hears what is told.

use std::mem;
use std::time::Duration;

use crate::moment::Moment;
use crate::quorum::backoff::jitter;
use crate::server_set::ServerSet;

/// Two round trips in the mean after it was told by one server the head asks, although not so many as a quorum have told
/// it: others may have been told in its place. After each try in vain it may be up to twice as long, so that those who
/// got in each other's way do not do that again and again; for so many of them.
const SPREAD_ROUND_TRIPS: u32 = 2;
const DOUBLINGS_MAX: u32 = 3;

/// Bounds of what is taken for a round trip.
const ROUND_TRIP_MIN: Duration = Duration::from_micros(200);
const ROUND_TRIP_MAX: Duration = Duration::from_millis(20);

/// For how long a place in line is kept for a waiter that has gone away and comes again: the next slice of its wait.
const KEEP_MS: i64 = 1_000;

/// What a server says of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nobody has the resource: we do not stand in line.
    Free,
    /// We stand in line, behind so many.
    Behind(u32),
}

/// The place of one manager in line for one resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// Since when it waits, in microseconds since 1970; none if it does not stand in line.
    since_us: Option<i64>,
    /// The place of the operation that asked last.
    asker: Option<usize>,
    /// Where it may stand in line, and where the resource is free as far as it knows.
    enrolled: ServerSet,
    free: ServerSet,
    /// Those of which it was told so since it last asked for its place.
    fresh: ServerSet,
    /// Those that were found to be free since the last try to take the lock, and when the first of them was.
    news: ServerSet,
    news_at: Option<Moment>,
    /// Where it has given up its place: what they tell may have been on the way.
    left: ServerSet,
    /// How long after the first news the head asks.
    grace: Duration,
    /// How many tries were in vain since it stands in line.
    in_vain: u32,
    /// Whether it has lost a place by something else of this manager, and is to ask for it again.
    has_lost: bool,
    /// Until when it stands in line although nobody waits.
    kept_until: Option<Moment>,
}

impl Line {
    /// The head is about to try to take the lock, by the operation at this place: what was known to be free need not be
    /// any more.
    pub(crate) fn begin_attempt(&mut self, asker: usize) {
        self.asker = Some(asker);
        (self.free, self.news) = (ServerSet::default(), ServerSet::default());
        // A try that is refused asks for a place; one that reaches nobody has a pause as ever.
        (self.news_at, self.kept_until, self.has_lost) = (None, None, false);
    }

    /// A try that failed had taken these, and has released them again. That is no news.
    pub(crate) fn note_returned(&mut self, servers: ServerSet) {
        self.in_vain += u32::from(self.is_listening());
        self.free = self.free.union(servers);
    }

    /// The head is about to ask for its place, by the operation at this place. Returns since when it waits.
    pub(crate) fn begin_look(&mut self, asker: usize, wall_us: i64) -> i64 {
        self.asker = Some(asker);
        (self.fresh, self.kept_until, self.has_lost) = (ServerSet::default(), None, false);
        // What is told from now on is meant for this wait.
        self.left = ServerSet::default();
        *self.since_us.get_or_insert(wall_us)
    }

    /// Servers have answered that, after so long; of others it is not known whether they have done it. `random` is uniform
    /// over all of u64.
    pub(crate) fn note(
        &mut self,
        heard: &[(usize, Place)],
        unheard: ServerSet,
        (round_trip, random): (Duration, u64),
        now: Moment,
    ) {
        let round_trip = round_trip.clamp(ROUND_TRIP_MIN, ROUND_TRIP_MAX);
        let spread = (SPREAD_ROUND_TRIPS << self.in_vain.min(DOUBLINGS_MAX)) * round_trip;
        self.grace = round_trip + jitter(spread, random);
        self.enrolled = self.enrolled.union(unheard);
        // But for what they have told since, nobody knows.
        let unknown = unheard.minus(self.fresh);
        self.free = self.free.minus(unknown);
        self.news = self.news.minus(unknown);
        for &(server, place) in heard {
            match place {
                // It has told since that it is free.
                Place::Behind(_) if self.fresh.contains(server) => {}
                Place::Behind(_) => {
                    self.enrolled = self.enrolled.with(server);
                    self.free = self.free.without(server);
                    self.news = self.news.without(server);
                }
                Place::Free => self.note_free(server, now),
            }
        }
        if self.news.is_empty() {
            // Somebody else was faster.
            self.news_at = None;
        }
    }

    /// These were asked for a place in line, and what they answer is not waited for.
    pub(crate) fn note_asked(&mut self, servers: ServerSet) {
        self.enrolled = self.enrolled.union(servers);
    }

    /// A server has told that the resource is free. If the head has asked it something that it has not answered yet, it
    /// did that before.
    pub(super) fn note_pushed(&mut self, server: usize, is_asked: bool, now: Moment) {
        self.enrolled = self.enrolled.without(server);
        if !is_asked {
            self.fresh = self.fresh.with(server);
            self.note_free(server, now);
        }
    }

    /// Its place on this server was taken by something else of this manager: one channel has one place in each line.
    /// Returns whether it had one.
    pub(super) fn lose_place(&mut self, server: usize) -> bool {
        let had_one = self.is_listening() && self.enrolled.contains(server);
        self.enrolled = self.enrolled.without(server);
        self.has_lost |= had_one;
        had_one
    }

    /// Whether it is to ask for its place again at once. It is asked once: where nobody can be reached, there is a pause as
    /// ever.
    pub(crate) fn take_lost_place(&mut self) -> bool {
        mem::take(&mut self.has_lost)
    }

    fn note_free(&mut self, server: usize, now: Moment) {
        if !self.free.contains(server) {
            self.free = self.free.with(server);
            self.news = self.news.with(server);
            self.news_at.get_or_insert(now);
        }
    }

    /// Whether it stands in line on so many servers that it will hear when a quorum is free.
    ///
    /// Where a quorum is free already and none of that is news, there is nothing to hear: a try had slots of a semaphore on
    /// all of them, but not one slot on a quorum.
    pub(crate) fn will_hear(&self, quorum: usize) -> bool {
        let is_free = self.news_at.is_none() && self.free.len() >= quorum;
        self.since_us.is_some() && self.enrolled.union(self.free).len() >= quorum && !is_free
    }

    /// Whether it may be told something.
    pub(crate) fn is_listening(&self) -> bool {
        self.since_us.is_some()
    }

    /// When the head is to try to take the lock, by what it was told.
    pub(crate) fn due(&self, quorum: usize) -> Moment {
        match self.news_at {
            Some(news_at) if self.free.len() >= quorum => news_at,
            Some(news_at) => news_at.plus(self.grace),
            None => Moment::NEVER,
        }
    }

    /// Where it may stand in line, or was told something.
    pub(super) fn servers(&self) -> ServerSet {
        if self.is_listening() { self.enrolled.union(self.free) } else { ServerSet::default() }
    }

    /// It stands in line no more. Returns the servers that have to be told.
    pub(crate) fn leave(&mut self) -> ServerSet {
        let left = self.enrolled.union(self.free);
        let servers = self.servers();
        *self = Self { left, ..Self::default() };
        servers
    }

    /// Nobody waits for now, but somebody will be back soon.
    pub(super) fn keep(&mut self, now: Moment) {
        (self.asker, self.kept_until) = (None, Some(now.plus_ms(KEEP_MS)));
    }

    /// Whether it is kept for somebody.
    pub(super) fn is_kept(&self, now: Moment) -> bool {
        self.is_listening() && self.kept_until.is_some_and(|until| now < until)
    }

    /// The place of the operation that asked last.
    pub(super) fn asker(&self) -> Option<usize> {
        self.asker
    }

    /// Whether what this server tells was on the way when the place was given up. It is asked once.
    pub(super) fn take_left(&mut self, server: usize) -> bool {
        let has_left = self.left.contains(server);
        self.left = self.left.without(server);
        has_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With this the grace is two round trips.
    const RTT: (Duration, u64) = (Duration::from_millis(1), 1 << 63);

    fn at_ms(ms: i64) -> Moment {
        Moment::from_nanos(1_000_000_000).plus_ms(ms)
    }

    fn set(servers: &[usize]) -> ServerSet {
        servers.iter().copied().collect()
    }

    /// In line on three servers.
    fn enrolled() -> Line {
        let mut line = Line::default();
        assert_eq!(line.begin_look(0, 7), 7);
        let heard = [0, 1].map(|server| (server, Place::Behind(0)));
        line.note(&heard, set(&[2]), RTT, at_ms(0));
        assert!(line.will_hear(2) && line.due(2) == Moment::NEVER);
        line
    }

    #[test]
    fn the_head_asks_when_a_quorum_is_free_or_a_little_after_the_first() {
        let mut line = enrolled();
        line.note_pushed(1, false, at_ms(5));
        assert_eq!(line.due(2), at_ms(7));
        line.note_pushed(1, false, at_ms(6));
        assert_eq!(line.due(2), at_ms(7));
        line.note_pushed(2, false, at_ms(6));
        assert_eq!(line.due(2), at_ms(5));
        line.begin_attempt(0);
        assert_eq!(line.due(2), Moment::NEVER);
    }

    #[test]
    fn who_tries_after_it_has_lost_its_place_does_not_ask_for_it_again_and_again() {
        let mut line = enrolled();
        assert!(line.lose_place(0));
        line.begin_attempt(0);
        assert!(!line.take_lost_place(), "a try that reaches nobody has a pause");
        assert!(line.lose_place(1) && line.take_lost_place());
        assert!(!line.take_lost_place(), "it did not get as far as that");
    }

    #[test]
    fn its_place_stays_as_old_as_it_is() {
        let mut line = enrolled();
        assert_eq!(line.begin_look(3, 99), 7);
        line.leave();
        assert_eq!(line.begin_look(3, 99), 99);
    }

    #[test]
    fn what_a_failed_try_has_released_counts_for_a_quorum_and_is_no_news() {
        let mut line = enrolled();
        line.begin_attempt(0);
        line.note_returned(set(&[0]));
        line.begin_look(0, 7);
        line.note(&[(0, Place::Free), (1, Place::Behind(1))], set(&[2]), RTT, at_ms(3));
        // It was in vain.
        assert_eq!(line.grace, Duration::from_millis(3));
        assert_eq!(line.due(2), Moment::NEVER);
        line.note_pushed(1, false, at_ms(9));
        assert_eq!(line.due(2), at_ms(9));
    }

    #[test]
    fn a_server_that_is_found_free_is_news() {
        let mut line = enrolled();
        line.begin_look(0, 7);
        line.note(&[(1, Place::Free), (0, Place::Behind(0))], set(&[]), RTT, at_ms(3));
        assert_eq!(line.due(2), at_ms(5));
    }

    #[test]
    fn what_was_told_after_the_answer_counts_and_what_was_told_before_does_not() {
        for is_asked in [false, true] {
            let mut line = enrolled();
            line.begin_look(0, 7);
            line.note_pushed(0, is_asked, at_ms(1));
            line.note(&[(0, Place::Behind(0)), (1, Place::Behind(0))], set(&[]), RTT, at_ms(2));
            assert_eq!(line.due(2) == Moment::NEVER, is_asked);
        }
    }

    #[test]
    fn who_leaves_tells_those_where_it_may_stand_or_was_told_in_vain() {
        let mut line = enrolled();
        line.note_pushed(1, false, at_ms(1));
        line.begin_attempt(0);
        line.note_pushed(2, true, at_ms(1));
        assert_eq!(line.leave(), set(&[0]));
        assert!(line.take_left(0) && !line.take_left(0) && !line.take_left(1));
        assert_eq!(line.leave(), set(&[]));
        let mut line = enrolled();
        line.leave();
        line.begin_look(0, 7);
        assert!(!line.take_left(2), "what is told now is meant for the next wait");
        let mut line = enrolled();
        line.note_pushed(1, false, at_ms(1));
        assert_eq!(line.leave(), set(&[0, 1, 2]));
    }

    #[test]
    fn who_comes_again_soon_keeps_its_place() {
        let mut line = enrolled();
        line.keep(at_ms(0));
        assert!(line.is_kept(at_ms(KEEP_MS - 1)) && !line.is_kept(at_ms(KEEP_MS)));
        line.begin_look(1, 9);
        assert!(!line.is_kept(at_ms(1)));
    }

    #[test]
    fn where_a_quorum_is_free_already_there_is_nothing_to_hear() {
        let mut line = enrolled();
        line.begin_attempt(0);
        line.note_returned(set(&[0, 1]));
        line.begin_look(0, 7);
        line.note(&[(0, Place::Free), (1, Place::Free)], set(&[]), RTT, at_ms(3));
        assert!(!line.will_hear(2) && line.due(2) == Moment::NEVER);
        line.note_pushed(2, false, at_ms(4));
        assert!(line.will_hear(2) && line.due(2) == at_ms(4));
    }
}
