//! What is known of a server's memory before its connection is up. Either the server has a note already, or
//! it is given one.

use super::{Change, Link, State};
use crate::command::guard::{Borne, Mark, Note};
use crate::command::handshake::Memory;
use crate::moment::Moment;
use crate::quorum::offset::Showing;
use crate::system::clock;
use crate::transport::guard::Guard;
use crate::transport::server_registry::{Seen, Verdict};

/// Other servers are waited for during 1 / this part of the connect timeout, because they decide whether a
/// server without a note is new.
const WAIT_PART: i64 = 2;

impl Link {
    /// All questions of the handshake are answered. The connection is up, unless the server must be marked
    /// first. It is refused if the same server is in the list under another name as well.
    pub(super) fn admit(&mut self, now: Moment) -> Option<Change> {
        let State::Handshake { handshake, .. } = &mut self.state else { return None };
        let (memory, capabilities) = (handshake.memory(), handshake.capabilities());
        self.identity = handshake.identity().clone();
        if let Some(id) = self.identity.run_id()
            && let Err(twin) = self.server_registry.enter(self.place, id, &self.name())
        {
            let why = format!("it is the same server as {twin}: each server has one vote");
            return self.connect_failed(why, now);
        }
        self.note_clock(memory);
        let guard = match memory {
            Memory::NotAsked => Guard::default(),
            Memory::Untold => {
                self.server_registry.note(self.place, Seen::Untold);
                Guard::blind()
            }
            Memory::Read(id, reading) => match reading.note {
                Borne::Note(note) if note.id == id => self.remember(&note, reading.now_ms(), now),
                Borne::Note(_) if self.identity.is_durable() => {
                    return self.mark(Mark::Kept, now);
                }
                Borne::Note(_) | Borne::Gibberish => return self.mark(Mark::Lost, now),
                Borne::Nothing => {
                    self.server_registry.note(self.place, Seen::Missing);
                    return self.end_waiting(now);
                }
            },
        };
        let is_looked_at = guard.reads();
        let capabilities = if is_looked_at { capabilities } else { capabilities.without_clock() };
        self.come_up(capabilities, guard, now)
    }

    /// Notes the clock that the server has shown since the handshake began.
    fn note_clock(&self, memory: Memory) {
        let (&State::Handshake { since, .. }, Memory::Read(id, reading)) = (&self.state, memory)
        else {
            return;
        };
        let in_ns = |us: i64| us.saturating_mul(1_000);
        let (shown, grain) = (in_ns(reading.now_us), in_ns(reading.grain_us));
        let showing = Showing { shown, grain, sent: since, heard: clock::now() };
        self.clock.note(id, &showing, self.server_registry.rules().drift());
    }

    /// Handles a server that has a note of its own process.
    fn remember(&self, note: &Note, clock_ms: i64, now: Moment) -> Guard {
        let seen = match note.young_ms(clock_ms) {
            0 => Seen::Marked,
            left_ms => Seen::Young { until: now.plus_ms(left_ms) },
        };
        self.server_registry.note(self.place, seen);
        Guard::of(note, clock_ms, now, self.server_registry.rules())
    }

    /// When [`Self::handle_due`] must be called for a handshake that began at `since`.
    pub(super) fn handshake_due(&self, is_asking: bool, since: Moment) -> Moment {
        if is_asking {
            since.plus_ms(self.timeouts.connect_ms())
        } else if self.server_registry.verdict(self.place, clock::now()).is_some() {
            Moment::from_nanos(0)
        } else {
            since.plus_ms(self.timeouts.connect_ms() / WAIT_PART)
        }
    }

    /// Handles a server without a note. Gives it one if it is known whether the server is new, or if the time
    /// to wait for other servers is over.
    pub(super) fn end_waiting(&mut self, now: Moment) -> Option<Change> {
        let State::Handshake { handshake, since, .. } = &self.state else { return None };
        let Memory::Read(_, reading) = handshake.memory() else { return None };
        let connect_ms = self.timeouts.connect_ms();
        if now >= since.plus_ms(connect_ms / WAIT_PART) {
            self.server_registry.end_waiting(self.place);
        }
        // After this time it is too late to mark the server as new, because this connection has been given
        // up.
        let until_ms = reading.now_ms().saturating_add(connect_ms);
        match self.server_registry.verdict(self.place, now)? {
            Verdict::Fresh => self.mark(Mark::Fresh { until_ms }, now),
            Verdict::Lost => self.mark(Mark::Lost, now),
        }
    }

    fn mark(&mut self, mark: Mark, now: Moment) -> Option<Change> {
        let State::Handshake { handshake, .. } = &mut self.state else { return None };
        handshake.mark(self.server_registry.rules().longest_ms(), mark, &mut self.outbox);
        self.send(now)
    }
}
