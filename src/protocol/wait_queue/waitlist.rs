//! Where this manager stands in line for one resource on the servers, and what it was told there.
//!
//! All waiters of the manager share one place there. The head of their queue asks for the place, and hears what
//! the servers tell.

use std::mem;
use std::time::Duration;

use crate::protocol::moment::Moment;
use crate::protocol::quorum::backoff::jitter;
use crate::protocol::quorum::hand_overs::HandOvers;
use crate::protocol::server_set::ServerSet;

/// After one server has told the head that the resource is free, the head asks two round trips later on
/// average. It does so even if fewer servers than a quorum have told it, because other clients may have been
/// told in its place. After each try in vain the time may be up to twice as long. Otherwise clients that got in
/// each other's way might do that again and again. The number of doublings is limited.
const SPREAD_ROUND_TRIPS: u32 = 2;
const DOUBLINGS_MAX: u32 = 3;

/// Bounds of the assumed round trip.
const ROUND_TRIP_MIN: Duration = Duration::from_micros(200);
const ROUND_TRIP_MAX: Duration = Duration::from_millis(20);

/// What a server says of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueRank {
    /// Nobody has the resource, so we do not stand in line.
    Free,
    /// We stand in line, behind this many others.
    Behind(u32),
}

/// The place of one manager in line for one resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waitlist {
    /// Since when the manager waits, in microseconds since 1970; none if it does not stand in line.
    since_us: Option<i64>,
    /// The engine's place of the operation that asked last.
    asker: Option<usize>,
    /// The servers where the manager may stand in line, and those where the resource is free as far as it
    /// knows.
    enrolled: ServerSet,
    free: ServerSet,
    /// The servers that told it so since it last asked for its place.
    fresh: ServerSet,
    /// The servers that were found to be free since the last try to take the lock, and when the first of them
    /// was.
    news: ServerSet,
    news_at: Option<Moment>,
    /// The servers where it has given up its place. What they tell may have been on the way.
    left: ServerSet,
    /// How long after the first news the head asks.
    grace: Duration,
    /// How many tries were in vain since it got in line.
    in_vain: u32,
    /// Whether it has lost a place to another waiter of this manager, and must ask for it again.
    has_lost: bool,
    /// Whether the resource changes hands and no server tells.
    untold: HandOvers,
}

impl Waitlist {
    /// The head is about to try to take the lock, through the operation at this place in the engine. Servers
    /// that were known to be free may not be free any more.
    pub(crate) fn begin_attempt(&mut self, asker: usize) {
        self.asker = Some(asker);
        (self.free, self.news) = (ServerSet::default(), ServerSet::default());
        // A try that is refused asks for a place. A try that reaches no server has a pause as usual.
        (self.news_at, self.has_lost) = (None, false);
    }

    /// A try that failed had taken the lock on these servers, and has released it again. That is no news.
    pub(crate) fn note_returned(&mut self, servers: ServerSet) {
        self.in_vain += u32::from(self.is_listening());
        self.free = self.free.union(servers);
    }

    /// The head is about to ask for its place in line, through the operation at this place in the engine.
    /// Returns since when it waits.
    pub(crate) fn begin_look(&mut self, asker: usize, wall_us: i64) -> i64 {
        self.asker = Some(asker);
        (self.fresh, self.has_lost) = (ServerSet::default(), false);
        // Anything that is told from now on is meant for this wait.
        self.left = ServerSet::default();
        *self.since_us.get_or_insert(wall_us)
    }

    /// Servers have answered the question for the place, after this round trip. Of the `unheard` servers it is
    /// not known whether they have carried it out. `random` is uniform over all of u64.
    pub(crate) fn note(
        &mut self,
        heard: &[(usize, QueueRank)],
        unheard: ServerSet,
        (round_trip, random): (Duration, u64),
        now: Moment,
    ) {
        let round_trip = round_trip.clamp(ROUND_TRIP_MIN, ROUND_TRIP_MAX);
        let spread = (SPREAD_ROUND_TRIPS << self.in_vain.min(DOUBLINGS_MAX)) * round_trip;
        self.grace = round_trip + jitter(spread, random);
        self.enrolled = self.enrolled.union(unheard);
        // Except for what these servers have told since, nothing is known of them.
        let unknown = unheard.minus(self.fresh);
        self.free = self.free.minus(unknown);
        self.news = self.news.minus(unknown);
        for &(server, place) in heard {
            match place {
                // The server has told since then that the resource is free.
                QueueRank::Behind(_) if self.fresh.contains(server) => {}
                QueueRank::Behind(_) => {
                    self.enrolled = self.enrolled.with(server);
                    self.free = self.free.without(server);
                    self.news = self.news.without(server);
                }
                QueueRank::Free => self.note_free(server, now),
            }
        }
        if self.news.is_empty() {
            // Another client was faster.
            self.news_at = None;
        }
    }

    /// These servers were asked for a place in line, and their answers are not waited for.
    pub(crate) fn note_asked(&mut self, servers: ServerSet) {
        self.enrolled = self.enrolled.union(servers);
    }

    /// A server has told that the resource is free. If the head has asked it something that it has not answered
    /// yet, the server told this before it got that question.
    pub(super) fn note_pushed(&mut self, server: usize, is_asked: bool, now: Moment) {
        self.enrolled = self.enrolled.without(server);
        self.untold.note_told();
        if !is_asked {
            self.fresh = self.fresh.with(server);
            self.note_free(server, now);
        }
    }

    /// The place on this server was taken by another waiter of this manager, because one channel has one place
    /// in each line. Returns whether it had a place.
    pub(super) fn lose_place(&mut self, server: usize) -> bool {
        let had_one = self.is_listening() && self.enrolled.contains(server);
        self.enrolled = self.enrolled.without(server);
        self.has_lost |= had_one;
        had_one
    }

