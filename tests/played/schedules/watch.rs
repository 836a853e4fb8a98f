//! What a client can know of a server's clock, in true time, and whether it could have seen that the clock
//! was set.
//!
//! The client knows only that a reading was made between its request and its reply. With two readings it
//! can detect a step that is longer than the sum of: the time that the first request was on its way to the
//! server, the time that the second reply was on its way back, 2 ms for the resolution of a clock, 2 ms
//! that are no step, and a thousandth of the time in between. A client without a reading from before the
//! step cannot detect it. Steps that nobody could see are outside the promise (A4); no other steps are.

use std::collections::VecDeque;

use crate::schedules::holes::Told;
use crate::schedules::schedule::Sin;
use crate::world::World;
use crate::world::clocks::MS;
use crate::world::store::Deed;

/// Clocks show milliseconds, and a difference of less than two of them is no step.
const GRAIN: i64 = 4 * MS;

/// A part of the time between two readings.
const PART: i64 = 1_000;

/// A server is asked for its note before its clock is read, or after that.
const NOTE: &[u8] = b"redlock:guard";

/// A reading of a clock.
#[derive(Clone, Copy)]
struct Reading {
    at: i64,
    /// The server's clock minus the client's, in truth.
    offset: i64,
    /// How long the request was on its way, and how long the reply was.
    there: i64,
    back: i64,
}

/// What one manager of a client knows of one server.
#[derive(Default)]
pub(crate) struct Watch {
    /// The readings since it last saw a step.
    readings: Vec<Reading>,
    /// The times when it could see a step.
    seen: Vec<i64>,
}

/// What one connection has under way.
#[derive(Default)]
pub(crate) struct Sight {
    /// How many bytes the client has offered to the socket, and since when.
    offered: Vec<(usize, i64)>,
    sent: usize,
    /// How many of them the server has read as requests, and where the last request begins.
    served: usize,
    begin: usize,
    read: usize,
    /// Readings, each with the end of the reply that the client waits for before it looks at the clock,
    /// once that end is known.
    under_way: VecDeque<(Option<usize>, Reading)>,
    has_note: bool,
    has_grant: bool,
    /// What the client is told of the server's memory, each with the end of the reply.
    pub(crate) told: VecDeque<(usize, Told)>,
}

impl Sight {
    pub(crate) fn note_offer(&mut self, bytes: usize, taken: usize, now: i64) {
        let end = self.sent + bytes;
        if self.offered.last().is_none_or(|it| it.0 < end) {
            self.offered.push((end, now));
        }
        self.sent += taken;
    }

    pub(crate) fn begin_request(&mut self, bytes: usize) {
        self.begin = self.served;
        self.served += bytes;
    }

    /// The next thing that the client was told, if it has read the whole reply.
    pub(crate) fn next_told(&mut self) -> Option<Told> {
        let read = self.read;
        self.told
            .front()
            .is_some_and(|it| it.0 <= read)
            .then(|| self.told.pop_front())?
            .map(|it| it.1)
    }

    /// When the client had this request to send. A handshake is one request.
    pub(crate) fn sent_at(&self) -> Option<i64> {
        let begin = if self.has_note { self.begin } else { 0 };
        self.offered.iter().find(|it| it.0 > begin).map(|it| it.1)
    }
}

impl Watch {
    pub(crate) fn seen(&self) -> &[i64] {
        &self.seen
    }

    fn note(&mut self, new: Reading) {
        let heard_at = new.at + new.back;
        let doubt = |old: &Reading| GRAIN + (heard_at - old.at + old.there).max(0) / PART;
        let ahead = |old: &Reading| new.offset - old.offset - old.there - new.back > doubt(old);
        let behind = |old: &Reading| old.offset - new.offset - old.back - new.there > doubt(old);
        let is_ahead = self.readings.iter().any(ahead);
        if is_ahead {
            self.seen.push(heard_at);
        }
        if is_ahead || self.readings.iter().any(behind) {
            self.readings.clear();
        }
        self.readings.push(new);
    }
}

impl World {
    fn is_watched(&self) -> bool {
        self.schedule.is_guarded && self.schedule.has(Sin::LeapingClocks)
    }

    /// A server has answered. The answer ends after `end` bytes of what it sends now.
    pub(crate) fn note_reading(
        &mut self,
        connection: usize,
        words: &[&[u8]],
        deed: &Deed<'_>,
        (reply, end): (&[u8], usize),
    ) {
        if !self.is_watched() {
            return;
        }
        let (now, it) = (self.now, &self.connections[connection]);
        let end = it.sent_back() + end;
        let clocks = (&self.servers[it.server].clock, &self.clients[it.client].clock);
        let offset = clocks.0.read(now) - clocks.1.read(now);
        let sight = &mut self.connections[connection].sight;
        if let Deed::Acquire { done, .. } | Deed::Move { done, .. } = *deed {
            sight.has_grant = done;
        }
        let is_note = words[0] == b"GETRANGE" && words.get(1) == Some(&NOTE);
        let reads = match words[0] {
            b"TIME" => reply.first() != Some(&b'-'),
            b"PEXPIRETIME" => sight.has_grant && matches!(deed, Deed::Notice { .. }),
            _ => false,
        };
        if is_note {
            if let Some(it) = sight.under_way.back_mut() {
                it.0.get_or_insert(end);
            }
            sight.has_note = true;
        } else if let (true, Some(sent_at)) = (reads, sight.sent_at()) {
            // The note follows, except after a command that reads the time of an acquire.
            let is_last = words[0] == b"TIME" && sight.has_note;
            let reading = Reading { at: now, offset, there: now - sent_at, back: 0 };
            sight.under_way.push_back((is_last.then_some(end), reading));
        }
    }

    /// The client has read more bytes.
    pub(crate) fn note_read(&mut self, connection: usize, bytes: usize) {
        let now = self.now;
        let it = &mut self.connections[connection];
        it.sight.read += bytes;
        self.note_heard(connection);
        let it = &self.connections[connection];
        let (client, manager, server) = (it.client, it.manager, it.server);
        while let Some(&(Some(end), reading)) = self.connections[connection].sight.under_way.front()
            && end <= self.connections[connection].sight.read
        {
            self.connections[connection].sight.under_way.pop_front();
            let watch = self.watches.entry((client, manager, server)).or_default();
            watch.note(Reading { back: now - reading.at, ..reading });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading at this time, with the travel times of request and reply, after the clock had been set by
    /// `set_ms`.
    fn reading(at_ms: i64, there_ms: i64, back_ms: i64, set_ms: i64) -> Reading {
        Reading { at: at_ms * MS, offset: set_ms * MS, there: there_ms * MS, back: back_ms * MS }
    }

    /// The times when a step could be seen, in milliseconds.
    fn seen(readings: &[Reading]) -> Vec<i64> {
        let mut watch = Watch::default();
        readings.iter().for_each(|it| watch.note(*it));
        watch.seen.iter().map(|it| it / MS).collect()
    }

    #[test]
    fn a_step_longer_than_the_trips_is_seen() {
        assert_eq!(seen(&[reading(10, 20, 1, 0), reading(100, 20, 3, 28)]), [103]);
        assert_eq!(seen(&[reading(10, 20, 1, 0), reading(100, 20, 3, 27)]), []);
        // The way back before the step does not matter, and neither does the way there after it.
        assert_eq!(seen(&[reading(10, 1, 20, 0), reading(100, 40, 3, 9)]), [103]);
        // The best of all readings counts.
        let slow = reading(10, 20, 1, 0);
        assert_eq!(seen(&[slow, reading(50, 1, 1, 0), slow, reading(100, 1, 3, 9)]), [103]);
        // Clocks may differ by a thousandth of the time in between.
        assert_eq!(seen(&[reading(10, 1, 0, 0), reading(10_010, 0, 0, 15)]), []);
        assert_eq!(seen(&[reading(10, 1, 0, 0), reading(10_010, 0, 0, 16)]), [10_010]);
    }

    #[test]
    fn readings_before_a_seen_step_do_not_count_for_the_next() {
        let (first, set) = (reading(10, 1, 1, 0), reading(20, 1, 1, 100));
        assert_eq!(seen(&[first]), []);
        assert_eq!(seen(&[first, set, reading(30, 1, 1, 103)]), [21]);
        assert_eq!(seen(&[first, set, reading(30, 1, 1, 120)]), [21, 31]);
        // The clock is set back, and forward again.
        assert_eq!(seen(&[set, first, reading(30, 1, 1, 100)]), [31]);
    }
}