    /// Whether it must ask for its place again at once. This is true only once, because there is a pause as
    /// usual if no server can be reached.
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
    /// If a quorum is free already and none of that is news, there is nothing to hear. In that case a try had
    /// slots of a semaphore on all of these servers, but not one slot on a quorum.
    pub(crate) fn will_hear(&self, quorum: usize) -> bool {
        let is_free = self.news_at.is_none() && self.free.len() >= quorum;
        self.since_us.is_some() && self.enrolled.union(self.free).len() >= quorum && !is_free
    }

    /// What is known of hand-overs of which no server tells.
    pub(crate) fn untold(&mut self) -> &mut HandOvers {
        &mut self.untold
    }

    /// Whether a waiter that comes later would go on with what is known here.
    pub(super) fn is_needed(&self, now: Moment) -> bool {
        self.untold.is_remembered(now)
    }

    /// Whether servers may tell it something.
    pub(crate) fn is_listening(&self) -> bool {
        self.since_us.is_some()
    }

    /// When the head must try to take the lock, by what it was told.
    pub(crate) fn due(&self, quorum: usize) -> Moment {
        match self.news_at {
            Some(news_at) if self.free.len() >= quorum => news_at,
            Some(news_at) => news_at.plus(self.grace),
            None => Moment::NEVER,
        }
    }

    /// The servers where it may stand in line, or that told it something.
    pub(super) fn servers(&self) -> ServerSet {
        if self.is_listening() { self.enrolled.union(self.free) } else { ServerSet::default() }
    }

    /// It no longer stands in line. Returns the servers that must be told.
    pub(crate) fn leave(&mut self) -> ServerSet {
        let left = self.enrolled.union(self.free);
        let servers = self.servers();
        *self = Self { left, untold: self.untold.leave(), ..Self::default() };
        servers
    }

    /// The engine's place of the operation that asked last.
    pub(super) fn asker(&self) -> Option<usize> {
        self.asker
    }

    /// Whether the message of this server was on the way when the place was given up. This is true only once.
    pub(super) fn take_left(&mut self, server: usize) -> bool {
        let has_left = self.left.contains(server);
        self.left = self.left.without(server);
        has_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With this, the grace is two round trips.
    const RTT: (Duration, u64) = (Duration::from_millis(1), 1 << 63);

    fn at_ms(ms: i64) -> Moment {
        Moment::from_nanos(1_000_000_000).plus_ms(ms)
    }

    fn set(servers: &[usize]) -> ServerSet {
        servers.iter().copied().collect()
    }

    /// A line with a place on three servers.
    fn enrolled() -> Waitlist {
        let mut line = Waitlist::default();
        assert_eq!(line.begin_look(0, 7), 7);
        let heard = [0, 1].map(|server| (server, QueueRank::Behind(0)));
        line.note(&heard, set(&[2]), RTT, at_ms(0));
        assert!(line.will_hear(2) && line.due(2) == Moment::NEVER);
        line
    }

    #[test]
    fn the_head_asks_soon_after_the_first_push() {
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
    fn a_try_after_a_lost_place_asks_for_it_once() {
        let mut line = enrolled();
        assert!(line.lose_place(0));
        line.begin_attempt(0);
        assert!(!line.take_lost_place(), "a try that reaches nobody has a pause");
        assert!(line.lose_place(1) && line.take_lost_place());
        assert!(!line.take_lost_place(), "it did not get as far as that");
    }

    #[test]
    fn a_place_keeps_its_age() {
        let mut line = enrolled();
        assert_eq!(line.begin_look(3, 99), 7);
        line.leave();
        assert_eq!(line.begin_look(3, 99), 99);
    }

    #[test]
    fn a_failed_try_counts_its_own_releases() {
        let mut line = enrolled();
        line.begin_attempt(0);
        line.note_returned(set(&[0]));
        line.begin_look(0, 7);
        line.note(&[(0, QueueRank::Free), (1, QueueRank::Behind(1))], set(&[2]), RTT, at_ms(3));
        // The try was in vain.
        assert_eq!(line.grace, Duration::from_millis(3));
        assert_eq!(line.due(2), Moment::NEVER);
        line.note_pushed(1, false, at_ms(9));
        assert_eq!(line.due(2), at_ms(9));
    }

    #[test]
    fn a_free_server_is_news() {
        let mut line = enrolled();
        line.begin_look(0, 7);
        line.note(&[(1, QueueRank::Free), (0, QueueRank::Behind(0))], set(&[]), RTT, at_ms(3));
        assert_eq!(line.due(2), at_ms(5));
    }

    #[test]
    fn only_a_push_after_the_answer_counts() {
        for is_asked in [false, true] {
            let mut line = enrolled();
            line.begin_look(0, 7);
            line.note_pushed(0, is_asked, at_ms(1));
            line.note(
                &[(0, QueueRank::Behind(0)), (1, QueueRank::Behind(0))],
                set(&[]),
                RTT,
                at_ms(2),
            );
            assert_eq!(line.due(2) == Moment::NEVER, is_asked);
        }
    }

    #[test]
    fn a_leaving_waiter_tells_the_servers_of_its_places() {
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
    fn with_a_free_quorum_there_is_no_push_to_wait_for() {
        let mut line = enrolled();
        line.begin_attempt(0);
        line.note_returned(set(&[0, 1]));
        line.begin_look(0, 7);
        line.note(&[(0, QueueRank::Free), (1, QueueRank::Free)], set(&[]), RTT, at_ms(3));
        assert!(!line.will_hear(2) && line.due(2) == Moment::NEVER);
        line.note_pushed(2, false, at_ms(4));
        assert!(line.will_hear(2) && line.due(2) == at_ms(4));
    }
}
